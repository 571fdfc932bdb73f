#include "study/report/report_runs_tables.h"

#include <math.h>
#include <string.h>

/* What counts of the sample stand for in the whole trace: the correction that sim_result has. */
static uint64_t
scaled(const struct report_runs *runs, uint64_t count)
{
    return report_runs_is_sampled(runs)
               ? (uint64_t)round((double)count / runs->subject->sample.sampling.rate)
               : count;
}

static void
add_policies(struct json *j, const struct report_runs *runs)
{
    report_table_open(j, "policies", "policy", "name", "summary", "needs_future", NULL);
    for (size_t p = 0; p < runs->options->spec_count; p++) {
        const struct policy_spec *spec = &runs->options->specs[p];
        char text[POLICY_MAX_TEXT];

        json_open_array(j, NULL);
        json_cstring(j, NULL, policy_format(spec, text, sizeof(text)));
        json_cstring(j, NULL, spec->ops ? spec->ops->name : "none");
        json_cstring(j, NULL, spec->ops ? spec->ops->summary : "nothing is stored");
        json_bool(j, NULL, spec->ops && spec->ops->needs_future);
        json_close_array(j);
    }
    report_table_close(j);
}

static void
add_policy_and_size(struct json *j, const struct sim_job *job, uint64_t size, uint64_t all)
{
    char text[POLICY_MAX_TEXT];

    json_cstring(j, NULL, policy_format(&job->config.spec, text, sizeof(text)));
    json_uint(j, NULL, size);
    json_double(j, NULL, all ? (double)size / (double)all : 0, 6);
}

/* Of hit ratios: the job's place among policies and sizes gives the size. */
static void
add_policy_and_capacity(struct json *j, const struct report_runs *runs, size_t run)
{
    const struct capacity *size = &runs->sizes.items[run % runs->sizes.count];
    const struct simulate_subject *subject = runs->subject;
    char text[POLICY_MAX_TEXT];

    json_cstring(j, NULL, policy_format(&runs->jobs[run].config.spec, text, sizeof(text)));
    json_uint(j, NULL, size->urls);
    json_uint(j, NULL, size->bytes);
    json_double(j, NULL,
                size->bytes ? (double)size->bytes / (double)subject->all_bytes
                            : (double)size->urls / (double)subject->trace->url_count,
                6);
}

static void
add_byte_ratio(struct json *j, const struct report_runs *runs, double ratio)
{
    if (runs->subject->sized)
        json_double(j, NULL, ratio, 6);
    else
        json_null(j, NULL);
}

/* The standard error of a ratio; null where the ratio is exact or no error is known. */
static void
add_error(struct json *j, const struct report_runs *runs, double error)
{
    if (report_runs_is_sampled(runs) && !isnan(error))
        json_double(j, NULL, error, 6);
    else
        json_null(j, NULL);
}

/* Why no error is known for this result. */
static void
add_error_unknown(struct json *j, const struct sim_result *result)
{
    if (result->error_unknown)
        json_cstring(j, NULL, result->error_unknown);
    else
        json_null(j, NULL);
}

/* Standard deviations of both ratios over the seeds, 0 of one seed. */
static void
add_spread(struct json *j, const struct report_runs *runs, const struct sim_spread *spread)
{
    json_uint(j, NULL, spread->runs);
    json_double(j, NULL, spread->hit_ratio, 6);
    add_byte_ratio(j, runs, spread->byte_hit_ratio);
}

/* The number of sizes that each policy has in a table, unless the report is interrupted. */
static void
add_plan(struct json *j, const char *table, size_t policies_asked, size_t sizes, uint64_t largest)
{
    if (sizes == 0)
        return;
    json_open_array(j, NULL);
    json_cstring(j, NULL, table);
    json_uint(j, NULL, policies_asked);
    json_uint(j, NULL, sizes);
    json_uint(j, NULL, largest);
    json_close_array(j);
}

static void
add_scale_plan(struct json *j, const char *table, size_t policies_asked,
               const struct size_scale *scale)
{
    add_plan(j, table, policies_asked, scale->count,
             scale->count ? scale->sizes[scale->count - 1] : 0);
}

static void
add_planned(struct json *j, const struct report_runs *runs)
{
    const struct capacity *largest = &runs->sizes.items[runs->sizes.count - 1];
    size_t asked = runs->options->spec_count;

    report_table_open(j, "planned", "table", "policies", "sizes", "largest", NULL);
    add_plan(j, "hits", asked, runs->sizes.count, largest->bytes ? largest->bytes : largest->urls);
    add_scale_plan(j, "anomaly", REPORT_ANOMALY_POLICIES, &runs->anomaly);
    add_scale_plan(j, "curve_urls", asked, &runs->urls);
    add_scale_plan(j, "curve_bytes", asked, &runs->bytes);
    report_table_close(j);
}

