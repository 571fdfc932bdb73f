#include "trace/records.h"

#define BLOCK_BYTES (128u * 1024u)

enum trace_error
records_cut_short(struct input *in, size_t size, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: cut short: it ends within a record (of %zu bytes)", input_name(in),
             size);
    return TRACE_NOT_A_TRACE;
}

enum trace_error
records_read(struct input *in, struct trace_builder *builder, size_t size, records_parse *parse,
             char *why, size_t why_size)
{
    uint64_t number = 0;

    for (;;) {
        struct span ahead = input_peek(in, BLOCK_BYTES);
        size_t count = ahead.len / size;

        for (size_t i = 0; i < count; i++) {
            struct trace_entry entry = TRACE_ENTRY_EMPTY;

            entry.line = ++number;
            if (!parse(ahead.ptr + i * size, &entry))
                trace_add_bad(builder, number, span_str("(a binary record)"));
            else if (!trace_add(builder, &entry))
                return TRACE_OK;
        }
        input_take(in, count * size);
        if (count == 0)
            return ahead.len == 0 ? TRACE_OK : records_cut_short(in, size, why, why_size);
    }
}
