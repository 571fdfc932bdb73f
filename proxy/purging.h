/*
 * Purging, in the cache and in the store behind it (store/store.h): what is on disk goes with what
 * is in memory. Every function is safe on any thread, and waits for nothing.
 */
#ifndef SUNPROXY_PROXY_PURGING_H
#define SUNPROXY_PROXY_PURGING_H

#include "proxy/proxy.h"

/* What is purged: as cache_purge_part() has it. */
struct purging {
    enum cache_by by;
    struct span name;
    const struct cache_scope
        *scope;         /* on disk a prefix concerns all its URLs whatever this says, */
    struct span origin; /* and a tag those that begin so */
    struct buf *tags;   /* of what is in memory */
    struct cache_change *change;
};

/* Removes; returns the number of objects that were removed from memory, or of a URL from disk if
 * those are more. */
uint64_t purging_remove(struct proxy *proxy, const struct purging *purging);
uint64_t purging_remove_all(struct proxy *proxy);

/* Has them expire, without a scope; returns the number of those in memory that have. */
uint64_t purging_expire(struct proxy *proxy, const struct purging *purging);

#endif