static void
add_hits(struct json *j, const struct report_runs *runs, const struct sim_job *jobs)
{
    report_table_open(j, "hits", "policy", "capacity_urls", "capacity_bytes", "capacity_share",
                      "hit_ratio", "hit_ratio_error", "byte_hit_ratio", "byte_hit_ratio_error",
                      "error_unknown", "evictions", "not_admitted", "first_victim_at_request",
                      "seeds", "hit_ratio_sd", "byte_hit_ratio_sd", NULL);
    for (size_t i = 0; i < runs->options->spec_count * runs->sizes.count; i++) {
        const struct sim_result *r = &jobs[i].result;

        if (jobs[i].error != SIM_OK)
            continue;
        json_open_array(j, NULL);
        add_policy_and_capacity(j, runs, i);
        json_double(j, NULL, r->hit_ratio, 6);
        add_error(j, runs, r->hit_ratio_error);
        add_byte_ratio(j, runs, r->byte_hit_ratio);
        add_error(j, runs, runs->subject->sized ? r->byte_hit_ratio_error : NAN);
        add_error_unknown(j, r);
        json_uint(j, NULL, scaled(runs, r->evictions));
        json_uint(j, NULL, scaled(runs, r->not_admitted));
        if (runs->courses[i].first_victim)
            json_uint(j, NULL, runs->courses[i].first_victim);
        else
            json_null(j, NULL);
        add_spread(j, runs, &jobs[i].spread);
        json_close_array(j);
    }
    report_table_close(j);
}

/* The last request, from 1, of each window. */
static uint64_t
window_end(size_t window, uint64_t requests, uint64_t windows)
{
    return ((window + 1) * requests + windows - 1) / windows;
}

/* First requests for a page in each window: misses that no cache can avoid. */
static void
count_first(const struct report_runs *runs, uint64_t first[REPORT_WINDOWS])
{
    const struct sim_trace *trace = report_runs_simulated(runs->subject);
    uint64_t all = runs->subject->trace->request_count;
    uint32_t seen = 0;

    memset(first, 0, REPORT_WINDOWS * sizeof(*first));
    for (size_t i = 0; i < trace->request_count; i++) {
        uint64_t number = runs->numbers ? runs->numbers[i] : i;

        if (trace->ids[i] < seen) /* pages are numbered in the order of first appearance */
            continue;
        seen = trace->ids[i] + 1;
        first[number * runs->windows / all]++;
    }
}

/* A policy at a size. Of a sample, estimates for the whole trace; all misses are scaled alike. */
static void
add_course(struct json *j, const struct report_runs *runs, size_t run, const struct sim_job *job,
           const uint64_t first[REPORT_WINDOWS])
{
    const struct report_course *course = &runs->courses[run];
    const uint64_t seeds = job->spread.runs;
    uint64_t misses = 0, initial = 0, before = 0;

    for (size_t w = 0; w < course->windows; w++) {
        uint64_t end = window_end(w, course->requests, course->windows), missed;

        misses += course->misses[w];
        initial += first[w];
        missed = scaled(runs, (misses + seeds / 2) / seeds);
        missed = missed < end ? missed : end;
        json_open_array(j, NULL);
        add_policy_and_capacity(j, runs, run);
        json_uint(j, NULL, end);
        report_time(j, runs->times, end - 1);
        json_uint(j, NULL, end - missed);
        json_uint(j, NULL, missed);
        json_uint(j, NULL, scaled(runs, initial) < missed ? scaled(runs, initial) : missed);
        json_double(j, NULL,
                    fmax(0, 1 - (double)scaled(runs, course->misses[w]) /
                                    ((double)seeds * (double)(end - before))),
                    6);
        json_close_array(j);
        before = end;
    }
}

static void
add_runtime(struct json *j, const struct report_runs *runs, const struct sim_job *jobs)
{
    uint64_t first[REPORT_WINDOWS];

    report_table_open(j, "runtime", "policy", "capacity_urls", "capacity_bytes", "capacity_share",
                      "request", "time_us", "hits", "misses", "compulsory_misses",
                      "window_hit_ratio", NULL);
    count_first(runs, first);
    for (size_t i = 0; i < runs->options->spec_count * runs->sizes.count; i++)
        if (jobs[i].error == SIM_OK)
            add_course(j, runs, i, &jobs[i], first);
    report_table_close(j);
}

