/*
 * What the files of a shard (shard.h) share. Private to them; the same locks hold.
 */
#ifndef SUNPROXY_CACHE_SHARD_PARTS_H
#define SUNPROXY_CACHE_SHARD_PARTS_H

#include <assert.h>

#include "cache/shard.h"
#include "policies/charge.h"

/* Where a mark has its links, in the memory of a node. */
struct mark_links {
    struct entry *older;
    struct entry *newer;
};

/* The bytes that an object with this number of tags counts when it is stored. */
static inline uint64_t
shard_bytes_of(const struct shard *shard, const struct object *object, size_t tag_count)
{
    if (shard->body_only)
        return object_length(object);
    return object_size(object) - sizeof(*object) - 1 + shard->overhead +
           (tag_count ? tag_count * TAGS_CHARGE + object->tags_len : 0);
}

/* The bytes that a stored entry counts. */
static inline uint64_t
shard_bytes_of_entry(const struct shard *shard, const struct entry *entry)
{
    return shard_bytes_of(shard, entry->object, entry->tag_count);
}

/* Where an entry has its links of tags. */
static inline size_t
shard_tags_offset(const struct shard *shard)
{
    return (shard->entry_size + _Alignof(struct tag_link) - 1) / _Alignof(struct tag_link) *
           _Alignof(struct tag_link);
}

static inline struct tag_link *
shard_tags_of(const struct shard *shard, struct entry *entry)
{
    return (struct tag_link *)(void *)((char *)entry + shard_tags_offset(shard));
}

static inline struct mark_links *
shard_mark_links(struct entry *entry)
{
    return (struct mark_links *)(void *)entry->node;
}

/* The next entry of a chain of removed ones, or NULL. */
static inline struct entry *
shard_next_removed(const struct entry *entry)
{
    return RB_RIGHT(entry, links);
}

/* Frees an entry, and drops its object; it is in no table. */
void shard_free_entry(struct entry *entry);

/* Removes an entry from the table and adds it to a chain; a stored one has left the evictor. */
void shard_unlink(struct shard *shard, struct entry *entry, struct removed *removed);


#endif
