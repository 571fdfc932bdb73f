/*
 * Addresses of servers as users write them.
 */
#ifndef SUNPROXY_CLIENT_ADDRESS_H
#define SUNPROXY_CLIENT_ADDRESS_H

#include <stdbool.h>

struct server_address {
    const char *path; /* of an AF_UNIX socket, in the text that was parsed; NULL: it is TCP */
    char host[256];   /* a name or an address, that of IPv6 without brackets */
    unsigned port;
};

/* Parses "unix:PATH", "HOST:PORT" or "[ADDRESS]:PORT". False if it is none of them. */
bool server_address_parse(struct server_address *address, const char *text);

#endif
