#include "study/report/report_runs_tables.h"

#include <stdlib.h>
#include <sysexits.h>

#include "cli/command.h"
#include "cli/output.h"
#include "study/default_sizes.h"
#include "study/simulate/simulate_run.h"

#define ANOMALY_ALL 120u /* up to this number of URLs every size is tried, */
#define ANOMALY_SOME 48u /* of more this number of sizes */

static const char *const anomalous[REPORT_ANOMALY_POLICIES] = {"fifo", "rand"};

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The anomaly is looked for in what is simulated as it is: it is a matter of single requests. */
static bool
choose_sizes(struct report_runs *runs, const struct capacity_list *capacities, size_t points)
{
    const struct simulate_subject *subject = runs->subject;
    uint64_t pages = report_runs_simulated(subject)->page_count;

    if (!capacity_list_resolve(capacities, subject, &runs->sizes))
        return false;
    capacity_list_sort(&runs->sizes);
    return size_scale_make(&runs->anomaly, 1, pages,
                           pages <= ANOMALY_ALL ? ANOMALY_ALL : ANOMALY_SOME) &&
           default_sizes_curve(subject, false, points, &runs->urls) &&
           (!subject->sized || default_sizes_curve(subject, true, points, &runs->bytes));
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A sample's pages stand in the order of the whole trace's, with their keys. False: no memory. */
static bool
number_requests(struct report_runs *runs)
{
    const struct sim_trace *whole = &runs->subject->sim, *sample = &runs->subject->sample.trace;
    bool *drawn;
    size_t next = 0;

    if (!report_runs_is_sampled(runs))
        return true;
    drawn = calloc(whole->page_count + 1, sizeof(*drawn));
    runs->numbers = calloc(sample->request_count + 1, sizeof(*runs->numbers));
    for (size_t i = 0; drawn && next < sample->page_count && i < whole->page_count; i++) {
        drawn[i] = sample->keys[next] == (whole->keys ? whole->keys[i] : i);
        next += drawn[i];
    }
    next = 0;
    for (size_t i = 0; drawn && runs->numbers && i < whole->request_count; i++)
        if (drawn[whole->ids[i]] && next < sample->request_count)
            runs->numbers[next++] = (uint32_t)i;
    free(drawn);
    return drawn && runs->numbers;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static bool
tell(void *context, const struct sim_event *event)
{
    struct report_course *course = context;
    uint64_t number = course->numbers ? course->numbers[event->number] : event->number;

    if (event->outcome != SIM_HIT)
        course->misses[number * course->windows / course->requests]++;
    if (event->victim_count != 0 && course->first_victim == 0)
        course->first_victim = number + 1;
    return true;
}

static void
add_jobs(struct report_runs *runs, const struct policy_spec *spec, const struct size_scale *sizes,
         bool in_bytes)
{
    for (size_t i = 0; i < sizes->count; i++)
        runs->jobs[runs->job_count++] =
            simulate_job(runs->subject, runs->options, spec, in_bytes ? 0 : sizes->sizes[i],
                         in_bytes ? sizes->sizes[i] : 0);
}

static bool
make_jobs(struct report_runs *runs)
{
    size_t policies_asked = runs->options->spec_count;
    size_t with_course = policies_asked * runs->sizes.count;
    size_t most = with_course + REPORT_ANOMALY_POLICIES * runs->anomaly.count +
                  policies_asked * (runs->urls.count + runs->bytes.count);

    runs->jobs = calloc(most, sizeof(*runs->jobs));
    runs->courses = calloc(with_course ? with_course : 1, sizeof(*runs->courses));
    if (!runs->jobs || !runs->courses)
        return false;
    for (size_t i = 0; i < with_course; i++) {
        const struct capacity *size = &runs->sizes.items[i % runs->sizes.count];

        runs->jobs[runs->job_count++] =
            simulate_job(runs->subject, runs->options, &runs->options->specs[i / runs->sizes.count],
                         size->urls, size->bytes);
    }
    for (size_t i = 0; i < with_course; i++) {
        struct sim_config *config = &runs->jobs[i].config;

        runs->courses[i].numbers = runs->numbers;
        runs->courses[i].requests = runs->subject->trace->request_count;
        runs->courses[i].windows = runs->windows;
        config->tell = tell;
        config->context = &runs->courses[i];
    }
    for (size_t p = 0; p < REPORT_ANOMALY_POLICIES; p++) {
        struct policy_spec spec = policy_spec_of(policy_find(anomalous[p]));

        add_jobs(runs, &spec, &runs->anomaly, false);
        for (size_t i = 0; i < runs->anomaly.count; i++)
            runs->jobs[runs->job_count - runs->anomaly.count + i].config.capacity_pages =
                runs->anomaly.sizes[i];
    }
    for (size_t p = 0; p < policies_asked; p++)
        add_jobs(runs, &runs->options->specs[p], &runs->urls, false);
    for (size_t p = 0; p < policies_asked; p++)
        add_jobs(runs, &runs->options->specs[p], &runs->bytes, true);
    return true;
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* How many windows a trace has. */
static uint64_t
count_windows(uint64_t requests)
{
    uint64_t windows = requests / REPORT_WINDOW_LEAST;

    return windows < 1 ? 1 : windows > REPORT_WINDOWS ? REPORT_WINDOWS : windows;
}

int
report_runs(struct json *j, const struct simulate_subject *subject,
            const struct simulate_options *options, const struct capacity_list *capacities,
            size_t points)
{
    struct report_runs runs = {.subject = subject,
                               .options = options,
                               .times = report_times(subject->trace),
                               .windows = count_windows(subject->trace->request_count)};
    int status = EX_SOFTWARE;

    if (!choose_sizes(&runs, capacities, points) || !number_requests(&runs) || !make_jobs(&runs))
        output_complain("%s: out of memory", subject->path);
    else
        status = simulate_run(runs.jobs, runs.job_count, (unsigned)options->jobs, "report");
    if ((status == EX_OK || status == EXIT_INTERRUPTED) && !report_runs_tables(j, &runs)) {
        output_complain("%s: out of memory", subject->path);
        status = EX_SOFTWARE;
    }
    capacity_list_free(&runs.sizes);
    size_scale_free(&runs.anomaly);
    size_scale_free(&runs.urls);
    size_scale_free(&runs.bytes);
    free(runs.numbers);
    free(runs.courses);
    free(runs.jobs);
    return status;
}
