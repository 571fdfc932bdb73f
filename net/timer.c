#include "net/timer.h"

#include "base/clock.h"

static void
on_timeout(evutil_socket_t fd, short what, void *context)
{
    struct net_timer *timer = context;
    struct net_worker *worker = timer->worker;

    (void)fd;
    (void)what;
    worker->now_us = clock_monotonic_us();
    timer->run(timer);
    worker->settle(worker->context);
}

void
net_timer_init(struct net_timer *timer, struct net_worker *worker,
               void (*run)(struct net_timer *timer))
{
    timer->worker = worker;
    timer->run = run;
    event_assign(&timer->event, worker->base, -1, 0, on_timeout, timer);
}

bool
net_timer_set(struct net_timer *timer, int64_t after_us)
{
    struct timeval after = {.tv_sec = (time_t)(after_us / 1000000),
                            .tv_usec = (suseconds_t)(after_us % 1000000)};

    event_del(&timer->event);
    return event_add(&timer->event, &after) == 0;
}

void
net_timer_cancel(struct net_timer *timer)
{
    event_del(&timer->event);
}
