/*
 * Filling an object, and waiting for it.
 *
 * cache_lookup() gives a fill to the caller that has to fetch. Its owner then reports what arrives:
 * cache_fill_head(), cache_fill_append() any number of times, and exactly one of
 * cache_fill_finish() and cache_fill_fail(), or of cache_fill_refresh() and cache_fill_fall_back()
 * instead of the head; then it calls cache_fill_free(). These functions are for one thread at a
 * time, the fetcher's. A fill is used while its cache exists.
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
    WAITER_HEAD = 1,   /* waiter->object has its head; only if it streams, or wants_head() */
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
    bool streams; /* gets HEAD and MORE; otherwise only the last event, */
    bool (*wants_head)(const struct object *object); /* and HEAD of such an object, by its head
                                                        alone; NULL: of none. Any thread, under a
                                                        lock of the cache */

    /* The waiter's thread reads these, from the lookup on. */
    bool leader;           /* its lookup began the fill */
    struct object *object; /* a reference. It has the URL in any state; the head from HEAD on; from
                              END on it is ready. Changed by object_waiter_take() alone. (After
                              RETRY, nothing but its URL may be used) */

    /* From the last event on. */
    struct object *failure;       /* FAILED: a reference; object_failure() and its status */
    enum cache_outcome outcome;   /* END */
    bool refreshed;               /* END: the origin has confirmed the previous object */
    unsigned passed_over;         /* END, CACHE_FELL_BACK: why, as cache_fill_fall_back() got it */
    enum cache_refusal refusal;   /* END: why the cache has not stored what it was to store */
    bool sent_back;               /* RETRY: the response concerns its leader's request alone, and
                                     says nothing about others: cache_fill_restrict() */
    size_t evicted;               /* END, for the leader: pages evicted for the object */
    struct cache_victims victims; /* those pages; empty without memory for the list */

    /* The cache's, under the lock of the shard of `hash`. */
    TAILQ_ENTRY(object_waiter) link;
    struct cache_fill *fill;   /* while it is listed there */
    uint32_t hash;             /* constant */
    struct object *given;      /* a reference: becomes `object` when the events are taken */
    _Atomic unsigned events;   /* not taken yet */
    _Atomic unsigned unstored; /* object_waiter_unstored() */
    _Atomic uint64_t taken;    /* as reported; written by the waiter's thread */
    struct cache *cache;       /* constant */
    bool lags; /* has FAILED, and is listed still because it may be reading; constant from the
                  event on */
};

/* A notify() for a waiter whose events nothing waits for. */
void object_waiter_ignore(struct object_waiter *waiter);

/*
 * Takes the events that have not been taken, and with them what they announce. To be called once
 * for each notify(), after it. After a last event the cache does not touch the waiter any more.
 * 0 only after cache_leave(). [the waiter's thread]
 */
unsigned object_waiter_take(struct object_waiter *waiter);

/* From HEAD or END on: what cache_fill_explain() has said; 0: nothing. [the waiter's thread] */
static inline unsigned
object_waiter_unstored(const struct object_waiter *waiter)
{
    return atomic_load_explicit(&waiter->unstored, memory_order_relaxed);
}

/*
 * A waiter that streams does not need the body's bytes before `offset` any more, nor any run in
 * which they are: it has read up to there or beyond. To be called for every object that is being
 * filled, after at most a part of the smallest window; costs nothing but an atomic store where the
 * object is not windowed. After the last event, or with an offset that is not new, it does nothing.
 * [the waiter's thread]
 */
void cache_waiter_taken(struct object_waiter *waiter, uint64_t offset);

/*
 * The waiter gives up, and does not read the body any more. False if its last event is under way
 * already, which is still to be taken. After true there are no new events, and a notify() that was
 * called before is still to be answered by object_waiter_take(), whose result then means nothing.
 * [the waiter's thread]
 */
bool cache_leave(struct object_waiter *waiter);

/*
 * Releases what the waiter holds (object, failure, victims), which it does not read any more. After
 * its last event, or after cache_leave() has returned true. Harmless on a zeroed waiter and a
 * second time. [the waiter's thread]
 */
void object_waiter_clear(struct object_waiter *waiter);

/* ---- the owner's side ------------------------------------------------------------------------ */

struct cache_fill;
TAILQ_HEAD(object_waiters, object_waiter);

