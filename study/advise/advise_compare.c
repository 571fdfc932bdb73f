/*
 * What is compared at the recommended size. Whether two policies differ is computed over twenty
 * windows of the trace: the difference of their ratios in each window, and of these the standard
 * error of the mean, from successive differences (von Neumann, 1941), so that a trend, such as an
 * empty cache at the start, is no noise. The spread of the seeds and the errors of a sample are
 * added.
 */
#include <math.h>
#include <stdlib.h>
#include <sysexits.h>

#include "cli/output.h"
#include "study/advise/advise.h"

#define INTERVAL 1.96     /* standard errors on each side of a 95 % interval */
#define NEGLIGIBLE 0.0005 /* differences below this are ties: they round to nothing */
#define FEWEST_WINDOWS 4u /* with requests, to compute noise from */
#define CERTAINLY_NOT 0.5 /* the noise where there are fewer */

/* ---- windows --------------------------------------------------------------------------------- */

static bool
tell(void *context, const struct sim_event *event)
{
    struct advice_course *course = context;
    size_t window;

    if (event->number < course->first)
        return true;
    window = (event->number - course->first) * ADVICE_WINDOWS / course->count;
    course->requests[window]++;
    course->bytes[window] += event->bytes;
    if (event->outcome == SIM_HIT) {
        course->hits[window]++;
        course->bytes_hit[window] += event->bytes;
    }
    return true;
}

static void
course_init(struct advice_course *course, const struct sim_job *job)
{
    *course = (struct advice_course){.first = job->config.warmup};
    course->count = job->trace->request_count - course->first;
    if (course->count == 0)
        course->count = 1;
}

/* The goal's ratio in each window that has any; gives how many there are. */
static size_t
ratios_of(const struct advice *advice, const struct advice_course *course,
          double ratios[ADVICE_WINDOWS])
{
    size_t count = 0;

    for (size_t i = 0; i < ADVICE_WINDOWS; i++) {
        uint64_t whole = advice->by_bytes ? course->bytes[i] : course->requests[i];
        uint64_t part = advice->by_bytes ? course->bytes_hit[i] : course->hits[i];

        if (whole != 0)
            ratios[count++] = (double)part / (double)whole;
    }
    return count;
}

/* The standard error of the mean of values in a row, whatever their trend. */
static double
error_of_mean(const double *values, size_t count)
{
    double sum = 0;

    if (count < FEWEST_WINDOWS)
        return CERTAINLY_NOT;
    for (size_t i = 1; i < count; i++)
        sum += (values[i] - values[i - 1]) * (values[i] - values[i - 1]);
    return sqrt(sum / (2.0 * (double)(count - 1)) / (double)count);
}

/* ---- noise ----------------------------------------------------------------------------------- */

/* What chance adds beside the windows: the seeds, and the draw of a sample where that is known. */
static double
chance_of(const struct advice *advice, const struct sim_job *job)
{
    double error =
        advice->by_bytes ? job->result.byte_hit_ratio_error : job->result.hit_ratio_error;
    double deviation = advice->by_bytes ? job->spread.byte_hit_ratio : job->spread.hit_ratio;

    return hypot(deviation, isnan(error) ? 0 : error);
}

static void
find_tie(const struct advice *advice, const struct candidate *best, struct candidate *candidate)
{
    double a[ADVICE_WINDOWS], b[ADVICE_WINDOWS], error;
    size_t count = ratios_of(advice, &best->course, a);

    ratios_of(advice, &candidate->course, b); /* has requests in the same windows */
    for (size_t i = 0; i < count; i++)
        b[i] -= a[i];
    error = hypot(advice_whole_per_sample(advice) * error_of_mean(b, count),
                  hypot(chance_of(advice, &best->at_best), chance_of(advice, &candidate->at_best)));
    candidate->difference = advice_goal(advice, &candidate->at_best.result) -
                            advice_goal(advice, &best->at_best.result);
    candidate->noise = INTERVAL * error;
    candidate->tied =
        candidate != best && fabs(candidate->difference) <= fmax(candidate->noise, NEGLIGIBLE);
}

