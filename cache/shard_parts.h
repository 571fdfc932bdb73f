/*
 * What the files of a shard (shard.h) share. Private to them; the same locks hold.
 */
#ifndef SUNPROXY_CACHE_SHARD_PARTS_H
#define SUNPROXY_CACHE_SHARD_PARTS_H

#include <assert.h>

#include "cache/shard.h"
#include "policies/charge.h"

/* Where the entry of a marker or record has its links, in the memory of a node. */
struct mark_links {
    struct entry *older;
    struct entry *newer;
};

/* The bytes that a stored object counts. */
static inline uint64_t
shard_bytes_of(const struct shard *shard, const struct object *object)
{
    if (shard->body_only)
        return object_length(object);
    return object_size(object) - sizeof(*object) - 1 + shard->overhead;
}

/* Frees an entry, and drops its object; it is in no table. */
void shard_free_entry(struct entry *entry);

/* Removes an entry from the table and adds it to a chain; a stored one has left the evictor. */
void shard_unlink(struct shard *shard, struct entry *entry, struct removed *removed);

/* Removes a marker or record from its list. */
void shard_unlink_mark(struct shard *shard, struct entry *entry);

#endif
