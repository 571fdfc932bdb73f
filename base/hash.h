/*
 * Hashes of 64 bits: of numbers by SplitMix64, of bytes by XXH3.
 *
 * hash64_bytes() is the identity of a URL beyond its stay in a cache, for ghosts, sketches and
 * samples. It is the same in the daemon and in the simulator, on every machine, and in every
 * version of xxHash from 0.8 on.
 *
 * The hashes are well mixed: each bit of the input changes each bit of the result in half of the
 * cases, so any bits of it can number a slot of a table or a row of a sketch. They have no secret:
 * collisions can be made on purpose, so a hash must not be relied on to bound a search (see
 * cache/table.h). Safe on any thread.
 */
#ifndef SUNPROXY_BASE_HASH_H
#define SUNPROXY_BASE_HASH_H

#include <stdint.h>

#include "base/span.h"

#define HASH64_STEP 0x9e3779b97f4a7c15U

/*
 * The finaliser of SplitMix64 (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number
 * Generators", 2014, figure 16); one to one, and 0 for 0.
 */
static inline uint64_t
hash64_mix(uint64_t x)
{
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}

/* Of a number; one to one. */
static inline uint64_t
hash64_uint(uint64_t x)
{
    return hash64_mix(x + HASH64_STEP);
}

/* The next number of the generator SplitMix64, whose state begins as any seed. */
static inline uint64_t
splitmix64_next(uint64_t *state)
{
    return hash64_mix(*state += HASH64_STEP);
}

/* Of a run of bytes: XXH3_64bits(). */
uint64_t hash64_bytes(struct span s);

#endif
