/*
 * The traces of cache2k's benchmarks: nothing but ids of 32 bits, big endian.
 */
#include "trace/formats/formats.h"
#include "trace/formats/records.h"

#define RECORD 4u
#define SNIFF_LEAST 2u
#define SNIFF_ID_MOST (1u << 24u)

static bool
parse(const char *record, struct trace_request *request)
{
    request->number = records_be32(record);
    return true;
}

/*
 * The format has no mark: ids are small numbers, and not all bytes are zero, as at the start of a
 * log after a crash. Hence its place near the end of the table of formats.
 */
static bool
sniff(struct span head)
{
    size_t count = head.len / RECORD;
    uint32_t any = 0;

    if (count < SNIFF_LEAST || head.len % RECORD != 0)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (records_be32(head.ptr + i * RECORD) >= SNIFF_ID_MOST)
            return false;
        any |= records_be32(head.ptr + i * RECORD);
    }
    return any != 0;
}

static enum trace_error
read_ids(struct input *in, const struct trace_options *options, struct trace_builder *builder,
         char *why, size_t why_size)
{
    (void)options;
    return records_read(in, builder, RECORD, parse, why, why_size);
}

const struct trace_format trace_format_cache2k = {
    .name = "cache2k",
    .summary = "cache2k's ids of 32 bits, big endian",
    .unit = "record",
    .sniff = sniff,
    .read = read_ids,
};
