#include "client/stat_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/json.h"
#include "base/printable.h"
#include "base/units.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "cli/statistics.h"
#include "client/stat_rows.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* A counter that was set to zero in between has no rate. */
static double
rate(const struct stat_view *view, const char *name)
{
    uint64_t now = server_stats_value(&view->now, name);
    uint64_t before = server_stats_value(&view->before, name);

    return view->seconds > 0 && now >= before ? (double)(now - before) / view->seconds : 0;
}

static double
hit_ratio(const proxy_stats *stats)
{
    return statistics_ratio(server_stats_value(stats, "requests{outcome=\"hit\"}"),
                            server_stats_value(stats, "requests"));
}

/* As a simulation has it, in which requests come one by one. */
static double
hit_ratio_with_coalesced(const proxy_stats *stats)
{
    return statistics_ratio(server_stats_value(stats, "requests{outcome=\"hit\"}") +
                                server_stats_value(stats, "requests{outcome=\"coalesced\"}"),
                            server_stats_value(stats, "requests"));
}

static double
byte_hit_ratio(const proxy_stats *stats)
{
    return statistics_ratio(server_stats_value(stats, "served_bytes{source=\"cache\"}"),
                            server_stats_value(stats, "served_bytes"));
}

static struct stat_row *
make_rows(const proxy_stats *stats, size_t *count)
{
    struct stat_row *rows = stat_rows_make(stats, count);

    if (!rows)
        output_complain("out of memory");
    return rows;
}

/* ---- a table for people ---------------------------------------------------------------------- */

static void
put_head(const proxy_stats *stats, const char *server)
{
    char uptime[32], capacity[64];

    output_put(server_stats_fact(stats, "software"));
    printf(" at ");
    output_put(server);
    printf(", up %s\npolicy ",
           units_format_duration((int64_t)server_stats_value(stats, "uptime_microseconds"), uptime,
                                 sizeof(uptime)));
    output_put(server_stats_fact(stats, "policy"));
    printf(", %s; workers: %" PRIu64 ", shards: %" PRIu64 "\n\n",
           capacity_format(server_stats_value(stats, "cache_capacity_pages"),
                           server_stats_value(stats, "cache_capacity_bytes"), capacity,
                           sizeof(capacity)),
           server_stats_value(stats, "workers"), server_stats_value(stats, "cache_shards"));
}

/* A label can be a name of the server's. */
static void
put_label(struct columns *columns, const char *label)
{
    char text[PROXY_MAX_NAME + 1];

    snprintf(text, sizeof(text), "%s", label);
    printable_make(text, strlen(text));
    columns_cell(columns, "%s", text);
}

static void
put_row(struct columns *columns, const struct stat_view *view, const struct stat_row *row)
{
    double per_second = rate(view, row->name);
    char text[32];

    put_label(columns, row->label);
    switch (row->unit) {
    case STAT_BYTES:
        columns_cell(columns, "%s", units_format_bytes(row->value, text, sizeof(text)));
        break;
    case STAT_MICROSECONDS:
        columns_cell(columns, "%s", units_format_duration((int64_t)row->value, text, sizeof(text)));
        break;
    case STAT_PLAIN:
        columns_cell(columns, "%" PRIu64, row->value);
        break;
    }
    if (row->has_rate && view->seconds > 0 && row->unit == STAT_BYTES)
        columns_cell(columns, "%s/s", units_format_bytes((uint64_t)per_second, text, sizeof(text)));
    else if (row->has_rate && view->seconds > 0)
        columns_cell(columns, "%.1f/s", per_second);
    columns_end(columns);
}

static void
put_quantile(struct columns *columns, const struct server_stats_histogram *histogram,
             double percent)
{
    uint64_t bound = server_stats_quantile(histogram, percent);
    char text[32];

    if (bound > INT64_MAX)
        columns_cell(columns, "more");
    else
        columns_cell(columns, "%s", units_format_duration((int64_t)bound, text, sizeof(text)));
}

/* Histograms that have counted: mean, and the bounds that 50 and 99 % of the values are within. */
static void
put_histograms(const proxy_stats *stats)
{
    static const struct column list[] = {{"", -22, false},
                                         {"mean", 16, false},
                                         {"50 % within", 16, false},
                                         {"99 % within", 16, false}};
    struct columns columns = {.out = stdout, .list = list, .count = 4};
    struct server_stats_histogram histogram;
    bool headed = false;
    char text[32];

    for (unsigned i = 0; i < stats->metrics.metrics_len;) {
        if (!server_stats_read_histogram(stats, i, &histogram, &i)) {
            i++;
            continue;
        }
        if (histogram.count == 0)
            continue;
        if (!headed) {
            putchar('\n');
            columns_head(&columns);
        }
        headed = true;
        put_label(&columns, stat_rows_histogram_label(histogram.name));
        columns_cell(
            &columns, "%s",
            units_format_duration((int64_t)(histogram.sum / histogram.count), text, sizeof(text)));
        put_quantile(&columns, &histogram, 50);
        put_quantile(&columns, &histogram, 99);
        columns_end(&columns);
    }
}

int
stat_show_table(const struct stat_view *view, const char *server)
{
    static const struct column list[] = {{NULL, -26, false}, {NULL, 16, false}, {NULL, 16, false}};
    struct columns columns = {.out = stdout, .list = list, .count = 3};
    size_t count;
    struct stat_row *rows = make_rows(&view->now, &count);

    if (!rows)
        return EX_SOFTWARE;
    put_head(&view->now, server);
    columns_pair(&columns, "hit ratio, with coalesced", "%.2f %%",
                 100 * hit_ratio_with_coalesced(&view->now));
    columns_pair(&columns, "hit ratio, hits alone", "%.2f %%", 100 * hit_ratio(&view->now));
    columns_pair(&columns, "byte hit ratio", "%.2f %%", 100 * byte_hit_ratio(&view->now));
    for (size_t i = 0; i < count; i++)
        if (rows[i].label)
            put_row(&columns, view, &rows[i]);
    put_histograms(&view->now);
    free(rows);
    return EX_OK;
}

