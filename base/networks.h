/*
 * A list of networks in CIDR notation (RFC 4632), IPv4 and IPv6, and whether an address is in one
 * of them. Safe on any thread while it does not change.
 */
#ifndef SUNPROXY_BASE_NETWORKS_H
#define SUNPROXY_BASE_NETWORKS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct network {
    int family; /* AF_INET or AF_INET6 */
    unsigned prefix;
    unsigned char bytes[16]; /* of IPv4 the first four */
};

/* All zero: no network. */
struct networks {
    struct network *items; /* owned */
    size_t count;
    size_t capacity;
};

void networks_free(struct networks *networks);

/*
 * Adds "127.0.0.0/8", "::1", "fd00::/8"; a bare address is a network of one. False, with a sentence
 * in `why`, if the text is no network, has bits set past its prefix, or there is no memory.
 */
bool networks_add(struct networks *networks, const char *cidr, char *why, size_t why_size);

/* `bytes` of an address of the family: 4 or 16. */
bool networks_have(const struct networks *networks, int family, const unsigned char *bytes);

/* The same for an address of a socket. An IPv4 address that is mapped into IPv6 (RFC 4291 section
 * 2.5.5.2) counts as IPv4. False for any other family. */
bool networks_have_address(const struct networks *networks, const struct sockaddr *address);

/* Do two addresses have the same leading bits? */
bool networks_same_prefix(const unsigned char *a, const unsigned char *b, unsigned prefix);

#endif
