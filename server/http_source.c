/* The client for which a load balancer has connected, as its header of the PROXY protocol says. */
#include <stdlib.h>

#include "server/http_front.h"

/* Over AF_UNIX the permissions of the socket decide. */
static bool
may_send_header(const struct http_connection *c)
{
    const struct net_peer *peer = &c->net.peer;

    return peer->has_uid || networks_have_address(&c->worker->http->balancers,
                                                  (const struct sockaddr *)&peer->address);
}

enum proxy_header_result
http_source_read(struct http_connection *c, struct span bytes, size_t *len)
{
    const struct net_limits *limits = c->net.set->limits;
    struct proxy_header header;
    enum proxy_header_result result =
        may_send_header(c) ? proxy_header_read(bytes, &header) : PROXY_HEADER_BAD;

    if (result != PROXY_HEADER_COMPLETE)
        return result;
    *len = header.len;
    c->tls = header.tls;
    if (header.local)
        return result;
    c->source = malloc(sizeof(*c->source));
    if (!c->source)
        return PROXY_HEADER_BAD;
    *c->source = (struct net_peer){
        .address = header.address,
        .address_len = header.address_len,
        .client = client_key_of_prefix((const struct sockaddr *)&header.address,
                                       limits->inet_prefix, limits->inet6_prefix),
    };
    return result;
}
