/*
 * Purging, in the cache and in the sources behind it (store/source.h): what is on disk goes with
 * what is in memory. Every function is safe on any thread, and waits for nothing.
 */
#ifndef SUNPROXY_PROXY_PURGING_H
#define SUNPROXY_PROXY_PURGING_H

#include "proxy/proxy.h"
#include "store/source.h"

/* What is purged: as struct cache_purge has it. */
struct purging {
    enum cache_by by;
    struct span name;
    enum cache_fate fate; /* CACHE_REMOVED or CACHE_EXPIRED */
    const struct cache_scope
        *scope;         /* in sources a prefix concerns all its URLs whatever this says, */
    struct span origin; /* and a tag those that begin so */
    struct buf *tags;   /* of what is in memory */
    struct cache_change *change;
    const struct source *told_by; /* the source that has it already; NULL: none */
    bool local; /* terms of this process have changed: a shared source has what is stored under
                   others elsewhere */
    struct purging_marks *marks; /* get those that are left; NULL: none waits for them */
};

/* The latest marks of some purges that sources have to note, by source; 0: there is none. */
struct purging_marks {
    uint64_t of[PROXY_SOURCES];
};

/* All up to now. */
struct purging_marks purging_all_marks(void);

/* Returns the number of objects that this has removed from memory, or that it has made expire
 * there; or of a URL in a source, if those are more. */
uint64_t purging_apply(struct proxy *proxy, const struct purging *purging);
uint64_t purging_remove_all(struct proxy *proxy, struct purging_marks *marks);

/* What an administrator is told of a purge that is untold. */
#define PURGED_HERE                                                                                \
    "purged at this daemon alone: no server of the shared tier can be reached, and other daemons " \
    "learn of it when one can, while this daemon runs"

/* What an administrator is told of a purge that is lost. */
#define PURGED_FOR_NOW                                                                             \
    "what was purged may not last: the proxy is stopping, or the disk of its store does not answer"

/* Waits until all sources have noted what was purged. */
struct purging_wait {
    void (*notify)(struct purging_wait *wait); /* set by the caller. [any thread; must not block] */
    struct purging_marks marks;                /* likewise: those that it waits for */
    struct purging_noted {
        struct source_waiter base; /* first */
        struct purging_wait *wait;
    } noted[PROXY_SOURCES];
    _Atomic unsigned pending; /* sources, and 1 while they are being asked */
    _Atomic bool lost;        /* one does not note it, since the process ends, or its disk does not
                                 answer: no answer may say so */
    _Atomic bool untold; /* it holds in this process alone, as long as no server of a shared source
                            can be reached */
};

/* Have they noted its marks, or lost them? If not, the waiter is notified once when they have. */
bool purging_is_noted(const struct proxy *proxy, struct purging_wait *wait);

/* It waits no longer. False: it has been notified, or is being. */
bool purging_forget(const struct proxy *proxy, struct purging_wait *wait);

#endif
