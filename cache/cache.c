#include "cache/cache.h"

#include <stdlib.h>

#include "cache/slots.h"

/* A walk over all slots in use; begins zeroed. */
struct walk {
    uint32_t layout;
    unsigned visited; /* 1 while at the first slot */
};

/*
 * The next slot of a walk, locked, or NULL at the end. If the shards are rebuilt
 * meanwhile, pages may have moved from slots ahead to slots behind, and the walk begins anew.
 */
static struct slot *
cache_walk(struct cache *cache, struct walk *walk)
{
    for (;;) {
        uint32_t layout = layout_read(cache);
        struct slot *slot;

        if (layout != walk->layout)
            *walk = (struct walk){.layout = layout};
        if (walk->visited == layout_shards(layout))
            return NULL;
        slot = &cache->slots[walk->visited];
        slot_lock(slot);
        if (layout_read(cache) == layout) {
            walk->visited++;
            return slot;
        }
        slot_unlock(slot);
    }
}

void
cache_victims_free(struct cache_victims *victims)
{
    for (size_t i = 0; i < victims->count; i++)
        object_release(&victims->pages[i]);
    free(victims->pages);
    *victims = (struct cache_victims){0};
}

#define MOST_RECLAIMED 16 /* this part of the capacity */

static uint64_t
cache_most_reclaimed(struct cache *cache)
{
    struct cache_config config;
    struct cache_stats stats = {0};

    cache_get_config(cache, &config);
    if (config.capacity_bytes)
        return config.capacity_bytes / MOST_RECLAIMED;
    cache_get_stats(cache, &stats);
    return stats.bytes / MOST_RECLAIMED;
}

uint64_t
cache_reclaim(struct cache *cache, uint64_t bytes, uint64_t *pages)
{
    uint64_t most = cache_most_reclaimed(cache), evicted = 0;
    struct walk walk = {0};
    struct slot *slot;

    if (bytes > most)
        bytes = most ? most : 1;
    *pages = 0;
    while (evicted < bytes && (slot = cache_walk(cache, &walk))) {
        /* What is left, in equal parts for the shards that are left. */
        uint64_t shards = layout_shards(walk.layout) - walk.visited + 1;

        evicted += shard_reclaim(&slot->shard, (bytes - evicted + shards - 1) / shards);
        *pages += slot->shard.removed.evicted_count;
        slot_unlock(slot);
    }
    return evicted;
}

uint64_t
cache_epoch(struct cache *cache)
{
    return epochs_present(&cache->epochs);
}

/* A purge of this name begins, by itself or as part of a change. */
static void
leave_epoch(struct cache *cache, enum cache_by by, struct span name, struct cache_change *change)
{
    struct cache_change single = {0};
    uint64_t before;

    if (!change)
        change = &single;
    if (by == CACHE_BY_PREFIX) {
        epochs_leave_prefix(&cache->epochs, name);
        return;
    }
    before = epochs_leave(&cache->epochs, hash64_bytes(name), &change->epoch);
    if (before != change->epoch && before > change->latest)
        change->latest = before;
}

/* Locks a slot again; false if the shards were rebuilt meanwhile: the walk begins anew. */
static bool
lock_again(struct cache *cache, const struct walk *walk, struct slot *slot)
{
    slot_let_others(slot);
    slot_lock(slot);
    if (layout_read(cache) == walk->layout)
        return true;
    slot_unlock(slot);
    return false;
}

/* Purges by a prefix or a tag in one slot, and unlocks it, also meanwhile. */
static uint64_t
purge_slices(struct cache *cache, const struct walk *walk, struct slot *slot,
             const struct purge *purge)
{
    struct purge_slice slice;
    uint64_t count = 0;
    bool more;

    slice.place = NULL;
    slice.count = 0;
    do {
        more = purge_slice_take(&slice, &slot->shard, purge);
        slot_unlock(slot);
        if (purge_slice_decide(&slice, purge)) {
            if (lock_again(cache, walk, slot)) {
                count += purge_slice_apply(&slice, &slot->shard, purge);
                slot_unlock(slot);
            } else {
                more = false;
            }
        }
        purge_slice_drop(&slice, purge);
    } while (more && lock_again(cache, walk, slot));
    object_release(&slice.place);
    return count;
}

