#include "trace/formats.h"

#include "trace/lines.h"

/* From the most particular to the least: a list of URLs is any text with a URL in it. */
const struct trace_format *const trace_formats[] = {
    &trace_format_firefox,
    &trace_format_chrome,
    &trace_format_har,
    &trace_format_zeek,
    &trace_format_access,
    &trace_format_squid,
    &trace_format_adaptsize,
    &trace_format_table,
    &trace_format_wc98,
    &trace_format_oracle,
    &trace_format_cache2k,
    &trace_format_urls,
    NULL,
};

const struct trace_format *
trace_format_find(const char *name)
{
    for (size_t i = 0; trace_formats[i]; i++) {
        if (strcmp(trace_formats[i]->name, name) == 0)
            return trace_formats[i];
    }
    return NULL;
}

struct span
trace_behind_mark(struct span head)
{
    struct span mark = span_str("\xef\xbb\xbf");

    return span_starts_with(head, mark) ? span_of(head.ptr + mark.len, head.len - mark.len) : head;
}

const struct trace_format *
trace_format_sniff(struct span head)
{
    const struct trace_format *best = NULL;
    struct span text = trace_behind_mark(head);
    size_t most = 0;

    for (size_t i = 0; trace_formats[i]; i++) {
        const struct trace_format *f = trace_formats[i];
        struct span seen = f->is_text ? text : head;

        if (f->sniff ? f->sniff(seen) : lines_sniff(seen, f->lines))
            return f;
    }
    for (size_t i = 0; trace_formats[i]; i++) {
        size_t count = trace_formats[i]->lines ? lines_count(text, trace_formats[i]->lines) : 0;

        if (count > most) {
            most = count;
            best = trace_formats[i];
        }
    }
    return best;
}
