#include "cache/cache.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/djb.h"
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

static void
place_lock(struct place *place)
{
    int error = pthread_mutex_lock(&place->lock);

    assert(error == 0);
    (void)error;
}

static void
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
static unsigned
shard_number(uint32_t hash, unsigned count)
{
    return (unsigned)((uint64_t)(hash * 0x9e3779b1u) * count >> 32);
}

static uint32_t
layout_read(struct cache *cache)
{
    return atomic_load_explicit(&cache->layout, memory_order_relaxed);
}

static unsigned
layout_shards(uint32_t layout)
{
    return layout & LAYOUT_SHARDS;
}

/* What follows a layout when the shards are rebuilt: another one in any case. */
static uint32_t
layout_after(uint32_t layout, unsigned shards)
{
    return ((layout & ~LAYOUT_SHARDS) + LAYOUT_SHARDS + 1) | shards;
}

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

/* ---- configuration ------------------------------------------------------------------------- */

static bool
config_is_valid(const struct cache_config *config)
{
    if (config->shards < 1 || config->shards > CACHE_MAX_SHARDS)
        return false;
    if (!config->policy)
        return true;
    if (config->capacity_pages == 0 && config->capacity_bytes == 0)
        return false;
    return (config->capacity_pages == 0 || config->capacity_pages >= config->shards) &&
           (config->capacity_bytes == 0 || config->capacity_bytes >= config->shards);
}

/* The i-th of n shares of a total; the first ones take what does not divide. */
static uint64_t
share(uint64_t total, unsigned i, unsigned n)
{
    return total / n + (i < total % n);
}

static struct policy_config
config_of_shard(const struct cache_config *config, unsigned i)
{
    return (struct policy_config){
        .capacity_pages = share(config->capacity_pages, i, config->shards),
        .capacity_bytes = share(config->capacity_bytes, i, config->shards),
        .seed = config->seed + i,
    };
}

static void
shards_free(struct shard *shards, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        shard_free(&shards[i]);
}

/* Makes the shards of a configuration, empty; false, with nothing made, without memory. */
static bool
shards_init(struct shard *shards, const struct cache_config *config)
{
    for (unsigned i = 0; i < config->shards; i++) {
        struct policy_config part = config_of_shard(config, i);

        if (!shard_init(&shards[i], config->policy, &part)) {
            shards_free(shards, i);
            return false;
        }
    }
    return true;
}

struct cache *
cache_create(const struct cache_config *config, enum cache_error *error)
{
    struct shard shards[CACHE_MAX_SHARDS];
    struct cache *cache;

    if (!config_is_valid(config)) {
        *error = CACHE_BAD_CONFIG;
        return NULL;
    }
    *error = CACHE_NO_MEMORY;
    if (!shards_init(shards, config))
        return NULL;
    cache = aligned_alloc(CACHE_LINE, sizeof(*cache));
    if (!cache) {
        shards_free(shards, config->shards);
        return NULL;
    }
    memset(cache, 0, sizeof(*cache));
    for (unsigned i = 0; i < CACHE_MAX_SHARDS; i++) {
        pthread_mutex_init(&cache->places[i].lock, NULL); /* without attributes it cannot fail */
        if (i < config->shards)
            cache->places[i].shard = shards[i];
    }
    cache->config = *config;
    atomic_init(&cache->layout, config->shards);
    atomic_init(&cache->entered, 0);
    *error = CACHE_OK;
    return cache;
}

void
cache_destroy(struct cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < CACHE_MAX_SHARDS; i++) {
        shard_free(&cache->places[i].shard);
        pthread_mutex_destroy(&cache->places[i].lock);
    }
    free(cache);
}

static int
compare_entered(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

    return x->entered < y->entered ? -1 : x->entered > y->entered;
}

/*
 * Everything that the shards in use hold, in order of entry, *count of them, to be freed; NULL
 * without memory. All locks are held.
 */
static struct entry **
cache_list_entries(struct cache *cache, unsigned shards, size_t *count)
{
    struct entry **entries;
    size_t n = 0;

    for (unsigned i = 0; i < shards; i++)
        n += cache->places[i].shard.table.entry_count;
    entries = malloc((n ? n : 1) * sizeof(struct entry *));
    if (!entries)
        return NULL;
    *count = n;
    n = 0;
    for (unsigned i = 0; i < shards; i++) {
        const struct table *table = &cache->places[i].shard.table;

        if (table->entry_count == 0)
            continue;
        for (struct entry *e = table_first(table); e; e = table_next(table, e))
            entries[n++] = e;
    }
    qsort(entries, n, sizeof(struct entry *), compare_entered);
    return entries;
}

/*
 * Builds the shards of another configuration beside the old ones, which stay as they are, with
 * those of the pages that fit. All locks are held. False, with nothing built, without memory.
 */
