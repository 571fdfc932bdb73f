/*
 * The work of an advice, in requests to be simulated. What a search needs is not known before: a
 * policy is expected to reach the goal halfway through what is left of its sizes.
 */
#include <math.h>

#include "study/advise/advise.h"
#include "study/simulate/simulate_run.h"

#define HALVINGS 7.0      /* from one size of the scale to the next, at most */
#define INTERVAL_RUNS 9.0 /* parts and header fields, in runs over the whole trace */
#define SAMPLES_RUNS 4.0  /* likewise, for the error of a sample */

static double
runs_of(const struct advice *advice, const struct policy_spec *spec)
{
    return spec->ops->draws ? (double)advice->options->seeds : 1;
}

/* What is left of the search, in runs. */
static double
search_left(const struct advice *advice, bool from_start)
{
    double runs = 0;

    for (size_t i = 0; i < advice->count; i++) {
        const struct candidate *candidate = &advice->candidates[i];
        size_t next = from_start ? 0 : candidate->next;
        double sizes = (double)(advice->scale.count - next) / 2 + HALVINGS;

        if (candidate->reached && !from_start)
            sizes = candidate->low == 0
                        ? HALVINGS
                        : fmax(0, log2(100.0 * (double)(candidate->size - candidate->low) /
                                       (double)candidate->size));
        runs += sizes * runs_of(advice, &candidate->spec);
    }
    return runs;
}

/* What comes after the stage, in runs. */
static double
later_stages(const struct advice *advice, enum advice_stage stage)
{
    double runs = 0, half = (double)advice->scale.count / 2;

    if (stage < ADVICE_COMPARES) {
        for (size_t i = 0; i < advice->count; i++)
            runs += runs_of(advice, &advice->candidates[i].spec);
        runs += ADVICE_AROUND + half;
    }
    if (stage < ADVICE_BOUNDS)
        runs += INTERVAL_RUNS + (advice->subject->rate < 1 ? SAMPLES_RUNS : 0);
    if (advice->in_bytes && advice->subject->whole_pages)
        runs += half + HALVINGS;
    return runs;
}

static double
runs_left(const struct advice *advice)
{
    double searched = advice->stage == ADVICE_SEARCHES ? search_left(advice, false) : 0;

    if (!advice->work->last)
        searched += later_stages(advice, advice->stage);
    return searched + advice->work->goals_after *
                          (search_left(advice, true) + later_stages(advice, ADVICE_SEARCHES));
}

int
advice_run(struct advice *advice, struct sim_job *jobs, size_t count)
{
    struct advice_work *work = advice->work;
    size_t requests = advice->subject->rate < 1 ? advice->subject->sample.trace.request_count
                                                : advice->subject->sim.request_count;
    uint64_t own = simulate_run_size(jobs, count);
    int status;

    work->progress.total = work->done + own + (uint64_t)(runs_left(advice) * (double)requests);
    status = simulate_run_part(jobs, count, (unsigned)advice->options->jobs, &work->progress,
                               work->done);
    work->done += own;
    return status;
}
