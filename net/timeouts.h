/*
 * Time-outs of a worker's connections (net_limits): looked at on a timer of its loop, as often as
 * an eighth of the shortest, but for 10 ms at least and a second at most.
 */
#ifndef SUNPROXY_NET_TIMEOUTS_H
#define SUNPROXY_NET_TIMEOUTS_H

#include <stdbool.h>
#include <stdint.h>

struct event;
struct net_connections;

struct net_timeouts {
    struct net_connections *set;
    struct event *timer;
};

/* Starts the timer for an initialised set; false without memory. */
bool net_timeouts_begin(struct net_timeouts *timeouts, struct net_connections *set);

/* The set has other limits. [worker] */
void net_timeouts_set(struct net_timeouts *timeouts);

/* From now on as often as is allowed, for connections that linger. [worker] */
void net_timeouts_hurry(struct net_timeouts *timeouts);

/* Harmless if it was never begun. */
void net_timeouts_end(struct net_timeouts *timeouts);

/* Closes the connections of the set whose time is up at `now_us`. [worker] */
void net_timeouts_check(struct net_connections *set, int64_t now_us);

#endif
