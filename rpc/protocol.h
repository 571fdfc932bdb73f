/*
 * ONC RPC as a protocol of the net: records in, calls to dispatch.
 */
#ifndef SUNPROXY_RPC_PROTOCOL_H
#define SUNPROXY_RPC_PROTOCOL_H

#include "net/protocol.h"

/* A listener's context is its struct rpc_service (transport.h). */
extern const struct net_protocol rpc_protocol;

#endif
