/*
 * Throttling: a connection whose client is over its rate of messages or bytes is not read until the
 * time that was booked for its next message (base/clients.h). Nothing is refused, and nothing is
 * tried again before that time: the kernel's buffers fill, and the peer waits.
 *
 * Everything here is for the connection's worker. Without such rates, and for privileged peers, a
 * connection has no throttle (NULL), which costs a message three comparisons; every function but
 * net_throttle_create() takes NULL then.
 */
#ifndef SUNPROXY_NET_THROTTLE_H
#define SUNPROXY_NET_THROTTLE_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clients.h"

struct net_throttle {
    struct client *client;
    struct client_booking booking;
    bool admitted; /* the message that is being read, or comes next, has been counted */
    struct event turn;
};

/*
 * A throttle for a connection of this client. At the time that was booked, on_turn(fd, events,
 * context) is called on the loop; it must call net_throttle_begin_turn(). NULL without memory.
 */
struct net_throttle *net_throttle_create(struct client *client, struct event_base *base,
                                         event_callback_fn on_turn, void *context);

/* The connection is closed. */
void net_throttle_destroy(struct net_throttle *throttle, int64_t now_us);

/* The connection is read no further; its output is still charged. */
void net_throttle_cancel(struct net_throttle *throttle, int64_t now_us);

/* The booked time has come: the next message is admitted. */
void net_throttle_begin_turn(struct net_throttle *throttle, int64_t now_us);

/* For the inline function below. */
bool net_throttle_book(struct net_throttle *throttle, int64_t now_us);

/* Must the next message wait? Then on_turn is called later. */
static inline bool
net_throttle_holds(struct net_throttle *throttle, int64_t now_us)
{
    return throttle && net_throttle_book(throttle, now_us);
}

/* Does it wait now? */
static inline bool
net_throttle_waits(const struct net_throttle *throttle)
{
    return throttle && throttle->booking.waiting;
}

/* A message has been read whole. */
static inline void
net_throttle_used(struct net_throttle *throttle)
{
    if (throttle)
        throttle->admitted = false;
}

/* Output of `bytes` has been queued. */
static inline void
net_throttle_charge(struct net_throttle *throttle, size_t bytes, int64_t now_us)
{
    if (throttle)
        client_charge(throttle->client, bytes, now_us);
}

#endif
