#include "client/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "client/command.h"
#include "client/output.h"
#include "client/simulate_run.h"
#include "client/size_scale.h"

#define FEW_URLS 500u    /* so many, and the sizes are the paper's; more, and they are smaller */
#define ANOMALY_ALL 120u /* as many URLs as that, and every size is tried */
#define ANOMALY_SOME 48u /* otherwise so many sizes */
#define ANOMALY_POLICIES 2u

static const double paper_shares[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.8};
static const double small_shares[] = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5};
static const char *const anomalous[ANOMALY_POLICIES] = {"fifo", "rand"};

#define SHARES (sizeof(paper_shares) / sizeof(paper_shares[0]))

/* What a run tells as it goes. */
struct course {
    uint64_t requests; /* of the trace that is simulated */
    uint64_t hits[REPORT_WINDOWS];
    uint64_t first_victim; /* the request that pushed somebody out, from 1; 0: none */
};

struct runs {
    const struct simulate_subject *subject;
    const struct simulate_options *options;
    struct size_scale shares, anomaly, urls, bytes;
    struct course *courses; /* owned: by policy, then by share */
    struct sim_job *jobs;   /* owned: shares, anomaly, urls, bytes; by policy, then by size */
    size_t job_count;
};

/* ---- sizes ----------------------------------------------------------------------------------- */

static bool
sizes_by_shares(struct size_scale *sizes, uint64_t urls)
{
    const double *shares = urls <= FEW_URLS ? paper_shares : small_shares;

    sizes->sizes = calloc(SHARES, sizeof(*sizes->sizes));
    if (!sizes->sizes)
        return false;
    for (size_t i = 0; i < SHARES; i++) {
        uint64_t size = (uint64_t)fmax(1, round((double)urls * shares[i]));

        if (sizes->count == 0 || size > sizes->sizes[sizes->count - 1])
            sizes->sizes[sizes->count++] = size;
    }
    return true;
}

