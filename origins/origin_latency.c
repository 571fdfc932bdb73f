#include "origins/origin_latency.h"

#define LOWEST 16 /* microseconds, of which the position of the highest bit is 4 */
#define LOWEST_BIT 4
#define PARTS 8 /* of an octave */

static unsigned
bucket_of(int64_t took_us)
{
    const uint64_t us = took_us > LOWEST ? (uint64_t)took_us : LOWEST;
    const unsigned bit = 63 - (unsigned)__builtin_clzll(us);
    const unsigned bucket = (bit - LOWEST_BIT) * PARTS + ((us >> (bit - 3)) & (PARTS - 1));

    return bucket < ORIGIN_LATENCY_BUCKETS ? bucket : ORIGIN_LATENCY_BUCKETS - 1;
}

/* The largest time of a bucket. */
static uint64_t
bound_of(unsigned bucket)
{
    const unsigned bit = bucket / PARTS + LOWEST_BIT;

    return ((uint64_t)(PARTS + bucket % PARTS + 1) << (bit - 3)) - 1;
}

static void
clear(_Atomic uint32_t counts[ORIGIN_LATENCY_BUCKETS])
{
    for (unsigned i = 0; i < ORIGIN_LATENCY_BUCKETS; i++)
        atomic_store_explicit(&counts[i], 0, memory_order_relaxed);
}

void
origin_latency_add(struct origin_latency *latency, int64_t took_us, int64_t now_us)
{
    const int64_t now = now_us / ORIGIN_LATENCY_SLOT_US;
    int64_t last = atomic_load_explicit(&latency->slot, memory_order_relaxed);

    if (now > last && atomic_compare_exchange_strong(&latency->slot, &last, now)) {
        clear(latency->counts[now & 1]);
        if (now > last + 1)
            clear(latency->counts[!(now & 1)]);
    }
    atomic_fetch_add_explicit(&latency->counts[now & 1][bucket_of(took_us)], 1,
                              memory_order_relaxed);
}

/* Those of a bucket in the slots that count still. */
static uint64_t
count_of(const struct origin_latency *latency, unsigned bucket, int64_t now_us)
{
    const int64_t now = now_us / ORIGIN_LATENCY_SLOT_US;
    const int64_t slot = atomic_load_explicit(&latency->slot, memory_order_relaxed);
    uint64_t count = 0;

    if (slot >= now - 1)
        count += atomic_load_explicit(&latency->counts[slot & 1][bucket], memory_order_relaxed);
    if (slot >= now)
        count += atomic_load_explicit(&latency->counts[!(slot & 1)][bucket], memory_order_relaxed);
    return count;
}

uint64_t
origin_latency_percentile(const struct origin_latency *latency, double share, int64_t now_us)
{
    uint64_t all = 0, below = 0, wanted;

    for (unsigned i = 0; i < ORIGIN_LATENCY_BUCKETS; i++)
        all += count_of(latency, i, now_us);
    if (!all)
        return 0;
    wanted = (uint64_t)(share * (double)all);
    wanted = wanted < all ? wanted + 1 : all;
    for (unsigned i = 0; i < ORIGIN_LATENCY_BUCKETS; i++) {
        below += count_of(latency, i, now_us);
        if (below >= wanted)
            return bound_of(i);
    }
    return bound_of(ORIGIN_LATENCY_BUCKETS - 1);
}
