#include "net/moderation.h"

#include <sched.h>

/* The load is evaluated this often, at most. */
#define WINDOW_US ((int64_t)10000)

/* To begin with moderation, and to end it: events in a second, and events in a turn of the loop. */
enum { BEGIN_RATE = 10000, BEGIN_BATCH = 3, END_RATE = 5000, END_BATCH = 2 };

void
net_moderation_begin(struct net_moderation *m, int64_t now_us)
{
    *m = (struct net_moderation){.since_us = now_us};
}

bool
net_moderation_turn(struct net_moderation *m, int64_t now_us, uint64_t events)
{
    int64_t span_us = now_us - m->since_us;
    uint64_t came = events - m->events;
    uint64_t rate = m->on ? END_RATE : BEGIN_RATE;
    uint64_t batch = m->on ? END_BATCH : BEGIN_BATCH;

    m->turns++;
    if (span_us < WINDOW_US)
        return m->on;
    m->on = came * 1000000 >= rate * (uint64_t)span_us && came >= batch * m->turns;
    m->since_us = now_us;
    m->events = events;
    m->turns = 0;
    return m->on;
}

/* Of the calling thread. Refused, as a sandbox may, it costs speed and nothing else. */
static bool
set_scheduling(int policy)
{
    return sched_setscheduler(0, policy, &(struct sched_param){.sched_priority = 0}) == 0;
}

void
net_moderation_apply(struct net_moderation *m)
{
    /* A policy that was set from outside stays, SCHED_BATCH included. */
    if (m->on && !m->scheduled) {
        m->scheduled = sched_getscheduler(0) == SCHED_OTHER && set_scheduling(SCHED_BATCH);
    } else if (!m->on && m->scheduled) {
        m->scheduled = false;
        if (sched_getscheduler(0) == SCHED_BATCH)
            set_scheduling(SCHED_OTHER);
    }
}
