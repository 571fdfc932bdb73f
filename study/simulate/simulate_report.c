#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/columns.h"
#include "cli/output.h"
#include "study/simulate/simulate.h"
#include "cli/statistics.h"
#include "cli/trace_options.h"

#define MAX_REPORT (1u << 30)

/* Why no page was ever inside, or NULL if one was. */
static const char *
stored_nothing(const struct simulate_row *row)
{
    const struct sim_result *r = &row->job.result;

    if (r->insertions != 0 || r->pages != 0 || r->hits != 0)
        return NULL;
    if (!row->spec.ops)
        return "without a cache nothing was stored";
    if (!row->urls && !row->bytes)
        return "nothing was stored: the capacity is zero";
    if (row->bytes && r->too_large != 0 && r->too_large == r->requests - r->hits)
        return "nothing was stored: every page is larger than the cache";
    return "nothing was stored: the policy let no page in";
}

/* ---- order ----------------------------------------------------------------------------------- */

static int
compare_rows(const void *a, const void *b, void *by_bytes)
{
    const struct simulate_row *x = a, *y = b;
    int order = simulate_compare_sizes(x, y);
    double gain = simulate_goal(&x->job.result, by_bytes != NULL) -
                  simulate_goal(&y->job.result, by_bytes != NULL);

    if (order)
        return order;
    if (gain > 0 || gain < 0)
        return gain > 0 ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* ---- for people ------------------------------------------------------------------------------ */

static void
print_subject(const struct simulate_subject *subject)
{
    const struct trace_totals *facts = &subject->facts;
    char bytes[32], lifetime[SIMULATE_LIFETIME_TEXT];

    trace_print_name(subject->path, subject->files, subject->by_time);
    printf(" (%s): ", subject->trace->format);
    simulate_print_counts(&subject->sim);
    if (subject->sized)
        printf(" of %s", units_format_bytes(facts->distinct_bytes, bytes, sizeof(bytes)));
    putchar('\n');
    if (subject->whole_pages)
        printf("bytes count whole pages: body, URL, header fields and the server's bookkeeping\n");
    puts(simulate_lifetime(subject, lifetime));
    if (subject->warmup)
        printf("without the first %zu requests\n", subject->warmup);
    if (subject->rate < 1) {
        printf("from a sample: ");
        simulate_print_counts(&subject->sample.trace);
        putchar('\n');
    }
    printf("infinite cache: hit ratio %.2f %%", 100 * trace_totals_hit_ratio(facts));
    if (subject->sized)
        printf(", byte hit ratio %.2f %%", 100 * trace_totals_byte_hit_ratio(facts));
    putchar('\n');
}

static void
print_size(const struct simulate_row *row)
{
    char text[64], share[32];

    if (!row->urls && !row->bytes)
        printf("\ncapacity 0\n");
    else
        printf("\n%s (%s of the %s)\n", capacity_format(row->urls, row->bytes, text, sizeof(text)),
               capacity_format_share(row->share, share, sizeof(share)),
               row->bytes ? "bytes" : "URLs");
}

/*
 * A ratio; its error: about 95 % of all samples are as near as this to the truth; and its standard
 * deviation over the seeds of a policy that draws.
 */
static void
print_ratio(struct columns *columns, double ratio, double error, double deviation, unsigned runs)
{
    columns_cell(columns, "%.2f %%", ratio * 100);
    if (isnan(error))
        columns_cell(columns, "-");
    else
        columns_cell(columns, "%.2f %%", 1.96 * error * 100);
    if (runs > 1)
        columns_cell(columns, "%.2f %%", deviation * 100);
    else
        columns_cell(columns, "-");
}

static void
print_row(struct columns *columns, const struct simulate_row *row)
{
    const struct sim_result *r = &row->job.result;
    const struct sim_spread *spread = &row->job.spread;
    const char *nothing = stored_nothing(row);
    char name[POLICY_MAX_TEXT], text[32];
    struct simulate_figures f;

    simulate_figures_of(row, &f);
    columns_cell(columns, "  %s", policy_format(&row->spec, name, sizeof(name)));
    print_ratio(columns, r->hit_ratio, r->hit_ratio_error, spread->hit_ratio, spread->runs);
    print_ratio(columns, r->byte_hit_ratio, r->byte_hit_ratio_error, spread->byte_hit_ratio,
                spread->runs);
    columns_cell(columns, "%" PRIu64, f.evictions);
    columns_cell(columns, "%.2f %%", f.admitted * 100);
    columns_cell(columns, "%s", units_format_duration(r->cpu_us, text, sizeof(text)));
    if (nothing)
        printf("  %s", nothing);
    else if (r->error_unknown)
        printf("  (%s)", r->error_unknown);
    columns_end(columns);
}

/* Characters of the longest name; at least 10. */
static int
name_width(const struct simulate_row *rows, size_t count)
{
    size_t most = 10;

    for (size_t i = 0; i < count; i++) {
        char name[POLICY_MAX_TEXT];
        size_t len = strlen(policy_format(&rows[i].spec, name, sizeof(name)));

        most = len > most ? len : most;
    }
    return (int)most;
}

static void
print_future(const struct simulate_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char name[POLICY_MAX_TEXT];

        if (!rows[i].spec.ops || !rows[i].spec.ops->needs_future)
            continue;
        printf("\n%s knows the future: in simulations only.\n",
               policy_format(&rows[i].spec, name, sizeof(name)));
        return;
    }
}

