#include "study/advise/advise.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/output.h"

#define SMALLEST 1000    /* the scale begins at such a part of all */
#define FEWEST_POINTS 60 /* of the scale; more where that costs little */
#define MOST_POINTS 500
#define MUCH_WORK 100e6 /* requests that may be simulated for more points */
#define ROUNDS 8        /* in which the scale is gone through */
#define NEAR_ENOUGH 100 /* a size is narrowed down to this part of it */

/* Sizes to be tried at once. */
struct trials {
    struct sim_job *jobs;      /* owned */
    struct candidate **owners; /* owned: by job */
    uint64_t *sizes;           /* owned: by job */
    size_t count;
    size_t each; /* of one candidate */
};

struct sim_job
advice_job(const struct advice *advice, const struct policy_spec *spec, uint64_t size)
{
    return simulate_job(advice->subject, advice->options, spec, advice->in_bytes ? 0 : size,
                        advice->in_bytes ? size : 0);
}

/* ---- trials ---------------------------------------------------------------------------------- */

static void
trials_free(struct trials *trials)
{
    free(trials->jobs);
    free(trials->owners);
    free(trials->sizes);
    *trials = (struct trials){0};
}

static bool
trials_make(struct trials *trials, size_t capacity)
{
    trials->jobs = calloc(capacity, sizeof(*trials->jobs));
    trials->owners = calloc(capacity, sizeof(*trials->owners));
    trials->sizes = calloc(capacity, sizeof(*trials->sizes));
    if (trials->jobs && trials->owners && trials->sizes)
        return true;
    output_complain("out of memory");
    trials_free(trials);
    return false;
}

static void
trials_add(struct trials *trials, const struct advice *advice, struct candidate *candidate,
           uint64_t size)
{
    trials->owners[trials->count] = candidate;
    trials->sizes[trials->count] = size;
    trials->jobs[trials->count++] = advice_job(advice, &candidate->spec, size);
}

static int
trials_run(struct trials *trials, struct advice *advice)
{
    return advice_run(advice, trials->jobs, trials->count);
}

/* ---- searching ------------------------------------------------------------------------------- */

/* Between what is enough and what is not; below the scale a step down, until that is not. */
static uint64_t
between(const struct advice *advice, const struct candidate *candidate)
{
    uint64_t down;

    if (candidate->low != 0)
        return candidate->low + (candidate->size - candidate->low) / 2;
    down = (uint64_t)((double)candidate->size / (1 + advice->step));
    return down < candidate->size ? down : candidate->size - 1;
}

static bool
is_narrow(const struct candidate *candidate)
{
    return candidate->size <= 1 || (candidate->low != 0 && candidate->size - candidate->low <=
                                                               1 + candidate->size / NEAR_ENOUGH);
}

static void
plan(struct trials *trials, const struct advice *advice, struct candidate *candidate)
{
    if (candidate->reached) {
        if (!is_narrow(candidate))
            trials_add(trials, advice, candidate, between(advice, candidate));
        return;
    }
    for (size_t i = 0; i < trials->each && candidate->next < advice->scale.count; i++)
        trials_add(trials, advice, candidate, advice->scale.sizes[candidate->next++]);
}

/* Trials come in the order of their sizes; those above the first sufficient one do not count. */
static void
update(const struct advice *advice, struct candidate *candidate, uint64_t size,
       const struct sim_job *job)
{
    double goal = advice_goal(advice, &job->result);
    bool enough = goal >= advice->target;

    if (candidate->reached && size > candidate->size)
        return;
    if (!enough)
        candidate->low = size;
    if (enough || (!candidate->reached &&
                   (candidate->size == 0 || goal > advice_goal(advice, &candidate->job.result)))) {
        candidate->size = size;
        candidate->job = *job;
    }
    candidate->reached = candidate->reached || enough;
}

/* All policies that are still searched, all at once. */
static int
search_round(struct advice *advice, struct trials *trials)
{
    int status = EX_OK;

    trials->count = 0;
    for (size_t i = 0; i < advice->count; i++)
        plan(trials, advice, &advice->candidates[i]);
    if (trials->count != 0)
        status = trials_run(trials, advice);
    for (size_t i = 0; i < trials->count && status == EX_OK; i++)
        update(advice, trials->owners[i], trials->sizes[i], &trials->jobs[i]);
    return status;
}

