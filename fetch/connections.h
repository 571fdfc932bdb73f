/*
 * The connections of a fetcher, which are divided among pools. libcurl searches all connections of
 * a cache to an origin for one to use again, and all of the cache at the end of a transfer, so a
 * miss would cost more with each connection. A pool is a cache of its own (CURL_LOCK_DATA_CONNECT)
 * of few connections.
 *
 * libcurl finds an idle connection only in the pool of its transfer. So a transfer gets a pool with
 * an idle connection to its origin, which is claimed for it until it has got a connection; libcurl
 * may give it another one of that pool, and then the claims are exchanged. Transfers that may share
 * a connection (HTTP/2) get the pool of one that can be shared.
 *
 * Before a kept connection is used again it is seen whether bytes have come that belong to no
 * request (RFC 9112 section 9.2). libcurl before 8.0 does not look, and what an origin sent unasked
 * would pass for the answer to the next request, and so on with all after it.
 *
 * One thread. libcurl calls connections_on_close() when it closes a socket, up to
 * connections_free().
 */
#ifndef SUNPROXY_FETCH_CONNECTIONS_H
#define SUNPROXY_FETCH_CONNECTIONS_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/tree.h"
#include "fetch/url.h"

#define POOL_CONNECTIONS 64u /* the most in a pool */

/* What a pool has is closed when no transfer has used it for this time. */
#define POOL_UNUSED_US ((int64_t)30 * 1000000)

/* From one look of connections_close_unused() to the next. */
#define POOL_LOOK_US ((int64_t)500000)

struct pool;
struct pool_origin;
struct pool_lease;

struct connection {
    struct pool *pool;
    struct pool_origin *origin;
    int fd;
    union address local, peer; /* once a transfer has it */
    enum {
        CONNECTION_OPENING, /* not given to a transfer yet */
        CONNECTION_USED,
        CONNECTION_IDLE,
        CONNECTION_CLAIMED, /* idle, and expected to be used by the claimer */
    } state;
    bool watched;   /* epoll has the socket (poller.h) */
    bool shareable; /* it speaks HTTP/2; known once a transfer has it */
    bool kept;      /* idle or claimed, or will be when its transfer ends: counted by its origin */
    const struct pool_lease *opener; /* of CONNECTION_OPENING; it may have ended */
    struct pool_lease *claimer;      /* of CONNECTION_CLAIMED, else NULL */
    LIST_HEAD(, pool_lease) users;   /* several over HTTP/2 */
    LIST_ENTRY(connection) link;     /* of the origin's idle ones */
    LIST_ENTRY(connection) sibling;  /* of the pool's */
};

/* What a transfer has of the connections; a part of it. Zero: nothing. */
struct pool_lease {
    struct pool *pool;
    struct pool_origin *origin;
    struct connection *claimed;
    struct connection *used;
    LIST_ENTRY(pool_lease) link; /* of the users of that connection */
};

RB_HEAD(pool_origin_tree, pool_origin);

struct connections {
    struct pool **pools; /* owned */
    unsigned count;
    unsigned most;   /* pools */
    unsigned size;   /* connections in each */
    unsigned kept;   /* connections that an origin may have idle */
    unsigned cursor; /* where the next search begins */
    unsigned open;   /* pools that may have connections */
    int64_t look_us; /* when connections_close_unused() looks again */
    struct pool_origin_tree origins;
    struct connection **by_fd; /* owned: the array */
    size_t fd_count;           /* of its places */
};

/*
 * For `most` connections (1 and more) in all, and fewer than one in 32 above that where they cannot
 * be divided evenly, of which an origin may have `kept` idle. The pools are made by need.
 */
void connections_init(struct connections *connections, unsigned most, unsigned kept);

/* Other bounds, of those that are made from now on; connections_set_bounds() follows. */
void connections_set_most(struct connections *connections, unsigned most, unsigned kept);

/* Has the multi handle bound the connections of each pool. */
CURLMcode connections_set_bounds(const struct connections *connections, CURLM *multi);

/*
 * Closes the connections of pools that no transfer uses: after POOL_UNUSED_US, or at the second
 * look if their origins have closed all of them, which libcurl finds out only when a transfer
 * begins that has the same pool. To be called often, but not by a call-back of libcurl, while
 * connections->open is not 0; `now_us` is monotonic. It looks every POOL_LOOK_US.
 */
void connections_close_unused(struct connections *connections, int64_t now_us);

/* Closes them all. After curl_multi_cleanup(), with all handles freed and all leases ended. */
void connections_free(struct connections *connections);

/* What a transfer wants of its pool. */
enum pool_wish {
    POOL_NEW,    /* a connection that has not been used */
    POOL_IDLE,   /* an idle connection, not of HTTP/2, rather than a new one */
    POOL_SHARED, /* one that others use over HTTP/2 rather than an idle or a new one */
};

/*
 * Chooses the pool of a transfer to an origin ("https://example.com:443"; copied): lease->pool from
 * then on, for at most as many transfers as there may be connections in all pools. False without
 * memory; the lease is then as before.
 */
bool connections_lease(struct connections *connections, struct pool_lease *lease,
                       const char *origin, enum pool_wish wish);

/* For CURLOPT_SHARE. */
CURLSH *pool_share(const struct pool *pool);

/* The transfer has ended, and libcurl has kept its connection or closed it. Harmless on a zeroed
 * lease, which it becomes. */
void connections_end_lease(struct connections *connections, struct pool_lease *lease);

/*
 * A socket that the transfer of a lease is about to connect joins its pool, in place of an earlier
 * one with this descriptor: libcurl 7.88 closes a socket that has not been connected without
 * telling. NULL without memory.
 */
struct connection *connections_add(struct connections *connections, const struct pool_lease *opener,
                                   int fd);

/* The connection with this descriptor, or NULL. */
struct connection *connections_find(const struct connections *connections, int fd);

/* libcurl has given the connection, which may be shared (HTTP/2), to the lease's transfer. */
void connections_use(struct connection *connection, struct pool_lease *lease, bool shared);

/* Forgets and closes, for CURLOPT_CLOSESOCKETFUNCTION: the result of close(2). */
int connections_on_close(struct connections *connections, curl_socket_t fd);

/*
 * Asked in CURLOPT_PREREQFUNCTION, with its arguments: may the connection that `easy` has got serve
 * its request? A new one may. A kept one may if no byte waits in it and it was not closed. HTTP/2
 * attributes answers to requests itself. If it may, the lease of the transfer uses it from then on.
 */
bool connections_may_serve(CURL *easy, struct pool_lease *lease, const char *to, const char *from,
                           int to_port, int from_port);

/*
 * The answer of the transfer is complete: may its connection be kept? If it may, it counts to those
 * that its origin has idle, from now on. One that is shared may always be kept.
 */
bool connections_may_keep(const struct connections *connections, const struct pool_lease *lease);

/* Was HTTP/2 negotiated (ALPN, RFC 9113 section 3.2) for the connection that `easy` has got? */
bool connections_speak_http_2(CURL *easy);

#endif
