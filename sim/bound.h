/*
 * A bound on the hits of every policy, also where pages differ in size: PFOO-L (Berger, Beckmann,
 * Harchol-Balter: "Practical Bounds on Optimal Caching with Variable Object Sizes", SIGMETRICS
 * 2018, section 4). A page that is kept from a request to the next one for it takes up its bytes
 * times the requests between. A cache offers its capacity times all requests. The bound takes the
 * cheapest such stays until the capacity is used up, whenever they are.
 *
 * The paper has pages of constant size. Where a page's size changes, a cached page keeps the size
 * that it was inserted with (sim/sim.h), and a stay takes up the least size that the page had so
 * far. sim/bound.c has the proof.
 */
#ifndef SUNPROXY_SIM_BOUND_H
#define SUNPROXY_SIM_BOUND_H

#include "sim/sim.h"

struct sim_bound {
    uint64_t requests; /* without the warm-up */
    uint64_t bytes;    /* that they ask for */
    size_t steps;      /* requests, with the warm-up */
    size_t count;      /* of stays that end in a counted request */

    /* By number of stays, from 1, the cheapest first. Owned. */
    double *hit_costs;  /* byte requests, cheapest for each hit */
    double *byte_costs; /* the same, cheapest for each byte that hits */
    double *byte_gains; /* bytes that hit */
};

/*
 * Of a trace with sizes and with `next`. Each page occupies what the trace charges for it and
 * `overhead` beside its size. False without memory, with nothing to be freed.
 */
bool sim_bound_make(const struct sim_trace *trace, size_t warmup, uint64_t overhead,
                    struct sim_bound *bound);

/* No cache of this capacity in bytes has higher ratios. Sums are exact up to 2^53. */
double sim_bound_hit_ratio(const struct sim_bound *bound, uint64_t capacity);
double sim_bound_byte_hit_ratio(const struct sim_bound *bound, uint64_t capacity);

/* Harmless on one that is all zero. */
void sim_bound_free(struct sim_bound *bound);

#endif
