/*
 * The latest purges by tag, for fills that began before one and learn their tags after it: what
 * they fetched may be older than the purge. Of one cache; safe on any thread.
 *
 * A purge is recorded before it looks at the shards, and a fill's tags are compared with the record
 * under the lock of its shard, when the purge can find them there. So one of the two sees the
 * other.
 */
#ifndef SUNPROXY_CACHE_TAG_PURGES_H
#define SUNPROXY_CACHE_TAG_PURGES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/span.h"

#define TAG_PURGES 512u

struct tag_purges {
    pthread_mutex_t lock;
    _Atomic uint64_t count;      /* of all purges; written under the lock */
    uint64_t hashes[TAG_PURGES]; /* of the tags of the latest; under the lock */
};

/* Initialises a zeroed one. */
void tag_purges_init(struct tag_purges *purges);

void tag_purges_destroy(struct tag_purges *purges);

/* The purge of a tag begins. */
void tag_purges_add(struct tag_purges *purges, struct span tag);

/* For tag_purges_since(), later. */
static inline uint64_t
tag_purges_now(struct tag_purges *purges)
{
    return atomic_load_explicit(&purges->count, memory_order_acquire);
}

/*
 * May one of these words have been purged since then? Also true if there were more than TAG_PURGES
 * purges, or, very rarely, by a collision of hashes.
 */
bool tag_purges_since(struct tag_purges *purges, uint64_t then, struct span tags);

#endif
