/*
 * libCacheSim's oracleGeneral: packed records of 24 bytes, little endian: u32 time in seconds, u64
 * id, u32 size, i64 number (from 1) of the next request for that id, or -1 or INT64_MAX where there
 * is none, or -2 where it is not known. The last is used for recognition only.
 */
#include "trace/formats/formats.h"
#include "trace/formats/records.h"

#define RECORD 24u
#define BATCH 64u /* few enough that what is fetched ahead for one stays near */
#define MICRO INT64_C(1000000)
#define SNIFF_RECORDS 100u
#define SNIFF_NEXT_MOST (INT64_C(1) << 40U)

/*
 * Each next request lies ahead, and is for the same id as far as it can be seen. Where none can,
 * times must not go back.
 */
static bool
sniff(struct span head)
{
    uint64_t count = head.len / RECORD;
    uint64_t confirmed = 0;
    bool in_order = true;

    for (uint64_t i = 0; i < count && i < SNIFF_RECORDS; i++) {
        const char *record = head.ptr + i * RECORD;
        int64_t next = (int64_t)records_le64(record + 16);

        in_order = in_order && (i == 0 || records_le32(record - RECORD) <= records_le32(record));
        if (next == -1 || next == -2 || next == INT64_MAX)
            continue;
        if (next < (int64_t)i + 2 || next > SNIFF_NEXT_MOST)
            return false;
        if ((uint64_t)next <= count) {
            if (records_le64(head.ptr + ((uint64_t)next - 1) * RECORD + 4) !=
                records_le64(record + 4))
                return false;
            confirmed++;
        }
    }
    return count != 0 && (in_order || confirmed != 0);
}

static enum trace_error
read_requests(struct input *in, const struct trace_options *options, struct trace_builder *builder,
              char *why, size_t why_size)
{
    struct trace_numbered batch[BATCH];

    (void)options;
    for (;;) {
        struct span ahead = input_peek(in, BATCH * RECORD);
        size_t count = ahead.len / RECORD < BATCH ? ahead.len / RECORD : BATCH;

        for (size_t i = 0; i < count; i++) {
            const char *record = ahead.ptr + i * RECORD;

            batch[i].time_us = records_le32(record) * MICRO;
            batch[i].number = records_le64(record + 4);
            batch[i].size = records_le32(record + 12);
        }
        if (!trace_add_numbered(builder, batch, count))
            return TRACE_OK;
        input_take(in, count * RECORD);
        if (count == 0)
            return ahead.len == 0 ? TRACE_OK : records_cut_short(in, RECORD, why, why_size);
    }
}

const struct trace_format trace_format_oracle = {
    .name = "oracle",
    .summary = "libCacheSim's oracleGeneral",
    .unit = "record",
    .sniff = sniff,
    .read = read_requests,
};