static bool
cache_build_shards(struct cache *cache, const struct cache_config *config, struct shard *fresh,
                   struct departed *victims)
{
    unsigned old_count = cache->config.shards;
    struct entry **entries;
    uint64_t insertions = 0, evictions = 0;
    size_t count, kept = 0;

    if (!shards_init(fresh, config))
        return false;
    entries = cache_list_entries(cache, old_count, &count);
    if (!entries) {
        shards_free(fresh, config->shards);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct entry *e = entries[i];
        struct shard *to = &fresh[shard_number(e->hash, config->shards)];
        struct departed none = {0};

        if (shard_store(to, e->hash, e->page, e->entered, &none, victims) == SHARD_NO_MEMORY) {
            free(entries);
            shards_free(fresh, config->shards);
            return false;
        }
    }
    free(entries);

    /* Counts go on from where they were; it is only their sum over the shards that is told. */
    for (unsigned i = 0; i < old_count; i++) {
        insertions += cache->places[i].shard.insertions;
        evictions += cache->places[i].shard.evictions;
    }
    for (unsigned i = 0; i < config->shards; i++) {
        kept += fresh[i].table.entry_count;
        fresh[i].insertions = 0;
        fresh[i].evictions = 0;
    }
    fresh[0].insertions = insertions;
    fresh[0].evictions = evictions + (count - kept);
    return true;
}

enum cache_error
cache_configure(struct cache *cache, const struct cache_config *config)
{
    struct shard other[CACHE_MAX_SHARDS] = {0}; /* first the new shards, then the old ones */
    struct departed victims = {0};
    enum cache_error error = CACHE_OK;
    unsigned old_count, locked;

    if (!config_is_valid(config))
        return CACHE_BAD_CONFIG;

    /*
     * Place 0 first: from then on the configuration stands still, and so does the number of shards.
     * Places beyond both the old and the new number are of no use to anyone: nobody who gets their
     * locks finds the layout that led there.
     */
    place_lock(&cache->places[0]);
    old_count = cache->config.shards;
    locked = old_count > config->shards ? old_count : config->shards;
    for (unsigned i = 1; i < locked; i++)
        place_lock(&cache->places[i]);

    if (config->policy == cache->config.policy && config->shards == old_count &&
        config->seed == cache->config.seed) {
        /* Only the capacity: what the policy knows of its pages need not be lost for that. */
        for (unsigned i = 0; i < old_count; i++) {
            struct policy_config part = config_of_shard(config, i);

            shard_resize(&cache->places[i].shard, &part, &victims);
        }
        cache->config = *config;
    } else if (cache_build_shards(cache, config, other, &victims)) {
        for (unsigned i = 0; i < locked; i++) {
            struct shard fresh = other[i];

            other[i] = cache->places[i].shard;
            cache->places[i].shard = fresh;
        }
        cache->config = *config;
        atomic_store_explicit(&cache->layout, layout_after(layout_read(cache), config->shards),
                              memory_order_relaxed);
    } else {
        memset(other, 0, sizeof(other));
        error = CACHE_NO_MEMORY;
    }

    for (unsigned i = locked; i-- > 0;)
        place_unlock(&cache->places[i]);
    shards_free(other, locked);
    shard_free_departed(&victims);
    return error;
}

void
cache_get_config(struct cache *cache, struct cache_config *config)
{
    place_lock(&cache->places[0]);
    *config = cache->config;
    place_unlock(&cache->places[0]);
}

/* ---- requests -------------------------------------------------------------------------------- */

struct page *
cache_fetch(struct cache *cache, struct span url)
{
    uint32_t hash = djb_hash(url);
    struct place *place = cache_lock(cache, hash);
    struct page *page = shard_fetch(&place->shard, hash, url);

    if (page)
        page_retain(page);
    place_unlock(place);
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
        pages[victims->count++] = e->page;
        e->page = NULL;
    }
}

enum cache_outcome
cache_store(struct cache *cache, struct page *page, struct cache_victims *victims, size_t *evicted)
{
    uint32_t hash = djb_hash(page_url(page));
    struct place *place = cache_lock(cache, hash);
    uint64_t entered = atomic_fetch_add_explicit(&cache->entered, 1, memory_order_relaxed);
    struct departed replaced = {0}, out = {0};
    enum cache_outcome outcome = CACHE_NOT_STORED;

    if (shard_store(&place->shard, hash, page, entered, &replaced, &out) == SHARD_OK)
        outcome = replaced.count ? CACHE_REPLACED : CACHE_STORED;
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
        stats->bytes += place->shard.bytes;
        stats->insertions += place->shard.insertions;
        stats->evictions += place->shard.evictions;
        place_unlock(place);
    }
}

void
cache_reset_stats(struct cache *cache)
{
    struct walk walk = {0};
    struct place *place;

    while ((place = cache_walk(cache, &walk))) {
        place->shard.insertions = 0;
        place->shard.evictions = 0;
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
