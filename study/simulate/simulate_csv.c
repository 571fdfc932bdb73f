/*
 * CSV of `sunproxy simulate` (RFC 4180): a line for each row, or for each window of each row.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "study/simulate/simulate.h"

/* RFC 4180: in quotes where it must be. */
void
simulate_csv_text(struct buf *out, const char *text)
{
    if (strcspn(text, ",\"\r\n") == strlen(text)) {
        buf_append_str(out, text);
        return;
    }
    buf_append_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            buf_append_char(out, '"');
        buf_append_char(out, *text);
    }
    buf_append_char(out, '"');
}

/* A ratio and its error, which is empty where it is unknown. */
void
simulate_csv_ratio(struct buf *out, double ratio, double error)
{
    buf_printf(out, "%.6f,", ratio);
    if (!isnan(error))
        buf_printf(out, "%.6f", error);
    buf_append_char(out, ',');
}

#define CSV_ROW "trace,policy,capacity_urls,capacity_bytes,capacity_share,"

/* The columns of both tables that name a row, each with its comma. */
static void
csv_name(struct buf *out, const struct simulate_row *row)
{
    char name[POLICY_MAX_TEXT];

    simulate_csv_text(out, row->path);
    buf_append_char(out, ',');
    simulate_csv_text(out, policy_format(&row->spec, name, sizeof(name)));
    buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%.9g,", row->urls, row->bytes, row->share);
}

static void
csv_windows(struct buf *out, const struct simulate_row *row)
{
    const struct simulate_windows *windows = row->tally->windows;

    for (size_t i = 0; i < windows->count; i++) {
        if (windows->windows[i].requests == 0)
            continue;
        csv_name(out, row);
        window_tally_csv(out, row->tally, i, row->job.spread.runs);
        buf_append_char(out, '\n');
    }
}

static void
csv_row(struct buf *out, const struct simulate_row *row, const struct simulate_subject *subject)
{
    const struct sim_result *r = &row->job.result;
    struct simulate_figures f;

    simulate_figures_of(row, &f);
    csv_name(out, row);
    buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", f.requests, f.hits,
               f.requests - f.hits);
    simulate_csv_ratio(out, r->hit_ratio, r->hit_ratio_error);
    if (subject->sized) {
        buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",", f.bytes, f.bytes_hit,
                   f.bytes - f.bytes_hit);
        simulate_csv_ratio(out, r->byte_hit_ratio, r->byte_hit_ratio_error);
    } else {
        buf_append_str(out, ",,,,,");
    }
    buf_printf(out, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.6f,%" PRId64 ",",
               f.evictions, f.insertions, f.not_admitted, f.too_large, f.admitted, r->cpu_us);
    simulate_csv_spread(out, &row->job.spread, subject->sized);
    buf_append_char(out, '\n');
}

void
simulate_csv_spread(struct buf *out, const struct sim_spread *spread, bool sized)
{
    buf_printf(out, "%u,%.6f,%.6f,%.6f,", spread->runs, spread->hit_ratio, spread->hit_ratio_low,
               spread->hit_ratio_high);
    if (sized)
        buf_printf(out, "%.6f,%.6f,%.6f", spread->byte_hit_ratio, spread->byte_hit_ratio_low,
                   spread->byte_hit_ratio_high);
    else
        buf_append_str(out, ",,");
}

void
simulate_csv_rows(struct buf *out, const struct simulate_subject *subject,
                  const struct simulate_row *rows, size_t count, bool with_names)
{
    if (with_names && count != 0 && rows[0].tally)
        buf_append_str(out, CSV_ROW WINDOW_CSV_COLUMNS "\n");
    else if (with_names)
        buf_append_str(out, CSV_ROW "requests,hits,misses,hit_ratio,hit_ratio_error,bytes,"
                                    "bytes_hit,bytes_missed,byte_hit_ratio,byte_hit_ratio_error,"
                                    "evictions,insertions,not_admitted,too_large,admitted,"
                                    "cpu_us," SIMULATE_CSV_SPREAD "\n");
    for (size_t i = 0; i < count; i++)
        if (rows[i].tally)
            csv_windows(out, &rows[i]);
        else
            csv_row(out, &rows[i], subject);
}
