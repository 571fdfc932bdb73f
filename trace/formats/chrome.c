/*
 * Chrome's History, as Chromium and the browsers built on it write it (components/history/core/
 * browser/, schema versions from 16 on): an SQLite database with the tables urls(id, url, ...) and
 * visits(id, url, visit_time, transition, ...), where visits.url is a urls.id and times are
 * microseconds since 1601-01-01 UTC.
 */
#include "trace/formats/formats.h"
#include "trace/formats/history.h"

/* PAGE_TRANSITION_CHAIN_END (ui/base/page_transition_types.h): the end of a chain of redirects. */
#define CHAIN_END "0x20000000"

static const struct history history = {
    .tables = {"visits", "urls"},
    .visits = "v.visit_time, v.url, NULL, NULL",
    .visits_and_redirects =
        "v.visit_time, v.url, ((v.transition & " CHAIN_END ") != 0) IS NOT TRUE, NULL",
    .urls = "SELECT u.id, u.url FROM urls AS u NOT INDEXED",
    .expected = "expected Chrome's tables urls(id, url) and visits(id, url, visit_time)",
    .epoch_us = 11644473600000000,
};

static enum trace_error
read_visits(struct input *in, const struct trace_options *options, struct trace_builder *builder,
            char *why, size_t why_size)
{
    return history_read(in, &history, options, builder, why, why_size);
}

const struct trace_format trace_format_chrome = {
    .name = "chrome",
    .summary = "the History file of Chrome or a browser built on it",
    .unit = "visit",
    .sniff = history_is_sqlite,
    .by_path = true,
    .read = read_visits,
};