static bool
choose_sizes(struct runs *runs, size_t points)
{
    uint64_t urls = runs->subject->trace->url_count;
    uint64_t bytes = runs->subject->facts.distinct_bytes;

    return sizes_by_shares(&runs->shares, urls) &&
           size_scale_make(&runs->anomaly, 1, urls,
                           urls <= ANOMALY_ALL ? ANOMALY_ALL : ANOMALY_SOME) &&
           size_scale_make(&runs->urls, (double)urls / 1000, urls, points) &&
           (!runs->subject->sized ||
            size_scale_make(&runs->bytes, (double)bytes / 1000, bytes, points));
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool
tell(void *context, const struct sim_event *event)
{
    struct course *course = context;

    if (event->outcome == SIM_HIT)
        course->hits[(uint64_t)event->number * REPORT_WINDOWS / course->requests]++;
    if (event->victim_count != 0 && course->first_victim == 0)
        course->first_victim = (uint64_t)event->number + 1;
    return true;
}

static void
add_jobs(struct runs *runs, const struct policy_spec *spec, const struct size_scale *sizes,
         bool in_bytes)
{
    for (size_t i = 0; i < sizes->count; i++)
        runs->jobs[runs->job_count++] =
            simulate_job(runs->subject, runs->options, spec, in_bytes ? 0 : sizes->sizes[i],
                         in_bytes ? sizes->sizes[i] : 0);
}

static bool
make_jobs(struct runs *runs)
{
    size_t policies_asked = runs->options->spec_count;
    size_t with_course = policies_asked * runs->shares.count;
    size_t room = with_course + ANOMALY_POLICIES * runs->anomaly.count +
                  policies_asked * (runs->urls.count + runs->bytes.count);

    runs->jobs = calloc(room, sizeof(*runs->jobs));
    runs->courses = calloc(with_course ? with_course : 1, sizeof(*runs->courses));
    if (!runs->jobs || !runs->courses)
        return false;
    for (size_t p = 0; p < policies_asked; p++)
        add_jobs(runs, &runs->options->specs[p], &runs->shares, false);
    for (size_t i = 0; i < with_course; i++) {
        struct sim_config *config = &runs->jobs[i].config;

        runs->courses[i].requests = runs->jobs[i].trace->request_count;
        config->tell = tell;
        config->context = &runs->courses[i];
    }
    for (size_t p = 0; p < ANOMALY_POLICIES; p++) {
        struct policy_spec spec = policy_spec_of(policy_find(anomalous[p]));

        add_jobs(runs, &spec, &runs->anomaly, false);
    }
    for (size_t p = 0; p < policies_asked; p++)
        add_jobs(runs, &runs->options->specs[p], &runs->urls, false);
    for (size_t p = 0; p < policies_asked; p++)
        add_jobs(runs, &runs->options->specs[p], &runs->bytes, true);
    return true;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void
add_policies(struct json *j, const struct runs *runs)
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

static void
add_byte_ratio(struct json *j, const struct runs *runs, double ratio)
{
    if (runs->subject->sized)
        json_double(j, NULL, ratio, 6);
    else
        json_null(j, NULL);
}

static void
add_hits(struct json *j, const struct runs *runs, const struct sim_job *jobs)
{
    report_table_open(j, "hits", "policy", "capacity_urls", "share_of_urls", "hit_ratio",
                      "byte_hit_ratio", "evictions", "not_admitted", "first_victim_at_request",
                      NULL);
    for (size_t i = 0; i < runs->options->spec_count * runs->shares.count; i++) {
        const struct sim_result *r = &jobs[i].result;

        if (jobs[i].error != SIM_OK)
            continue;
        json_open_array(j, NULL);
        add_policy_and_size(j, &jobs[i], runs->shares.sizes[i % runs->shares.count],
                            runs->subject->trace->url_count);
        json_double(j, NULL, r->hit_ratio, 6);
        add_byte_ratio(j, runs, r->byte_hit_ratio);
        json_uint(j, NULL, r->evictions);
        json_uint(j, NULL, r->not_admitted);
        if (runs->courses[i].first_victim)
            json_uint(j, NULL, runs->courses[i].first_victim);
        else
            json_null(j, NULL);
        json_close_array(j);
    }
    report_table_close(j);
}

/* The last request, from 1, of each window. */
static uint64_t
window_end(size_t window, uint64_t requests)
{
    return ((window + 1) * requests + REPORT_WINDOWS - 1) / REPORT_WINDOWS;
}

/* How many pages have been asked for by the end of each window: misses that no cache can avoid. */
static void
count_first(const struct sim_trace *trace, uint64_t first[REPORT_WINDOWS])
{
    uint32_t highest = 0;
    uint64_t seen = 0;

    /* A sample's pages are numbered in the order of the whole trace's: of first appearance. */
    for (size_t w = 0, i = 0; w < REPORT_WINDOWS; w++) {
        for (; i < window_end(w, trace->request_count); i++)
            if (seen == 0 || trace->ids[i] > highest) {
                highest = trace->ids[i];
                seen++;
            }
        first[w] = seen;
    }
}

static void
add_runtime(struct json *j, const struct runs *runs, const struct sim_job *jobs)
{
    uint64_t first[REPORT_WINDOWS];

    report_table_open(j, "runtime", "policy", "capacity_urls", "share_of_urls", "request", "hits",
                      "misses", "initial_misses", "hit_ratio_lately", NULL);
    count_first(jobs->trace, first);
    for (size_t i = 0; i < runs->options->spec_count * runs->shares.count; i++) {
        const struct course *course = &runs->courses[i];
        uint64_t hits = 0, before = 0;

        for (size_t w = 0; w < REPORT_WINDOWS && jobs[i].error == SIM_OK; w++) {
            uint64_t end = window_end(w, course->requests);

            if (end == before)
                continue; /* fewer requests than windows */
            hits += course->hits[w];
            json_open_array(j, NULL);
            add_policy_and_size(j, &jobs[i], runs->shares.sizes[i % runs->shares.count],
                                runs->subject->trace->url_count);
            json_uint(j, NULL, end);
            json_uint(j, NULL, hits);
            json_uint(j, NULL, end - hits);
            json_uint(j, NULL, first[w]);
            json_double(j, NULL, (double)course->hits[w] / (double)(end - before), 6);
            json_close_array(j);
            before = end;
        }
    }
    report_table_close(j);
}

/* A larger cache that hits less than a smaller one did: "lost" says by how much. */
static void
add_anomaly(struct json *j, const struct runs *runs, const struct sim_job *jobs)
{
    report_table_open(j, "anomaly", "policy", "capacity_urls", "share_of_urls", "hits",
                      "lost_to_a_smaller_cache", NULL);
    for (size_t p = 0; p < ANOMALY_POLICIES; p++) {
        uint64_t best = 0;

        for (size_t i = 0; i < runs->anomaly.count; i++, jobs++) {
            uint64_t hits = jobs->result.hits;

            if (jobs->error != SIM_OK)
                continue;
            best = hits > best ? hits : best;
            json_open_array(j, NULL);
            add_policy_and_size(j, jobs, runs->anomaly.sizes[i], runs->subject->trace->url_count);
            json_uint(j, NULL, hits);
            json_uint(j, NULL, best - hits);
            json_close_array(j);
        }
    }
    report_table_close(j);
}

static void
add_curve_rows(struct json *j, const struct runs *runs, const struct sim_job *jobs,
               const struct size_scale *sizes, uint64_t all)
{
    for (size_t i = 0; i < runs->options->spec_count * sizes->count; i++) {
        const struct sim_result *r = &jobs[i].result;

        if (jobs[i].error != SIM_OK)
            continue;
        json_open_array(j, NULL);
        add_policy_and_size(j, &jobs[i], sizes->sizes[i % sizes->count], all);
        json_double(j, NULL, 1 - r->hit_ratio, 6);
        add_byte_ratio(j, runs, 1 - r->byte_hit_ratio);
        json_double(j, NULL, r->hit_ratio_error, 6);
        json_close_array(j);
    }
}

static void
add_tables(struct json *j, const struct runs *runs)
{
    size_t policies_asked = runs->options->spec_count;
    const struct sim_job *jobs = runs->jobs;

    add_policies(j, runs);
    add_hits(j, runs, jobs);
    add_runtime(j, runs, jobs);
    jobs += policies_asked * runs->shares.count;
    add_anomaly(j, runs, jobs);
    jobs += ANOMALY_POLICIES * runs->anomaly.count;
    report_table_open(j, "curve_urls", "policy", "capacity_urls", "share_of_urls", "miss_ratio",
                      "byte_miss_ratio", "error", NULL);
    add_curve_rows(j, runs, jobs, &runs->urls, runs->subject->trace->url_count);
    report_table_close(j);
    if (!runs->subject->sized)
        return;
    jobs += policies_asked * runs->urls.count;
    report_table_open(j, "curve_bytes", "policy", "capacity_bytes", "share_of_bytes", "miss_ratio",
                      "byte_miss_ratio", "error", NULL);
    add_curve_rows(j, runs, jobs, &runs->bytes, runs->subject->facts.distinct_bytes);
    report_table_close(j);
}

int
report_runs(struct json *j, const struct simulate_subject *subject,
            const struct simulate_options *options, size_t points)
{
    struct runs runs = {.subject = subject, .options = options};
    int status = EX_SOFTWARE;

    if (!choose_sizes(&runs, points) || !make_jobs(&runs))
        output_complain("%s: out of memory", subject->path);
    else
        status = simulate_run(runs.jobs, runs.job_count, (unsigned)options->jobs, "report");
    if (status == EX_OK || status == EXIT_INTERRUPTED)
        add_tables(j, &runs);
    size_scale_free(&runs.shares);
    size_scale_free(&runs.anomaly);
    size_scale_free(&runs.urls);
    size_scale_free(&runs.bytes);
    free(runs.courses);
    free(runs.jobs);
    return status;
}
