/*
 * Filling an object, and waiting for it.
 *
 * cache_lookup() gives a fill to the caller that has to fetch. Its owner then reports what arrives:
 * cache_fill_head(), cache_fill_append() any number of times, and exactly one of
 * cache_fill_finish() and cache_fill_fail(); then it calls cache_fill_free(). These functions are
 * for one thread at a time, the fetcher's. A fill is used while its cache exists.
 *
 * Waiters are notified of head, more data, end and failure by their own notify(), with wake-ups
 * merged: while a waiter has events that it has not taken, it is not notified again. Every waiter
 * whose lookup answered MISS, STALE, PASS or BUSY gets exactly one last event (END, FAILED or
 * RETRY), unless cache_leave() removes it first.
 */
#ifndef SUNPROXY_CACHE_FILL_H
#define SUNPROXY_CACHE_FILL_H

#include <sys/queue.h>

#include "cache/cache.h"

/* ---- the waiter's side ----------------------------------------------------------------------- */

enum waiter_event {
    WAITER_HEAD = 1,   /* waiter->object has its head; only if it streams */
    WAITER_MORE = 2,   /* the body has grown; only if it streams */
    WAITER_END = 4,    /* waiter->object is ready */
    WAITER_FAILED = 8, /* waiter->failure has the reason */
    WAITER_RETRY = 16, /* look up again: this waiter gets nothing (more) from this fill */
};

#define WAITER_LAST (WAITER_END | WAITER_FAILED | WAITER_RETRY)

struct object_waiter {
    /* Set by the owner before cache_lookup(). */
    void (*notify)(struct object_waiter *waiter); /* any thread, under a lock of the cache: must not
                                                     block nor call the cache. Called once for each
                                                     call of object_waiter_take() that is due */
    bool streams; /* gets HEAD and MORE; otherwise only the last event */

    /* The waiter's thread reads these, from the lookup on. */
    bool leader;           /* its lookup began the fill */
    struct object *object; /* a reference. It has the URL in any state; the head from HEAD on; from
                              END on it is ready. Changed by object_waiter_take() alone. (After
                              RETRY, nothing but its URL may be used) */

    /* From the last event on. */
    struct object *failure;       /* FAILED: a reference; object_failure() and its status */
    enum cache_outcome outcome;   /* END */
    size_t evicted;               /* END, for the leader: pages evicted for the object */
    struct cache_victims victims; /* those pages; empty without memory for the list */

    /* The cache's, under the lock of the shard of `hash`. */
    TAILQ_ENTRY(object_waiter) link;
    struct cache_fill *fill; /* while it is listed there */
    uint32_t hash;           /* constant */
    struct object *given;    /* a reference: becomes `object` when the events are taken */
    _Atomic unsigned events; /* not taken yet */
};

/*
 * Takes the events that have not been taken, and with them what they announce. To be called once
 * for each notify(), after it. After a last event the cache does not touch the waiter any more.
 * 0 only after cache_leave(). [the waiter's thread]
 */
unsigned object_waiter_take(struct object_waiter *waiter);

/*
 * The waiter gives up. False if its last event is under way already, which is still to be taken.
 * After true there are no new events, and a notify() that was called before is still to be answered
 * by object_waiter_take(), whose result then means nothing. [the waiter's thread]
 */
bool cache_leave(struct cache *cache, struct object_waiter *waiter);

/*
 * Releases what the waiter holds (object, failure, victims). After its last event, or after
 * cache_leave() has returned true. Harmless on a zeroed waiter and a second time. [the waiter's
 * thread]
 */
void object_waiter_clear(struct object_waiter *waiter);

/* ---- the owner's side ------------------------------------------------------------------------ */

TAILQ_HEAD(object_waiters, object_waiter);

/*
 * First in the struct that the owner keeps: cache_lookup() allocates request->fill_size bytes,
 * zeroed beyond this part. The owner reads `object` and nothing else.
 */
