#include "cache/cache.h"

#include <stdlib.h>

#include "base/djb.h"
#include "base/hash.h"
#include "cache/places.h"

/* The place of a hash, locked. */
static struct place *
cache_lock(struct cache *cache, uint32_t hash)
{
    for (;;) {
        uint32_t layout = layout_read(cache);
        struct place *place = &cache->places[shard_number(hash, layout_shards(layout))];

        place_lock(place);
        if (layout_read(cache) == layout)
            return place;
        place_unlock(place);
    }
}

/* A walk over all places in use; begins zeroed. */
struct walk {
    uint32_t layout;
    unsigned visited; /* 1 while at the first place */
};

/*
 * The next place of a walk, locked, or NULL at the end. When the shards are rebuilt under way,
 * pages may have moved from places ahead to places behind, and the walk begins anew.
 */
static struct place *
cache_walk(struct cache *cache, struct walk *walk)
{
    for (;;) {
        uint32_t layout = layout_read(cache);
        struct place *place;

        if (layout != walk->layout)
            *walk = (struct walk){.layout = layout};
        if (walk->visited == layout_shards(layout))
            return NULL;
        place = &cache->places[walk->visited];
        place_lock(place);
        if (layout_read(cache) == layout) {
            walk->visited++;
            return place;
        }
        place_unlock(place);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

struct page *
cache_lookup(struct cache *cache, struct span url, int64_t now_us)
{
    uint32_t hash = djb_hash(url);
    uint64_t key = hash64_bytes(url);
    struct place *place = cache_lock(cache, hash);
    struct departed victims = {0};
    struct page *page = shard_lookup(&place->shard, hash, key, url, now_us, &victims);

    if (page)
        page_retain(page);
    place_unlock(place);
    shard_free_departed(&victims);
    return page;
}

/* Moves the pages of a chain to a list; leaves both alone without memory. */
static void
cache_hand_over(struct departed *departed, struct cache_victims *victims)
{
    struct page **pages;

    if (departed->count == 0)
        return;
    pages = malloc(departed->count * sizeof(struct page *));
    if (!pages)
        return;
    *victims = (struct cache_victims){.pages = pages, .room = departed->count};
    for (struct entry *e = departed->first; e; e = RB_RIGHT(e, links)) {
        page_leave_cache(e->page);
        pages[victims->count++] = e->page;
        e->page = NULL;
    }
}

enum cache_outcome
cache_store(struct cache *cache, struct page *page, struct cache_victims *victims, size_t *evicted)
{
    uint32_t hash = djb_hash(page_url(page));
    uint64_t key = hash64_bytes(page_url(page));
    struct place *place = cache_lock(cache, hash);
    uint64_t entered = atomic_fetch_add_explicit(&cache->entered, 1, memory_order_relaxed);
    struct departed replaced = {0}, out = {0};
    enum cache_outcome outcome = CACHE_NOT_STORED;

    switch (shard_store(&place->shard, hash, key, page, entered, &replaced, &out)) {
    case EVICTOR_ENTERED:
        outcome = replaced.count ? CACHE_REPLACED : CACHE_STORED;
        break;
    case EVICTOR_PASSED_ON:
        outcome = CACHE_PASSED_ON;
        break;
    case EVICTOR_TOO_LARGE:
    case EVICTOR_NOT_ADMITTED:
    case EVICTOR_NO_MEMORY:
        break;
    }
    place_unlock(place);
    if (evicted)
        *evicted = out.count;
    if (victims)
        cache_hand_over(&out, victims);
    shard_free_departed(&out);
    shard_free_departed(&replaced);
    return outcome;
}

void
cache_victims_free(struct cache_victims *victims)
{
    for (size_t i = 0; i < victims->count; i++)
        page_release(&victims->pages[i]);
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
    struct place *place;

    if (bytes > most)
        bytes = most ? most : 1;
    *pages = 0;
    while (evicted < bytes && (place = cache_walk(cache, &walk))) {
        struct departed departed = {0};
        /* What is left, in equal parts for the shards that are left. */
        uint64_t shards = layout_shards(walk.layout) - walk.visited + 1;

        evicted += shard_reclaim(&place->shard, (bytes - evicted + shards - 1) / shards, &departed);
        place_unlock(place);
        *pages += departed.count;
        shard_free_departed(&departed);
    }
    return evicted;
}

uint64_t
cache_purge(struct cache *cache, struct span url)
{
    uint32_t hash = djb_hash(url);
    struct place *place = cache_lock(cache, hash);
    struct departed departed = {0};
    uint64_t count;

    shard_purge(&place->shard, hash, url, &departed);
    place_unlock(place);
    count = departed.count;
    shard_free_departed(&departed);
    return count;
}

uint64_t
cache_purge_expired(struct cache *cache, struct span url, int64_t now_us)
{
    uint32_t hash = djb_hash(url);
    struct place *place = cache_lock(cache, hash);
    struct departed departed = {0};
    uint64_t count;

    shard_purge_expired(&place->shard, hash, url, now_us, &departed);
    place_unlock(place);
    count = departed.count;
    shard_free_departed(&departed);
    return count;
}

uint64_t
cache_purge_prefix(struct cache *cache, struct span prefix)
{
    struct walk walk = {0};
    struct place *place;
    uint64_t count = 0;

    while ((place = cache_walk(cache, &walk))) {
        struct departed departed = {0};

        shard_purge_prefix(&place->shard, prefix, &departed);
        place_unlock(place);
        count += departed.count;
        shard_free_departed(&departed);
    }
    return count;
}

uint64_t
cache_count(struct cache *cache, struct span url)
{
    uint32_t hash = djb_hash(url);
    struct place *place = cache_lock(cache, hash);
    bool found = place->shard.evictor.ops && table_find(&place->shard.table, hash, url);

    place_unlock(place);
    return found;
}

uint64_t
cache_count_prefix(struct cache *cache, struct span prefix)
{
    struct walk walk = {0};
    struct place *place;
    uint64_t count = 0;

    while ((place = cache_walk(cache, &walk))) {
        count += shard_count_prefix(&place->shard, prefix);
        place_unlock(place);
    }
    return count;
}

uint64_t
cache_purge_all(struct cache *cache)
{
    struct walk walk = {0};
    struct place *place;
    uint64_t count = 0;

    while ((place = cache_walk(cache, &walk))) {
        struct departed departed = {0};
        struct shard old;

        shard_purge_all(&place->shard, &old, &departed);
        place_unlock(place);
        count += departed.count + old.table.entry_count;
        shard_free(&old);
        shard_free_departed(&departed);
    }
    return count;
}

/* ---- numbers --------------------------------------------------------------------------------- */

void
cache_get_stats(struct cache *cache, struct cache_stats *stats)
{
    struct walk walk = {0};
    struct place *place;

    while ((place = cache_walk(cache, &walk))) {
        if (walk.visited == 1)
            *stats = (struct cache_stats){0};
        stats->pages += place->shard.table.entry_count;
        stats->bytes += place->shard.evictor.bytes;
        stats->insertions += place->shard.evictor.insertions;
        stats->evictions += place->shard.evictor.evictions;
        place_unlock(place);
    }
}

void
cache_reset_stats(struct cache *cache)
{
    struct walk walk = {0};
    struct place *place;

    while ((place = cache_walk(cache, &walk))) {
        place->shard.evictor.insertions = 0;
        place->shard.evictor.evictions = 0;
        place_unlock(place);
    }
}

bool
cache_is_valid(struct cache *cache)
{
    struct walk walk = {0};
    struct place *place;
    bool valid = true;

    while (valid && (place = cache_walk(cache, &walk))) {
        valid = shard_is_valid(&place->shard);
        place_unlock(place);
    }
    return valid;
}
