/*
 * Safari's History.db: an SQLite database with the tables history_items(id, url, ...) and
 * history_visits(id, history_item, visit_time, redirect_source, redirect_destination, ...), times
 * in seconds with a fraction since 2001-01-01 UTC. A visit that was redirected names the visit that
 * it led to.
 */
#include "trace/formats/formats.h"
#include "trace/formats/history.h"

static const struct history history = {
    .tables = {"history_visits", "history_items"},
    .visits = "v.visit_time, v.history_item, NULL, NULL",
    .visits_and_redirects =
        "v.visit_time, v.history_item, v.redirect_destination IS NOT NULL, NULL",
    .urls = "SELECT u.id, u.url FROM history_items AS u NOT INDEXED",
    .expected = "expected Safari's tables history_items(id, url) and "
                "history_visits(id, history_item, visit_time)",
    .epoch_us = -INT64_C(978307200000000),
    .in_seconds = true,
};

/* The table's row in the schema, see firefox.c. */
static bool
sniff(struct span head)
{
    static const char table[] = "tablehistory_visitshistory_visits";

    return history_is_sqlite(head) && memmem(head.ptr, head.len, table, sizeof(table) - 1);
}

static enum trace_error
read_visits(struct input *in, const struct trace_options *options, struct trace_builder *builder,
            char *why, size_t why_size)
{
    return history_read(in, &history, options, builder, why, why_size);
}

const struct trace_format trace_format_safari = {
    .name = "safari",
    .summary = "the History.db of Safari",
    .unit = "visit",
    .sniff = sniff,
    .by_path = true,
    .read = read_visits,
};
