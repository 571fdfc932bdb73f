/*
 * Firefox's places.sqlite (toolkit/components/places): moz_places(id, url, ...) and
 * moz_historyvisits(id, from_visit, place_id, visit_date, visit_type), times in microseconds since
 * 1970-01-01 UTC.
 */
#include "trace/formats/formats.h"
#include "trace/formats/history.h"

/* TRANSITION_REDIRECT_PERMANENT and _TEMPORARY: where they come from led elsewhere. */
#define REDIRECTED "CASE WHEN v.visit_type IN (5, 6) THEN v.from_visit END"

static const struct history history = {
    .tables = {"moz_historyvisits", "moz_places"},
    .visits = "v.visit_date, v.place_id, NULL, NULL",
    .visits_and_redirects = "v.visit_date, v.place_id, NULL, " REDIRECTED,
    .urls = "SELECT p.id, p.url FROM moz_places AS p NOT INDEXED",
    .expected = "expected Firefox's tables moz_places(id, url) and "
                "moz_historyvisits(id, place_id, visit_date)",
};

/*
 * The first pages of the database hold the schema. A table's row in it begins with its type, its
 * name and again its name, with nothing in between, whatever the statement that made it looks like;
 * the name alone may also stand in a URL or a title.
 */
static bool
sniff(struct span head)
{
    static const char table[] = "tablemoz_historyvisitsmoz_historyvisits";

    return history_is_sqlite(head) && memmem(head.ptr, head.len, table, sizeof(table) - 1);
}

static enum trace_error
read_visits(struct input *in, const struct trace_options *options, struct trace_builder *builder,
            char *why, size_t why_size)
{
    return history_read(in, &history, options, builder, why, why_size);
}

const struct trace_format trace_format_firefox = {
    .name = "firefox",
    .summary = "the places.sqlite of Firefox",
    .unit = "visit",
    .sniff = sniff,
    .by_path = true,
    .read = read_visits,
};
