#include "trace/formats.h"

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

const struct trace_format *
trace_format_sniff(struct span head)
{
    for (size_t i = 0; trace_formats[i]; i++) {
        if (trace_formats[i]->sniff(head))
            return trace_formats[i];
    }
    return NULL;
}
