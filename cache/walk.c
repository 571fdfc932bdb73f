#include "cache/cache.h"

#include <stdlib.h>

#include "cache/slots.h"

struct slot *
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

uint64_t
cache_reclaim(struct cache *cache, uint64_t bytes, uint64_t *pages)
{
    struct cache_config config;
    struct cache_stats stats;
    struct walk walk = {0};
    struct slot *slot;
    uint64_t most, evicted = 0;

    cache_get_config(cache, &config);
    cache_get_stats(cache, &stats);
    most = (config.capacity_bytes ? config.capacity_bytes : stats.bytes) / MOST_RECLAIMED;
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
