/*
 * The parts of `sunproxy advise`: what was asked for (advise.c), the search (advise_search.c) and
 * the words (advise_report.c).
 */
#ifndef SUNPROXY_STUDY_ADVISE_H
#define SUNPROXY_STUDY_ADVISE_H

#include "study/simulate_subject.h"
#include "study/size_scale.h"

/* A policy, and what is known of the size that it needs. */
struct candidate {
    struct policy_spec spec;
    size_t next;                  /* the first of the scale's sizes that was not tried */
    uint64_t low;                 /* once `reached`: too small, the nearest that was tried; or 0 */
    uint64_t size;                /* enough, the smallest that was tried; else the best; 0: none */
    bool reached;                 /* whether it is enough */
    struct sim_result result;     /* in a cache of `size` */
    struct sim_result in_as_much; /* in a cache of the size that is advised, if any is */
};

struct advice {
    const struct simulate_options *options;
    const struct simulate_subject *subject;
    double share;                 /* of the cache that never forgets */
    double infinite;              /* its ratio */
    double target;                /* the share of that */
    bool in_bytes;                /* sizes are of bytes, else of URLs */
    uint64_t all;                 /* the size that holds everything */
    struct size_scale scale;      /* owned: the sizes that are tried, from the smallest on */
    double step;                  /* how much larger the next one is; 0: every size is tried */
    struct candidate *candidates; /* owned; in the end the one with the smallest size first */
    size_t count;

    /* Larger than what is advised, yet not enough; of those that were tried the worst. 0: none. */
    uint64_t larger;
    struct sim_result in_larger;
};

/* ---- advise_search.c */

/*
 * Finds what the policies need. A larger cache may serve less, so sizes are tried from the smallest
 * on, on a logarithmic scale, until one is enough; then between it and the one before by halving.
 * EX_OK, or the exit status after a complaint; advice_free() in any case.
 */
int advice_find(struct advice *advice, const struct simulate_subject *subject,
                const struct simulate_options *options, double share);

/* The smallest size that is enough with a policy that a server can run; NULL: none is. */
const struct candidate *advice_best(const struct advice *advice);

/* The ratio that is asked about. */
double advice_goal(const struct advice *advice, const struct sim_result *result);

void advice_free(struct advice *advice);

/* ---- advise_report.c */

void advice_print(const struct advice *advice);

/* As output_json(). */
int advice_print_json(const struct advice *advice);

#endif
