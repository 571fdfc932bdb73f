/*
 * The client and the sender of a request as origins are told, and the client whose shares and rates
 * it takes.
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_SERVER_HTTP_HTTP_CLIENT_H
#define SUNPROXY_SERVER_HTTP_HTTP_CLIENT_H

#include <netinet/in.h>

#include "server/http/http_exchange.h"

/* The client, which is not the sender if that is a trusted proxy. */
static inline const struct net_peer *
http_peer(const struct http_exchange *x)
{
    return x->stated ? x->stated : http_stream_sender(&x->stream);
}

/* Its address as X-Forwarded-For has it; "unix" over AF_UNIX. Written to `text` if it is not that
 * of the sender. */
struct span http_client_name(struct http_exchange *x, char text[INET6_ADDRSTRLEN]);

/* That of the user, if there is one; as long as the exchange. NULL without memory. */
struct client *http_client(struct http_exchange *x);

/* Does its rate of fetches bound the request, which has no token yet? */
bool http_client_is_bounded(const struct http_exchange *x);

#endif
