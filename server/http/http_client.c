/* The client and the sender of a request as origins are told. */
#include <arpa/inet.h>

#include <sys/socket.h>

#include "server/http/http_front.h"

static struct span
write_name(const struct net_peer *peer, char text[INET6_ADDRSTRLEN])
{
    const struct sockaddr_storage *address = &peer->address;
    const struct in6_addr *inet6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
                  INET6_ADDRSTRLEN);
    else if (address->ss_family != AF_INET6)
        memcpy(text, "unix", sizeof("unix"));
    else if (IN6_IS_ADDR_V4MAPPED(inet6))
        inet_ntop(AF_INET, &inet6->s6_addr[12], text, INET6_ADDRSTRLEN);
    else
        inet_ntop(AF_INET6, inet6, text, INET6_ADDRSTRLEN);
    return span_str(text);
}

struct span
http_sender_name(struct http_connection *c)
{
    return c->sender[0] ? span_str(c->sender) : write_name(http_sender(c), c->sender);
}

struct span
http_client_name(struct http_exchange *x, char text[INET6_ADDRSTRLEN])
{
    return x->stated ? write_name(x->stated, text) : http_sender_name(x->connection);
}

struct client *
http_client(struct http_exchange *x)
{
    if (!x->stated)
        return x->connection->net.client;
    if (!x->client)
        x->client = net_connection_find_client(&x->connection->net,
                                               (const struct sockaddr *)&x->stated->address);
    return x->client;
}

bool
http_client_is_bounded(const struct http_exchange *x)
{
    return (x->stated || x->connection->net.bounded) && !x->has_token;
}
