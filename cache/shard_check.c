/*
 * Do the parts of a shard agree? For tests.
 */
#include "cache/shard.h"

/* The fills that requests can join by an entry are its own, the newest first. */
static bool
versions_are_valid(const struct entry *entry)
{
    const struct cache_fill *fill;
    uint64_t before = UINT64_MAX;

    LIST_FOREACH(fill, &entry->object->fills, link)
    {
        if (fill->number >= before || fill->stage == FILL_ENDED || !fill->in_shard.le_prev ||
            !span_equal(object_url(entry->object), object_url(fill->name)) ||
            !span_equal(object_variant(entry->object), object_variant(fill->name)))
            return false;
        before = fill->number;
    }
    return true;
}

static bool
entry_is_valid(const struct entry *entry)
{
    const struct object *object = entry->object;

    if (!versions_are_valid(entry))
        return false;
    if (entry_is_stored(entry))
        return object_state(object) == OBJECT_READY &&
               entry->tag_count == tags_count(object_tags(object));
    return object_state(object) == OBJECT_BUSY && (entry_is_mark(entry) || entry_newest(entry));
}

/* The list has `count` marks, all of this kind, within the bounds of `most`. */
static bool
marks_are_valid(const struct marks *marks, enum entry_kind kind, size_t count, size_t most)
{
    size_t listed = 0, bytes = 0;

    for (struct entry *entry = marks->oldest; entry; entry = shard_mark_links(entry)->newer) {
        if (entry->kind != kind)
            return false;
        listed++;
        bytes += object_size(entry->object);
    }
    return listed == count && marks->count == count && marks->bytes == bytes && count <= most;
}

/* Each fill that is in the list of an entry is in that of the one which the table has. */
static bool
fills_are_valid(const struct shard *shard)
{
    const struct cache_fill *fill, *other;

    LIST_FOREACH(fill, &shard->fills, in_shard)
    {
        const struct entry *entry = shard_find_fill(shard, fill);

        if (!fill->link.le_prev)
            continue;
        other = entry ? entry_newest(entry) : NULL;
        while (other && other != fill)
            other = LIST_NEXT(other, link);
        if (!other)
            return false;
    }
    return true;
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
        count += entry_is_stored(entry) && before->variant_len != 0;
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
    size_t kinds[ENTRY_VARIES + 1] = {0}, links = 0;
    struct entry *entry;
    uint64_t bytes = 0;

    if (!table_is_valid(&shard->table) || !variants_are_bounded(&shard->table))
        return false;
    for (entry = table_first(&shard->table); entry; entry = table_next(&shard->table, entry)) {
        if (!entry_is_valid(entry) || (entry_is_stored(entry) && !tags_are_valid(shard, entry)))
            return false;
        kinds[entry->kind]++;
        if (entry_is_stored(entry)) {
            bytes += shard_bytes_of_entry(shard, entry);
            links += entry->tag_count;
        }
    }
    if (!fills_are_valid(shard) ||
        !marks_are_valid(&shard->passed, ENTRY_PASSED, kinds[ENTRY_PASSED], shard->max_marks) ||
        !marks_are_valid(&shard->varied, ENTRY_VARIES, kinds[ENTRY_VARIES], SIZE_MAX) ||
        links != tags_count_links(&shard->tags) || kinds[ENTRY_STORED] != shard->evictor.pages ||
        bytes != shard->evictor.bytes)
        return false;
    return shard->evictor.ops ? evictor_is_valid(&shard->evictor) : !shard->evictor.policy;
}
