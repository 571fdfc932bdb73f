/*
 * What `sunproxy simulate --markdown` prints: headings and tables for documents.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/output.h"
#include "study/simulate/simulate.h"

#define MAX_NAME (1u << 20)

/* A text in which no character is markup. */
static void
put_text(const char *text)
{
    struct buf out;

    buf_init(&out, MAX_NAME);
    for (; *text; text++) {
        if (strchr("\\`*_[]<>|#", *text))
            buf_append_char(&out, '\\');
        buf_append_char(&out, *text);
    }
    if (!buf_failed(&out))
        output_put(buf_str(&out));
    buf_free(&out);
}

static void
put_subject(const struct simulate_subject *subject)
{
    const struct trace_totals *facts = &subject->facts;
    char text[SIMULATE_LIFETIME_TEXT];

    printf("## ");
    put_text(subject->path);
    if (subject->files > 1)
        printf(" and %zu more", subject->files - 1);
    printf("\n\nFormat %s: ", subject->trace->format);
    simulate_print_counts(&subject->sim);
    if (subject->sized)
        printf(" of %s", units_format_bytes(facts->distinct_bytes, text, sizeof(text)));
    if (subject->whole_pages)
        printf("; bytes count whole pages");
    printf("; %s", simulate_lifetime(subject, text));
    if (subject->warmup)
        printf("; without the first %zu requests", subject->warmup);
    if (subject->rate < 1) {
        printf("; from a sample of ");
        simulate_print_counts(&subject->sample.trace);
    }
    printf(". Infinite cache: hit ratio %.2f %%", 100 * trace_totals_hit_ratio(facts));
    if (subject->sized)
        printf(", byte hit ratio %.2f %%", 100 * trace_totals_byte_hit_ratio(facts));
    printf(".\n\n");
}

/* A ratio in per cent, and where there is one, what 95 % of all samples are as near as. */
static void
put_ratio(double ratio, double error, bool sampled)
{
    printf(" %.2f %%", 100 * ratio);
    if (sampled && isnan(error))
        printf(" ± ?");
    else if (sampled)
        printf(" ± %.2f", 1.96 * 100 * error);
    printf(" |");
}

static void
put_deviation(double deviation, unsigned runs)
{
    if (runs > 1)
        printf(" %.2f |", 100 * deviation);
    else
        printf(" |");
}

static void
put_capacity(const struct simulate_row *row)
{
    char text[64], share[32];

    if (!row->urls && !row->bytes)
        printf("| 0 |");
    else
        printf("| %s (%s) |", capacity_format(row->urls, row->bytes, text, sizeof(text)),
               capacity_format_share(row->share, share, sizeof(share)));
}

static void
put_row(const struct simulate_subject *subject, const struct simulate_row *row, unsigned seeds)
{
    const struct sim_result *r = &row->job.result;
    const struct sim_spread *spread = &row->job.spread;
    bool sampled = subject->rate < 1;
    struct simulate_figures figures;
    char name[POLICY_MAX_TEXT];

    simulate_figures_of(row, &figures);
    put_capacity(row);
    printf(" %s |", policy_format(&row->spec, name, sizeof(name)));
    put_ratio(r->hit_ratio, r->hit_ratio_error, sampled);
    if (seeds > 1)
        put_deviation(spread->hit_ratio, spread->runs);
    if (subject->sized) {
        put_ratio(r->byte_hit_ratio, r->byte_hit_ratio_error, sampled);
        if (seeds > 1)
            put_deviation(spread->byte_hit_ratio, spread->runs);
    }
    printf(" %" PRIu64 " |\n", figures.evictions);
}

/* Names of the columns, and the line below them: the first two are text, the others numbers. */
static void
put_head(const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("| %s ", names[i]);
    printf("|\n");
    for (size_t i = 0; i < count; i++)
        printf(i < 2 ? "|---" : "|--:");
    printf("|\n");
}

void
simulate_markdown_rows(const struct simulate_subject *subject, const struct simulate_row *rows,
                       size_t count)
{
    unsigned seeds = simulate_most_seeds(rows, count);
    const char *names[7] = {"capacity", "policy", "hit ratio"};
    size_t columns = 3;

    if (seeds > 1)
        names[columns++] = "sd";
    if (subject->sized)
        names[columns++] = "byte hit ratio";
    if (subject->sized && seeds > 1)
        names[columns++] = "sd";
    names[columns++] = "evictions";
    put_subject(subject);
    put_head(names, columns);
    for (size_t i = 0; i < count; i++)
        put_row(subject, &rows[i], seeds);
    if (seeds > 1)
        printf("\nsd: standard deviation in points over %u seeds, of policies that draw random "
               "numbers.\n",
               seeds);
    if (count != 0 && rows[0].tally)
        simulate_windows_markdown(rows, count);
}

/* ---- curves ---------------------------------------------------------------------------------- */

static void
put_point(const struct sim_job *job, bool of_bytes)
{
    const struct sim_result *r = &job->result;

    if (job->error == SIM_OK)
        put_ratio(of_bytes ? r->byte_hit_ratio : r->hit_ratio,
                  of_bytes ? r->byte_hit_ratio_error : r->hit_ratio_error,
                  job->config.sampling != NULL);
    else
        printf(" |");
}

static void
put_curves(const struct simulate_curves *curves, bool of_bytes)
{
    size_t sizes = curves->scale.count, asked = curves->options->spec_count;
    char text[POLICY_MAX_TEXT];

    printf("%s hit ratio by capacity:\n\n| capacity |", of_bytes ? "Byte" : "Object");
    for (size_t p = 0; p < asked; p++)
        printf(" %s |", policy_format(&curves->options->specs[p], text, sizeof(text)));
    printf("\n|--:|");
    for (size_t p = 0; p < asked; p++)
        printf("--:|");
    putchar('\n');
    for (size_t i = 0; i < sizes; i++) {
        const struct simulate_row *row = &curves->rows[i];

        printf("| %s |", capacity_format(row->urls, row->bytes, text, sizeof(text)));
        for (size_t p = 0; p < asked; p++)
            put_point(&curves->rows[p * sizes + i].job, of_bytes);
        putchar('\n');
    }
    putchar('\n');
}

void
simulate_markdown_curves(const struct simulate_curves *curves)
{
    put_subject(curves->subject);
    put_curves(curves, false);
    if (curves->subject->sized)
        put_curves(curves, true);
}
