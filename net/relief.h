/*
 * Relief when memory or connections are short: which connection of a worker is closed, and for
 * what. Slow readers take the memory for output; peers that begin messages and do not end them,
 * that for messages. A connection that is closed for memory counts as timed out. Connections that
 * linger are answered, and are the first ones to go when there are too many.
 */
#ifndef SUNPROXY_NET_RELIEF_H
#define SUNPROXY_NET_RELIEF_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/worker.h"

struct net_connection;
struct net_connections;

enum net_relief_from {
    /* The connection whose next output has waited longest to be written whole is closed, if that is
       a second and more. Each look passes over all connections, so there is one in 10 ms at most.
     */
    NET_RELIEF_READERS = 1,
    /* net_relief_close_partial() */
    NET_RELIEF_MESSAGES = 2,
    /* net_connections_close_lingering() */
    NET_RELIEF_LINGERING = 4,
};

struct net_relief {
    struct net_connections *set;
    struct net_task task;
    int64_t looked_us; /* when slow readers were last looked for; 0: never */
    atomic_uint from;  /* of enum net_relief_from; the task is posted unless it is 0; shared */
};

/* The set must stay. */
void net_relief_init(struct net_relief *relief, struct net_connections *set);

/* Has the worker close a connection. [any] */
void net_relief_post(struct net_relief *relief, enum net_relief_from from);

/*
 * Of the 64 connections whose messages were begun longest ago, other than `but` (or NULL), closes
 * the first one of the client that has most of them. Connections that wait for the net
 * (net_connection_waits_for_us()), and those with output that no write has been tried for, are
 * passed over. False if no other is found. [worker]
 */
bool net_relief_close_partial(struct net_connections *set, const struct net_connection *but);

#endif
