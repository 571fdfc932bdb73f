#include "sim/sweep.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"

struct sim_sweep {
    struct sim_job *jobs;
    size_t count;
    uint64_t total;         /* requests */
    struct sim_watch watch; /* all runs look at it */
    atomic_size_t next;     /* job to be taken */
    pthread_t *threads;
    unsigned started;

    pthread_mutex_t lock; /* protects what follows */
    pthread_cond_t ended;
    unsigned working; /* threads */
};

static void *
work(void *argument)
{
    struct sim_sweep *sweep = argument;

    for (;;) {
        size_t number = atomic_fetch_add(&sweep->next, 1);
        struct sim_job *job;

        if (number >= sweep->count || atomic_load(&sweep->watch.stop))
            break;
        job = &sweep->jobs[number];
        job->error = sim_repeat(job->trace, &job->config, job->runs, &sweep->watch, &job->result,
                                &job->spread);
    }
    pthread_mutex_lock(&sweep->lock);
    sweep->working--;
    pthread_cond_signal(&sweep->ended);
    pthread_mutex_unlock(&sweep->lock);
    return NULL;
}

/* At most: the run for the error of a sample may not be needed. */
static unsigned
runs_of(const struct sim_job *job)
{
    return (job->runs ? job->runs : 1) + (job->config.sampling != NULL);
}

static struct sim_sweep *
sweep_make(struct sim_job *jobs, size_t count, unsigned threads)
{
    struct sim_sweep *sweep = calloc(1, sizeof(*sweep));
    pthread_condattr_t monotonic;

    if (!sweep)
        return NULL;
    sweep->threads = calloc(threads, sizeof(*sweep->threads));
    if (!sweep->threads) {
        free(sweep);
        return NULL;
    }
    sweep->jobs = jobs;
    sweep->count = count;
    for (size_t i = 0; i < count; i++) {
        jobs[i].error = SIM_STOPPED;
        jobs[i].result = (struct sim_result){0};
        jobs[i].spread = (struct sim_spread){0};
        sweep->total += (uint64_t)jobs[i].trace->request_count * runs_of(&jobs[i]);
    }
    pthread_mutex_init(&sweep->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&sweep->ended, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return sweep;
}

static void
sweep_free(struct sim_sweep *sweep)
{
    pthread_cond_destroy(&sweep->ended);
    pthread_mutex_destroy(&sweep->lock);
    free(sweep->threads);
    free(sweep);
}

struct sim_sweep *
sim_sweep_start(struct sim_job *jobs, size_t count, unsigned threads)
{
    struct sim_sweep *sweep;

    if (threads > count)
        threads = count ? (unsigned)count : 1;
    sweep = sweep_make(jobs, count, threads);
    if (!sweep)
        return NULL;
    pthread_mutex_lock(&sweep->lock);
    while (sweep->started < threads &&
           thread_start(&sweep->threads[sweep->started], work, sweep) == 0)
        sweep->started++;
    sweep->working = sweep->started; /* none has ended: the lock is ours */
    pthread_mutex_unlock(&sweep->lock);
    if (sweep->started == 0) {
        sweep_free(sweep);
        return NULL;
    }
    return sweep;
}

bool
sim_sweep_wait(struct sim_sweep *sweep, int milliseconds)
{
    const struct timespec until =
        clock_timespec(clock_monotonic_us() + (int64_t)milliseconds * 1000);
    bool done;

    pthread_mutex_lock(&sweep->lock);
    while (sweep->working && pthread_cond_timedwait(&sweep->ended, &sweep->lock, &until) == 0)
        ;
    done = sweep->working == 0;
    pthread_mutex_unlock(&sweep->lock);
    return done;
}

uint64_t
sim_sweep_progress(struct sim_sweep *sweep, uint64_t *total)
{
    *total = sweep->total;
    return atomic_load_explicit(&sweep->watch.done, memory_order_relaxed);
}

void
sim_sweep_stop(struct sim_sweep *sweep)
{
    atomic_store(&sweep->watch.stop, true);
}

void
sim_sweep_finish(struct sim_sweep *sweep)
{
    if (!sweep)
        return;
    for (unsigned i = 0; i < sweep->started; i++)
        pthread_join(sweep->threads[i], NULL);
    sweep_free(sweep);
}