struct cache_failure {
    unsigned number;
    const char *sentence;
};

/*
 * Which part of a body that will not be stored is kept in memory. A fetch is to pause while the
 * reader that is farthest is more than `size` bytes behind what has arrived, and to go on when that
 * is half of it. So the only reader of an object slows its origin down. A reader that is more than
 * `lag` bytes behind the farthest one gets FAILED. At most size + lag bytes are kept, and another
 * `size` while a reader that has FAILED still reads; beside them a piece and two segments.
 */
struct cache_window {
    uint64_t size, lag;
    struct cache_failure lags;  /* the failure of a reader that lags */
    struct cache_failure whole; /* of a waiter that does not stream; number 0: none may be there */
    /* A pause may end. [any thread, under a lock of the cache: must not block nor call the cache]
     */
    void (*resume)(struct cache_fill *fill);
};

/* What a fill has reached. BEGUN -> HEADED -> ENDED, or BEGUN -> ENDED without a head. */
enum fill_stage {
    FILL_BEGUN,
    FILL_HEADED, /* cache_fill_head(); the body arrives */
    FILL_ENDED,  /* finished, refreshed, fallen back, or failed */
};

/* For whom a version is. It only becomes stricter. */
enum fill_disposition {
    FILL_SHARED,   /* later requests may join, and it is to be stored */
    FILL_VALIDATE, /* for its leader and requests that have validated it: none joins, it is stored
                    */
    FILL_PRIVATE,  /* for its leader: none joins, it is not stored */
    FILL_DROPPED,  /* for its waiters: none joins, it is not stored, its body may be windowed */
};

/*
 * First in the struct that the owner keeps: cache_lookup() allocates request->fill_size bytes,
 * zeroed beyond this part. The owner reads `object` and `previous` and nothing else, and may set
 * `unwanted` before it gives the fill to another thread.
 */
struct cache_fill {
    struct cache *cache;
    struct object *object;   /* a reference; URL alone before the head, then as the waiters' */
    struct object *name;     /* a reference: URL and variant alone */
    struct object *reserve;  /* a reference: becomes the failure, so that it needs no memory */
    struct object *previous; /* a reference: the object that had expired or did not meet the
                                conditions at the lookup; NULL if there was none, and at the
                                end */
    int64_t begun_us;        /* the time of the lookup */
    uint64_t epoch;          /* then, or before (struct cache_request) */
    uint64_t own_epoch;      /* of a later invalidation that does not count, or 0 */
    uint64_t number;         /* in the order of the lookups that began fills */
    uint64_t key;
    uint64_t most; /* of the request (struct cache_request) */
    uint64_t max_length;
    int64_t declared; /* length of the body, or -1 */
    uint32_t hash;
    /* Waiters without those that lag. Changed under the lock. */
    _Atomic unsigned waiter_count;
    _Atomic unsigned streams; /* of them, those that stream */

    /*
     * The last waiter has left by cache_leave(). True: the owner is going to fail the fill, and no
     * later request joins. NULL: it goes on. [any thread, under a lock of the cache: must not block
     * nor call the cache]
     */
    bool (*unwanted)(struct cache_fill *fill);

    /* Under the lock of the hash's shard. */
    LIST_ENTRY(cache_fill)
    link;                            /* in the list of its entry (object->fills), while requests may
                                        join it. Otherwise link.le_prev is NULL */
    LIST_ENTRY(cache_fill) in_shard; /* in the shard's list, to the end; not for a bypass */
    enum fill_stage stage;
    _Atomic uint8_t disposition; /* of enum fill_disposition; changed under the lock */
    int64_t born_us; /* from the head on: when the response's age was 0, as far as is known */
    int64_t fresh_until_us;      /* likewise: the end of the lifetime; INT64_MAX: unlimited */
    int64_t while_revalidate_us; /* likewise: after that, requests without conditions may join */
    enum cache_refusal refusal;
    _Atomic unsigned unstored; /* the owner's: cache_fill_explain() */
    bool refreshed;
    unsigned passed_over; /* as in struct object_waiter */
    bool paused;
    struct cache_window window; /* of a windowed object */
    struct object *laggard;     /* a reference: the failure of readers that lag */
    struct object_waiters waiters;
};

