/*
 * Bounds on what peers may ask of an RPC server. RPC_LIMITS_DEFAULT has the values that fit a
 * proxy's calls.
 */
#ifndef SUNPROXY_RPC_LIMITS_H
#define SUNPROXY_RPC_LIMITS_H

#include "net/limits.h"

struct rpc_limits {
    /*
     * Of connections (net/limits.h); a message is a record, and the context of is_privileged that
     * of rpc_server_create(). The memory account is charged, too, for records that come in pieces,
     * requests in flight and replies, but for RPC_POOLED_REQUESTS requests a worker (transport.h).
     */
    struct net_limits net;
    uint32_t max_record;          /* bytes of a call, all fragments together */
    uint32_t max_empty_fragments; /* of a record */
    size_t request_data;          /* bytes of each request for its procedure: rpc_request_data() */

    /* May the peer call other procedures than NULL? Asked when it connects, by its worker, with the
       context of rpc_server_create(). A call that may not be made is denied: AUTH_TOOWEAK. NULL:
       every peer may. */
    bool (*may_call)(void *context, const struct net_peer *peer);
};

#define RPC_LIMITS_DEFAULT      \
    ((struct rpc_limits){       \
        .net = NET_LIMITS_DEFAULT, .max_record = 131072, .max_empty_fragments = 64})

#endif
