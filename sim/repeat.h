/*
 * A policy that draws random numbers gives another result with each seed. A job of several runs
 * repeats the run with successive seeds and reports their mean and their spread.
 */
#ifndef SUNPROXY_SIM_REPEAT_H
#define SUNPROXY_SIM_REPEAT_H

#include "sim/sim.h"

/* How far the results of several seeds lie apart; all 0 of one run. */
struct sim_spread {
    unsigned runs; /* that were finished */
    /* Standard deviations over the runs (n - 1). */
    double hit_ratio;
    double byte_hit_ratio;
    /* The lowest and the highest ratio of a run. */
    double hit_ratio_low, hit_ratio_high;
    double byte_hit_ratio_low, byte_hit_ratio_high;
};

/*
 * `runs` runs (0 counts as 1) with the seeds config->seed, config->seed + 1, and so on. *result
 * has the means: of counts rounded to whole numbers, of ratios exact. config->tell is called in
 * each run, one run after the other. Of a sample, the errors are those of the first run; they take
 * one more run, in a larger cache (sim/estimate.h), whose events tell() does not get. Any error
 * ends all runs. SIM_STOPPED leaves the means of those that are finished, or what the first came to
 * until then (sim_run()); spread->runs counts that one, too.
 */
enum sim_error sim_repeat(const struct sim_trace *trace, const struct sim_config *config,
                          unsigned runs, struct sim_watch *watch, struct sim_result *result,
                          struct sim_spread *spread);

#endif