struct cache_fill {
    struct cache *cache;
    struct object *object;  /* a reference; URL alone before the head, then as the waiters' */
    struct object *name;    /* a reference: URL alone, becomes the marker */
    struct object *reserve; /* a reference: becomes the failure, so that it needs no memory */
    uint64_t key;
    uint64_t max_length;
    int64_t declared; /* length of the body, or -1 */
    uint32_t hash;
    _Atomic unsigned streams; /* waiters that stream. Changed under the lock; append() reads it */

    /* Under the lock of the hash's shard. */
    struct entry *entry; /* in the table: its own, or that of the expired page to which it is the
                            successor; NULL: no request can join */
    LIST_ENTRY(cache_fill) link; /* in the shard's list of fills, while may_store */
    bool may_store;              /* no purge since the lookup, and no bypass */
    bool has_head;
    bool isolated;
    bool done; /* finished or failed */
    unsigned waiter_count;
    struct object_waiters waiters;
};

struct object_head {
    unsigned status;
    struct span final_url; /* empty: the same as the URL */
    struct span fields;
    int64_t length;      /* of the body as it will be appended, which is not longer; -1: unknown */
    uint64_t max_length; /* an append beyond it is EFBIG */
    struct memory_account *account; /* charged (MEMORY_PAGES) while no cache counts the object */
};

/*
 * The head has arrived; once. 0, ENOMEM, ENOBUFS (the account is used up) or EINVAL (a part is
 * longer than OBJECT_MAX_META). After an error nothing has changed.
 */
int cache_fill_head(struct cache_fill *fill, const struct object_head *head);

/*
 * More of the body, after the head. 0, ENOMEM, ENOBUFS or EFBIG (more than max_length, or than the
 * declared length of an inline body); after an error the body is as it was.
 */
int cache_fill_append(struct cache_fill *fill, const void *bytes, size_t len);

/*
 * The response may not be shared. Waiters get RETRY, except the leader and those that stream and
 * have been notified of the head: call it before cache_fill_head() where the others may not see the
 * head. Until `until_us` of the monotonic clock a marker stands in the table, so that later
 * requests pass; 0: no marker. An expired page of the URL is removed if there is a marker. Does
 * nothing to the table for a bypass or after a purge, and nothing at all the second time. Cannot
 * fail; a fill whose expired page was evicted may lack the memory for a marker, and then there is
 * none.
 */
void cache_fill_isolate(struct cache_fill *fill, int64_t until_us);

/* The response may be shared, though it is not stored: a marker of its URL is removed. */
void cache_fill_unmark(struct cache_fill *fill);

/*
 * The object is complete, after the head. It is stored if `store_it` is true, no purge has come
 * since the lookup, and policy and capacity admit it. Then it replaces the URL's page or marker. If
 * it is not stored, an expired page of the URL is removed. For a bypass the table does not change.
 * Waiters get END. `fetched_us` is of the monotonic clock; `lifetime_us` is kept in whole
 * milliseconds, rounded down, at most 49 days, and INT64_MAX is unlimited. A segmented body of at
 * most 256 KiB is copied into one allocation first, if it may be stored; the table and the waiters
 * that do not stream get the copy.
 */
enum cache_outcome cache_fill_finish(struct cache_fill *fill, bool store_it, uint64_t fetch_us,
                                     int64_t fetched_us, int64_t lifetime_us);

/*
 * The fetch has failed. Waiters get FAILED with this number and sentence; those for which
 * retries(waiter, context) is true get RETRY (NULL: none; it is not called for the leader).
 * retries() is called under a lock: it may not call the cache. An expired page of the URL stays.
 * The fill drops the body at once, so that its memory is free when no waiter has it. Cannot fail.
 * May be called in a hook of a memory account.
 */
void cache_fill_fail(struct cache_fill *fill, unsigned number, const char *sentence,
                     bool (*retries)(const struct object_waiter *waiter, void *context),
                     void *context);

/* Frees the fill and the owner's struct around it, after finish or fail. Its waiters need it no
 * more. */
void cache_fill_free(struct cache_fill *fill);

#endif
