/*
 * The front of HTTP: exchanges that are served by the proxy, from their start to their failure.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_SERVE_H
#define SUNPROXY_SERVER_HTTP_HTTP_SERVE_H

#include "base/span.h"
#include "proxy/proxy.h"

struct http_exchange;

/* Starts the exchange. True: the last call has come. */
bool http_exchange_start(struct http_exchange *x, struct span url);

/* The connection has become a tunnel, by a response with this status that the tunnel sends. The
 * exchange is not the caller's any more. */
void http_exchange_switch(struct http_exchange *x, unsigned status);

/* Begins the exchange of a request that was to become a tunnel, and does not. */
void http_exchange_serve(struct http_exchange *x);

/* Sends a page about a failure; returns its status. The exchange is not the caller's any more. */
unsigned http_exchange_send_failure(struct http_exchange *x, enum failure why,
                                    struct span sentence);

#endif
