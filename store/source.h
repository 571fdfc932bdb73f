/*
 * A source: a place behind a cache from which versions are filled (cache/fill.h), and to which what
 * was fetched is offered; it outlives the process. The disk is one (store.h).
 *
 * What is purged in the cache is purged in its sources, too. A purge holds for this process at
 * once, and is answered when the source has noted it, so that it holds later and elsewhere.
 *
 * Every function is safe on any thread, and none does I/O that can block.
 */
#ifndef SUNPROXY_STORE_SOURCE_H
#define SUNPROXY_STORE_SOURCE_H

#include <sys/queue.h>

#include "base/shared.h"
#include "cache/fill.h"
#include "http/reason.h"

/* What is stored of a response. */
struct source_head {
    struct span url, fields;
    unsigned status;
    unsigned notes;  /* as those of its object */
    int64_t born_us; /* monotonic clock: its age was 0 */
    int64_t fetch_us;
    int64_t lifetime_us; /* from then on; INT64_MAX: unlimited */
};

/* The options in force, by which what is read is reviewed: it may have been stored under others. */
struct source_review {
    /* Lowers head->lifetime_us as they demand, and returns HTTP_REASON_NONE, or why it is not to be
     * used: HTTP_REASON_MEMORY is no reason to remove it. NULL: all is used as it was stored. [any
     * thread] */
    enum http_reason (*review)(const struct source_review *review, struct source_head *head);
    const void *context;
    struct shared *rules; /* the options, to which a source has a reference while it fills; NULL */
    unsigned flags;       /* of the request */
};

/* What becomes of a fill. */
enum source_filling {
    SOURCE_HAS_NOT, /* nothing has happened: the source does not have it, or it is not used */
    SOURCE_FILLED,  /* it is over, and freed: its waiters have been notified */
    SOURCE_FILLS,   /* likewise later */
};

struct source_request {
    struct span fields;           /* of the request, which are copied */
    uint64_t most;                /* the largest body that is put into the cache */
    void (*later)(void *context); /* called before SOURCE_FILLS */
    void *context;
    unsigned lane; /* the number of the caller's thread among those that fill, from 0 */
    struct source_review review;
};

struct source_marked {
    unsigned count; /* objects of a URL that there were; 0 for a tag or a prefix: it is not known */
    bool marked;    /* what is stored may be concerned, so a mark was left */
    uint64_t number; /* of the mark that is to be noted; 0: none is */
    bool begun;      /* the source's: it waits for the second call */
};

#define SOURCE_ALL_MARKS UINT64_MAX /* up to now, as a number */

/* What is purged. */
struct source_purge {
    enum cache_by by;
    bool soft;        /* what is concerned expires */
    struct span name; /* an empty prefix: everything */
    struct span
        scope; /* of a tag: concerned are the URLs of the origin that begin so; empty: all */
};

/* A request or an answer that waits until a mark is noted. */
struct source_waiter {
    STAILQ_ENTRY(source_waiter) link;
    void (*notify)(struct source_waiter *waiter); /* [any thread; must not block] */
    uint64_t number; /* of the mark, as mark() has it, or SOURCE_ALL_MARKS */
    int64_t since_us; /* the source's: when it began to wait */
    bool listed;
    bool lost; /* set, when it is answered: the marks are not noted, since the process ends, or the
                  place does not answer; they hold in this process */
    /* Set then as well: they hold in this process, and no place from which others would learn of
     * them can be reached. */
    bool untold;
};

STAILQ_HEAD(source_waiters, source_waiter);

struct source;

struct source_ops {
    /*
     * Fills the version. What is found is given to the requests that wait, which see whether it is
     * fresh enough for them, and is put into the cache. If there is none after all, they look
     * up again; so they do for a URL that varies, after the names by which it does have been put
     * into the cache.
     */
    enum source_filling (*fill)(struct source *source, struct cache_fill *fill,
                                const struct source_request *request);

    /*
     * Begins an offer, before an object that was asked for at `begun_us` of the monotonic clock is
     * found to be current: purges from then on concern it. Returns its position, for offer() or
     * drop_offer(), one of which follows.
     */
    uint64_t (*begin_offer)(struct source *source, int64_t begun_us);
    void (*drop_offer)(struct source *source);
    /*
     * Offers a ready object that is stored in the cache or was to be, and that all may have. The
     * source takes a reference. `names` are those by which the URL varies. False: refused. What is
     * there of the URL is outdated if it varies and the object does not, or the other way round.
     */
    bool (*offer)(struct source *source, struct object *object, struct span names,
                  uint64_t position);
    /*
     * Is an object with this key to be offered when it is fetched, or at its next request? NULL:
     * each is when it is fetched, and at no other time.
     */
    bool (*admits)(struct source *source, uint64_t key);
    /* Is there something that an object of this URL and variant takes the place of, so that it is
     * offered in any case? Where `admits` is set. */
    bool (*replaces)(struct source *source, struct span url, struct span variant);
    /*
     * A response that is not offered takes the place of what there is of this URL and variant, or
     * with `all` of the URL: nothing of that is used any more.
     */
    void (*outdate)(struct source *source, struct span url, struct span variant, bool all);
    /* The fetch of this URL and variant has failed, for which requests elsewhere may wait. NULL:
     * there are none. */
    void (*release)(struct source *source, struct span url, struct span variant);
    /*
     * The head of what is fetched for this URL and variant has come, with a body of `length` bytes;
     * UINT64_MAX: it will not be offered. If requests elsewhere cannot have it they wait for it no
     * longer. NULL: there are none.
     */
    void (*begins)(struct source *source, struct span url, struct span variant, uint64_t length);
    /* May it have this URL and variant, or for the empty one another variant? */
    bool (*may_have)(struct source *source, struct span url, struct span variant);

    /*
     * Purges. It is called before the purge of the cache, with `before` NULL, so that what is there
     * is not read again; and once more after it, with what the first call has returned, so that it
     * concerns what was offered meanwhile. The second call has it noted, but for a URL of which
     * there was certainly nothing at both.
     */
    struct source_marked (*mark)(struct source *source, const struct source_purge *purge,
                                 const struct source_marked *before);
    /* Is the mark that `waiter` names noted, as far as it can be, or lost? If not, it is notified
     * once when it is, with its notify set. A source may have it wait for later ones, too. */
    bool (*is_synced)(struct source *source, struct source_waiter *waiter);
    /* It waits no longer. False: it has been notified, or is being. */
    bool (*forget_waiter)(struct source *source, struct source_waiter *waiter);

    /* Other daemons have it as well. What is stored there under the terms of one of them is not
     * found under those of another, so a change of terms purges nothing. */
    bool is_shared;
};

/* First in the struct that the source keeps. */
struct source {
    const struct source_ops *ops;
};

#endif
