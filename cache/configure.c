/*
 * Creating a cache, and changing its policy, capacity and number of shards while it is in use.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "cache/slots.h"

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

/* Makes empty shards of a configuration; false, with nothing made, without memory. */
static bool
shards_init(struct shard *shards, const struct cache_config *config)
{
    for (unsigned i = 0; i < config->shards; i++) {
        struct policy_config part = config_of_shard(config, i);

        if (!shard_init(&shards[i], &config->policy, &part, config->body_only,
                        CACHE_MAX_MARKS / config->shards)) {
            shards_free(shards, i);
            return false;
        }
    }
    return true;
}

struct cache *
cache_create(const struct cache_config *config, enum cache_error *error)
{
    struct cache *cache = aligned_alloc(CACHE_LINE, sizeof(*cache));

    *error = CACHE_CONFIG_NO_MEMORY;
    if (!cache)
        return NULL;
    memset(cache, 0, sizeof(*cache));
    for (unsigned i = 0; i < CACHE_MAX_SHARDS; i++)
        pthread_mutex_init(&cache->slots[i].lock, NULL); /* without attributes it cannot fail */
    epochs_init(&cache->epochs);
    *error = cache_configure(cache, config);
    if (*error == CACHE_OK)
        return cache;
    cache_destroy(cache);
    return NULL;
}

void
cache_destroy(struct cache *cache)
{
    if (!cache)
        return;
    for (unsigned i = 0; i < CACHE_MAX_SHARDS; i++) {
        shard_free(&cache->slots[i].shard);
        pthread_mutex_destroy(&cache->slots[i].lock);
    }
    epochs_destroy(&cache->epochs);
    free(cache);
}

static int
compare_entered(const void *a, const void *b)
{
    const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

    return x->entered < y->entered ? -1 : x->entered > y->entered;
}

/*
 * The entries of the shards in use, *count of them, in order of entry (busy ones come first), to be
 * freed; NULL without memory. All locks are held.
 */
static struct entry **
cache_list_entries(struct cache *cache, unsigned shards, size_t *count)
{
    struct entry **entries;
    size_t n = 0;

    for (unsigned i = 0; i < shards; i++)
        n += cache->slots[i].shard.table.entry_count;
    entries = malloc((n ? n : 1) * sizeof(struct entry *));
    if (!entries)
        return NULL;
    *count = n;
    n = 0;
    for (unsigned i = 0; i < shards; i++) {
        const struct table *table = &cache->slots[i].shard.table;

        for (struct entry *e = table_first(table); e; e = table_next(table, e))
            entries[n++] = e;
    }
    qsort(entries, n, sizeof(struct entry *), compare_entered);
    return entries;
}

/* Copies an entry to another shard, where there may be no capacity for it; false without memory. */
static bool
copy_entry(struct shard *to, struct entry *entry)
{
    struct entry *copy;

    if (entry_is_stored(entry)) {
        struct cache_key key =
            cache_key_of_variant(object_url(entry->object), object_variant(entry->object));

        return shard_store(to, &key, NULL, entry->object, entry->entered) != EVICTOR_NO_MEMORY;
    }
    copy = shard_add_entry(to, entry->object, entry->hash);
    if (copy && entry_is_mark(entry))
        shard_mark(to, copy, entry->kind, entry->object, entry->entered);
    return copy != NULL;
}

static bool
copy_entries(struct cache *cache, struct shard *fresh, unsigned shards)
{
    size_t count, i = 0;
    struct entry **entries = cache_list_entries(cache, cache->config.shards, &count);

    if (!entries)
        return false;
    while (i < count &&
           copy_entry(&fresh[shard_number(entries[i]->hash, shards)], entries[i]))
        i++;
    free(entries);
    return i == count;
}

/*
 * Builds the shards of another configuration beside the old ones, which stay as they are, with
 * those of the pages that fit. All locks are held. False, with nothing built, without memory.
 */