/* The smallest first; those that reach the goal at no size last, the best of them first. */
static int
compare_candidates(const void *a, const void *b, void *context)
{
    const struct candidate *x = a, *y = b;
    double gain = advice_goal(context, &x->job.result) - advice_goal(context, &y->job.result);

    if (x->reached != y->reached)
        return x->reached ? -1 : 1;
    if (x->reached && x->size != y->size)
        return x->size < y->size ? -1 : 1;
    if (gain > 0 || gain < 0)
        return gain > 0 ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

const struct candidate *
advice_best(const struct advice *advice)
{
    for (size_t i = 0; i < advice->count; i++)
        if (advice->candidates[i].reached && !advice->candidates[i].spec.ops->needs_future)
            return &advice->candidates[i];
    return NULL;
}

double
advice_goal(const struct advice *advice, const struct sim_result *result)
{
    return simulate_goal(result, advice->by_bytes);
}

static int
search(struct advice *advice)
{
    struct trials trials = {.each = (advice->scale.count + ROUNDS - 1) / ROUNDS};
    int status = EX_OK;

    if (!trials_make(&trials, advice->count * trials.each))
        return EX_SOFTWARE;
    do
        status = search_round(advice, &trials);
    while (trials.count != 0 && status == EX_OK);
    trials_free(&trials);
    if (status != EX_OK)
        return status;
    qsort_r(advice->candidates, advice->count, sizeof(*advice->candidates), compare_candidates,
            advice);
    return EX_OK;
}

/* ---- what is searched ------------------------------------------------------------------------ */

static bool
make_scale(struct advice *advice)
{
    const struct simulate_subject *subject = advice->subject;
    size_t requests =
        subject->rate < 1 ? subject->sample.trace.request_count : subject->sim.request_count;
    double points = MUCH_WORK / ((double)requests * (double)advice->count + 1);
    double low = fmax(1, (double)advice->all / SMALLEST);
    size_t count = points > MOST_POINTS     ? MOST_POINTS
                   : points < FEWEST_POINTS ? FEWEST_POINTS
                                            : (size_t)points;

    if (count < advice->all)
        advice->step = pow((double)advice->all / low, 1 / (double)(count - 1)) - 1;
    return size_scale_make(&advice->scale, low, advice->all, count);
}

static bool
prepare(struct advice *advice)
{
    const struct simulate_options *options = advice->options;
    const struct trace_totals *facts = &advice->subject->facts;
    uint64_t part = advice->by_bytes ? facts->bytes_hit : facts->hits;
    uint64_t whole = advice->by_bytes ? facts->bytes : facts->requests;

    advice->in_bytes = advice->subject->sized;
    advice->all = advice->in_bytes ? advice->subject->all_bytes : advice->subject->trace->url_count;
    if (advice->all == 0)
        advice->all = 1;
    advice->infinite = whole ? (double)part / (double)whole : 0;
    advice->candidates = calloc(options->spec_count, sizeof(*advice->candidates));
    if (!advice->candidates)
        return false;
    for (size_t i = 0; i < options->spec_count; i++)
        if (options->specs[i].ops)
            advice->candidates[advice->count++] =
                (struct candidate){.spec = options->specs[i], .order = i};
    return make_scale(advice);
}

/*
 * What an infinite cache hits where pages expire or not every page is stored: what LRU hits in a
 * cache that holds everything.
 */
static int
find_infinite(struct advice *advice)
{
    struct policy_spec lru = policy_spec_of(policy_find("lru"));
    struct sim_job job = advice_job(advice, &lru, advice->all);
    int status = EX_OK;

    if (!sim_storage_is_all(&advice->subject->storage))
        status = advice_run(advice, &job, 1);
    if (status == EX_OK && job.error == SIM_OK && job.result.requests != 0)
        advice->infinite = advice_goal(advice, &job.result);
    advice->target = advice->share * advice->infinite;
    return status;
}

int
advice_find(struct advice *advice, const struct simulate_subject *subject,
            const struct simulate_options *options, bool by_bytes, double share,
            struct advice_work *work)
{
    int status;

    *advice = (struct advice){
        .options = options, .subject = subject, .by_bytes = by_bytes, .share = share, .work = work};
    if (!prepare(advice)) {
        output_complain("out of memory");
        return EX_SOFTWARE;
    }
    status = find_infinite(advice);
    if (status != EX_OK)
        return status;
    return advice->infinite > 0 && advice->count != 0 ? search(advice) : EX_OK;
}

void
advice_free(struct advice *advice)
{
    free(advice->candidates);
    size_scale_free(&advice->scale);
    *advice = (struct advice){0};
}
