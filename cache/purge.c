/*
 * Purges of a shard: hard ones remove entries, soft ones expire pages and remove other entries.
 */
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
add_tags_of_fills(struct buf *tags, const struct shard *shard, uint32_t hash, struct span url)
{
    const struct cache_fill *fill;

    LIST_FOREACH(fill, &shard->fills, in_shard)
    if (fill->hash == hash && span_equal(object_url(fill->name), url))
        add_tags(tags, fill->object);
}

void
shard_purge(struct shard *shard, uint32_t hash, struct span url, struct buf *tags,
            struct removed *removed)
{
    struct entry *entry, *next;

    if (tags)
        add_tags_of_fills(tags, shard, hash, url);
    for (entry = table_first_variant(&shard->table, hash, url); entry; entry = next) {
        next = table_next_variant(&shard->table, entry);
        shard_remove(shard, entry, removed);
    }
    table_tidy(&shard->table);
}

void
shard_purge_prefix(struct shard *shard, struct span prefix, struct removed *removed)
{
    struct entry *entry, *next;

    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(object_url(entry->object), prefix))
            shard_remove(shard, entry, removed);
    }
    table_tidy(&shard->table);
}

uint64_t
shard_count(const struct shard *shard, uint32_t hash, struct span url)
{
    struct entry *entry = table_first_variant(&shard->table, hash, url);
    uint64_t count = 0;

    for (; entry; entry = table_next_variant(&shard->table, entry))
        count += entry_is_stored(entry);
    return count;
}

uint64_t
shard_count_prefix(const struct shard *shard, struct span prefix)
{
    uint64_t count = 0;

    for (struct entry *entry = table_first(&shard->table); entry;
         entry = table_next(&shard->table, entry))
        count += entry_is_stored(entry) && span_starts_with(object_url(entry->object), prefix);
    return count;
}

/* ---- soft ones ------------------------------------------------------------------------------- */

/* Expires a page, and removes any other entry, whose fills are outdated. */
static bool
expire_entry(struct shard *shard, struct entry *entry, int64_t now_us, struct removed *removed)
{
    if (entry_is_stored(entry))
        return object_expire(entry->object, now_us);
    shard_remove(shard, entry, removed);
    return false;
}

uint64_t
shard_expire(struct shard *shard, uint32_t hash, struct span url, int64_t now_us,
             struct removed *removed)
{
    struct entry *entry, *next;
    uint64_t count = 0;

    for (entry = table_first_variant(&shard->table, hash, url); entry; entry = next) {
        next = table_next_variant(&shard->table, entry);
        count += expire_entry(shard, entry, now_us, removed);
    }
    table_tidy(&shard->table);
    return count;
}

uint64_t
shard_expire_prefix(struct shard *shard, struct span prefix, int64_t now_us,
                    struct removed *removed)
{
    struct entry *entry, *next;
    uint64_t count = 0;

    for (entry = table_first(&shard->table); entry; entry = next) {
        next = table_next(&shard->table, entry);
        if (span_starts_with(object_url(entry->object), prefix))
            count += expire_entry(shard, entry, now_us, removed);
    }
    table_tidy(&shard->table);
    return count;
}

/* ---- by tag ---------------------------------------------------------------------------------- */

static bool
is_in(const struct cache_scope *scope, const struct object *object)
{
    return !scope || scope->concerns(object_url(object), scope->context);
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

void
shard_purge_tag(struct shard *shard, const struct cache_scope *scope, struct span name,
                struct removed *removed)
{
    struct tag_link *link, *next;
    struct tag *tag;

    tag = tags_find(&shard->tags, name);
    /* With its last entry the tag is freed. */
    for (link = tag ? LIST_FIRST(&tag->entries) : NULL; link; link = next) {
        next = next_entry_of(link);
        if (is_in(scope, link->entry->object))
            shard_remove(shard, link->entry, removed);
    }
    table_tidy(&shard->table);
}

void
shard_add_removed_tags(const struct removed *removed, struct buf *tags)
{
    for (const struct entry *entry = removed->first; entry; entry = shard_next_removed(entry))
        add_tags(tags, entry->object);
}

uint64_t
shard_expire_tag(struct shard *shard, struct span name, int64_t now_us)
{
    struct tag *tag = tags_find(&shard->tags, name);
    const struct tag_link *link;
    uint64_t count = 0;

    if (!tag)
        return 0;
    LIST_FOREACH(link, &tag->entries, next)
    {
        count += object_expire(link->entry->object, now_us);
        /* What it fetches may be older than the purge: later requests begin another one. */
        object_remove_fills(link->entry->object);
    }
    return count;
}

/* ---- everything ------------------------------------------------------------------------------ */

uint64_t
shard_purge_all(struct shard *shard, struct shard *old, struct removed *removed)
{
    uint64_t count = shard->evictor.pages;
    struct cache_fill *fill;
    struct shard fresh;

    if (!shard_init(&fresh, &shard->spec, &shard->config, shard->body_only, shard->max_marks)) {
        *old = (struct shard){0};
        shard_purge_prefix(shard, span_of(NULL, 0), removed);
        return count;
    }
    LIST_FOREACH(fill, &shard->fills, in_shard)
    entry_remove_fill(fill);
    fresh.evictor.insertions = shard->evictor.insertions;
    fresh.evictor.evictions = shard->evictor.evictions;
    fresh.fills = shard->fills; /* the same address, to which the first one points */
    fresh.busy = shard->busy;
    *old = *shard;
    *shard = fresh;
    return count;
}
