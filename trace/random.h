/*
 * A seeded generator of random numbers for made-up traces: xoshiro256** (Blackman, Vigna 2018),
 * seeded by SplitMix64. The same seed gives the same numbers everywhere.
 */
#ifndef SUNPROXY_TRACE_RANDOM_H
#define SUNPROXY_TRACE_RANDOM_H

#include <stdint.h>

#include "base/hash.h"

struct random_numbers {
    uint64_t s[4];
};

static inline void
random_seed(struct random_numbers *r, uint64_t seed)
{
    for (unsigned i = 0; i < 4; i++)
        r->s[i] = splitmix64_next(&seed);
}

static inline uint64_t
random_next(struct random_numbers *r)
{
    uint64_t *s = r->s;
    uint64_t x = s[1] * 5;
    uint64_t result = ((x << 7U) | (x >> 57U)) * 9;
    uint64_t t = s[1] << 17U;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45U) | (s[3] >> 19U);
    return result;
}

/* Uniform in [0, 1), in steps of 2^-53. */
static inline double
random_unit(struct random_numbers *r)
{
    return (double)(random_next(r) >> 11U) * 0x1p-53;
}

__extension__ typedef unsigned __int128 random_product;

/* Uniform in [0, n), n > 0, without bias (Lemire 2019). */
static inline uint64_t
random_below(struct random_numbers *r, uint64_t n)
{
    random_product product = (random_product)random_next(r) * n;

    if ((uint64_t)product < n) {
        uint64_t least = (0 - n) % n;

        while ((uint64_t)product < least)
            product = (random_product)random_next(r) * n;
    }
    return (uint64_t)(product >> 64U);
}

#endif
