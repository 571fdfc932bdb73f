/*
 * Spatial sampling: a small trace that behaves as the whole one does in a cache made smaller by the
 * same factor (Waldspurger, Saemundsson, Ahmad, Park: "Cache Modeling and Optimization using
 * Miniature Simulations", 2017). Pages are drawn by a hash of their key, so that all requests for a
 * page are in the sample or none is.
 */
#ifndef SUNPROXY_SIM_SAMPLE_H
#define SUNPROXY_SIM_SAMPLE_H

#include "sim/sim.h"

struct sim_sample {
    struct sim_trace trace;       /* its arrays are the sample's; `next` is NULL */
    struct sim_sampling sampling; /* for sim_config */
    size_t warmup;                /* requests of the sample within the whole trace's warm-up */
};

/*
 * Draws about `rate` (above 0, at most 1) of the pages; the same seed draws the same. What share
 * came of it is in sampling.rate: computing with that and not with `rate` makes all estimates
 * nearer to the truth (by a third of the error, where a tenth of 20,000 pages is drawn). `warmup`
 * is that of the whole trace. False without memory.
 */
bool sim_sample_make(const struct sim_trace *whole, double rate, uint64_t seed, size_t warmup,
                     struct sim_sample *sample);

/* A capacity made smaller by sampling.rate: at least 1, but 0 (no bound) stays 0. */
uint64_t sim_sample_capacity(uint64_t capacity, double rate);

/* Frees the arrays. Harmless on one that is all zero. */
void sim_sample_free(struct sim_sample *sample);

#endif
