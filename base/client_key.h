/*
 * The identity of a client for limits and fair shares: the uid of an AF_UNIX peer, or the address
 * of a TCP peer cut to a prefix. An IPv4 address counts whole; an IPv6 address counts by its /64,
 * since one host owns all of it (RFC 6177, RFC 8981). An IPv4-mapped IPv6 address is the IPv4
 * address.
 *
 * A key is a value without pointers: it may be copied, and stays valid for ever.
 */
#ifndef SUNPROXY_BASE_CLIENT_KEY_H
#define SUNPROXY_BASE_CLIENT_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

enum client_kind {
    CLIENT_UNKNOWN, /* all peers that have neither address nor uid are one client */
    CLIENT_INET,
    CLIENT_INET6,
    CLIENT_UID,
};

/* No padding, so that keys can be compared and hashed as bytes. Zero is CLIENT_UNKNOWN. */
struct client_key {
    uint32_t kind;
    uint8_t bytes[16]; /* in network order; what the kind does not use is zero */
};

/* Bits of an address that identify a client. */
#define CLIENT_KEY_INET_BITS 32u
#define CLIENT_KEY_INET6_BITS 64u

/*
 * Of a TCP peer, by prefixes of `inet_bits` (at most 32) and `inet6_bits` (at most 128).
 * CLIENT_UNKNOWN for an address of another family.
 */
struct client_key client_key_of_prefix(const struct sockaddr *address, unsigned inet_bits,
                                       unsigned inet6_bits);

/* Of an AF_UNIX peer, by the uid that the kernel states (SO_PEERCRED). */
struct client_key client_key_of_uid(uid_t uid);

/* An order on keys: negative, zero or positive. */
int client_key_compare(const struct client_key *a, const struct client_key *b);

#endif
