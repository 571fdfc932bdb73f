#include "trace/formats/records.h"

#define BLOCK_BYTES (128u * 1024u)
#define BATCH 24u

enum trace_error
records_cut_short(struct input *in, size_t size, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: cut short: it ends within a record (of %zu bytes)", input_name(in),
             size);
    return TRACE_NOT_A_TRACE;
}

/* `count` records, at most BATCH; the first has number `number`. False: stop reading. */
static bool
add_batch(struct trace_builder *builder, const char *records, size_t size, size_t count,
          uint64_t number, records_parse *parse)
{
    struct trace_request requests[BATCH];
    bool good[BATCH];

    for (size_t i = 0; i < count; i++) {
        requests[i] = TRACE_REQUEST_EMPTY;
        requests[i].line = number + i;
        good[i] = parse(records + i * size, &requests[i]);
        if (good[i])
            trace_add_soon(builder, &requests[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (!good[i])
            trace_add_bad(builder, number + i, span_str("(a binary record)"));
        else if (!trace_add(builder, &requests[i]))
            return false;
    }
    return true;
}

enum trace_error
records_read(struct input *in, struct trace_builder *builder, size_t size, records_parse *parse,
             char *why, size_t why_size)
{
    uint64_t number = 1;

    for (;;) {
        struct span ahead = input_peek(in, BLOCK_BYTES);
        size_t count = ahead.len / size;

        for (size_t i = 0; i < count; i += BATCH) {
            size_t batch = count - i < BATCH ? count - i : BATCH;

            if (!add_batch(builder, ahead.ptr + i * size, size, batch, number + i, parse))
                return TRACE_OK;
        }
        number += count;
        input_take(in, count * size);
        if (count == 0)
            return ahead.len == 0 ? TRACE_OK : records_cut_short(in, size, why, why_size);
    }
}
