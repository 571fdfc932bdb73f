/*
 * Addresses that the daemon listens on: their texts, and sockets at them. Numeric addresses only,
 * since a name may resolve to another machine's address; "localhost" is the loopback (RFC 6761
 * section 6.3).
 *
 * One thread, before the workers start.
 */
#ifndef SUNPROXY_SERVER_LISTEN_LISTEN_ADDRESS_H
#define SUNPROXY_SERVER_LISTEN_LISTEN_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/buf.h"

/* An IPv4 or IPv6 address, with port 0. */
bool listen_address_parse(const char *text, struct sockaddr_storage *address, socklen_t *len);

uint16_t listen_address_port(const struct sockaddr_storage *address);
void listen_address_set_port(struct sockaddr_storage *address, uint16_t port);

/* Writes an address without its port, nothing for AF_UNSPEC; returns `text`. */
const char *listen_address_text(const struct sockaddr_storage *address,
                                char text[INET6_ADDRSTRLEN]);

/*
 * Notes an address that is listened on with those of its family: the first one, AF_UNSPEC before
 * it, becomes the wildcard address at the second.
 */
void listen_address_note(struct sockaddr_storage *ipv4, struct sockaddr_storage *ipv6,
                         const struct sockaddr_storage *address);

/* A listening TCP socket, that of an IPv6 address for IPv6 alone; -1 with errno. */
int listen_address_open(const struct sockaddr *address, socklen_t len);

/* Binds such a socket and closes it. 0 or an errno. */
int listen_address_try(const struct sockaddr *address, socklen_t len);

/* Does the errno of listen_address_open() say that the machine lacks the family? False if the
 * address is wrong or in use. */
bool listen_address_family_is_missing(int error);

/* The port of a socket; 0: it has none. */
uint16_t listen_address_port_of(int fd);

/* Writes the name of a listening socket as --http has it; returns `name`. */
#define LISTEN_NAME 128
const char *listen_describe(int fd, char *name, size_t size);

/*
 * An address of HTTP, the value of `option`: "ADDRESS:PORT", with an IPv6 address in brackets;
 * "localhost:PORT", both addresses of the loopback; ":PORT" or "*:PORT", all addresses of both
 * families; or "unix:PATH". False with a sentence in `why` for anything else.
 */
#define LISTEN_HTTP_ADDRESSES 2
struct listen_http {
    struct sockaddr_storage addresses[LISTEN_HTTP_ADDRESSES]; /* the second one of IPv6 */
    socklen_t lens[LISTEN_HTTP_ADDRESSES];
    unsigned count;   /* 0: `path` */
    const char *path; /* in the text; NULL: TCP */
};
bool listen_http_parse(const char *option, const char *text, struct listen_http *http,
                       struct buf *why);

#endif
