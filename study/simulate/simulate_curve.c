#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/units.h"
#include "cli/capacity.h"
#include "cli/command.h"
#include "cli/output.h"
#include "study/default_sizes.h"
#include "study/simulate/simulate.h"
#include "study/simulate/simulate_run.h"
#include "sim/curve.h"

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t
all_of(const struct simulate_curves *curves)
{
    return curves->in_bytes ? curves->subject->all_bytes : curves->subject->trace->url_count;
}

/* ---- simulating ------------------------------------------------------------------------------ */

static struct simulate_row *
row_at(const struct simulate_curves *curves, size_t policy, size_t size)
{
    return &curves->rows[policy * curves->scale.count + size];
}

/* In pages LRU's whole curve comes in one pass, whatever else is sampled. */
static bool
is_one_pass(const struct simulate_curves *curves, const struct policy_spec *spec)
{
    return sim_storage_is_all(&curves->subject->storage) && !curves->in_bytes && spec->ops &&
           strcmp(spec->ops->name, "lru") == 0;
}

static int
one_pass(struct simulate_curves *curves, size_t policy)
{
    const struct simulate_subject *subject = curves->subject;
    struct sim_curve curve;
    enum sim_error error = simulate_run_curve(&subject->sim, subject->warmup, "lru", &curve);

    if (error == SIM_STOPPED) {
        output_complain("interrupted: the curve of lru is not finished");
        return EXIT_INTERRUPTED;
    }
    if (error != SIM_OK) {
        output_complain("%s: %s", subject->path, sim_strerror(error));
        return EX_SOFTWARE;
    }
    for (size_t i = 0; i < curves->scale.count; i++) {
        struct sim_job *job = &row_at(curves, policy, i)->job;
        size_t size = curves->scale.sizes[i] < curve.page_count ? (size_t)curves->scale.sizes[i]
                                                                : curve.page_count;

        job->config.sampling = NULL;
        job->error = SIM_OK;
        job->spread.runs = 1;
        job->result.requests = curve.requests;
        job->result.bytes = curve.bytes;
        job->result.hits = curve.hits[size];
        job->result.bytes_hit = curve.bytes_hit[size];
        if (curve.requests)
            job->result.hit_ratio = (double)curve.hits[size] / (double)curve.requests;
        if (curve.bytes)
            job->result.byte_hit_ratio = (double)curve.bytes_hit[size] / (double)curve.bytes;
        job->spread.hit_ratio_low = job->spread.hit_ratio_high = job->result.hit_ratio;
        job->spread.byte_hit_ratio_low = job->spread.byte_hit_ratio_high =
            job->result.byte_hit_ratio;
    }
    sim_curve_free(&curve);
    return EX_OK;
}

static void
fill_rows(struct simulate_curves *curves)
{
    for (size_t p = 0; p < curves->options->spec_count; p++)
        for (size_t i = 0; i < curves->scale.count; i++) {
            struct simulate_row *row = row_at(curves, p, i);

            row->path = curves->subject->path;
            row->spec = curves->options->specs[p];
            *(curves->in_bytes ? &row->bytes : &row->urls) = curves->scale.sizes[i];
            row->share = (double)curves->scale.sizes[i] / (double)all_of(curves);
            row->job =
                simulate_job(curves->subject, curves->options, &row->spec, row->urls, row->bytes);
            row->job.error = SIM_STOPPED;
        }
}

