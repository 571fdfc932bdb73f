/* The client for which a load balancer has connected, as its header of the PROXY protocol says. */
#include <stdlib.h>

#include "server/http/http_front.h"

bool
http_source_is_stated_by(void *context, const struct net_peer *peer)
{
    const struct http_service *http = context;

    return peer->has_uid ||
           networks_have_address(&http->balancers, (const struct sockaddr *)&peer->address);
}

enum proxy_header_result
http_source_read(struct http_connection *c, struct span bytes, size_t *len)
{
    const struct net_limits *limits = c->net.set->limits;
    struct proxy_header header;
    enum proxy_header_result result =
        c->net.peer.for_others ? proxy_header_read(bytes, &header) : PROXY_HEADER_BAD;

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
    c->source->for_others = http_forwarded_is_trusted(c->worker->http, c->source);
    if (!c->source->for_others && !net_connection_set_client(&c->net, &c->source->client))
        return PROXY_HEADER_BAD;
    return result;
}
