/*
 * Purges of a shard: hard ones remove entries, soft ones expire pages and remove other entries.
 */
#include "base/djb.h"
#include "cache/shard.h"

/* Appends the tags of an object, unless those of the one before were the same. */
static void
add_tags(struct buf *all, const struct object *object)
{
    struct span tags = object_tags(object), before = buf_span(all);

    if (!tags.len)
        return;
    if (before.len > tags.len) {
        before = span_of(before.ptr + before.len - tags.len - 1, tags.len + 1);
        if (before.ptr[0] == ' ' && memcmp(before.ptr + 1, tags.ptr, tags.len) == 0)
            return;
    } else if (span_equal(before, tags)) {
        return;
    }
    if (!all->len || buf_append_char(all, ' '))
        buf_append(all, tags.ptr, tags.len);
}

/* The tags of all versions of a URL that are being filled. */
static void
add_tags_of_fills(struct buf *tags, const struct shard *shard, struct span url)
{
    const struct cache_fill *fill;

    LIST_FOREACH(fill, &shard->fills, in_shard)
    if (span_equal(object_url(fill->name), url))
        add_tags(tags, fill->object);
}

static enum cache_fate
decide(const struct purge *purge, const struct object *object)
{
    const struct cache_scope *scope = purge->scope;

    return scope ? scope->decide(object_url(object), scope->context) : CACHE_REMOVED;
}

/* Returns whether it counts. */
static bool
purge_entry(struct shard *shard, struct entry *entry, const struct purge *purge,
            enum cache_fate fate)
{
    bool stored = entry_is_stored(entry);

    if (purge->action == PURGE_COUNT)
        return stored;
    if ((purge->action == PURGE_EXPIRE || fate == CACHE_EXPIRED) && stored) {
        /* What they fetch may be older than the purge: later requests begin another one. */
        object_remove_fills(entry->object);
        return object_expire(entry->object, purge->now_us);
    }
    if (purge->tags)
        add_tags(purge->tags, entry->object);
    shard_remove(shard, entry);
    return purge->action == PURGE_REMOVE && stored;
}

uint64_t
shard_purge_url(struct shard *shard, const struct purge *purge)
{
    struct entry *entry, *next;
    uint64_t count = 0;

    if (purge->tags)
        add_tags_of_fills(purge->tags, shard, purge->name);
    entry = table_first_variant(&shard->table, djb_hash(purge->name), purge->name);
    for (; entry; entry = next) {
        next = table_next_variant(&shard->table, entry);
        count += purge_entry(shard, entry, purge, CACHE_REMOVED);
    }
    return count;
}

/* The entry that has this object, or NULL. */
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

static void
take_tagged(struct purge_slice *slice, struct shard *shard, struct span name)
{
    const struct tag *tag = tags_find(&shard->tags, name);
    struct tag_link *link = tag ? link_behind(shard, tag, slice->place) : NULL;

    for (; link && slice->count < PURGE_SLICE; link = next_entry_of(link))
        slice->objects[slice->count++] = object_retain(link->entry->object);
}

bool
purge_slice_take(struct purge_slice *slice, struct shard *shard, const struct purge *purge)
{
    const struct object *place = slice->place;
    struct entry *entry;

    if (purge->by == CACHE_BY_TAG) {
        take_tagged(slice, shard, purge->name);
    } else {
        entry = place ? table_after(&shard->table, place) : table_first(&shard->table);
        for (; entry && slice->count < PURGE_SLICE; entry = table_next(&shard->table, entry))
            slice->objects[slice->count++] = object_retain(entry->object);
    }
    return slice->count == PURGE_SLICE;
}

bool
purge_slice_decide(struct purge_slice *slice, const struct purge *purge)
{
    bool any = false;

    for (unsigned i = 0; i < slice->count; i++) {
        const bool named = purge->by == CACHE_BY_TAG ||
                           span_starts_with(object_url(slice->objects[i]), purge->name);

        slice->fates[i] = named ? decide(purge, slice->objects[i]) : CACHE_SPARED;
        any = any || slice->fates[i] != CACHE_SPARED;
    }
    return any;
}

uint64_t
purge_slice_apply(const struct purge_slice *slice, struct shard *shard, const struct purge *purge)
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

void
purge_slice_drop(struct purge_slice *slice, const struct purge *purge)
{
    for (unsigned i = 0; i < slice->count; i++) {
        /* A walk by a prefix does not begin anew: it would pass emptied buckets, under the lock. */
        if (purge->by == CACHE_BY_PREFIX || slice->fates[i] != CACHE_REMOVED ||
            purge->action != PURGE_REMOVE) {
            object_release(&slice->place);
            slice->place = slice->objects[i];
        } else {
            object_release(&slice->objects[i]);
        }
    }
    slice->count = 0;
}

/* ---- everything ------------------------------------------------------------------------------ */

bool
shard_purge_all(struct shard *shard, struct shard *old)
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
