/*
 * Making a cache, and making another one of it while it is in use: the part of cache.h in which the
 * number of shards and their policies come about.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "cache/places.h"

/* What follows a layout when the shards are rebuilt: another one in any case. */
static uint32_t
layout_after(uint32_t layout, unsigned shards)
{
    return ((layout & ~LAYOUT_SHARDS) + LAYOUT_SHARDS + 1) | shards;
}

bool
cache_config_is_valid(const struct cache_config *config)
{
    if (config->shards < 1 || config->shards > CACHE_MAX_SHARDS)
        return false;
    if (!config->policy.ops)
        return true;
    if (config->policy.ops->needs_future)
        return false;
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

        if (!shard_init(&shards[i], &config->policy, &part, config->body_only)) {
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

    if (!cache_config_is_valid(config)) {
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
        struct departed passed_on = {0}; /* where it entered and left at once */
        enum evictor_outcome outcome = shard_store(to, e->hash, hash64_bytes(page_url(e->page)),
                                                   e->page, e->entered, &passed_on, victims);

        shard_free_departed(&passed_on);
        if (outcome == EVICTOR_NO_MEMORY) {
            free(entries);
            shards_free(fresh, config->shards);
            return false;
        }
    }
    free(entries);

    /* Counts go on from where they were; it is only their sum over the shards that is told. */
    for (unsigned i = 0; i < old_count; i++) {
        insertions += cache->places[i].shard.evictor.insertions;
        evictions += cache->places[i].shard.evictor.evictions;
    }
    for (unsigned i = 0; i < config->shards; i++) {
        kept += fresh[i].table.entry_count;
        fresh[i].evictor.insertions = 0;
        fresh[i].evictor.evictions = 0;
    }
    fresh[0].evictor.insertions = insertions;
    fresh[0].evictor.evictions = evictions + (count - kept);
    return true;
}

enum cache_error
cache_configure(struct cache *cache, const struct cache_config *config)
{
    struct shard other[CACHE_MAX_SHARDS] = {0}; /* first the new shards, then the old ones */
    struct departed victims = {0};
    enum cache_error error = CACHE_OK;
    unsigned old_count, locked;

    if (!cache_config_is_valid(config))
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

    if (policy_spec_equal(&config->policy, &cache->config.policy) && config->shards == old_count &&
        config->seed == cache->config.seed && config->body_only == cache->config.body_only) {
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
