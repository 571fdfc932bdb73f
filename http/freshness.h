/*
 * May an answer be given to more than the client that asked, and for how long? The rules of a
 * shared cache (RFC 9111 sections 3 and 4.2) that cannot validate yet: what may only be used after
 * a validation may not be used at all. Pure arithmetic. Safe on any thread.
 */
#ifndef SUNPROXY_HTTP_FRESHNESS_H
#define SUNPROXY_HTTP_FRESHNESS_H

#include <stdint.h>

#include "base/span.h"

enum http_sharing {
    HTTP_SHARED = 0,
    HTTP_MALFORMED, /* the head is not what it should be, so that what it forbids is unknown */
    HTTP_NO_STORE,
    HTTP_PRIVATE,
    HTTP_SET_COOKIE,
    HTTP_VARY_ANY,
    HTTP_NO_CACHE,
    HTTP_STALE, /* its freshness lifetime has ended before it came */
};

#define HTTP_FRESH_UNSTATED INT64_MAX

/* When an answer came. */
struct http_arrival {
    int64_t wall_s;    /* the wall clock as its head was complete, seconds since 1970 */
    int64_t waited_us; /* since the request for it was sent */
};

/*
 * Evaluates a response by its field lines as the origin sent them, hop-by-hop ones included,
 * whatever its status. If it is HTTP_SHARED, *fresh_us is how long from its arrival it stays fresh,
 * more than 0, or HTTP_FRESH_UNSTATED if it says nothing about that: no heuristic is applied.
 */
enum http_sharing http_response_sharing(struct span lines, const struct http_arrival *arrival,
                                        int64_t *fresh_us);

/* Why an answer is not shared, as a phrase for people; "shared" for HTTP_SHARED. */
const char *http_sharing_text(enum http_sharing sharing);

#endif
