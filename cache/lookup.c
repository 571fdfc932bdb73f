/*
 * The lookup of a URL: what cache_lookup() answers in each state of the table, and the fills that
 * it begins.
 */
#include <assert.h>

#include "cache/places.h"
#include "cache/waiters.h"

/*
 * Another fill takes the place of the entry's one, which goes on for its waiters. `name` has the
 * URL of the other one.
 */
static void
displace_fill(struct entry *entry, struct object *name)
{
    struct cache_fill *fill = entry->object->fill;

    fill->displaced = true;
    if (shard_close_fill(fill)) {
        struct object *before = entry->object; /* which the fill keeps */

        entry->object = object_retain(name);
        object_release(&before);
    }
}

/*
 * Begins a fill that requests can join by `entry`, where it takes the place of another one if that
 * is there; NULL: by a new entry.
 */
static bool
begin_fill(struct cache *cache, struct shard *shard, const struct cache_key *key,
           const struct cache_request *request, int64_t now_us, struct entry *entry,
           struct cache_found *found)
{
    struct cache_fill *fill = fill_create(cache, key, request->fill_size);

    if (!fill)
        return false;
    if (!entry) {
        entry = shard_make_entry(shard, fill->name, key->hash);
        if (!entry) {
            fill_free(fill);
            return false;
        }
        table_insert(&shard->table, entry);
    } else if (entry->object->fill) {
        displace_fill(entry, fill->name);
    }
    if (entry->stored)
        fill->previous = object_retain(entry->object);
    entry->object->fill = fill;
    fill->entry = entry;
    fill->begun_us = now_us;
    fill->epoch = epochs_present(&cache->epochs);
    shard_add_fill(shard, fill);
    waiters_add(fill, request->waiter, true);
    found->fill = fill;
    return true;
}

/* Begins one that no request can join. `shard` is NULL if it may not be stored. */
static enum cache_answer
begin_pass(struct cache *cache, struct shard *shard, const struct cache_key *key,
           const struct cache_request *request, int64_t now_us, struct cache_found *found)
{
    struct cache_fill *fill = fill_create(cache, key, request->fill_size);

    if (!fill)
        return CACHE_NO_MEMORY;
    fill->begun_us = now_us;
    fill->epoch = epochs_present(&cache->epochs);
    if (shard)
        shard_add_fill(shard, fill);
    waiters_add(fill, request->waiter, true);
    found->fill = fill;
    return CACHE_PASS;
}

/* Has the response expired while its body arrives? */
static bool
has_expired(const struct cache_fill *fill, int64_t now_us)
{
    return fill->has_head && now_us >= fill->fresh_until_us;
}

/*
 * May the response of this fill be used for a request with these conditions? One whose head has
 * come was not asked for by this request, and is as old as that. After its lifetime it is for
 * requests without conditions only, as a stored object is.
 */
static bool
may_meet(const struct cache_fill *fill, const struct cache_conditions *conditions, int64_t now_us)
{
    if (!fill->has_head)
        return true;
    if (has_expired(fill, now_us))
        return !conditions && now_us - fill->fresh_until_us < fill->while_revalidate_us;
    return !conditions || (!conditions->no_cache && conditions->min_fresh_us == 0 &&
                           now_us - fill->born_us <= conditions->max_age_us);
}

/* The answer where no ready object is fresh and meets the conditions, and nothing is fetched. */
static enum cache_answer
answer_cached(struct entry *entry, struct cache_found *found)
{
    if (entry && entry->stored)
        found->object = object_retain(entry->object);
    return found->object ? CACHE_STALE : CACHE_ABSENT;
}

/* The answer where no object will do; `entry` is the key's, or NULL. */
static enum cache_answer
answer_miss(struct cache *cache, struct shard *shard, const struct cache_key *key,
            const struct cache_request *request, int64_t now_us, struct entry *entry,
            struct cache_found *found, struct removed *removed)
{
    struct cache_fill *busy;

    if (entry && entry_is_record(entry)) {
        found->object = object_retain(entry->object);
        return CACHE_VARIES;
    }
    if (request->conditions && request->conditions->only_cached)
        return answer_cached(entry, found);
    /* Before each fill, which may make one: expired ones do not accumulate. */
    if (!entry)
        shard_remove_expired_markers(shard, now_us, removed);
    if (entry && entry_is_marker(entry)) {
        if (now_us < entry->object->fetched_us)
            return begin_pass(cache, shard, key, request, now_us, found);
        shard_remove(shard, entry, removed);
        entry = NULL;
    }
    busy = entry ? entry->object->fill : NULL;
    if (busy && may_meet(busy, request->conditions, now_us)) {
        if (request->max_waiters && busy->waiter_count >= request->max_waiters)
            return CACHE_FULL;
        waiters_add(busy, request->waiter, false);
        if (entry->stored)
            found->object = object_retain(entry->object);
        return CACHE_BUSY;
    }
    if (busy && !has_expired(busy, now_us))
        return begin_pass(cache, shard, key, request, now_us, found);
    if (!begin_fill(cache, shard, key, request, now_us, entry, found))
        return CACHE_NO_MEMORY;
    if (!entry || !entry->stored)
        return CACHE_MISS;
    found->object = object_retain(entry->object);
    return CACHE_STALE;
}

enum cache_answer
cache_lookup(struct cache *cache, const struct cache_key *key, const struct cache_request *request,
             int64_t now_us, struct cache_found *found)
{
    enum cache_answer answer = CACHE_HIT;
    struct removed removed = {0};
    struct object *object;
    struct entry *entry;
    struct place *place;

    /* A request that passes begins a fill, which only_cached excludes. */
    assert(!(request->pass && request->conditions && request->conditions->only_cached));
    *found = (struct cache_found){0};
    if (request->pass)
        return begin_pass(cache, NULL, key, request, now_us, found);
    place = cache_lock(cache, key->hash);
    object = shard_lookup(&place->shard, key, request->conditions, now_us, &entry, &removed);
    if (object)
        found->object = object_retain(object);
    else
        answer = answer_miss(cache, &place->shard, key, request, now_us, entry, found, &removed);
    place_unlock(place);
    shard_free_removed(&removed);
    return answer;
}