struct object_head {
    unsigned status;
    unsigned notes; /* object->notes */
    struct span fields;
    struct span tags;    /* words with one space between two: at most OBJECT_MAX_TAGS of them, of
                            OBJECT_MAX_TAG_BYTES with the spaces */
    int64_t length;      /* of the body as it will be appended, which is not longer; -1: unknown */
    uint64_t max_length; /* an append beyond it is EFBIG */
    struct segment *segment; /* has the whole body already, which the object takes unless there is
                                an error; nothing is appended. Or NULL */
    struct span body;        /* where in the segment; not empty */
    uint32_t lifetime;   /* as struct object has it, if it is known already; 0: unlimited so far */
    int64_t fetched_us;  /* as for cache_fill_finish(), for those that read the object before; 0:
                            not known yet */
    int64_t fresh_until_us;         /* of the same clock: the end of the lifetime, for requests that
                                       come while the body arrives; 0: unlimited */
    int64_t while_revalidate_us;    /* for so long after it requests without conditions may join */
    struct memory_account *account; /* charged (MEMORY_PAGES) while no cache counts the object */
};

/*
 * The head has arrived; once. 0, ENOMEM, ENOBUFS (the account is used up) or EINVAL (a part is
 * longer than OBJECT_MAX_META, or tags are too many). After an error nothing has changed.
 */
int cache_fill_head(struct cache_fill *fill, const struct object_head *head);

/*
 * More of the body, after the head. 0, CACHE_FILL_PAUSE (windowed: it has been taken, and no more
 * is to come until window.resume()), ENOMEM, ENOBUFS or EFBIG (more than max_length, or than the
 * declared length of an inline body); after an error the body is as it was.
 */
#define CACHE_FILL_PAUSE (-1)
int cache_fill_append(struct cache_fill *fill, const void *bytes, size_t len);

/*
 * The object will not be stored, and of its body, which is in segments, only the window is kept
 * from now on. No later request joins it. An expired page of the URL is removed. Waiters that do
 * not stream, which need the whole body, get FAILED. 0, ENOMEM, or EBUSY: such a waiter is there,
 * and the window has no failure for it. After an error nothing has changed. Once, after the head.
 */
int cache_fill_unstore(struct cache_fill *fill, const struct cache_window *window);

/*
 * Why the owner will not have the object stored, or what waiters get instead, as a number that is
 * the owner's; for the waiters that are notified of what follows.
 */
static inline void
cache_fill_explain(struct cache_fill *fill, unsigned unstored)
{
    atomic_store_explicit(&fill->unstored, unstored, memory_order_relaxed);
}

/* Does no request wait for it now? One that does may still leave or come, see below. */
bool cache_fill_is_unwanted(const struct cache_fill *fill);

/* Does a request wait for which suits(waiter, context) is true? That is called under a lock: it may
 * not call the cache. Such a request may leave or come at any time. */
bool cache_fill_has_waiter(struct cache_fill *fill,
                           bool (*suits)(const struct object_waiter *waiter, void *context),
                           void *context);

/* False once it is known that the object will not be stored: its disposition, or a purge. [the
 * owner's thread, or under a lock of the cache] */
bool cache_fill_may_store(const struct cache_fill *fill);

/*
 * If no request waits, none joins from now on, and the object will not be stored: true, and the
 * owner is going to fail it.
 */
bool cache_fill_abandon(struct cache_fill *fill);

/*
 * The response is not for all: FILL_VALIDATE or FILL_PRIVATE. Waiters get RETRY, except the leader
 * and those that stream and have been notified of the head: call it before cache_fill_head() where
 * the others may not see the head. The second time no request is sent back.
 *
 * Until `until_us` of the monotonic clock later requests pass (hit-for-miss), and an expired page
 * of the URL is removed. 0: they do not, and a page stays. Does nothing to the table for a bypass
 * and after a purge; and requests do not pass where there is a later version, or one that they can
 * join whose head has come. Cannot fail; without memory for an entry requests do not pass.
 */
void cache_fill_restrict(struct cache_fill *fill, enum fill_disposition disposition,
                         int64_t until_us);

