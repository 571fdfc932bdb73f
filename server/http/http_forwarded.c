#include "server/http/http_forwarded.h"

#include <stdlib.h>

#include "server/http/http_exchange.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"

static bool
is_trusted(const struct config *config, const struct net_peer *sender)
{
    if (!config->forwarded_field)
        return false;
    return sender->has_uid
               ? config->trusts_local
               : networks_have_address(&config->trusted, (const struct sockaddr *)&sender->address);
}

bool
http_forwarded_is_trusted(void *context, const struct net_peer *sender)
{
    const struct http_service *http = context;

    return is_trusted(service_config(http->service), sender);
}

/* By the request's configuration, and by that with which its connection has begun: whether a
 * connection is its client's is known then. */
bool
http_forwarded_are_read(const struct http_exchange *x)
{
    const struct net_peer *sender = http_stream_sender(&x->stream);

    return sender->for_others && is_trusted(x->config, sender);
}

static bool
set_stated(struct http_exchange *x, const struct sockaddr_storage *address)
{
    x->stated = malloc(sizeof(*x->stated));
    if (!x->stated)
        return false;
    *x->stated = (struct net_peer){
        .address = *address,
        .address_len = address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                     : sizeof(struct sockaddr_in6),
    };
    return true;
}

unsigned
http_forwarded_take(struct http_exchange *x, const char **reason)
{
    const struct config *config = x->config;
    struct http_request *request = &x->request;
    struct http_way forwarded;
    /* A target in absolute form states scheme and host itself. */
    bool for_server = request->form == HTTP_ORIGIN_FORM || request->form == HTTP_ASTERISK_FORM;

    if (for_server && http_stream_is_tls(&x->stream))
        request->https = true;
    if (!http_forwarded_are_read(x))
        return 0;
    if (!http_forwarded_read(request->fields, config->forwarded_field, &config->trusted,
                             &forwarded)) {
        *reason = "what a proxy in front states in the field of --forwarded-field is malformed";
        return 400;
    }
    if (forwarded.address.ss_family != AF_UNSPEC && !set_stated(x, &forwarded.address)) {
        *reason = "the proxy cannot take another request of this client; try again";
        return 503;
    }
    if (for_server && forwarded.scheme != HTTP_SCHEME_NOT_STATED)
        request->https = forwarded.scheme == HTTP_SCHEME_HTTPS;
    if (for_server && forwarded.host.host.len) {
        request->host = forwarded.host.host;
        request->port = forwarded.host.port;
    }
    return 0;
}
