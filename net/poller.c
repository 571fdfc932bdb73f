#include "net/poller.h"

#include <errno.h>
#include <event2/event.h>
#include <stddef.h>
#include <unistd.h>

#define CACHE_LINE 64u

/* The memory of a watch's owner is on its way while the one before is handled: -4 % CPU per hit of
 * 1 KiB with 5,000 connections, whose objects do not stay in the processor's caches. */
static void
prefetch(const struct net_watch *watch)
{
    if (!watch)
        return;
    for (size_t at = 0; at < NET_POLLER_PREFETCH; at += CACHE_LINE)
        __builtin_prefetch((const char *)watch + at);
}

static void
on_ready(evutil_socket_t fd, short what, void *context)
{
    struct net_poller *poller = context;
    int count = epoll_wait(fd, poller->batch, NET_POLLER_BATCH, 0);

    (void)what;
    /* What is left over is reported again, to the next turn of the loop. */
    poller->count = count > 0 ? (unsigned)count : 0;
    for (poller->next = 0; poller->next < poller->count;) {
        const struct epoll_event *event = &poller->batch[poller->next++];
        struct net_watch *watch = event->data.ptr;

        if (poller->next < poller->count)
            prefetch(poller->batch[poller->next].data.ptr);
        if (watch && watch->events)
            poller->ready(watch, event->events & (watch->events | EPOLLERR | EPOLLHUP));
        if (poller->next % NET_POLLER_GROUP == 0 || poller->next == poller->count)
            poller->settle(poller);
    }
}

bool
net_poller_begin(struct net_poller *poller, struct event_base *base,
                 void (*ready)(struct net_watch *watch, uint32_t events),
                 void (*settle)(struct net_poller *poller))
{
    poller->ready = ready;
    poller->settle = settle;
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd < 0)
        return false;
    poller->event = event_new(base, poller->fd, EV_READ | EV_PERSIST, on_ready, poller);
    if (poller->event && event_add(poller->event, NULL) == 0)
        return true;
    net_poller_end(poller);
    errno = ENOMEM;
    return false;
}

void
net_poller_end(struct net_poller *poller)
{
    if (!poller->ready || poller->fd < 0)
        return;
    if (poller->event)
        event_free(poller->event);
    poller->event = NULL;
    close(poller->fd);
    poller->fd = -1;
}

bool
net_poller_watch(struct net_poller *poller, struct net_watch *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    int operation = EPOLL_CTL_MOD;

    if (events == watch->events)
        return true;
    if (!watch->events)
        operation = EPOLL_CTL_ADD;
    else if (!events)
        operation = EPOLL_CTL_DEL;
    if (epoll_ctl(poller->fd, operation, watch->fd, &event) != 0)
        return false;
    watch->events = events;
    return true;
}

bool
net_poller_again(struct net_poller *poller, struct net_watch *watch)
{
    struct epoll_event event = {.events = watch->events, .data.ptr = watch};

    return epoll_ctl(poller->fd, EPOLL_CTL_MOD, watch->fd, &event) == 0;
}

void
net_poller_forget(struct net_poller *poller, struct net_watch *watch)
{
    if (watch->events)
        (void)epoll_ctl(poller->fd, EPOLL_CTL_DEL, watch->fd, NULL);
    watch->events = 0;
    for (unsigned i = poller->next; i < poller->count; i++)
        if (poller->batch[i].data.ptr == watch)
            poller->batch[i].data.ptr = NULL;
}
