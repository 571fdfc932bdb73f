/* The tables of a report's simulations, and what is known of these. */
#ifndef SUNPROXY_STUDY_REPORT_REPORT_RUNS_TABLES_H
#define SUNPROXY_STUDY_REPORT_REPORT_RUNS_TABLES_H

#include "study/report/report.h"
#include "study/simulate/simulate_run.h"

#define REPORT_ANOMALY_POLICIES 2u

/*
 * What the runs of a job report as they go; requests are numbered as in the whole trace, also of a
 * sample. Of several seeds, misses are the sums.
 */
struct report_course {
    const uint32_t *numbers; /* by request that is simulated: its number; NULL: the same */
    uint64_t requests;       /* of the whole trace */
    uint64_t windows;        /* parts of it, of which `misses` has the misses */
    uint64_t misses[REPORT_WINDOWS];
    uint64_t first_victim; /* the first request with an eviction, from 1; 0: none */
};

struct report_runs {
    const struct simulate_subject *subject;
    const struct simulate_options *options;
    const int64_t *times; /* of requests; NULL: none that an axis could have */
    uint64_t windows;
    struct capacity_list sizes; /* owned: of hit ratios */
    struct size_scale anomaly, urls, bytes;
    uint32_t *numbers; /* owned: of a sample's requests in the whole trace; NULL: no sample */
    struct report_course *courses; /* owned: by policy, then by size */
    struct sim_job *jobs;          /* owned: sizes, anomaly, urls, bytes; by policy, then by size */
    size_t job_count;
};

/* The trace that is simulated, whole or a sample. */
static inline const struct sim_trace *
report_runs_simulated(const struct simulate_subject *subject)
{
    return subject->rate < 1 ? &subject->sample.trace : &subject->sim;
}

static inline bool
report_runs_is_sampled(const struct report_runs *runs)
{
    return runs->subject->rate < 1;
}

/*
 * Adds the tables of report_runs() (report.h) but for what jobs did not finish. False without
 * memory.
 */
bool report_runs_tables(struct json *j, const struct report_runs *runs);

#endif
