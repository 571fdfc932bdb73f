/*
 * Simulations in the foreground: many jobs on many threads, a progress line on a terminal, and
 * Ctrl-C.
 */
#ifndef SUNPROXY_STUDY_SIMULATE_SIMULATE_RUN_H
#define SUNPROXY_STUDY_SIMULATE_SIMULATE_RUN_H

#include "cli/progress.h"
#include "sim/curve.h"
#include "sim/sweep.h"

/*
 * Runs the jobs. EX_OK; EXIT_INTERRUPTED after SIGINT or SIGTERM (interrupt.h), which are caught
 * from then on, with a line on stderr about how many runs are finished; EX_SOFTWARE, after a
 * complaint, without memory. Each job has its own error.
 */
int simulate_run(struct sim_job *jobs, size_t count, unsigned threads, const char *label);

/*
 * Likewise, as a part of a longer work: `before` and what is done of the jobs are drawn of
 * progress->total, which is the caller's, and the line is left on the screen.
 */
int simulate_run_part(struct sim_job *jobs, size_t count, unsigned threads,
                      struct progress *progress, uint64_t before);

/* Requests that the jobs will simulate. */
uint64_t simulate_run_size(const struct sim_job *jobs, size_t count);

/* As sim_curve_make(), likewise; SIM_STOPPED after a signal. */
enum sim_error simulate_run_curve(const struct sim_trace *trace, size_t warmup, const char *label,
                                  struct sim_curve *curve);

#endif
