/*
 * A timer of a worker, once at a time: what it runs may do what other callbacks of the worker's
 * loop do. Part of its owner's object. [worker]
 */
#ifndef SUNPROXY_NET_TIMER_H
#define SUNPROXY_NET_TIMER_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "net/worker.h"

struct net_timer {
    struct event event;
    struct net_worker *worker;
    void (*run)(struct net_timer *timer);
};

/* A timer that is not set. Nothing has to be freed. */
void net_timer_init(struct net_timer *timer, struct net_worker *worker,
                    void (*run)(struct net_timer *timer));

/* Has run() called once, `after_us` from now, instead of when it was set to before. False without
 * memory: it is not set. */
bool net_timer_set(struct net_timer *timer, int64_t after_us);

/* It is not set any more. To be called before its memory is reused. */
void net_timer_cancel(struct net_timer *timer);

#endif
