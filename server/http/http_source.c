#include "server/http/http_source.h"

#include <stdlib.h>

#include "server/http/http_connection.h"
#include "server/http/http_forwarded.h"
#include "server/http/http_service.h"
#include "server/http/http_worker.h"

bool
http_source_is_stated_by(void *context, const struct net_peer *peer)
{
    const struct http_service *http = context;

    return peer->has_uid ||
           networks_have_address(&service_config(http->service)->balancers,
                                 (const struct sockaddr *)&peer->address);
}

enum proxy_header_result
http_source_read(struct http_connection *c, struct span bytes, size_t *len)
{
    struct proxy_header header;
    struct client *client;
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
    };
    c->source->for_others = http_forwarded_is_trusted(c->worker->http, c->source);
    client = net_connection_find_client(&c->net, (const struct sockaddr *)&header.address);
    return net_connection_set_client(&c->net, client, !c->source->for_others) ? result
                                                                              : PROXY_HEADER_BAD;
}
