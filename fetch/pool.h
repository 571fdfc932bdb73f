/*
 * The connections of a fetcher are divided among pools. libcurl searches all connections of a cache
 * to an origin for one to use again, and all of the cache at the end of a transfer, so a miss would
 * cost more with each connection. A pool is a cache of its own (CURL_LOCK_DATA_CONNECT) of few
 * connections.
 *
 * libcurl finds an idle connection only in the pool of its transfer. So a transfer gets a pool with
 * an idle connection to its origin, which is claimed for it until it has got a connection; libcurl
 * may give it another one of that pool, and then the claims are exchanged. Transfers that may share
 * a connection (HTTP/2) get the pool of one that can be shared.
 *
 * One thread.
 */
#ifndef SUNPROXY_FETCH_POOL_H
#define SUNPROXY_FETCH_POOL_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/tree.h"

#define POOL_CONNECTIONS 64u /* the most in a pool */

/* What a pool has is closed when no transfer has used it for this time. */
#define POOL_UNUSED_US ((int64_t)30 * 1000000)

#define POOL_LOOK_US ((int64_t)500000) /* from one look of pools_close_unused() to the next */

struct pool;
struct pool_origin;
struct pool_lease;

/* What the pools know of a connection; a part of it. */
struct pool_member {
    struct pool *pool;
    struct pool_origin *origin;
    enum {
        MEMBER_OPENING, /* not given to a transfer yet */
        MEMBER_USED,
        MEMBER_IDLE,
        MEMBER_CLAIMED /* idle, and expected to be used by the claimer */
    } state;
    bool shareable; /* it speaks HTTP/2; known once a transfer has it */
    bool kept;      /* idle or claimed, or will be when its transfer ends: counted by its origin */
    struct pool_lease *claimer;
    LIST_HEAD(, pool_lease) users;   /* several over HTTP/2 */
    LIST_ENTRY(pool_member) link;    /* of the origin's idle ones */
    LIST_ENTRY(pool_member) sibling; /* of the pool's */
};

/* What a transfer has of the pools; a part of it. Zero: nothing. */
struct pool_lease {
    struct pool *pool;
    struct pool_origin *origin;
    struct pool_member *claimed;
    struct pool_member *used;
    LIST_ENTRY(pool_lease) link; /* of the users of that member */
};

RB_HEAD(pool_origin_tree, pool_origin);

struct pools {
    struct pool **list; /* owned */
    unsigned count;
    unsigned most;   /* pools */
    unsigned size;   /* connections in each */
    unsigned kept;   /* connections that an origin may have idle */
    unsigned cursor; /* where the next search begins */
    unsigned open;   /* pools that may have connections */
    int64_t look_us; /* when pools_close_unused() looks again */
    struct pool_origin_tree origins;
};

/*
 * Pools for `connections` connections (1 and more) in all, and fewer than one in 32 above that
 * where they cannot be divided evenly, of which an origin may have `kept` idle. They are made by
 * need.
 */
void pools_init(struct pools *pools, unsigned connections, unsigned kept);

/* Has the multi handle bound the connections of each pool. */
CURLMcode pools_set_bounds(const struct pools *pools, CURLM *multi);

/*
 * Closes the connections of pools that no transfer uses: after POOL_UNUSED_US, or at the second
 * look if their origins have closed all of them, which libcurl finds out only when a transfer
 * begins that has the same pool. To be called often, but not by a call-back of libcurl, while
 * pools->open is not 0; `now_us` is monotonic. It looks every POOL_LOOK_US.
 */
void pools_close_unused(struct pools *pools, int64_t now_us,
                        bool (*is_open)(struct pool_member *member));

/*
 * Closes all connections, through their CURLOPT_CLOSESOCKETFUNCTION. All handles of libcurl have
 * been freed, all leases ended.
 */
void pools_close(struct pools *pools);

/* After pools_close(), and after all members were removed. */
void pools_free(struct pools *pools);

/* What a transfer wants of its pool. */
enum pool_wish {
    POOL_NEW,    /* a connection that has not been used */
    POOL_IDLE,   /* an idle connection, not of HTTP/2, rather than a new one */
    POOL_SHARED, /* one that others use over HTTP/2 rather than an idle or a new one */
};

/*
 * Chooses the pool of a transfer to an origin ("https://example.com:443"; copied): lease->pool from
 * then on, for at most as many transfers as all pools may have connections. False without memory;
 * the lease is then as before.
 */
bool pool_choose(struct pools *pools, struct pool_lease *lease, const char *origin,
                 enum pool_wish wish);

/* For CURLOPT_SHARE. */
CURLSH *pool_share(const struct pool *pool);

/* The transfer has ended, and libcurl has kept its connection or closed it. Harmless on a zeroed
 * lease, which it becomes. */
void pool_end_lease(struct pools *pools, struct pool_lease *lease);

/* A connection that is opened for a lease joins its pool. */
void pool_add_member(struct pool_member *member, const struct pool_lease *lease);

/* libcurl has given the connection, which may be shared (HTTP/2), to the lease's transfer. */
void pool_take_member(struct pool_member *member, struct pool_lease *lease, bool shared);

/*
 * The answer of the transfer is complete: may its connection be kept? If it may, it counts to those
 * that its origin has idle, from now on. One that is shared may always be kept.
 */
bool pool_keep_member(const struct pools *pools, const struct pool_lease *lease);

/* It is closed. */
void pool_remove_member(struct pools *pools, struct pool_member *member);

#endif
