/*
 * Drives libcurl's transfers by epoll: a turn costs as much as there are sockets with events and
 * timers that are due, whatever the number of transfers. (curl_multi_perform() and
 * curl_multi_poll() look at every transfer in every turn.)
 *
 * For one thread, but for poller_wake().
 */
#ifndef SUNPROXY_FETCH_POLLER_H
#define SUNPROXY_FETCH_POLLER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <sys/epoll.h>

#include "fetch/connections.h"

#define POLLER_EVENTS 256

struct poller {
    CURLM *multi; /* not owned */
    const struct connections *connections; /* not owned; it changes their `watched` */
    int epoll;
    int wakeup; /* an eventfd */
    int ready;  /* of events: found by poller_wait(), not yet given to libcurl */
    struct epoll_event events[POLLER_EVENTS];
};

/*
 * Takes over the sockets of a multi handle that has no transfers yet: its CURLMOPT_SOCKETFUNCTION
 * and -DATA are the poller's. False with errno, or ENOMEM, without descriptors or memory;
 * poller_free() is harmless then. It watches the
 * sockets of `connections` alone.
 */
bool poller_init(struct poller *poller, CURLM *multi, const struct connections *connections);

/*
 * Watches a socket that libcurl is about to connect. libcurl 7.88 reports no change when a socket
 * that it could not connect is followed by another one with the same descriptor. Events of the
 * earlier one that have not been delivered are dropped. False with errno if epoll cannot watch it.
 */
bool poller_add(struct poller *poller, struct connection *connection);

/*
 * Ends that: before the socket is closed, since libcurl may tell its removal later, when the
 * descriptor is another socket; and before it is duplicated, since epoll would report it for as
 * long as the duplicate is open. Nothing if the socket is not watched.
 */
void poller_remove(struct poller *poller, int fd);

/*
 * Lets libcurl go on with the sockets that poller_wait() found. Before anything else that may close
 * a socket or unpause a transfer: an event replaces libcurl's note that it is to try both
 * directions.
 */
void poller_deliver(struct poller *poller);

/*
 * The same, if events are left, and then lets libcurl go on with what is due: timers, and transfers
 * that were added or unpaused.
 */
void poller_drive(struct poller *poller);

/*
 * Waits for an event, for libcurl's next timer, for poller_wake(), or for that many milliseconds. A
 * kept connection that epoll cannot watch again, for want of memory, has no events; the time limits
 * of its transfer end that.
 */
void poller_wait(struct poller *poller, int timeout_ms);

/* Ends a wait, or the next one. [any thread] */
void poller_wake(struct poller *poller);

/* After curl_multi_cleanup(), which still reports sockets. */
void poller_free(struct poller *poller);

#endif