static void
print_rows(const struct simulate_subject *subject, const struct simulate_row *rows, size_t count)
{
    bool sampled = subject->rate < 1, sized = subject->sized;
    unsigned seeds = simulate_most_seeds(rows, count);
    const struct column list[] = {
        {"  policy", -2 - name_width(rows, count), false},
        {"hit ratio", 9, false},
        {"+-", 7, !sampled},
        {"sd", 7, seeds < 2},
        {"of bytes", 9, !sized},
        {"+-", 7, !sampled || !sized},
        {"sd", 7, seeds < 2 || !sized},
        {"evictions", 10, false},
        {"admitted", 9, false},
        {"time", 7, false},
    };
    struct columns columns = {.out = stdout, .list = list, .count = sizeof(list) / sizeof(list[0])};

    print_subject(subject);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || simulate_compare_sizes(&rows[i - 1], &rows[i]) != 0) {
            print_size(&rows[i]);
            columns_head(&columns);
        }
        print_row(&columns, &rows[i]);
    }
    if (seeds > 1)
        printf("\nsd: standard deviation over %u seeds, of policies that draw random numbers.\n",
               seeds);
    print_future(rows, count);
    if (count != 0 && rows[0].tally)
        simulate_windows_print(rows, count);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
json_row(struct json *j, const struct simulate_row *row, const struct simulate_subject *subject)
{
    const struct sim_result *r = &row->job.result;
    const char *nothing = stored_nothing(row);
    char name[POLICY_MAX_TEXT];
    struct simulate_figures f;

    simulate_figures_of(row, &f);
    json_open_object(j, NULL);
    json_cstring(j, "policy", policy_format(&row->spec, name, sizeof(name)));
    json_uint(j, "capacity_urls", row->urls);
    json_uint(j, "capacity_bytes", row->bytes);
    json_double(j, "capacity_share", row->share, 9);
    json_uint(j, "requests", f.requests);
    json_uint(j, "hits", f.hits);
    json_uint(j, "misses", f.requests - f.hits);
    if (subject->sized) {
        json_uint(j, "bytes", f.bytes);
        json_uint(j, "bytes_hit", f.bytes_hit);
        json_uint(j, "bytes_missed", f.bytes - f.bytes_hit);
    }
    simulate_json_ratios(j, &row->job, subject->sized);
    json_uint(j, "evictions", f.evictions);
    json_uint(j, "insertions", f.insertions);
    json_uint(j, "expired", f.expired);
    json_uint(j, "not_admitted", f.not_admitted);
    json_uint(j, "too_large", f.too_large);
    json_double(j, "admitted", f.admitted, 6);
    json_int(j, "cpu_us", r->cpu_us);
    if (nothing)
        json_cstring(j, "note", nothing);
    else
        json_null(j, "note");
    if (row->tally)
        window_tally_json(j, row->tally, row->job.spread.runs);
    json_close_object(j);
}

