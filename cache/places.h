/*
 * What cache.c and configure.c share of the inside of a cache: the shards' places with their locks,
 * and the word that says how many are in use. Nobody else includes this.
 *
 * Locks: each place has one. Who needs several takes them in the order of the places, and place 0
 * always, so that whoever holds that one keeps the configuration as it is.
 */
#ifndef SUNPROXY_CACHE_PLACES_H
#define SUNPROXY_CACHE_PLACES_H

#include <assert.h>
#include <pthread.h>

#include "cache/cache.h"
#include "cache/shard.h"

#define CACHE_LINE 64
#define LAYOUT_SHARDS 0xffu /* the bits of a layout that hold the number of shards */

/* A shard's place. There are always CACHE_MAX_SHARDS; those in use come first. */
struct place {
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    struct shard shard; /* protected by the lock */
};

struct cache {
    /*
     * The number of shards, and above it a count of how often they were rebuilt. Read without a
     * lock to choose a place, and again under the lock of that place, which whoever changes it
     * holds: the two differ if it changed in between, and then another place is chosen.
     */
    _Atomic uint32_t layout;

    struct cache_config config; /* protected by the lock of place 0 */

    /* Numbers pages in the order of their entry. Drawn under a place's lock. */
    _Alignas(CACHE_LINE) _Atomic uint64_t entered;

    struct place places[CACHE_MAX_SHARDS];
};

static inline void
place_lock(struct place *place)
{
    int error = pthread_mutex_lock(&place->lock);

    assert(error == 0);
    (void)error;
}

static inline void
place_unlock(struct place *place)
{
    int error = pthread_mutex_unlock(&place->lock);

    assert(error == 0);
    (void)error;
}

/*
 * The number of the shard of a hash. The multiplication mixes low bits into the high ones that
 * decide here, so that the low ones still tell URLs apart in the shard's table.
 */
static inline unsigned
shard_number(uint32_t hash, unsigned count)
{
    return (unsigned)((uint64_t)(hash * 0x9e3779b1u) * count >> 32);
}

static inline uint32_t
layout_read(struct cache *cache)
{
    return atomic_load_explicit(&cache->layout, memory_order_relaxed);
}

static inline unsigned
layout_shards(uint32_t layout)
{
    return layout & LAYOUT_SHARDS;
}

#endif
