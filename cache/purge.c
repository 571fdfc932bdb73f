/*
 * Purges. Those by a prefix or a tag take the objects of a shard in slices, so that other threads
 * get the lock in between, and whatever decides about them is called without it.
 */
#include <sched.h>

#include "cache/slots.h"

/* ---- one entry ------------------------------------------------------------------------------- */

/* Appends the tags of an object, unless those of the one before were the same. */
static void
add_tags(struct buf *all, const struct object *object)
{
    struct span tags = object_tags(object);
    const char *end = buf_str(all) + all->len;

    if (!tags.len)
        return;
    if (all->len >= tags.len && memcmp(end - tags.len, tags.ptr, tags.len) == 0 &&
        (all->len == tags.len || end[-(ptrdiff_t)tags.len - 1] == ' '))
        return;
    if (!all->len || buf_append_char(all, ' '))
        buf_append(all, tags.ptr, tags.len);
}

/* Returns whether it counts. */
static bool
purge_entry(struct shard *shard, struct entry *entry, const struct cache_purge *purge,
            enum cache_fate fate)
{
    bool stored = entry_is_stored(entry);

    if (fate == CACHE_COUNTED)
        return stored;
    if (fate == CACHE_EXPIRED && stored) {
        /* What they fetch may be older than the purge: later requests begin another one. */
        object_remove_fills(entry->object);
        return object_expire(entry->object, purge->now_us);
    }
    if (purge->tags)
        add_tags(purge->tags, entry->object);
    shard_remove(shard, entry);
    return stored;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Begins without place and objects. */
struct slice {
    struct object *place; /* by a prefix the last one, by a tag the last one that has stayed; or
                             NULL; a reference */
    struct object
        *objects[PURGE_SLICE]; /* of entries, in the order of the walk; a reference each */
    enum cache_fate fates[PURGE_SLICE];
    unsigned count;
};

/* The entry that has this object, or NULL: what is there instead is from after the purge. */
static struct entry *
find_entry(const struct shard *shard, const struct object *object)
{
    const struct span url = object_url(object);
    struct entry *entry = table_find(&shard->table, djb_hash(url), url, object_variant(object));

    return entry && entry->object == object ? entry : NULL;
}

/* The link behind those of one entry: an entry that has a tag twice has two, side by side. */
static struct tag_link *
next_entry_of(const struct tag_link *link)
{
    struct tag_link *next = LIST_NEXT(link, next);

    while (next && next->entry == link->entry)
        next = LIST_NEXT(next, next);
    return next;
}

/* The link of a tag behind those of the object's entry, or if that has gone, the first one. */
static struct tag_link *
link_behind(struct shard *shard, const struct tag *tag, const struct object *object)
{
    struct entry *entry = object ? find_entry(shard, object) : NULL;
    struct tag_link *links = entry ? shard_tags_of(shard, entry) : NULL;

    for (unsigned i = 0; entry && i < entry->tag_count; i++)
        if (links[i].tag == tag)
            return next_entry_of(&links[i]);
    return LIST_FIRST(&tag->entries);
}

/* Takes the objects behind the place, by a tag those that have it; true: there may be more. */
static bool
take(struct slice *slice, struct shard *shard, const struct cache_purge *purge)
{
    if (purge->by == CACHE_BY_TAG) {
        const struct tag *tag = tags_find(&shard->tags, purge->name);
        struct tag_link *link = tag ? link_behind(shard, tag, slice->place) : NULL;

        for (; link && slice->count < PURGE_SLICE; link = next_entry_of(link))
            slice->objects[slice->count++] = object_retain(link->entry->object);
    } else {
        const struct object *place = slice->place;
        struct entry *entry = place ? table_after(&shard->table, djb_hash(object_url(place)), place)
                                    : table_first(&shard->table);

        for (; entry && slice->count < PURGE_SLICE; entry = table_next(&shard->table, entry))
            slice->objects[slice->count++] = object_retain(entry->object);
    }
    return slice->count == PURGE_SLICE;
}

/* Needs no lock. False: the purge spares all of them. */
static bool
decide(struct slice *slice, const struct cache_purge *purge)
{
    const struct cache_scope *scope = purge->scope;
    bool any = false;

    for (unsigned i = 0; i < slice->count; i++) {
        struct object *object = slice->objects[i];
        enum cache_fate fate = purge->fate;

        if (purge->by == CACHE_BY_PREFIX && !span_starts_with(object_url(object), purge->name))
            fate = CACHE_SPARED;
        else if (scope)
            fate = scope->decide(object, scope->context);
        slice->fates[i] = fate;
        any = any || fate != CACHE_SPARED;
    }
    return any;
}

static uint64_t
apply(const struct slice *slice, struct shard *shard, const struct cache_purge *purge)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < slice->count; i++) {
        struct entry *entry =
            slice->fates[i] == CACHE_SPARED ? NULL : find_entry(shard, slice->objects[i]);

        if (entry)
            count += purge_entry(shard, entry, purge, slice->fates[i]);
    }
    return count;
}

