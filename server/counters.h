/*
 * What the daemon counts of its requests: a set of counters per worker, written by that worker
 * only, on a cache line of its own, and summed by whoever asks.
 */
#ifndef SUNPROXY_SERVER_COUNTERS_H
#define SUNPROXY_SERVER_COUNTERS_H

#include <stdint.h>

enum counter {
    COUNT_REQUESTS, /* PROXY_FETCH of version 1 and PROXY_GET of version 2, answered */
    COUNT_HITS,
    COUNT_MISSES,
    COUNT_COALESCED,
    COUNT_BYPASSES,
    COUNT_FAILURES,
    COUNT_BYTES_SERVED, /* of bodies */
    COUNT_BYTES_HIT,    /* of those, from the cache */
    COUNTERS
};

struct counters;

/* For workers 0 to workers - 1. NULL without memory. */
struct counters *counters_create(unsigned workers);
void counters_destroy(struct counters *counters);

/* On that worker's thread. */
void counters_add(struct counters *counters, unsigned worker, enum counter which, uint64_t n);

/* Sums since the start, or since the last counters_rebase(). Any thread. */
void counters_read(struct counters *counters, uint64_t sums[COUNTERS]);

/* From now on counters_read() counts from zero. Any thread. */
void counters_rebase(struct counters *counters);

#endif
