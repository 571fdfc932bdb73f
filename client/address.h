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

/* Of the server's HTTP front. */
struct http_address {
    const char *socket; /* path of an AF_UNIX socket, in the text that was parsed; NULL: TCP */
    char url[320];      /* where libcurl connects to: "http://HOST:PORT/" */
    char name[320];     /* for messages */
};

/* The same for an HTTP front, also as "http://HOST:PORT/". False after a complaint. */
bool http_address_parse(struct http_address *address, const char *text);

#endif
