/*
 * Do the parts of a shard agree? For tests.
 */
#include "cache/shard_parts.h"

/* An entry's object and its fill refer to each other, and its kind is what it says. */
static bool
entry_is_valid(const struct entry *entry)
{
    const struct object *object = entry->object;

    if (object->fill && (object->fill->entry != entry || !object->fill->may_store))
        return false;
    if (entry->stored)
        return object_state(object) == OBJECT_READY &&
               entry->tag_count == tags_count(object_tags(object));
    return entry_is_mark(entry) ? !object->fill : object->fill != NULL;
}

/* The list has `count` marks, all of this state, within the bounds of `most`. */
static bool
marks_are_valid(const struct marks *marks, enum object_state state, size_t count, size_t most)
{
    size_t listed = 0, bytes = 0;

    for (const struct entry *entry = marks->oldest; entry; entry = shard_next_mark(entry)) {
        if (object_state(entry->object) != state)
            return false;
        listed++;
        bytes += object_size(entry->object);
    }
    return listed == count && marks->count == count && marks->bytes == bytes && count <= most;
}

static bool
fills_are_valid(const struct shard *shard, size_t own)
{
    const struct cache_fill *fill;
    size_t count = 0, found = 0;

    LIST_FOREACH(fill, &shard->fills, link)
    {
        if (!fill->may_store || fill->done)
            return false;
        if (fill->entry && fill->entry->object->fill != fill)
            return false;
        if (fill->entry &&
            !(span_equal(object_url(fill->entry->object), object_url(fill->name)) &&
              span_equal(object_variant(fill->entry->object), object_variant(fill->name))))
            return false;
        found += fill->entry && !fill->entry->stored;
        count++;
    }
    return count == shard->fill_count && found == own;
}

/* No URL has more stored variants than it may have. */
static bool
variants_are_bounded(const struct table *table)
{
    const struct object *before = NULL;
    size_t count = 0;

    for (struct entry *entry = table_first(table); entry; entry = table_next(table, entry)) {
        if (!before || !span_equal(object_url(entry->object), object_url(before)))
            count = 0;
        before = entry->object;
        count += entry->stored && before->variant_len != 0;
        if (count > CACHE_MAX_VARIANTS)
            return false;
    }
    return true;
}

/* The links of an entry are those of its object's tags. */
static bool
tags_are_valid(const struct shard *shard, struct entry *entry)
{
    const struct tag_link *links = shard_tags_of(shard, entry);
    struct span rest = object_tags(entry->object), name;

    for (size_t i = 0; tags_next(&rest, &name); i++)
        if (links[i].entry != entry ||
            !span_equal(span_of(links[i].tag->name, links[i].tag->len), name))
            return false;
    return true;
}

bool
shard_is_valid(const struct shard *shard)
{
    size_t stored = 0, markers = 0, records = 0, links = 0, own;
    struct entry *entry;
    uint64_t bytes = 0;

    if (!table_is_valid(&shard->table) || !variants_are_bounded(&shard->table))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry)) {
        if (!entry_is_valid(entry) || (entry->stored && !tags_are_valid(shard, entry)))
            return false;
        stored += entry->stored;
        markers += entry_is_marker(entry);
        records += entry_is_record(entry);
        if (entry->stored) {
            bytes += shard_bytes_of_entry(shard, entry);
            links += entry->tag_count;
        }
    }
    own = shard->table.entry_count - stored - markers - records;
    if (!fills_are_valid(shard, own) ||
        !marks_are_valid(&shard->markers, OBJECT_UNCACHEABLE, markers, shard->max_markers) ||
        !marks_are_valid(&shard->records, OBJECT_VARIES, records, SIZE_MAX) ||
        links != tags_count_links(&shard->tags) || stored != shard->evictor.pages ||
        bytes != shard->evictor.bytes)
        return false;
    return shard->evictor.ops ? evictor_is_valid(&shard->evictor) : !shard->evictor.policy;
}
