/*
 * What the files of cache/ share: the slots of shards with their locks, and the word with the
 * number of shards in use. Private.
 *
 * Locks: each slot has one. Several are taken in the order of the slots, slot 0 among them, so
 * that its lock keeps the configuration as it is.
 */
#ifndef SUNPROXY_CACHE_SLOTS_H
#define SUNPROXY_CACHE_SLOTS_H

#include <assert.h>
#include <errno.h>
#include <pthread.h>

#include "cache/cache.h"
#include "cache/epochs.h"
#include "cache/shard.h"

#define CACHE_LINE 64
#define LAYOUT_SHARDS 0xffu /* the bits of a layout that hold the number of shards */

/* Where a shard is. There are always CACHE_MAX_SHARDS; those in use come first. */
struct slot {
    _Alignas(CACHE_LINE) pthread_mutex_t lock;
    _Atomic unsigned waiting; /* threads that wait for the lock */
    struct shard shard;       /* protected by the lock */
};

struct cache {
    /*
     * The number of shards, and above it a count of how often they were rebuilt. Read without a
     * lock to choose a slot, and again under the lock of that slot, without which it is not
     * changed: if the two differ, another slot is chosen.
     */
    _Atomic uint32_t layout;

    struct cache_config config; /* protected by the lock of slot 0 */

    /* Numbers fills, and pages in the order of entry. */
    _Alignas(CACHE_LINE) _Atomic uint64_t entered;

    _Alignas(CACHE_LINE) struct epochs epochs; /* its lock is taken alone */

    struct slot slots[CACHE_MAX_SHARDS];
};

static inline void
slot_lock(struct slot *slot)
{
    int error = pthread_mutex_trylock(&slot->lock);

    if (error == EBUSY) {
        atomic_fetch_add_explicit(&slot->waiting, 1, memory_order_relaxed);
        error = pthread_mutex_lock(&slot->lock);
        atomic_fetch_sub_explicit(&slot->waiting, 1, memory_order_relaxed);
    }
    assert(error == 0);
    (void)error;
}

/* Tidies the table after removals, unlocks, and frees what has been removed. */
static inline void
slot_unlock(struct slot *slot)
{
    struct removed removed = slot->shard.removed;
    int error;

    if (removed.entries || removed.evicted)
        table_tidy(&slot->shard.table);
    slot->shard.removed = (struct removed){0};
    error = pthread_mutex_unlock(&slot->lock);
    assert(error == 0);
    (void)error;
    if (removed.entries || removed.evicted || removed.segments)
        shard_free_removed(&removed);
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

/* The slot of a hash, locked. */
static inline struct slot *
cache_lock(struct cache *cache, uint32_t hash)
{
    for (;;) {
        uint32_t layout = layout_read(cache);
        struct slot *slot = &cache->slots[shard_number(hash, layout_shards(layout))];

        slot_lock(slot);
        if (layout_read(cache) == layout)
            return slot;
        slot_unlock(slot);
    }
}

/* A walk over all slots in use; begins zeroed. */
struct walk {
    uint32_t layout;
    unsigned visited; /* 1 while at the first slot */
};

/*
 * The next slot of a walk, locked, or NULL at the end. If the shards are rebuilt meanwhile, pages
 * may have moved from slots ahead to slots behind, and the walk begins anew.
 */
struct slot *cache_walk(struct cache *cache, struct walk *walk);

/* The most objects that a purge by a prefix or a tag takes or removes under one hold of a lock. */
#define PURGE_SLICE 64u

static inline uint64_t
cache_draw_entered(struct cache *cache)
{
    return atomic_fetch_add_explicit(&cache->entered, 1, memory_order_relaxed);
}

#endif
