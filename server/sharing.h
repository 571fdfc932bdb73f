/*
 * May the answer of a fetch be given to more than the client that it was fetched for, and for how
 * long? Taken together from every response on the way to it: the strictest one counts, since a
 * redirect that sets a cookie, or leads to a URL with credentials, is for one client, wherever it
 * ends.
 *
 * Vary needs no more than http/freshness.h says about it: requests with headers of their own bypass
 * cache and flights, and all others look the same to an origin.
 *
 * Belongs to one fetch, on the fetcher's thread.
 */
#ifndef SUNPROXY_SERVER_SHARING_H
#define SUNPROXY_SERVER_SHARING_H

#include "cache/page.h"
#include "fetch/fetch.h"

struct sharing {
    bool any;               /* whatever is answered may be shared: --freshness off */
    const char *unshared;   /* why it may not be shared, as a phrase; NULL: no reason so far */
    int64_t fresh_until_us; /* of all responses the earliest end; monotonic clock */
};

/* Before the first response. */
void sharing_init(struct sharing *sharing, bool any);

/* Takes in a response, as its head comes. */
void sharing_take(struct sharing *sharing, const struct fetch_hop *hop);

/* Bounds the lifetime of the page that it came to, before it is shared; the last call. */
void sharing_limit(struct sharing *sharing, struct page *page);

#endif
