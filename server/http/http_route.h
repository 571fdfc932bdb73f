/*
 * Where requests are routed, and which clients may send them.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_ROUTE_H
#define SUNPROXY_SERVER_HTTP_HTTP_ROUTE_H

#include "base/span.h"

struct http_exchange;
struct http_origin;

struct http_route {
    struct http_origin *origin; /* NULL: forward */
    struct span url;            /* under which the response is cached, in the worker's memory */
};

/*
 * Where a request leads. 0, or the status of a refusal with a static sentence part in *reason.
 */
unsigned http_route_find(struct http_exchange *x, struct http_route *route, const char **reason);

/* Writes the URL to which a request leads into the worker's memory again. */
struct span http_route_url_again(struct http_exchange *x);

#endif
