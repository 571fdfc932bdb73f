/*
 * Deadlines in order of time, for one thread. A timer is the caller's memory.
 */
#ifndef SUNPROXY_FETCH_TIMERS_H
#define SUNPROXY_FETCH_TIMERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/tree.h"

struct timer {
    RB_ENTRY(timer) node;
    int64_t due_us; /* monotonic */
    uint64_t serial;
    bool armed;
};

RB_HEAD(timer_tree, timer);

struct timers {
    struct timer_tree tree;
    uint64_t serial;
};

void timers_init(struct timers *timers);

/* Arms a timer, or moves one that is armed. */
void timers_arm(struct timers *timers, struct timer *timer, int64_t due_us);

/* Harmless on one that is not armed. */
void timers_disarm(struct timers *timers, struct timer *timer);

/* The first to come due, still armed; NULL without any. */
struct timer *timers_first(struct timers *timers);

#endif
