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

/* Returns whether it counts. */
static bool
purge_entry(struct shard *shard, struct entry *entry, const struct purge *purge)
{
    bool stored = entry_is_stored(entry);

    if (purge->action == PURGE_COUNT)
        return stored;
    if (purge->action == PURGE_EXPIRE && stored) {
        /* What they fetch may be older than the purge: later requests begin another one. */
        object_remove_fills(entry->object);
        return object_expire(entry->object, purge->now_us);
    }
    if (purge->tags)
        add_tags(purge->tags, entry->object);
    shard_remove(shard, entry);
    return purge->action == PURGE_REMOVE && stored;
}

static uint64_t
purge_url(struct shard *shard, const struct purge *purge)
{
    struct entry *entry, *next;
    uint64_t count = 0;

    if (purge->tags)
        add_tags_of_fills(purge->tags, shard, purge->name);
    entry = table_first_variant(&shard->table, djb_hash(purge->name), purge->name);
    for (; entry; entry = next) {
        next = table_next_variant(&shard->table, entry);
        count += purge_entry(shard, entry, purge);
    }
    return count;
}

static bool
concerns(const struct purge *purge, const struct object *object)
{
    const struct cache_scope *scope = purge->scope;

    return !scope || scope->concerns(object_url(object), scope->context);
}

static uint64_t
purge_prefix(struct shard *shard, const struct purge *purge)
{
    struct entry *entry, *next;
    uint64_t count = 0;

    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(object_url(entry->object), purge->name) &&
            concerns(purge, entry->object))
            count += purge_entry(shard, entry, purge);
    }
    return count;
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

static uint64_t
purge_tag(struct shard *shard, const struct purge *purge)
{
    struct tag *tag = tags_find(&shard->tags, purge->name);
    struct tag_link *link, *next;
    uint64_t count = 0;

    /* With its last entry the tag is freed. */
    for (link = tag ? LIST_FIRST(&tag->entries) : NULL; link; link = next) {
        next = next_entry_of(link);
        if (concerns(purge, link->entry->object))
            count += purge_entry(shard, link->entry, purge);
    }
    return count;
}

uint64_t
shard_purge(struct shard *shard, const struct purge *purge)
{
    switch (purge->by) {
    case CACHE_BY_URL:
        return purge_url(shard, purge);
    case CACHE_BY_PREFIX:
        return purge_prefix(shard, purge);
    case CACHE_BY_TAG:
        break;
    }
    return purge_tag(shard, purge);
}

/* ---- everything ------------------------------------------------------------------------------ */

uint64_t
shard_purge_all(struct shard *shard, struct shard *old)
{
    uint64_t count = shard->evictor.pages;
    struct cache_fill *fill;
    struct shard fresh;

    if (!shard_init(&fresh, &shard->spec, &shard->config, shard->body_only, shard->max_marks)) {
        *old = (struct shard){0};
        return shard_purge(shard, &(struct purge){.by = CACHE_BY_PREFIX});
    }
    LIST_FOREACH(fill, &shard->fills, in_shard)
    entry_remove_fill(fill);
    fresh.evictor.insertions = shard->evictor.insertions;
    fresh.evictor.evictions = shard->evictor.evictions;
    fresh.fills = shard->fills;
    fresh.busy = shard->busy;
    *old = *shard;
    shard_move(shard, &fresh);
    return count;
}
