/*
 * Many runs on many threads: traces by policies by capacities. The jobs are the caller's array,
 * which it does not touch from start to finish.
 */
#ifndef SUNPROXY_SIM_SWEEP_H
#define SUNPROXY_SIM_SWEEP_H

#include "sim/repeat.h"

struct sim_job {
    const struct sim_trace *trace;
    struct sim_config config;
    unsigned runs;            /* with successive seeds, see sim/repeat.h; 0 counts as 1 */
    struct sim_result result; /* of several runs, the means */
    struct sim_spread spread;
    enum sim_error error; /* SIM_STOPPED where it was not finished, or never begun */
};

struct sim_sweep;

/*
 * Starts to run the jobs in their order on `threads` threads, or on fewer if not all can be
 * started. NULL without memory, or if not even one thread could be started.
 */
struct sim_sweep *sim_sweep_start(struct sim_job *jobs, size_t count, unsigned threads);

/*
 * Waits until all is done, or until the time has passed. True: all is done. For the thread that
 * started it.
 */
bool sim_sweep_wait(struct sim_sweep *sweep, int milliseconds);

/* Requests simulated so far, of all jobs, and how many there will be. Any thread. */
uint64_t sim_sweep_progress(struct sim_sweep *sweep, uint64_t *total);

/* Has the runs end soon. Any thread; a signal handler, too. */
void sim_sweep_stop(struct sim_sweep *sweep);

/* Waits for the threads and frees. NULL is harmless. */
void sim_sweep_finish(struct sim_sweep *sweep);

#endif
