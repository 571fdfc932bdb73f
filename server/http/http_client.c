#include "server/http/http_client.h"

#include "server/http/http_exchange.h"
#include "server/http/http_peer.h"
#include "server/http/http_stream.h"
#include "server/http/http_user.h"

struct span
http_client_name(struct http_exchange *x, char text[INET6_ADDRSTRLEN])
{
    return x->stated ? http_peer_name(x->stated, text) : http_stream_sender_name(&x->stream);
}

struct client *
http_client(struct http_exchange *x)
{
    if (x->user)
        return x->user->client;
    if (x->peer && !x->client)
        x->client = http_peer_find_client(x);
    if (x->client)
        return x->client;
    if (!x->stated)
        return http_stream_client(&x->stream);
    x->client = http_stream_find_client(&x->stream, &x->stated->address);
    return x->client;
}

bool
http_client_is_bounded(const struct http_exchange *x)
{
    return !x->peer && (x->user || x->stated || http_stream_is_bounded(&x->stream)) &&
           !x->has_token;
}
