/*
 * The latest purges of one kind, by tag or by URL, for fills whose responses may be older than a
 * purge that could not find them: those that learn their tags after it, and those that begin after
 * it with a response to an earlier request (cache_fill_dates_from()). Of one cache; safe on any
 * thread.
 *
 * A purge is recorded before it looks at the shards, and a fill is compared with the record under
 * the lock of its shard, when the purge can find it there. So one of the two sees the other.
 */
#ifndef SUNPROXY_CACHE_PURGE_LOG_H
#define SUNPROXY_CACHE_PURGE_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

#define PURGE_LOG_SIZE 1024u

struct purge_record {
    uint64_t hash; /* of the name */
    const void *by;
};

struct purge_log {
    pthread_mutex_t lock;
    _Atomic uint64_t count;                      /* of all purges; written under the lock */
    struct purge_record records[PURGE_LOG_SIZE]; /* the latest; under the lock */
};

/* Initialises a zeroed one. */
void purge_log_init(struct purge_log *log);

void purge_log_destroy(struct purge_log *log);

/*
 * The purge of a name begins; of any name if that is empty. `by` identifies the purger, as long
 * as that exists, or is NULL.
 */
void purge_log_add(struct purge_log *log, struct span name, const void *by);

/* For purge_log_has(), later. */
static inline uint64_t
purge_log_now(struct purge_log *log)
{
    return atomic_load_explicit(&log->count, memory_order_acquire);
}

/*
 * May this name have been purged since then, by any other than `by` (NULL: by any)? Also true if
 * there were more than PURGE_LOG_SIZE purges, or, very rarely, by a collision of hashes.
 */
bool purge_log_has(struct purge_log *log, uint64_t then, struct span name, const void *by);

/* The same for one of these words (tags.h). */
bool purge_log_has_word(struct purge_log *log, uint64_t then, struct span words, const void *by);

#endif
