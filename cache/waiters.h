/*
 * Making a fill, and the waiters of one: joining, and what each transition notifies. Private. The
 * caller of waiters_*() and window_move() has the lock of the fill's shard.
 */
#ifndef SUNPROXY_CACHE_WAITERS_H
#define SUNPROXY_CACHE_WAITERS_H

#include "cache/shard.h"

/*
 * A fill of this URL in no list and no table, without waiters; `size` bytes are allocated, zeroed.
 * NULL without memory. Needs no lock.
 */
struct cache_fill *fill_create(struct cache *cache, const struct cache_key *key, size_t size);

/* An object for a failure; NULL without memory. Needs no lock. */
struct object *fill_make_reserve(void);

/* Writes a failure's number and sentence; no other thread knows the object yet. */
void fill_set_failure(struct object *failure, unsigned number, const char *sentence);

/* Frees it. It has no waiters. */
void fill_free(struct cache_fill *fill);

/* May the response be older than a purge of its URL or of one of its tags; of those alone? */
bool fill_is_outdated(const struct cache_fill *fill);
bool fill_has_outdated_tags(const struct cache_fill *fill);

/* Adds a waiter, and notifies it of the head and the body so far if there is a head. */
void waiters_add(struct cache_fill *fill, struct object_waiter *waiter, bool leader);

/* Removes a waiter that is in the fill's list. */
void waiters_remove(struct cache_fill *fill, struct object_waiter *waiter);

/* FAILED to one that lags: it does not count any more, but stays in the list. */
void waiters_set_lagging(struct cache_fill *fill, struct object_waiter *waiter);

/* FAILED with `failure` to one that is in the list. */
void waiters_fail_one(struct cache_fill *fill, struct object_waiter *waiter,
                      struct object *failure);

/* HEAD and MORE, to those that stream. */
void waiters_head(struct cache_fill *fill);
void waiters_more(struct cache_fill *fill);

/* RETRY, with object_waiter.sent_back, to all but the leader and those that stream and have been
 * notified of the head. */
void waiters_retry(struct cache_fill *fill, bool sent_back);

/* END, to all; those that do not stream get the fill's object. The leader gets the evicted pages.
 */
void waiters_end(struct cache_fill *fill, enum cache_outcome outcome,
                 const struct removed *removed);

/* RETRY to those (not the leader) for which retries() is true; FAILED with `failure` to others. */
void waiters_fail(struct cache_fill *fill, struct object *failure,
                  bool (*retries)(const struct object_waiter *waiter, void *context),
                  void *context);

/*
 * Of a windowed fill, after its readers or its body have changed: readers that lag get FAILED, and
 * a pause begins (only if the body has grown) or ends. Removes segments that no reader needs.
 */
void window_move(struct shard *shard, struct cache_fill *fill, bool has_grown);

#endif
