/*
 * Simulating with somebody waiting: many jobs on many threads, a progress line on a terminal, and
 * Ctrl-C.
 */
#ifndef SUNPROXY_CLIENT_SIMULATE_RUN_H
#define SUNPROXY_CLIENT_SIMULATE_RUN_H

#include "sim/sweep.h"

/*
 * Runs the jobs. EX_OK; EXIT_INTERRUPTED after SIGINT or SIGTERM, which it catches meanwhile;
 * EX_SOFTWARE, after a complaint, without memory. Each job tells whether it was finished.
 */
int simulate_run(struct sim_job *jobs, size_t count, unsigned threads, const char *label);

#endif
