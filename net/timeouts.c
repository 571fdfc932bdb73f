#include "net/timeouts.h"

#include <event2/event.h>

#include "base/clock.h"
#include "net/connection.h"

#define TICK_MIN_US ((int64_t)10000)
#define TICK_MAX_US ((int64_t)1000000)

/* Its output moves: it is read again as soon as the peer has read enough. */
static bool
is_reading(const struct net_connection *c, int64_t now_us, int64_t timeout_us)
{
    return c->paused && now_us - c->active_us < timeout_us;
}

static void
check_partial(struct net_connections *set, int64_t now_us)
{
    int64_t timeout_us = set->limits->message_timeout_us;
    struct net_connection *c, *next;

    for (c = TAILQ_FIRST(&set->partial); c && now_us - c->partial_since_us >= timeout_us;
         c = next) {
        next = TAILQ_NEXT(c, partial);
        if (net_connection_waits_for_us(c) || is_reading(c, now_us, timeout_us))
            net_connection_excuse(c);
        else
            net_connection_time_out(c);
    }
}

static void
check_idle(struct net_connections *set, int64_t now_us)
{
    int64_t timeout_us = set->limits->idle_timeout_us;
    struct net_connection *c, *next;

    for (c = TAILQ_FIRST(&set->open); c && now_us - c->listed_us >= timeout_us; c = next) {
        next = TAILQ_NEXT(c, link);
        if (now_us - c->active_us < timeout_us)
            continue;
        if ((c->deferred && !c->writing) || net_throttle_waits(c->throttle)) {
            /* Its peer waits for us. */
            c->active_us = now_us;
            net_connection_list(c);
        } else {
            net_connection_time_out(c);
        }
    }
}

static void
check_quiet(struct net_connections *set, int64_t now_us)
{
    const int64_t quiet_us = set->limits->quiet_us;
    struct net_connection *c, *next;

    for (c = TAILQ_FIRST(&set->open); c && now_us - c->listed_us >= quiet_us; c = next) {
        next = TAILQ_NEXT(c, link);
        if (now_us - c->active_us >= quiet_us && c->requests == 0 && !c->in_partial)
            net_connection_finish(c);
    }
}

void
net_timeouts_check(struct net_connections *set, int64_t now_us)
{
    struct net_connection *c, *next;

    set->worker->now_us = now_us;
    if (set->limits->message_timeout_us)
        check_partial(set, now_us);
    if (set->limits->idle_timeout_us)
        check_idle(set, now_us);
    if (set->leaving)
        check_quiet(set, now_us);
    for (c = TAILQ_FIRST(&set->lingering); c; c = next) {
        next = TAILQ_NEXT(c, partial);
        net_connection_check_lingering(c);
    }
    net_connections_settle(set);
}

static void
on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    net_timeouts_check(context, clock_monotonic_us());
}

static int64_t
interval_for(const struct net_limits *limits)
{
    int64_t us = TICK_MAX_US;

    if (limits->idle_timeout_us && limits->idle_timeout_us / 8 < us)
        us = limits->idle_timeout_us / 8;
    if (limits->message_timeout_us && limits->message_timeout_us / 8 < us)
        us = limits->message_timeout_us / 8;
    return us < TICK_MIN_US ? TICK_MIN_US : us;
}

static bool
set_timer(struct event *timer, int64_t us)
{
    struct timeval interval = {.tv_sec = (time_t)(us / 1000000),
                               .tv_usec = (suseconds_t)(us % 1000000)};

    return event_add(timer, &interval) == 0;
}

bool
net_timeouts_begin(struct net_timeouts *timeouts, struct net_connections *set)
{
    timeouts->set = set;
    timeouts->timer = event_new(set->worker->base, -1, EV_PERSIST, on_timer, set);
    return timeouts->timer && set_timer(timeouts->timer, interval_for(set->limits));
}

void
net_timeouts_set(struct net_timeouts *timeouts)
{
    /* If it fails, the times are looked at as often as before. */
    (void)set_timer(timeouts->timer, interval_for(timeouts->set->limits));
}

void
net_timeouts_hurry(struct net_timeouts *timeouts)
{
    /* If it fails, lingering connections stay until the server is stopped; nothing else depends on
     * it. */
    (void)set_timer(timeouts->timer, TICK_MIN_US);
}

void
net_timeouts_end(struct net_timeouts *timeouts)
{
    if (timeouts->timer)
        event_free(timeouts->timer);
    timeouts->timer = NULL;
}
