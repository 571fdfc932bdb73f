/*
 * A poller: which of many descriptors are ready, from epoll to their owner without libevent's table
 * and queue, and their owners' memory prefetched. It is itself one event of a worker's loop, which
 * has timers, listeners and wake-ups besides.
 *
 * Everything here is for the worker's thread.
 */
#ifndef SUNPROXY_NET_POLLER_H
#define SUNPROXY_NET_POLLER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct event;
struct event_base;

enum {
    NET_POLLER_BATCH = 128,    /* descriptors whose readiness is fetched at once */
    NET_POLLER_GROUP = 16,     /* of them, after which what follows from them is done */
    NET_POLLER_PREFETCH = 640, /* bytes of an owner's object that are prefetched */
};

/* The beginning of its owner's object; all zero at first. */
struct net_watch {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT and others: what is watched for; 0: nothing, not even the
                        end */
};

struct net_poller {
    int fd;
    struct event *event;
    void (*ready)(struct net_watch *watch, uint32_t events);
    void (*settle)(struct net_poller *poller);
    unsigned next, count; /* of the batch that is handled */
    struct epoll_event batch[NET_POLLER_BATCH];
};

/*
 * Begins to poll on a loop. ready(watch, events) is called for each watch with what it is watched
 * for and is ready, EPOLLERR and EPOLLHUP included (epoll(7)); settle(poller) after the last call,
 * and after each NET_POLLER_GROUP of them. False with errno; the poller must be zero.
 */
bool net_poller_begin(struct net_poller *poller, struct event_base *base,
                      void (*ready)(struct net_watch *watch, uint32_t events),
                      void (*settle)(struct net_poller *poller));

/* Without watches. Harmless if it was not begun. */
void net_poller_end(struct net_poller *poller);

/*
 * Watches watch->fd for these events only. False with errno, and nothing changed. With EPOLLET what
 * is ready is reported once, until more comes.
 */
bool net_poller_watch(struct net_poller *poller, struct net_watch *watch, uint32_t events);

/* Reports once more what is ready, of a watch with EPOLLET. False with errno. */
bool net_poller_again(struct net_poller *poller, struct net_watch *watch);

/* Watches for nothing: the descriptor may be closed, and the watch freed. */
void net_poller_forget(struct net_poller *poller, struct net_watch *watch);

#endif
