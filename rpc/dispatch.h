/*
 * Dispatch of calls to programs (RFC 5531 section 9).
 */
#ifndef SUNPROXY_RPC_DISPATCH_H
#define SUNPROXY_RPC_DISPATCH_H

#include <stdbool.h>

#include "base/span.h"

struct rpc_connection;

/* Dispatches a record; false when the connection is to be read no further. [worker] */
bool rpc_dispatch(struct rpc_connection *connection, struct span record);

#endif
