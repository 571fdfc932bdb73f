/*
 * The lookup of a URL: what cache_lookup() answers in each state of the table, and the fills that
 * it begins.
 */
#include <assert.h>

#include "cache/slots.h"
#include "cache/waiters.h"

/* A lookup that is no hit. */
struct lookup {
    struct cache *cache;
    struct shard *shard; /* NULL for a bypass */
    const struct cache_key *key;
    const struct cache_request *request;
    int64_t now_us;
    struct cache_found *found;
};

/* Begins a fill, which requests can join by `entry` (NULL: by none). */
static void
begin(const struct lookup *lookup, struct cache_fill *fill, struct entry *entry)
{
    const struct cache_request *request = lookup->request;

    fill->begun_us = lookup->now_us;
    fill->epoch = request->epoch ? request->epoch : epochs_present(&lookup->cache->epochs);
    fill->own_epoch = request->own_epoch;
    fill->number = cache_draw_entered(lookup->cache);
    fill->most = request->most;
    if (lookup->shard)
        shard_add_fill(lookup->shard, fill);
    else
        fill->disposition = FILL_PRIVATE;
    if (entry && entry_is_stored(entry))
        fill->previous = object_retain(entry->object);
    if (entry)
        entry_add_fill(entry, fill);
    waiters_add(fill, request->waiter, true);
    lookup->found->fill = fill;
}

/* Begins one that later requests can join by `entry`; NULL: by a new one. */
static enum cache_answer
begin_shared(const struct lookup *lookup, struct entry *entry)
{
    struct cache_fill *fill = fill_create(lookup->cache, lookup->key, lookup->request->fill_size);

    if (!fill)
        return CACHE_NO_MEMORY;
    if (!entry)
        entry = shard_add_entry(lookup->shard, fill->name, fill->hash);
    if (!entry) {
        fill_free(fill);
        return CACHE_NO_MEMORY;
    }
    begin(lookup, fill, entry);
    if (!fill->previous)
        return CACHE_MISS;
    lookup->found->object = object_retain(fill->previous);
    return CACHE_STALE;
}

/* Begins one for a request that passes, which no other joins. */
static enum cache_answer
begin_pass(const struct lookup *lookup)
{
    struct cache_fill *fill = fill_create(lookup->cache, lookup->key, lookup->request->fill_size);

    if (!fill)
        return CACHE_NO_MEMORY;
    begin(lookup, fill, NULL);
    return CACHE_PASS;
}

/*
 * May the response of this fill be used for a request? One whose head has come was not asked for by
 * this request, and is as old as that. After its lifetime it is for requests without conditions
 * only, as a stored object is.
 */
static bool
may_meet(const struct cache_fill *fill, const struct cache_request *request, int64_t now_us)
{
    const struct cache_conditions *conditions = request->conditions;

    if (fill->stage == FILL_BEGUN)
        return true;
    if (fill->object->notes & request->stale_notes)
        return false;
    if (now_us >= fill->fresh_until_us)
        return !conditions && now_us - fill->fresh_until_us < fill->while_revalidate_us;
    return !conditions || (!conditions->no_cache && conditions->min_fresh_us == 0 &&
                           now_us - fill->born_us <= conditions->max_age_us);
}

/*
 * The version that a request joins, or NULL: the newest one whose head has come, if that will do,
 * or else one whose head has not come. A version that a purge has outdated is in the list until its
 * end, and of those without a head one is not outdated for each bound of the body (`most`).
 */
static struct cache_fill *
choose(const struct entry *entry, const struct cache_request *request, int64_t now_us)
{
    struct cache_fill *fill, *begun = NULL;

    LIST_FOREACH(fill, &entry->object->fills, link)
    {
        /* Less one, any number is the largest. */
        if (fill_is_outdated(fill) || fill->most - 1 < request->most - 1)
            continue;
        if (fill->stage != FILL_BEGUN)
            return may_meet(fill, request, now_us) ? fill : begun;
        begun = fill;
    }
    return begun;
}

static enum cache_answer
join(const struct lookup *lookup, struct cache_fill *busy, const struct entry *entry)
{
    const struct cache_request *request = lookup->request;

    if (request->max_waiters && busy->waiter_count >= request->max_waiters)
        return CACHE_FULL;
    waiters_add(busy, request->waiter, false);
    if (entry_is_stored(entry))
        lookup->found->object = object_retain(entry->object);
    return CACHE_BUSY;
}

/* The answer where no object will do; `entry` is the key's, or NULL. */
static enum cache_answer
answer_miss(const struct lookup *lookup, struct entry *entry)
{
    const struct cache_request *request = lookup->request;
    struct shard *shard = lookup->shard;
    struct cache_fill *busy;
    enum cache_answer answer;

    if (entry && entry->kind == ENTRY_VARIES) {
        lookup->found->object = object_retain(entry->object);
        return CACHE_VARIES;
    }
    if (request->conditions && request->conditions->only_cached) {
        if (!entry || !entry_is_stored(entry))
            return CACHE_ABSENT;
        lookup->found->object = object_retain(entry->object);
        return CACHE_STALE;
    }
    if (request->only_new && entry)
        return CACHE_ABSENT;
    if (entry && entry->kind == ENTRY_PASSED) {
        if (lookup->now_us < entry->object->fetched_us)
            return begin_pass(lookup);
        shard_clear_mark(shard, entry);
    }
    /* Before each fill that may make one: expired ones do not accumulate. */
    if (!entry)
        shard_remove_expired_marks(shard, lookup->now_us);
    busy = entry ? choose(entry, request, lookup->now_us) : NULL;
    if (busy)
        return join(lookup, busy, entry);
    answer = begin_shared(lookup, entry);
    if (answer == CACHE_NO_MEMORY)
        shard_remove_if_empty(shard, entry);
    return answer;
}

enum cache_answer
cache_lookup(struct cache *cache, const struct cache_key *key, const struct cache_request *request,
             int64_t now_us, struct cache_found *found)
{
    enum cache_answer answer = CACHE_HIT;
    struct object *object;
    struct entry *entry;
    struct slot *slot;

    /* A request that passes begins a fill, which only_cached excludes. */
    assert(!(request->pass && request->conditions && request->conditions->only_cached));
    *found = (struct cache_found){0};
    if (request->pass)
        return begin_pass(&(struct lookup){cache, NULL, key, request, now_us, found});
    slot = cache_lock(cache, key->hash);
    object = shard_lookup(&slot->shard, key, request, now_us, &entry);
    if (object)
        found->object = object_retain(object);
    else
        answer =
            answer_miss(&(struct lookup){cache, &slot->shard, key, request, now_us, found}, entry);
    slot_unlock(slot);
    return answer;
}

void
cache_peek(struct cache *cache, const struct cache_key *key, int64_t now_us,
           struct cache_peeked *peeked)
{
    struct slot *slot = cache_lock(cache, key->hash);
    const struct entry *entry = table_find(&slot->shard.table, key->hash, key->url, key->variant);

    *peeked = (struct cache_peeked){.varies = entry && entry->kind == ENTRY_VARIES};
    if (entry && (peeked->varies || entry_is_stored(entry)))
        peeked->object = object_retain(entry->object);
    if (entry && entry->kind == ENTRY_PASSED)
        peeked->passes = now_us < entry->object->fetched_us;
    peeked->filling = entry && !peeked->varies && !LIST_EMPTY(&entry->object->fills);
    slot_unlock(slot);
}
