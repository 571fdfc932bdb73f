/*
 * What the files of a connection share. Each of them calls only those that stand before it here:
 *
 *   connection_state.c   the set's lists, the events that are watched for, the backlog of input
 *   connection_end.c     closing, with and without the peer's receipt of all output
 *   connection_output.c  writing what is queued, and the bounds that stop reading meanwhile
 *   connection_input.c   reading, and passing input to the protocol
 *   connection.c         a connection's beginning, the poller's reports, and the set
 *
 * Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_NET_CONNECTION_PARTS_H
#define SUNPROXY_NET_CONNECTION_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "net/connection.h"

/* ---- connection_state.c ---------------------------------------------------------------------- */

/*
 * A byte has moved. The list is not put in order for each: -4 % CPU per hit of 1 KiB with 5,000
 * connections, since the neighbours in the list are rarely in the processor's caches.
 */
static inline void
net_connection_touch(struct net_connection *c)
{
    struct net_connections *set = c->set;

    c->active_us = set->worker->now_us;
    if (c->active_us - c->listed_us >= set->list_us)
        net_connection_list(c);
}

/* No message is begun any more. */
void net_connection_end_partial(struct net_connection *c);

/* Input is watched for from here on. False with errno. */
bool net_connection_begin_reading(struct net_connection *c);

void net_connection_end_reading(struct net_connection *c);

/* The connection waits until the kernel takes more output. False with errno. */
bool net_connection_begin_writing(struct net_connection *c);

void net_connection_end_writing(struct net_connection *c);

/*
 * Input that the protocol has not taken becomes the backlog. It stays where it is if it is part of
 * the backlog that was begun (net_connection_begin_backlog()); otherwise it is copied, and charged
 * (MEMORY_REQUESTS). False without memory for that.
 */
bool net_connection_keep_input(struct net_connection *c, struct span rest);

/* The input to take again. It is valid until net_connection_end_backlog(), also after a close. */
struct span net_connection_begin_backlog(struct net_connection *c);

/* Frees what was begun, unless it was kept again. */
void net_connection_end_backlog(struct net_connection *c);

/* Frees the backlog, but not one that was begun. */
void net_connection_drop_backlog(struct net_connection *c);

/* ---- connection_output.c --------------------------------------------------------------------- */

/* Writes what is queued, as much as a turn allows. May close the connection. */
void net_connection_write(struct net_connection *c);

/* Is it over a bound of requests or of queued output, so that it is not read? */
bool net_connection_is_over_bound(const struct net_connection *c);

/* Can a paused connection be read again? Half of the bytes must have gone, so that reading does not
 * stop and go with every write. */
bool net_connection_has_cleared(const struct net_connection *c);

/* ---- connection_input.c ---------------------------------------------------------------------- */

/* Reads once after a report with these events. May close or finish the connection. */
void net_connection_read(struct net_connection *c, uint32_t events);

/* Reads on where a bound or the protocol stopped it, the backlog first. May close or finish the
 * connection. */
void net_connection_resume(struct net_connection *c);

/* The peer has ended its side, or has gone, while reading is paused; by these events. May close or
 * finish the connection. */
void net_connection_note_end(struct net_connection *c, uint32_t events);

#endif
