/*
 * Client, scheme and host of a request, as a TLS terminator or another proxy states them.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_FORWARDED_H
#define SUNPROXY_SERVER_HTTP_HTTP_FORWARDED_H

#include <stdbool.h>

struct http_exchange;
struct net_peer;

/* Is this peer one that may state the client (--trust-forwarded)? The context is the http_service.
 */
bool http_forwarded_is_trusted(void *context, const struct net_peer *sender);

/* Is the sender? */
bool http_forwarded_are_read(const struct http_exchange *x);

/*
 * Takes client, scheme and host from the request's fields, if the sender may state them, and the
 * scheme from the header of the PROXY protocol. 0, or the status of a refusal with a static
 * sentence part in *reason.
 */
unsigned http_forwarded_take(struct http_exchange *x, const char **reason);

#endif