static void
json_rows(struct json *j, const struct simulate_subject *subject, const struct simulate_row *rows,
          size_t finished, size_t count)
{
    json_open_object(j, NULL);
    simulate_json_subject(j, subject);
    json_open_array(j, "results");
    for (size_t i = 0; i < finished; i++)
        json_row(j, &rows[i], subject);
    json_close_array(j);
    simulate_partial_json(j, subject, rows + finished, count - finished);
    json_close_object(j);
}

void
simulate_note_errors(const struct simulate_subject *subject, const struct simulate_row *rows,
                     size_t count)
{
    size_t sampled = 0, unknown = 0, others = 0;
    double rate = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sim_result *r = &rows[i].job.result;

        if (rows[i].job.error != SIM_OK || !rows[i].job.config.sampling)
            continue;
        sampled++;
        unknown += r->error_unknown != NULL;
        if (r->error_unknown && r->rate_needed <= 1)
            rate = fmax(rate, r->rate_needed);
        else
            others += r->error_unknown != NULL;
    }
    if (unknown == 0)
        return;
    output_complain("%s: the errors of %zu of %zu rows are unknown", subject->path, unknown,
                    sampled);
    if (unknown > others)
        output_note("%zu of these would be known with --sample %.0f%%", unknown - others,
                    fmin(100, ceil(100 * rate)));
    if (others)
        output_note("%zu are known only with --sample 100%%", others);
}

/* ---- the whole ------------------------------------------------------------------------------- */

void
simulate_report_begin(struct simulate_report *report, enum simulate_output output, bool by_bytes)
{
    *report = (struct simulate_report){.output = output, .by_bytes = by_bytes, .first = true};
    buf_init(&report->out, MAX_REPORT);
    json_init(&report->json, &report->out);
    if (output == SIMULATE_JSON) {
        json_open_object(&report->json, NULL);
        json_open_array(&report->json, "traces");
    }
}

void
simulate_report_trace(struct simulate_report *report, const struct simulate_subject *subject,
                      struct simulate_row *rows, size_t count)
{
    size_t finished = 0;

    /* The others are behind them. */
    for (size_t i = 0; i < count; i++)
        if (rows[i].job.error == SIM_OK) {
            struct simulate_row row = rows[i];

            rows[i] = rows[finished];
            rows[finished++] = row;
        }
    simulate_note_errors(subject, rows, finished);
    qsort_r(rows, finished, sizeof(*rows), compare_rows, report->by_bytes ? report : NULL);
    report->runs += count;
    report->finished += finished;
    switch (report->output) {
    case SIMULATE_TABLE:
        if (!report->first)
            putchar('\n');
        print_rows(subject, rows, finished);
        simulate_partial_print(subject, rows + finished, count - finished, true);
        break;
    case SIMULATE_JSON:
        json_rows(&report->json, subject, rows, finished, count);
        break;
    case SIMULATE_CSV:
        simulate_csv_rows(&report->out, subject, rows, finished, report->first);
        simulate_partial_print(subject, rows + finished, count - finished, false);
        break;
    case SIMULATE_MARKDOWN:
        if (!report->first)
            putchar('\n');
        simulate_markdown_rows(subject, rows, finished);
        simulate_partial_print(subject, rows + finished, count - finished, false);
        break;
    }
    report->first = false;
}

void
simulate_report_interrupted(struct simulate_report *report, size_t unread)
{
    report->interrupted = true;
    if (report->output != SIMULATE_TABLE && report->output != SIMULATE_MARKDOWN)
        return;
    printf("%sinterrupted: %zu of %zu runs are finished", report->first ? "" : "\n",
           report->finished, report->runs);
    if (unread)
        printf("; %zu trace%s not read", unread, unread == 1 ? " was" : "s were");
    putchar('\n');
}

int
simulate_report_flush(struct simulate_report *report)
{
    if (report->output == SIMULATE_JSON)
        return EX_OK;
    if (buf_failed(&report->out)) {
        buf_free(&report->out);
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    output_put_lines(stdout, buf_span(&report->out));
    buf_reset(&report->out);
    return output_flush();
}

int
simulate_report_end(struct simulate_report *report)
{
    int status;

    if (report->output != SIMULATE_JSON) {
        status = simulate_report_flush(report);
        buf_free(&report->out);
        return status;
    }
    json_close_array(&report->json);
    json_bool(&report->json, "interrupted", report->interrupted);
    json_close_object(&report->json);
    return output_json(&report->out);
}
