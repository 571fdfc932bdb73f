/*
 * LRU's whole curve in one pass: what a cache of each size in pages would have hit, from stack
 * distances (Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques for storage hierarchies",
 * 1970), kept in a Fenwick tree over the times of last request (Bennett, Kruskal 1975; Olken 1981).
 */
#ifndef SUNPROXY_SIM_CURVE_H
#define SUNPROXY_SIM_CURVE_H

#include "sim/sim.h"

struct sim_curve {
    uint64_t requests; /* without the warm-up */
    uint64_t bytes;    /* that they ask for */
    size_t page_count; /* of the trace; larger caches hit no more */
    uint64_t *hits;    /* by size in pages, 0 to page_count: hits of a cache of that size */
    uint64_t *bytes_hit;
};

/*
 * Makes the curve: exact, for every size. SIM_STOPPED, SIM_NO_MEMORY, SIM_TOO_MANY: nothing is to
 * be freed. watch may be NULL.
 */
enum sim_error sim_curve_make(const struct sim_trace *trace, size_t warmup, struct sim_watch *watch,
                              struct sim_curve *curve);

/* The smallest size in pages that hits at least as much as `hits`; page_count if none does. */
size_t sim_curve_find(const struct sim_curve *curve, double hits);

void sim_curve_free(struct sim_curve *curve);

#endif