/*
 * How many hits a larger cache has fewer than a smaller one. Of a policy that draws random numbers
 * 0 unless that is beyond the spread of the seeds: no seed of the larger one may hit as much as any
 * of the smaller one, and the means differ by more than three standard deviations.
 */
static uint64_t
lost_hits(const struct sim_job *smaller, const struct sim_job *larger)
{
    const struct sim_spread *a = &smaller->spread, *b = &larger->spread;
    double beyond = 3 * hypot(a->hit_ratio, b->hit_ratio);

    if (larger->result.hits >= smaller->result.hits)
        return 0;
    if ((a->runs > 1 || b->runs > 1) &&
        (b->hit_ratio_high >= a->hit_ratio_low ||
         smaller->result.hit_ratio - larger->result.hit_ratio <= beyond))
        return 0;
    return smaller->result.hits - larger->result.hits;
}

/* Belady's anomaly: "lost" is against the smaller cache that hits most. */
static void
add_anomaly(struct json *j, const struct report_runs *runs, const struct sim_job *jobs)
{
    report_table_open(j, "anomaly", "policy", "capacity_urls", "share_of_urls", "hits",
                      "lost_to_a_smaller_cache", "seeds", "hits_sd", NULL);
    for (size_t p = 0; p < REPORT_ANOMALY_POLICIES; p++) {
        const struct sim_job *best = NULL;

        for (size_t i = 0; i < runs->anomaly.count; i++, jobs++) {
            if (jobs->error != SIM_OK)
                continue;
            if (!best || jobs->result.hits > best->result.hits)
                best = jobs;
            json_open_array(j, NULL);
            add_policy_and_size(j, jobs, runs->anomaly.sizes[i],
                                report_runs_simulated(runs->subject)->page_count);
            json_uint(j, NULL, jobs->result.hits);
            json_uint(j, NULL, lost_hits(best, jobs));
            json_uint(j, NULL, jobs->spread.runs);
            json_double(j, NULL, jobs->spread.hit_ratio * (double)jobs->result.requests, 3);
            json_close_array(j);
        }
    }
    report_table_close(j);
}

static void
add_curve_rows(struct json *j, const struct report_runs *runs, const struct sim_job *jobs,
               const struct size_scale *sizes, uint64_t all)
{
    for (size_t i = 0; i < runs->options->spec_count * sizes->count; i++) {
        const struct sim_result *r = &jobs[i].result;

        if (jobs[i].error != SIM_OK)
            continue;
        json_open_array(j, NULL);
        add_policy_and_size(j, &jobs[i], sizes->sizes[i % sizes->count], all);
        json_double(j, NULL, 1 - r->hit_ratio, 6);
        add_error(j, runs, r->hit_ratio_error);
        add_byte_ratio(j, runs, 1 - r->byte_hit_ratio);
        add_error(j, runs, runs->subject->sized ? r->byte_hit_ratio_error : NAN);
        add_error_unknown(j, r);
        add_spread(j, runs, &jobs[i].spread);
        json_close_array(j);
    }
}

bool
report_runs_tables(struct json *j, const struct report_runs *runs)
{
    size_t policies_asked = runs->options->spec_count;
    const struct sim_job *jobs = runs->jobs;

    add_policies(j, runs);
    add_planned(j, runs);
    add_hits(j, runs, jobs);
    add_runtime(j, runs, jobs);
    jobs += policies_asked * runs->sizes.count;
    add_anomaly(j, runs, jobs);
    jobs += REPORT_ANOMALY_POLICIES * runs->anomaly.count;
    report_table_open(j, "curve_urls", "policy", "capacity_urls", "share_of_urls", "miss_ratio",
                      "miss_ratio_error", "byte_miss_ratio", "byte_miss_ratio_error",
                      "error_unknown", "seeds", "miss_ratio_sd", "byte_miss_ratio_sd", NULL);
    add_curve_rows(j, runs, jobs, &runs->urls, runs->subject->trace->url_count);
    report_table_close(j);
    if (!runs->subject->sized)
        return true;
    jobs += policies_asked * runs->urls.count;
    report_table_open(j, "curve_bytes", "policy", "capacity_bytes", "share_of_bytes", "miss_ratio",
                      "miss_ratio_error", "byte_miss_ratio", "byte_miss_ratio_error",
                      "error_unknown", "seeds", "miss_ratio_sd", "byte_miss_ratio_sd", NULL);
    add_curve_rows(j, runs, jobs, &runs->bytes, runs->subject->all_bytes);
    report_table_close(j);
    return report_runs_is_sampled(runs) || report_bound_table(j, runs->subject, &runs->bytes);
}