static uint64_t
purge_url(struct cache *cache, const struct purge *purge)
{
    struct slot *slot = cache_lock(cache, djb_hash(purge->name));
    uint64_t count = shard_purge_url(&slot->shard, purge);

    slot_unlock(slot);
    return count;
}

static uint64_t
purge_slots(struct cache *cache, const struct purge *purge)
{
    struct walk walk = {0};
    struct slot *slot;
    uint64_t count = 0;

    if (purge->by == CACHE_BY_URL)
        return purge_url(cache, purge);
    while ((slot = cache_walk(cache, &walk)))
        count += purge_slices(cache, &walk, slot, purge);
    return count;
}

uint64_t
cache_purge_part(struct cache *cache, enum cache_by by, struct span name,
                 const struct cache_scope *scope, struct buf *tags, struct cache_change *change)
{
    leave_epoch(cache, by, name, change);
    return purge_slots(cache, &(struct purge){.by = by,
                                              .action = PURGE_REMOVE,
                                              .name = name,
                                              .scope = scope,
                                              .now_us = scope ? scope->now_us : 0,
                                              .tags = tags});
}

uint64_t
cache_purge(struct cache *cache, enum cache_by by, struct span name)
{
    return cache_purge_part(cache, by, name, NULL, NULL, NULL);
}

uint64_t
cache_expire(struct cache *cache, enum cache_by by, struct span name, int64_t now_us)
{
    leave_epoch(cache, by, name, NULL);
    return purge_slots(
        cache, &(struct purge){.by = by, .action = PURGE_EXPIRE, .name = name, .now_us = now_us});
}

uint64_t
cache_count(struct cache *cache, enum cache_by by, struct span name)
{
    return purge_slots(cache, &(struct purge){.by = by, .action = PURGE_COUNT, .name = name});
}

uint64_t
cache_purge_all(struct cache *cache)
{
    struct walk walk = {0};
    struct slot *slot;
    uint64_t count = 0;

    epochs_leave_prefix(&cache->epochs, span_of(NULL, 0));
    while ((slot = cache_walk(cache, &walk))) {
        struct shard old;

        if (!shard_purge_all(&slot->shard, &old)) {
            count += purge_slices(cache, &walk, slot, &(struct purge){.by = CACHE_BY_PREFIX});
            continue;
        }
        count += old.evictor.pages;
        slot_unlock(slot);
        shard_free(&old);
    }
    return count;
}

/* ---- numbers --------------------------------------------------------------------------------- */

void
cache_get_config(struct cache *cache, struct cache_config *config)
{
    slot_lock(&cache->slots[0]);
    *config = cache->config;
    slot_unlock(&cache->slots[0]);
}

void
cache_get_stats(struct cache *cache, struct cache_stats *stats)
{
    struct walk walk = {0};
    struct slot *slot;

    while ((slot = cache_walk(cache, &walk))) {
        if (walk.visited == 1)
            *stats = (struct cache_stats){0};
        stats->pages += slot->shard.evictor.pages;
        stats->bytes += slot->shard.evictor.bytes;
        stats->busy += slot->shard.busy;
        stats->passed += slot->shard.passed.count;
        stats->varied += slot->shard.varied.count;
        stats->insertions += slot->shard.evictor.insertions;
        stats->evictions += slot->shard.evictor.evictions;
        slot_unlock(slot);
    }
}

void
cache_reset_stats(struct cache *cache)
{
    struct walk walk = {0};
    struct slot *slot;

    while ((slot = cache_walk(cache, &walk))) {
        slot->shard.evictor.insertions = 0;
        slot->shard.evictor.evictions = 0;
        slot_unlock(slot);
    }
}
