/*
 * How long the responses of a server took in the last one to two minutes: counts in buckets whose
 * bounds are at most an eighth apart, so that percentiles are as exact as that.
 *
 * Safe on any thread; a few counts may be lost when a minute begins.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_LATENCY_H
#define SUNPROXY_ORIGINS_ORIGIN_LATENCY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define ORIGIN_LATENCY_SLOT_US ((int64_t)60 * 1000000)
#define ORIGIN_LATENCY_BUCKETS 200u /* from 16 us to 8 minutes */

/* All zero: nothing was counted. */
struct origin_latency {
    _Atomic int64_t slot;
    _Atomic uint32_t counts[2][ORIGIN_LATENCY_BUCKETS]; /* in even and odd slots: now, and last */
};

/* A response took this long. */
void origin_latency_add(struct origin_latency *latency, int64_t took_us, int64_t now_us);

/*
 * The time within which this share of the responses came, from 0 to 1. 0 if none was counted.
 */
uint64_t origin_latency_percentile(const struct origin_latency *latency, double share,
                                   int64_t now_us);

#endif
