#include "fetch/timers.h"

#include <stddef.h>

static int
compare_timers(struct timer *a, struct timer *b)
{
    if (a->due_us != b->due_us)
        return a->due_us < b->due_us ? -1 : 1;
    return (a->serial > b->serial) - (a->serial < b->serial);
}

TREE_GENERATE(timer_tree, timer, node, compare_timers)

void
timers_init(struct timers *timers)
{
    RB_INIT(&timers->tree);
    timers->serial = 0;
}

void
timers_arm(struct timers *timers, struct timer *timer, int64_t due_us)
{
    timers_disarm(timers, timer);
    timer->due_us = due_us;
    timer->serial = timers->serial++;
    timer->armed = true;
    RB_INSERT(timer_tree, &timers->tree, timer);
}

void
timers_disarm(struct timers *timers, struct timer *timer)
{
    if (!timer->armed)
        return;
    RB_REMOVE(timer_tree, &timers->tree, timer);
    timer->armed = false;
}

struct timer *
timers_first(struct timers *timers)
{
    return RB_MIN(timer_tree, &timers->tree);
}
