/*
 * Bounds on what peers may ask of a server, whatever its protocols. NET_LIMITS_DEFAULT has the
 * values that fit a proxy's requests.
 */
#ifndef SUNPROXY_NET_LIMITS_H
#define SUNPROXY_NET_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clients.h"
#include "base/memory_account.h"
#include "net/peer.h"

struct net_limits {
    uint32_t max_requests;      /* in work per connection; over it the connection is not read */
    uint32_t max_queued_bytes;  /* of output per connection not yet written; likewise */
    uint32_t max_connections;   /* in all; over it a new one is closed at once */
    int64_t idle_timeout_us;    /* without a byte either way and nothing in work; 0: none */
    int64_t message_timeout_us; /* from a message's first byte to its last; 0: none */
    int64_t quiet_us; /* with nothing in work, once the server leaves (net_server_leave()) */

    /* Privileged peers, determined when they connect, on worker 0; NULL: there are none. They may
       have `reserved` connections beyond max_connections, the last `reserved` descriptors are
       theirs alone, and what bounds a client does not bound them. */
    bool (*is_privileged)(void *context, const struct net_peer *peer);
    void *context; /* of is_privileged */
    uint32_t reserved;

    /* Of one client (base/clients.h). */
    uint32_t max_connections_per_client; /* 0: not bounded */
    uint8_t inet_prefix;                 /* bits of an IPv4 address that make a client, */
    uint8_t inet6_prefix;                /* and of an IPv6 address */
    struct client_rates rates;           /* over them the client's connections are not read */

    /* Charged for input that was read and must wait (MEMORY_REQUESTS); not owned; NULL: none. Full,
       it lets a connection have one output at a time that is not written. */
    struct memory_account *memory;
};

#define NET_LIMITS_DEFAULT                                            \
    ((struct net_limits){.max_requests = 256,                         \
                         .max_queued_bytes = 32u << 20,               \
                         .max_connections = 16384,                    \
                         .idle_timeout_us = 300 * (int64_t)1000000,   \
                         .message_timeout_us = 60 * (int64_t)1000000, \
                         .quiet_us = 5 * (int64_t)1000000,            \
                         .inet_prefix = CLIENT_INET_BITS,             \
                         .inet6_prefix = CLIENT_INET6_BITS})

#endif