/* Drops the objects, of which one is the place now. Without a lock, since they may be freed. */
static void
drop(struct slice *slice, const struct cache_purge *purge)
{
    for (unsigned i = 0; i < slice->count; i++) {
        /* A walk by a prefix does not begin anew: it would pass emptied buckets, under the lock. */
        if (purge->by == CACHE_BY_PREFIX || slice->fates[i] != CACHE_REMOVED) {
            object_release(&slice->place);
            slice->place = slice->objects[i];
        } else {
            object_release(&slice->objects[i]);
        }
    }
    slice->count = 0;
}

/*
 * Locks a slot again, after the threads that wait for it: woken ones need time for that. False if
 * the shards were rebuilt meanwhile: the walk begins anew.
 */
static bool
lock_again(struct cache *cache, const struct walk *walk, struct slot *slot)
{
    for (int i = 0; i < 4096; i++) {
        if (!atomic_load_explicit(&slot->waiting, memory_order_relaxed))
            break;
        sched_yield();
    }
    slot_lock(slot);
    if (layout_read(cache) == walk->layout)
        return true;
    slot_unlock(slot);
    return false;
}

/* Purges by a prefix or a tag in one slot, and unlocks it, also meanwhile. */
static uint64_t
purge_slot(struct cache *cache, const struct walk *walk, struct slot *slot,
           const struct cache_purge *purge)
{
    struct slice slice;
    uint64_t count = 0;
    bool more;

    slice.place = NULL;
    slice.count = 0;
    do {
        more = take(&slice, &slot->shard, purge);
        slot_unlock(slot);
        if (decide(&slice, purge)) {
            if (lock_again(cache, walk, slot)) {
                count += apply(&slice, &slot->shard, purge);
                slot_unlock(slot);
            } else {
                more = false;
            }
        }
        drop(&slice, purge);
    } while (more && lock_again(cache, walk, slot));
    object_release(&slice.place);
    return count;
}

/* ---- all that a purge names ------------------------------------------------------------------ */

/* The purge begins, by itself or as part of a change. */
static void
leave_epoch(struct cache *cache, const struct cache_purge *purge)
{
    struct cache_change single = {0}, *change = purge->change ? purge->change : &single;
    uint64_t before;

    if (purge->by == CACHE_BY_PREFIX) {
        epochs_leave_prefix(&cache->epochs, purge->name);
        return;
    }
    before = epochs_leave(&cache->epochs, hash64_bytes(purge->name), &change->epoch);
    if (before != change->epoch && before > change->latest)
        change->latest = before;
}

static uint64_t
purge_url(struct cache *cache, const struct cache_purge *purge)
{
    uint32_t hash = djb_hash(purge->name);
    struct slot *slot = cache_lock(cache, hash);
    const struct cache_fill *fill;
    struct entry *entry, *next;
    uint64_t count = 0;

    if (purge->tags) {
        LIST_FOREACH(fill, &slot->shard.fills, in_shard)
        if (span_equal(object_url(fill->name), purge->name))
            add_tags(purge->tags, fill->object);
    }
    entry = table_first_variant(&slot->shard.table, hash, purge->name);
    for (; entry; entry = next) {
        next = table_next_variant(&slot->shard.table, entry);
        count += purge_entry(&slot->shard, entry, purge, purge->fate);
    }
    slot_unlock(slot);
    return count;
}

uint64_t
cache_purge(struct cache *cache, const struct cache_purge *purge)
{
    struct walk walk = {0};
    struct slot *slot;
    uint64_t count = 0;

    if (purge->fate != CACHE_COUNTED)
        leave_epoch(cache, purge);
    if (purge->by == CACHE_BY_URL)
        return purge_url(cache, purge);
    while ((slot = cache_walk(cache, &walk)))
        count += purge_slot(cache, &walk, slot, purge);
    return count;
}

/* ---- everything ------------------------------------------------------------------------------ */

/*
 * The entries of a shard move to *old at once, for shard_free() after the unlock. False without
 * memory for an empty shard: nothing has changed.
 */
static bool
empty(struct shard *shard, struct shard *old)
{
    struct cache_fill *fill;
    struct shard fresh;

    if (!shard_init(&fresh, &shard->spec, &shard->config, shard->body_only, shard->max_marks))
        return false;
    LIST_FOREACH(fill, &shard->fills, in_shard)
    entry_remove_fill(fill);
    fresh.evictor.insertions = shard->evictor.insertions;
    fresh.evictor.evictions = shard->evictor.evictions;
    fresh.fills = shard->fills;
    fresh.busy = shard->busy;
    *old = *shard;
    shard_move(shard, &fresh);
    return true;
}

uint64_t
cache_purge_all(struct cache *cache)
{
    const struct cache_purge slow = {.by = CACHE_BY_PREFIX};
    struct walk walk = {0};
    struct slot *slot;
    uint64_t count = 0;

    epochs_leave_prefix(&cache->epochs, span_of(NULL, 0));
    while ((slot = cache_walk(cache, &walk))) {
        struct shard old;

        if (!empty(&slot->shard, &old)) {
            count += purge_slot(cache, &walk, slot, &slow);
            continue;
        }
        count += old.evictor.pages;
        slot_unlock(slot);
        shard_free(&old);
    }
    return count;
}

uint64_t
cache_epoch(struct cache *cache)
{
    return epochs_present(&cache->epochs);
}