static bool
cache_build_shards(struct cache *cache, const struct cache_config *config, struct shard *fresh)
{
    uint64_t insertions = 0, evictions = 0, before = 0, kept = 0;

    if (!shards_init(fresh, config))
        return false;
    for (unsigned i = 0; i < config->shards; i++)
        fresh[i].is_copy = true;
    if (!copy_entries(cache, fresh, config->shards)) {
        shards_free(fresh, config->shards);
        return false;
    }
    /* Counts continue; only their sums over the shards are reported. */
    for (unsigned i = 0; i < cache->config.shards; i++) {
        insertions += cache->slots[i].shard.evictor.insertions;
        evictions += cache->slots[i].shard.evictor.evictions;
        before += cache->slots[i].shard.evictor.pages;
    }
    for (unsigned i = 0; i < config->shards; i++) {
        kept += fresh[i].evictor.pages;
        fresh[i].evictor.insertions = 0;
        fresh[i].evictor.evictions = 0;
        fresh[i].is_copy = false;
    }
    fresh[0].evictor.insertions = insertions;
    fresh[0].evictor.evictions = evictions + (before - kept);
    return true;
}

/* Moves the fills of the old shards to the new ones. All locks are held. Cannot fail. */
static void
cache_move_fills(struct cache *cache, struct shard *fresh, unsigned shards)
{
    for (unsigned i = 0; i < cache->config.shards; i++) {
        struct shard *from = &cache->slots[i].shard;
        struct cache_fill *fill;

        while (fill = LIST_FIRST(&from->fills), fill) {
            struct shard *to = &fresh[shard_number(fill->hash, shards)];

            shard_remove_fill(from, fill);
            shard_add_fill(to, fill);
            if (!shard_find_fill(to, fill))
                entry_remove_fill(fill); /* its expired page has been evicted */
        }
    }
}

enum cache_error
cache_configure(struct cache *cache, const struct cache_config *config)
{
    struct shard other[CACHE_MAX_SHARDS] = {0}; /* first the new shards, then the old ones */
    enum cache_error error = CACHE_OK;
    unsigned old_count, locked;
    uint32_t layout;

    if (!cache_config_is_valid(config))
        return CACHE_BAD_CONFIG;

    /*
     * Slot 0 first: its lock keeps the configuration and the number of shards. Slots beyond both
     * the old and the new number need no lock: no thread that takes one finds the layout unchanged
     * by which it chose the slot.
     */
    slot_lock(&cache->slots[0]);
    old_count = cache->config.shards;
    locked = old_count > config->shards ? old_count : config->shards;
    for (unsigned i = 1; i < locked; i++)
        slot_lock(&cache->slots[i]);

    if (policy_spec_equal(&config->policy, &cache->config.policy) && config->shards == old_count &&
        config->seed == cache->config.seed && config->body_only == cache->config.body_only) {
        /* Only the capacity changes: the policy keeps its state. */
        for (unsigned i = 0; i < old_count; i++) {
            struct policy_config part = config_of_shard(config, i);

            shard_resize(&cache->slots[i].shard, &part);
        }
        cache->config = *config;
    } else if (cache_build_shards(cache, config, other)) {
        cache_move_fills(cache, other, config->shards);
        for (unsigned i = 0; i < locked; i++) {
            struct shard old = cache->slots[i].shard; /* which has no fills any more */

            shard_move(&cache->slots[i].shard, &other[i]);
            other[i] = old;
        }
        cache->config = *config;
        /* Another one in any case. */
        layout = (layout_read(cache) & ~LAYOUT_SHARDS) + LAYOUT_SHARDS + 1;
        atomic_store_explicit(&cache->layout, layout | config->shards, memory_order_relaxed);
    } else {
        memset(other, 0, sizeof(other));
        error = CACHE_CONFIG_NO_MEMORY;
    }

    for (unsigned i = locked; i-- > 0;) {
        /* Freed when all are unlocked. */
        other[i].removed = cache->slots[i].shard.removed;
        cache->slots[i].shard.removed = (struct removed){0};
        slot_unlock(&cache->slots[i]);
    }
    shards_free(other, locked);
    return error;
}
