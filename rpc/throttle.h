/*
 * Throttling: a connection whose client is over its rate of calls or bytes is not read until the
 * time that was booked for its next call (client_table.h). Nothing is refused, and nothing is asked
 * again before that time: the kernel's buffers fill, and the peer waits. Part of the server.
 *
 * Everything here is for the connection's worker. Without such rates, and for privileged peers, a
 * connection has no throttle, which costs a call three comparisons.
 */
#ifndef SUNPROXY_RPC_THROTTLE_H
#define SUNPROXY_RPC_THROTTLE_H

#include "base/client_table.h"
#include "rpc/internal.h"

struct rpc_throttle {
    struct client_booking booking;
    bool admitted; /* the call that is being read, or comes next, has been counted */
    struct event turn;
};

/* Gives a connection its throttle, if its client has such rates. False without memory. */
bool rpc_throttle_attach(struct rpc_connection *connection);

/* The connection is closed. Harmless without a throttle. */
void rpc_throttle_detach(struct rpc_connection *connection);

/* The connection is read no further; its answers are still charged. Likewise. */
void rpc_throttle_cancel(struct rpc_connection *connection);

/* For the inline functions below. */
bool rpc_throttle_ask(struct rpc_connection *connection);

/* Has the next call to wait? Then the connection is marked when its time has come. */
static inline bool
rpc_throttle_holds(struct rpc_connection *connection)
{
    return connection->throttle && rpc_throttle_ask(connection);
}

/* Does it wait now? */
static inline bool
rpc_throttle_waits(const struct rpc_connection *connection)
{
    return connection->throttle && connection->throttle->booking.waiting;
}

/* A call has been read whole. */
static inline void
rpc_throttle_used(struct rpc_connection *connection)
{
    if (connection->throttle)
        connection->throttle->admitted = false;
}

/* An answer of `bytes` has been queued. */
static inline void
rpc_throttle_charge(struct rpc_connection *connection, size_t bytes)
{
    if (connection->throttle)
        client_entry_charge(connection->client, bytes, connection->worker->now_us);
}

#endif