/*
 * The response answers the requests of one variant only (RFC 9111, section 4.1); before the head.
 * From now on the fill is at (URL, `variant`), where requests can join it unless a later one or a
 * mark is there, and where it is stored. The URL with the empty variant, for which a request looks
 * first, has `names` from now on, which are any bytes to the cache, in place of a page; but not
 * where a later fill is under way or has set others. Waiters other than the leader get RETRY,
 * unless the fill was at that variant already and the URL had these names.
 *
 * Without names the response answers all requests, and `variant` is empty.
 *
 * Names stay until they are purged or too many: CACHE_MAX_MARKS, and one for each stored page, of
 * a mean of 1 KiB. Then the oldest are dropped.
 *
 * For a bypass, after a purge, and where it is not to be stored the fill and the table stay as they
 * are; waiters other than the leader get RETRY if `variant` is another one than the fill's. False
 * without memory, or where variant or names are longer than OBJECT_MAX_VARIANT: the fill is then
 * FILL_PRIVATE.
 */
bool cache_fill_vary(struct cache_fill *fill, struct span names, struct span variant);

/* What has the names of the fill's URL as its field lines, a reference of the caller's; NULL: it
 * has none. */
struct object *cache_fill_names(struct cache_fill *fill);

/* The response may be shared, though it is not stored: requests of its URL do not pass any more. */
void cache_fill_end_pass(struct cache_fill *fill);

/*
 * The object is complete, after the head. It is stored if `store_it` and its disposition permit it,
 * no purge has come since the lookup, and policy and capacity admit it. Then it replaces what there
 * is of its URL and variant, but neither what a later fill has set (names, or that requests pass
 * still), nor the page of another fill that is from later, by `fetched_us`, and as fresh, nor one
 * that is fresh where the lifetime of this object has ended (RFC 9111, section 4: the most recent
 * response). Later fills go on beside it. If it is not stored,
 * a page that had expired at the lookup is removed, unless a later fill may replace it. For a
 * bypass the table does not change. Waiters get END.
 *
 * `fetched_us` is the moment of the monotonic clock at which the response's age was 0: its arrival
 * less its corrected initial age (RFC 9111, section 4.2.3). The freshness lifetime counts from
 * then. It is kept in whole milliseconds up to 24 days and in whole seconds beyond, rounded down,
 * at most 34 years; INT64_MAX is unlimited.
 *
 * A segmented body of at most 256 KiB is copied into one allocation first, if it may be stored; the
 * table and the waiters that do not stream get the copy.
 */
enum cache_outcome cache_fill_finish(struct cache_fill *fill, bool store_it, uint64_t fetch_us,
                                     int64_t fetched_us, int64_t lifetime_us);

/*
 * The origin has confirmed the previous object (a 304, RFC 9111, section 4.3.4): the new object has
 * the body of that one, under this head, whose `length` and `max_length` are ignored. Instead of
 * head, append and finish, whose description holds otherwise; streaming waiters get HEAD and MORE
 * too. The body is not copied if it is segmented. Those that have the previous object keep it as it
 * is. 0, with the outcome in *outcome, or the errors of cache_fill_head(), after which nothing has
 * changed.
 */
int cache_fill_refresh(struct cache_fill *fill, const struct object_head *head, bool store_it,
                       uint64_t fetch_us, int64_t fetched_us, int64_t lifetime_us,
                       enum cache_outcome *outcome);

/*
 * The fetch has failed before the head, and the previous object is good enough instead (RFC 5861,
 * section 4): waiters get END with it, as CACHE_FELL_BACK, and streaming ones HEAD and MORE too.
 * `why` is a number for the waiters. The table keeps the object if it is still there. As an end it
 * stands for cache_fill_fail(), and may be called where that may. Cannot fail.
 */
void cache_fill_fall_back(struct cache_fill *fill, unsigned why);

/*
 * The fetch has failed. Waiters get FAILED with this number and sentence; those for which
 * retries(waiter, context) is true get RETRY (NULL: none).
 * retries() is called under a lock: it may not call the cache. An expired page of the URL stays.
 * The fill drops the body at once, whose memory is free when no waiter has it, and charged no more.
 * Cannot fail. May be called in a hook of a memory account.
 */
void cache_fill_fail(struct cache_fill *fill, unsigned number, const char *sentence,
                     bool (*retries)(const struct object_waiter *waiter, void *context),
                     void *context);

/* Frees the fill and the owner's struct around it, after finish or fail. Its waiters need it no
 * more. */
void cache_fill_free(struct cache_fill *fill);

#endif