static void
find_uncertainty(struct advice *advice, const struct candidate *best)
{
    double ratios[ADVICE_WINDOWS], ratio = advice_goal(advice, &best->at_best.result);
    double error = advice_whole_per_sample(advice) *
                   error_of_mean(ratios, ratios_of(advice, &best->course, ratios));

    /* Windows that agree by chance must not promise more than that many independent requests. */
    error = fmax(error, sqrt(ratio * (1 - ratio) / (double)best->course.count));
    advice->uncertainty =
        (advice->forecast.high[FORECAST_95] - advice->forecast.low[FORECAST_95]) / 2;
    advice->too_little = INTERVAL * error > ADVICE_MOST;
    if (advice->too_little)
        advice->requests_needed =
            (uint64_t)ceil((double)advice->subject->facts.requests *
                           (INTERVAL * error / ADVICE_MOST) * (INTERVAL * error / ADVICE_MOST));
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Sizes from a quarter of the recommended one to four times it. */
static void
choose_around(struct advice *advice, uint64_t size)
{
    static const double factors[ADVICE_AROUND] = {0.25, 0.5, 1, 2, 4};
    size_t count = 0;

    for (size_t i = 0; i < ADVICE_AROUND; i++) {
        uint64_t next = (uint64_t)((double)size * factors[i] + 0.5);

        next = next > advice->all ? advice->all : next;
        if (next != 0 && (count == 0 || next > advice->around[count - 1]))
            advice->around[count++] = next;
    }
}

/* Lower than the target, of several seeds with every one. */
static bool
is_less(const struct advice *advice, const struct sim_job *job)
{
    return (advice->by_bytes ? job->spread.byte_hit_ratio_high : job->spread.hit_ratio_high) <
           advice->target;
}

static void
take_larger(struct advice *advice, uint64_t size, const struct sim_job *job)
{
    if (!is_less(advice, job) ||
        (advice->larger &&
         advice_goal(advice, &job->result) >= advice_goal(advice, &advice->in_larger.result)))
        return;
    advice->larger = size;
    advice->in_larger = *job;
}

/* First all policies at that size, then sizes around it, then the larger ones of the scale. */
static int
run_all(struct advice *advice, const struct candidate *best, struct sim_job *jobs)
{
    size_t count = 0, around, larger;
    int status;

    for (size_t i = 0; i < advice->count; i++) {
        struct candidate *candidate = &advice->candidates[i];

        jobs[count] = advice_job(advice, &candidate->spec, best->size);
        course_init(&candidate->course, &jobs[count]);
        jobs[count].config.tell = tell;
        jobs[count++].config.context = &candidate->course;
    }
    around = count;
    for (size_t i = 0; i < ADVICE_AROUND && advice->around[i]; i++)
        jobs[count++] = advice_job(advice, &best->spec, advice->around[i]);
    larger = count;
    for (size_t i = 0; i < advice->scale.count; i++)
        if (advice->scale.sizes[i] > best->size)
            jobs[count++] = advice_job(advice, &best->spec, advice->scale.sizes[i]);
    status = advice_run(advice, jobs, count);
    if (status != EX_OK)
        return status;
    for (size_t i = 0; i < advice->count; i++)
        advice->candidates[i].at_best = jobs[i];
    for (size_t i = around; i < larger; i++)
        advice->in_around[i - around] = jobs[i];
    for (size_t i = larger; i < count; i++)
        take_larger(advice, advice->scale.sizes[advice->scale.count - (count - i)], &jobs[i]);
    return EX_OK;
}

/* What the same policy needs in a server that counts bodies alone. */
static int
find_body_size(struct advice *advice, const struct candidate *best)
{
    struct simulate_subject bodies = *advice->subject; /* only read, and nothing of it freed */
    struct simulate_options options = *advice->options;
    struct policy_spec spec = best->spec;
    struct advice alone;
    int status;

    if (!advice->in_bytes || !bodies.whole_pages)
        return EX_OK;
    bodies.whole_pages = false;
    bodies.all_bytes = bodies.facts.distinct_bytes;
    bodies.sim.charges = bodies.sample.trace.charges = NULL;
    options.specs = &spec;
    options.spec_count = 1;
    advice->work->last = true;
    status = advice_find(&alone, &bodies, &options, advice->by_bytes, advice->share, advice->work);
    advice->work->last = false;
    if (status == EX_OK && alone.count == 1 && alone.candidates[0].reached)
        advice->body_size = alone.candidates[0].size;
    advice_free(&alone);
    return status;
}

int
advice_compare(struct advice *advice)
{
    const struct candidate *best = advice_best(advice);
    struct sim_job *jobs;
    int status;

    if (!best)
        return EX_OK;
    jobs = calloc(advice->count + ADVICE_AROUND + advice->scale.count, sizeof(*jobs));
    if (!jobs) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    choose_around(advice, best->size);
    advice->stage = ADVICE_COMPARES;
    status = run_all(advice, best, jobs);
    free(jobs);
    if (status != EX_OK)
        return status;
    for (size_t i = 0; i < advice->count; i++)
        find_tie(advice, best, &advice->candidates[i]);
    advice->stage = ADVICE_BOUNDS;
    status = advice_find_interval(advice, best);
    if (status != EX_OK)
        return status;
    find_uncertainty(advice, best);
    advice->stage = ADVICE_ENDS;
    return find_body_size(advice, best);
}
