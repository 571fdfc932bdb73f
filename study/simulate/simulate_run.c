#include "study/simulate/simulate_run.h"

#include <pthread.h>
#include <sysexits.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "cli/progress.h"

#define LOOK_AGAIN_MS 100 /* how soon a signal is noticed */

/* Waits for the threads, draws their progress, and stops them at a signal. */
static int
wait_for_sweep(struct sim_sweep *sweep, struct progress *progress, uint64_t before)
{
    uint64_t total;
    int status = EX_OK;

    while (!sim_sweep_wait(sweep, LOOK_AGAIN_MS)) {
        if (interrupt_came()) {
            status = EXIT_INTERRUPTED;
            sim_sweep_stop(sweep);
        }
        if (status == EX_OK)
            progress_draw(progress, before + sim_sweep_progress(sweep, &total));
        else
            progress_clear(progress);
    }
    return status;
}

static int
report_errors(const struct sim_job *jobs, size_t count, int status)
{
    size_t finished = 0;

    for (size_t i = 0; i < count; i++) {
        if (jobs[i].error != SIM_OK && jobs[i].error != SIM_STOPPED) {
            output_complain("%s", sim_strerror(jobs[i].error));
            return EX_SOFTWARE;
        }
        finished += jobs[i].error == SIM_OK;
    }
    if (status == EXIT_INTERRUPTED)
        output_complain("interrupted: %zu of %zu runs are finished", finished, count);
    return status;
}

int
simulate_run_part(struct sim_job *jobs, size_t count, unsigned threads, struct progress *progress,
                  uint64_t before)
{
    struct sim_sweep *sweep = interrupt_catch() ? sim_sweep_start(jobs, count, threads) : NULL;
    int status = EX_SOFTWARE;

    if (sweep)
        status = wait_for_sweep(sweep, progress, before);
    if (status != EX_OK)
        progress_clear(progress);
    if (!sweep)
        output_complain("out of memory, threads or descriptors");
    sim_sweep_finish(sweep);
    return sweep ? report_errors(jobs, count, status) : status;
}

int
simulate_run(struct sim_job *jobs, size_t count, unsigned threads, const char *label)
{
    struct progress progress;
    int status;

    progress_begin(&progress, label, simulate_run_size(jobs, count));
    status = simulate_run_part(jobs, count, threads, &progress, 0);
    progress_clear(&progress);
    return status;
}

uint64_t
simulate_run_size(const struct sim_job *jobs, size_t count)
{
    uint64_t requests = 0;

    for (size_t i = 0; i < count; i++)
        requests += (uint64_t)jobs[i].trace->request_count * (jobs[i].runs ? jobs[i].runs : 1);
    return requests;
}

/* ---- LRU's curve ----------------------------------------------------------------------------- */

struct curve_work {
    const struct sim_trace *trace;
    size_t warmup;
    struct sim_watch watch;
    struct sim_curve *curve;
    enum sim_error error;
};

static void *
make_curve(void *argument)
{
    struct curve_work *work = argument;

    work->error = sim_curve_make(work->trace, work->warmup, &work->watch, work->curve);
    return NULL;
}

static bool
curve_wait(pthread_t thread)
{
    const struct timespec until = clock_timespec(clock_wall_us() + LOOK_AGAIN_MS * 1000);

    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

enum sim_error
simulate_run_curve(const struct sim_trace *trace, size_t warmup, const char *label,
                   struct sim_curve *curve)
{
    struct curve_work work = {.trace = trace, .warmup = warmup, .curve = curve};
    struct progress progress;
    pthread_t thread;

    if (!interrupt_catch() || pthread_create(&thread, NULL, make_curve, &work) != 0)
        return SIM_NO_MEMORY;
    progress_begin(&progress, label, trace->request_count);
    progress_draw(&progress, 0);
    while (!curve_wait(thread)) {
        if (interrupt_came())
            atomic_store(&work.watch.stop, true);
        progress_draw(&progress, atomic_load(&work.watch.done));
    }
    progress_clear(&progress);
    return work.error;
}