static int
run(struct simulate_curves *curves)
{
    size_t all = curves->options->spec_count * curves->scale.count, count = 0;
    struct sim_job *jobs = calloc(all, sizeof(*jobs));
    size_t *owners = calloc(all, sizeof(*owners));
    int status = EX_OK;

    if (!jobs || !owners) {
        output_complain("out of memory");
        free(jobs);
        free(owners);
        return EX_SOFTWARE;
    }
    for (size_t p = 0; p < curves->options->spec_count && status == EX_OK; p++) {
        if (is_one_pass(curves, &curves->options->specs[p])) {
            status = one_pass(curves, p);
            continue;
        }
        for (size_t i = 0; i < curves->scale.count; i++) {
            owners[count] = p * curves->scale.count + i;
            jobs[count++] = row_at(curves, p, i)->job;
        }
    }
    if (status == EX_OK && count != 0)
        status = simulate_run(jobs, count, (unsigned)curves->options->jobs, "curves");
    for (size_t i = 0; i < count; i++)
        curves->rows[owners[i]].job = jobs[i];
    free(jobs);
    free(owners);
    return status;
}

/* ---- for people ------------------------------------------------------------------------------ */

/* The policy was run with several seeds: its curve is a mean with a band around it. */
static bool
has_band(const struct simulate_curves *curves, size_t policy)
{
    return row_at(curves, policy, 0)->job.runs > 1;
}

/* What 95 % of all samples are as near as to the truth; "?" where no error is known. */
static void
print_error(const struct sim_job *job, bool of_bytes)
{
    double error = of_bytes ? job->result.byte_hit_ratio_error : job->result.hit_ratio_error;

    if (job->error != SIM_OK || !job->config.sampling)
        printf(" %6s", "-");
    else if (isnan(error))
        printf(" %6s", "?");
    else
        printf(" %6.2f", 1.96 * 100 * error);
}

static void
print_table(const struct simulate_curves *curves, bool of_bytes)
{
    bool sampled = curves->subject->rate < 1;

    char text[POLICY_MAX_TEXT];

    printf("\n%s hit ratio, %%\n%14s", of_bytes ? "byte" : "object",
           curves->in_bytes ? "capacity" : "URLs");
    for (size_t p = 0; p < curves->options->spec_count; p++) {
        printf(" %10.10s", policy_format(&curves->options->specs[p], text, sizeof(text)));
        if (sampled)
            printf(" %6s", "+-");
        if (has_band(curves, p))
            printf(" %6s", "sd");
    }
    putchar('\n');
    for (size_t i = 0; i < curves->scale.count; i++) {
        if (curves->in_bytes)
            printf("%14s", units_format_bytes(curves->scale.sizes[i], text, sizeof(text)));
        else
            printf("%14" PRIu64, curves->scale.sizes[i]);
        for (size_t p = 0; p < curves->options->spec_count; p++) {
            const struct sim_job *job = &row_at(curves, p, i)->job;

            if (job->error == SIM_OK)
                printf(" %10.2f",
                       100 * (of_bytes ? job->result.byte_hit_ratio : job->result.hit_ratio));
            else
                printf(" %10s", "-");
            if (sampled)
                print_error(job, of_bytes);
            if (has_band(curves, p) && job->error == SIM_OK)
                printf(" %6.2f",
                       100 * (of_bytes ? job->spread.byte_hit_ratio : job->spread.hit_ratio));
            else if (has_band(curves, p))
                printf(" %6s", "-");
        }
        putchar('\n');
    }
}

static void
print_seeds(const struct simulate_curves *curves)
{
    for (size_t p = 0; p < curves->options->spec_count; p++)
        if (has_band(curves, p)) {
            printf(
                "\nsd: standard deviation over %u seeds, of policies that draw random numbers.\n",
                row_at(curves, p, 0)->job.runs);
            return;
        }
}

static void
print_curves(const struct simulate_curves *curves)
{
    const struct simulate_subject *subject = curves->subject;
    char lifetime[SIMULATE_LIFETIME_TEXT];

    trace_print_name(subject->path, subject->files, subject->by_time);
    printf(" (%s): ", subject->trace->format);
    simulate_print_counts(&subject->sim);
    printf("\n%s", simulate_lifetime(subject, lifetime));
    if (subject->rate < 1) {
        printf("\nfrom a sample: ");
        simulate_print_counts(&subject->sample.trace);
    }
    putchar('\n');
    print_table(curves, false);
    if (subject->sized)
        print_table(curves, true);
    print_seeds(curves);
}

