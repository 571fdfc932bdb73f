/* The client of a connection as it is named to origins. */
#include <arpa/inet.h>

#include <sys/socket.h>

#include "server/http_front.h"

struct span
http_client_name(struct http_connection *c)
{
    const struct sockaddr_storage *address = &http_peer(c)->address;
    const struct in6_addr *inet6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    if (c->client[0])
        return span_str(c->client);
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, c->client,
                  sizeof(c->client));
    else if (address->ss_family != AF_INET6)
        memcpy(c->client, "unix", sizeof("unix"));
    else if (IN6_IS_ADDR_V4MAPPED(inet6))
        inet_ntop(AF_INET, &inet6->s6_addr[12], c->client, sizeof(c->client));
    else
        inet_ntop(AF_INET6, inet6, c->client, sizeof(c->client));
    return span_str(c->client);
}
