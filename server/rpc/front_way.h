/*
 * The way of an RPC request over its redirects: the URLs at its ends, what is sent on, which URLs
 * were fetched, and the time of their fetches. A request without a redirect has none.
 *
 * Everything here is for the request's worker.
 */
#ifndef SUNPROXY_SERVER_RPC_FRONT_WAY_H
#define SUNPROXY_SERVER_RPC_FRONT_WAY_H

#include "base/buf.h"
#include "proxy.h"
#include "server/rpc/front.h"

/* Redirects that --max-redirects may permit. */
#define FRONT_MAX_REDIRECTS 100u

/* Bytes of the fields of a request, the client's own and ours. */
#define FRONT_FIELDS (2u * PROXY_MAX_HEADERS)

struct front_way {
    struct buf first;  /* the client's URL */
    struct buf url;    /* where the last redirect leads; empty before that */
    struct buf fields; /* the client's own, as they are sent there */
    uint64_t visited[FRONT_MAX_REDIRECTS + 1]; /* hashes of URLs that were fetched, one a redirect;
                                                  0 of what another request may have fetched from
                                                  anywhere */
    unsigned redirects, restarts;
    int64_t fetch_us; /* of the exchanges that have ended; -1: none of them led to a fetch */
    char sentence[FAILURE_SENTENCE];
};

/* Begins front->way at the URL of the exchange; it is charged. False without memory: what was made
 * is to be freed. */
bool front_way_begin(struct front_exchange *front);

/* Adds the time of the fetch that the exchange has caused, which goes on if it was left. */
void front_way_count_fetch(struct front_exchange *front);

/* Frees front->way, if there is one. */
void front_way_free(struct front_exchange *front);

/* The URL of the client's request, and the one that its redirects have led to. From the head on;
 * valid as long as the exchange and the way. */
struct span front_url(const struct front_exchange *front);
struct span front_final_url(const struct exchange *exchange);

/* exchange_fetch_us() of all exchanges of the request. */
int64_t front_fetch_us(const struct front_exchange *front, int64_t since_us);

#endif
