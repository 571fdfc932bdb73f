#include "client/simulate_run.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/command.h"
#include "client/output.h"
#include "client/progress.h"

#define LOOK_AGAIN_MS 100 /* how soon a signal is noticed */

/* Waits for the threads, tells how far they are, and stops them at a signal. */
static int
oversee(struct sim_sweep *sweep, int signals, const char *label)
{
    struct signalfd_siginfo caught;
    struct progress progress;
    uint64_t total, done = sim_sweep_progress(sweep, &total);
    int status = EX_OK;

    progress_begin(&progress, label, total);
    while (!sim_sweep_wait(sweep, LOOK_AGAIN_MS)) {
        if (read(signals, &caught, sizeof(caught)) > 0) {
            status = EXIT_INTERRUPTED;
            sim_sweep_stop(sweep);
        }
        done = sim_sweep_progress(sweep, &total);
        if (status == EX_OK)
            progress_draw(&progress, done);
        else
            progress_clear(&progress);
    }
    progress_clear(&progress);
    return status;
}

static int
judge(const struct sim_job *jobs, size_t count, int status)
{
    for (size_t i = 0; i < count; i++)
        if (jobs[i].error != SIM_OK && jobs[i].error != SIM_STOPPED) {
            output_complain("%s", sim_strerror(jobs[i].error));
            return EX_SOFTWARE;
        }
    return status;
}

int
simulate_run(struct sim_job *jobs, size_t count, unsigned threads, const char *label)
{
    struct sim_sweep *sweep;
    sigset_t ending, before;
    int signals, status = EX_SOFTWARE;

    sigemptyset(&ending);
    sigaddset(&ending, SIGINT);
    sigaddset(&ending, SIGTERM);
    /* Blocked in the threads too, which inherit it: only the descriptor tells. */
    pthread_sigmask(SIG_BLOCK, &ending, &before);
    signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
    sweep = signals < 0 ? NULL : sim_sweep_start(jobs, count, threads);
    if (sweep)
        status = oversee(sweep, signals, label);
    else
        output_complain("out of memory, threads or descriptors");
    sim_sweep_finish(sweep);
    if (signals >= 0)
        close(signals);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return sweep ? judge(jobs, count, status) : status;
}
