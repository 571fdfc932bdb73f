/*
 * The parts of `sunproxy advise`: options (advise.c), the sample (advise_sample.c), the search for
 * the smallest sufficient size (advise_search.c), what is compared at the recommended size
 * (advise_compare.c), the interval of its ratio (advise_interval.c, forecast.c), progress
 * (advise_work.c), text (advise_report.c) and JSON (advise_json.c).
 */
#ifndef SUNPROXY_STUDY_ADVISE_ADVISE_H
#define SUNPROXY_STUDY_ADVISE_ADVISE_H

#include "cli/progress.h"
#include "study/forecast.h"
#include "study/simulate/simulate.h"
#include "study/simulate/simulate_subject.h"
#include "study/size_scale.h"

#define ADVICE_WINDOWS 20u /* parts of the trace, of whose differences the noise is computed */
#define ADVICE_AROUND 5u   /* sizes around the recommended one */
#define ADVICE_UNKNOWN 0.5 /* the error of a sample that is too small to show one */

/*
 * Header bytes that are assumed are within this factor of the truth for 68 % of the sites, and
 * within its square for 95 %: with 300 from 150 to 600, and from 75 to 1,200.
 */
#define ADVICE_HEADER_FACTOR 2.0

#define ADVICE_MOST 0.05 /* uncertainty of a ratio beyond which there is too little data */

/* What a run hits in each window of the trace; of several seeds, sums. */
struct advice_course {
    size_t first; /* request that is counted */
    size_t count; /* of requests from there on */
    uint64_t requests[ADVICE_WINDOWS], hits[ADVICE_WINDOWS];
    uint64_t bytes[ADVICE_WINDOWS], bytes_hit[ADVICE_WINDOWS];
};

/* A policy, and what is known of the size that it needs. */
struct candidate {
    struct policy_spec spec;
    size_t order;       /* among the policies of the options */
    size_t next;        /* the first of the scale's sizes that was not tried */
    uint64_t low;       /* once `reached`: too small, the nearest that was tried; or 0 */
    uint64_t size;      /* enough, the smallest that was tried; else the best; 0: none */
    bool reached;       /* whether it is enough */
    struct sim_job job; /* in a cache of `size` */

    /* In a cache of the recommended size, if there is a recommendation. */
    struct sim_job at_best;
    struct advice_course course;
    double difference; /* of the goal's ratio, from that of the recommended policy */
    double noise;      /* half the width of the difference's 95 % interval */
    bool tied;         /* the difference is within the noise, or below a twentieth of a point */
};

/* The whole work, of which there is one progress line; shared by the advice for both goals. */
struct advice_work {
    struct progress progress;
    uint64_t done;        /* requests that were simulated */
    unsigned goals_after; /* that come after the present one */
    bool last;            /* this search is the last stage of a goal, and nothing is compared */
};

/* In this order. */
enum advice_stage { ADVICE_SEARCHES, ADVICE_COMPARES, ADVICE_BOUNDS, ADVICE_ENDS };

/* Advice for one goal: the hit ratio or the byte hit ratio. */
struct advice {
    const struct simulate_options *options;
    const struct simulate_subject *subject;
    struct advice_work *work;
    enum advice_stage stage;
    bool by_bytes;                /* the goal is the byte hit ratio */
    double share;                 /* of the infinite cache's ratio */
    double infinite;              /* that ratio */
    double target;                /* the share of it */
    bool in_bytes;                /* sizes are in bytes, else in URLs */
    uint64_t all;                 /* the size that holds everything */
    struct size_scale scale;      /* owned: the sizes that are tried, from the smallest on */
    double step;                  /* how much larger the next one is; 0: every size is tried */
    struct candidate *candidates; /* owned; in the end the one with the smallest size first */
    size_t count;

    /* Larger than the recommended size, yet not enough; of those tried the worst. 0: none. */
    uint64_t larger;
    struct sim_job in_larger;

    /* Of the recommended policy: */
    uint64_t around[ADVICE_AROUND]; /* sizes, rising; 0: none */
    struct sim_job in_around[ADVICE_AROUND];
    uint64_t body_size; /* what it needs if bodies alone count; 0: not asked, or not reached */
    struct forecast forecast;
    double sample_error; /* standard error of the ratio by the draw of the sample; 0: no sample */
    double uncertainty;  /* half the width of the 95 % interval of the goal's ratio to come */
    bool too_little;     /* the noise alone is beyond ADVICE_MOST */
    uint64_t requests_needed; /* that would be enough, roughly; 0 unless too_little */
};

/* ---- advise_sample.c */

#define ADVICE_SAMPLE_ERROR 0.0025 /* standard error of the ratio by a sample that is chosen */

struct advice_sample {
    const struct simulate_subject *subject; /* whole */
    const struct simulate_options *options;
    double share; /* of the infinite cache's ratio, that is looked for */
};

/*
 * Draws a sample of a long trace, unless the options say which: the smallest whose error is about
 * ADVICE_SAMPLE_ERROR for LRU, of at most SIMULATE_ENOUGH requests. The subject is whole before.
 * EX_OK, or the exit status after a complaint.
 */
int advice_choose_sample(struct simulate_subject *subject, const struct simulate_options *options,
                         double share, struct advice_work *work);

/* ---- advise_search.c */

/*
 * Finds what the policies need. A larger cache may hit less, so sizes are tried from the smallest
 * on, on a logarithmic scale, until one is enough; then between it and the one before by halving.
 * EX_OK, or the exit status after a complaint; advice_free() in any case.
 */
int advice_find(struct advice *advice, const struct simulate_subject *subject,
                const struct simulate_options *options, bool by_bytes, double share,
                struct advice_work *work);

/* The smallest size that is enough with a policy that a server can run; NULL: none is. */
const struct candidate *advice_best(const struct advice *advice);

/* The ratio that is asked about. */
double advice_goal(const struct advice *advice, const struct sim_result *result);

/* A run of that policy in a cache of that size, in bytes or URLs. */
struct sim_job advice_job(const struct advice *advice, const struct policy_spec *spec,
                          uint64_t size);

void advice_free(struct advice *advice);

/* ---- advise_compare.c */

/*
 * Runs all policies in a cache of the size that the best one needs, and that one in larger caches
 * and around its size; finds ties and the uncertainty. As advice_find(). Without a best one nothing
 * is done.
 */
int advice_compare(struct advice *advice);

/* ---- advise_interval.c */

/* Finds the interval of the ratio of the best policy, when all policies were compared. */
int advice_find_interval(struct advice *advice, const struct candidate *best);

/*
 * By what a difference between ratios of the sample's own requests is multiplied to be one of the
 * whole trace's ratio; 1 without a sample. Few of the misses are for the most popular pages, so an
 * estimate divides the sample's misses by its share of all requests (sim/estimate.h), of which a
 * sample with popular pages has more.
 */
double advice_whole_per_sample(const struct advice *advice);

/* An end of the range of header bytes that the 95 % interval includes. */
double advice_header_bytes(const struct advice *advice, bool high);

/* ---- advise_work.c */

/*
 * Runs the jobs as simulate_run() does, and goes on with the progress line of the whole work. What
 * comes after them is estimated from the state of the search.
 */
int advice_run(struct advice *advice, struct sim_job *jobs, size_t count);

/* ---- advise_report.c, advise_json.c: `other` is advice for the other goal, or NULL */

void advice_print(const struct advice *advice, const struct advice *other);

/* As output_json(). */
int advice_print_json(const struct advice *advice, const struct advice *other);

#endif