/* ---- for programs ---------------------------------------------------------------------------- */

static void
json_curves(struct json *j, const struct simulate_curves *curves)
{
    json_open_object(j, NULL);
    simulate_json_subject(j, curves->subject);
    json_open_array(j, "curves");
    for (size_t p = 0; p < curves->options->spec_count; p++) {
        char name[POLICY_MAX_TEXT];

        json_open_object(j, NULL);
        json_cstring(j, "policy", policy_format(&curves->options->specs[p], name, sizeof(name)));
        json_open_array(j, "points");
        for (size_t i = 0; i < curves->scale.count; i++) {
            const struct simulate_row *row = row_at(curves, p, i);

            if (row->job.error != SIM_OK)
                continue;
            json_open_object(j, NULL);
            json_uint(j, "capacity_urls", row->urls);
            json_uint(j, "capacity_bytes", row->bytes);
            simulate_json_ratios(j, &row->job, curves->subject->sized);
            json_close_object(j);
        }
        json_close_array(j);
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

static void
csv_curves(struct buf *out, const struct simulate_curves *curves, bool with_names)
{
    if (with_names)
        buf_append_str(
            out, "trace,policy,capacity_urls,capacity_bytes,capacity_share,hit_ratio,"
                 "hit_ratio_error,byte_hit_ratio,byte_hit_ratio_error," SIMULATE_CSV_SPREAD "\n");
    for (size_t i = 0; i < curves->options->spec_count * curves->scale.count; i++) {
        const struct simulate_row *row = &curves->rows[i];
        const struct sim_result *r = &row->job.result;
        char name[POLICY_MAX_TEXT];

        if (row->job.error != SIM_OK)
            continue;
        simulate_csv_text(out, row->path);
        buf_append_char(out, ',');
        simulate_csv_text(out, policy_format(&row->spec, name, sizeof(name)));
        buf_printf(out, ",%" PRIu64 ",%" PRIu64 ",%.9g,", row->urls, row->bytes, row->share);
        simulate_csv_ratio(out, r->hit_ratio, r->hit_ratio_error);
        if (curves->subject->sized)
            simulate_csv_ratio(out, r->byte_hit_ratio, r->byte_hit_ratio_error);
        else
            buf_append_str(out, ",,");
        simulate_csv_spread(out, &row->job.spread, curves->subject->sized);
        buf_append_char(out, '\n');
    }
}

int
simulate_curves_make(struct simulate_curves *curves, const struct simulate_subject *subject,
                     const struct simulate_options *options, bool in_bytes, size_t points)
{
    *curves =
        (struct simulate_curves){.subject = subject, .options = options, .in_bytes = in_bytes};
    if (default_sizes_curve(subject, in_bytes, points, &curves->scale)) {
        curves->count = options->spec_count * curves->scale.count;
        curves->rows = calloc(curves->count, sizeof(*curves->rows));
    }
    if (!curves->rows) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    fill_rows(curves);
    return run(curves);
}

void
simulate_curves_free(struct simulate_curves *curves)
{
    free(curves->rows);
    size_scale_free(&curves->scale);
}

void
simulate_report_curves(struct simulate_report *report, const struct simulate_curves *curves)
{
    for (size_t i = 0; i < curves->count; i++)
        report->finished += curves->rows[i].job.error == SIM_OK;
    report->runs += curves->count;
    simulate_note_errors(curves->subject, curves->rows, curves->count);
    if (report->output == SIMULATE_JSON)
        json_curves(&report->json, curves);
    else if (report->output == SIMULATE_CSV)
        csv_curves(&report->out, curves, report->first);
    else if (report->output == SIMULATE_MARKDOWN)
        simulate_markdown_curves(curves);
    else
        print_curves(curves);
    report->first = false;
}