/* ---- a line ---------------------------------------------------------------------------------- */

int
stat_show_line(const struct stat_view *view)
{
    static const struct column list[] = {
        {"requests/s", 10, false}, {"hits/s", 10, false},   {"hit %", 8, false},
        {"evicted/s", 10, false},  {"failed/s", 10, false}, {"pages", 10, false},
        {"fetching", 10, false},   {"conns", 8, false},
    };
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};
    double requests = rate(view, "requests"), hits = rate(view, "requests{outcome=\"hit\"}");

    if ((view->looks - 1) % 20 == 0)
        columns_head(&columns);
    columns_cell(&columns, "%.1f", requests);
    columns_cell(&columns, "%.1f", hits);
    columns_cell(&columns, "%.2f", requests > 0 ? 100 * hits / requests : 0);
    columns_cell(&columns, "%.1f", rate(view, "cache_evictions"));
    columns_cell(&columns, "%.1f", rate(view, "requests{outcome=\"failure\"}"));
    columns_cell(&columns, "%" PRIu64, server_stats_value(&view->now, "cache_pages"));
    columns_cell(&columns, "%" PRIu64, server_stats_value(&view->now, "fetches_active"));
    columns_cell(&columns, "%" PRIu64, server_stats_value(&view->now, "connections"));
    columns_end(&columns);
    return EX_OK;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void
put_json_histogram(struct json *j, const struct server_stats_histogram *histogram)
{
    json_open_object(j, histogram->name);
    json_uint(j, "count", histogram->count);
    json_uint(j, "sum", histogram->sum);
    json_open_object(j, "buckets");
    for (unsigned i = 0; i < histogram->bucket_count; i++) {
        struct span bound = server_stats_bound(&histogram->buckets[i]);
        char key[PROXY_MAX_NAME + 1];

        snprintf(key, sizeof(key), "%.*s", (int)bound.len, bound.ptr);
        json_uint(j, key, histogram->buckets[i].value);
    }
    json_close_object(j);
    json_close_object(j);
}

static void
put_json_histograms(struct json *j, const proxy_stats *stats)
{
    struct server_stats_histogram histogram;

    json_open_object(j, "histograms");
    for (unsigned i = 0; i < stats->metrics.metrics_len;)
        if (server_stats_read_histogram(stats, i, &histogram, &i))
            put_json_histogram(j, &histogram);
        else
            i++;
    json_close_object(j);
}

int
stat_show_json(const struct stat_view *view)
{
    const proxy_stats *stats = &view->now;
    size_t count;
    struct stat_row *rows = make_rows(stats, &count);
    struct buf out;
    struct json j;

    if (!rows)
        return EX_SOFTWARE;
    buf_init(&out, 1 << 20);
    json_init(&j, &out);
    json_open_object(&j, NULL);
    for (u_int i = 0; i < stats->facts.facts_len; i++)
        json_cstring(&j, stats->facts.facts_val[i].name, stats->facts.facts_val[i].text);
    json_double(&j, "hit_ratio_with_coalesced", hit_ratio_with_coalesced(stats), 6);
    json_double(&j, "hit_ratio", hit_ratio(stats), 6);
    json_double(&j, "byte_hit_ratio", byte_hit_ratio(stats), 6);
    for (size_t i = 0; i < count; i++)
        json_uint(&j, rows[i].key, rows[i].value);
    put_json_histograms(&j, stats);
    if (view->seconds > 0) {
        json_open_object(&j, "per_second");
        for (size_t i = 0; i < count; i++)
            if (rows[i].has_rate)
                json_double(&j, rows[i].key, rate(view, rows[i].name), 3);
        json_close_object(&j);
    }
    json_close_object(&j);
    free(rows);
    return output_json(&out);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

static void
put_csv_line(const struct stat_view *view, bool watching, const char *name, const char *kind)
{
    if (watching)
        printf("%.3f,", view->elapsed);
    output_put_csv(span_str(name));
    printf(",%s,", kind);
}

int
stat_show_csv(const struct stat_view *view, bool watching)
{
    static const char *const kinds[] = {
        [PROXY_COUNTER] = "counter", [PROXY_GAUGE] = "gauge", [PROXY_HISTOGRAM] = "histogram"};
    const proxy_stats *stats = &view->now;

    if (view->looks == 0)
        puts(watching ? "seconds,name,kind,value,per_second" : "name,kind,value");
    for (u_int i = 0; i < stats->facts.facts_len; i++) {
        put_csv_line(view, watching, stats->facts.facts_val[i].name, "text");
        output_put_csv(span_str(stats->facts.facts_val[i].text));
        puts(watching ? "," : "");
    }
    for (u_int i = 0; i < stats->metrics.metrics_len; i++) {
        const proxy_metric *metric = &stats->metrics.metrics_val[i];

        put_csv_line(view, watching, metric->name,
                     metric->kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[metric->kind] : "");
        printf("%" PRIu64, (uint64_t)metric->value);
        if (watching)
            putchar(',');
        if (watching && view->seconds > 0 && metric->kind == PROXY_COUNTER)
            printf("%.3f", rate(view, metric->name));
        putchar('\n');
    }
    return EX_OK;
}
