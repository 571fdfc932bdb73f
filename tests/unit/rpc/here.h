/*
 * A server whose one worker runs on the test's own thread, in turns with its peers: for tests that
 * need the same run every time, a clock of their own, or allocations that fail here.
 */
#ifndef SUNPROXY_TESTS_UNIT_RPC_HERE_H
#define SUNPROXY_TESTS_UNIT_RPC_HERE_H

#include "net/connection.h"
#include "rpc/protocol.h"
#include "rpc/server.h"
#include "tests/unit/unit.h"

/* The connections of the server's first worker. */
static inline struct net_connections *
here_connections(struct rpc_server *server)
{
    return net_server_connections(rpc_server_net(server), 0);
}

/* Gives the worker a connected socket; NULL without memory: the descriptor is the caller's then. */
static inline struct net_connection *
here_adopt(struct rpc_server *server, int fd)
{
    struct net_peer peer = {.address = {.ss_family = AF_UNIX}, .address_len = 2};
    struct net_connections *set = here_connections(server);
    struct net_connection *c =
        net_connection_create(set, fd, &peer, &rpc_protocol, rpc_server_service(server));

    if (!c)
        return NULL;
    c->client = client_retain(unit_client(0));
    atomic_fetch_add(&set->count, 1);
    net_connection_adopt(c);
    return c;
}

/* One turn of the worker's loop. */
static inline void
here_turn(struct rpc_server *server)
{
    event_base_loop(here_connections(server)->worker->base, EVLOOP_NONBLOCK);
}

#endif
