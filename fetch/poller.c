#include "fetch/poller.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Watches a socket for these events from now on. False with errno. */
static bool
watch(struct poller *poller, struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = connection->fd};

    if (epoll_ctl(poller->epoll, connection->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD,
                  connection->fd, &event) != 0)
        return false;
    connection->watched = true;
    return true;
}

/* libcurl says what it waits for on a socket: CURLMOPT_SOCKETFUNCTION. */
static int
on_interest(CURL *easy, curl_socket_t fd, int what, void *context, void *of_socket)
{
    struct poller *poller = context;
    struct connection *connection = connections_find(poller->connections, fd);

    (void)easy;
    (void)of_socket;
    if (what == CURL_POLL_REMOVE)
        poller_remove(poller, fd);
    else if (connection)
        (void)watch(poller, connection,
                    (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u));
    /* An error here would end all transfers of the handle. */
    return 0;
}

bool
poller_add(struct poller *poller, struct connection *connection)
{
    for (int i = 0; i < poller->ready; i++)
        if (poller->events[i].data.fd == connection->fd)
            poller->events[i].data.fd = -1;
    return watch(poller, connection, EPOLLOUT);
}

void
poller_remove(struct poller *poller, int fd)
{
    struct connection *connection = connections_find(poller->connections, fd);

    if (!connection || !connection->watched)
        return;
    epoll_ctl(poller->epoll, EPOLL_CTL_DEL, fd, NULL);
    connection->watched = false;
}

bool
poller_init(struct poller *poller, CURLM *multi, const struct connections *connections)
{
    struct epoll_event event = {.events = EPOLLIN};

    *poller = (struct poller){.multi = multi, .connections = connections};
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.fd = poller->wakeup;
    if (poller->epoll < 0 || poller->wakeup < 0 ||
        epoll_ctl(poller->epoll, EPOLL_CTL_ADD, poller->wakeup, &event) != 0)
        return false;
    errno = ENOMEM;
    return curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest) == CURLM_OK &&
           curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, poller) == CURLM_OK;
}

void
poller_free(struct poller *poller)
{
    if (poller->epoll >= 0)
        close(poller->epoll);
    if (poller->wakeup >= 0)
        close(poller->wakeup);
    poller->epoll = poller->wakeup = -1;
}

/*
 * An error is found by reading or writing. Nothing may be claimed that is not so: libcurl 7.88
 * takes a stream of HTTP/2 from which it can read nothing for one that has ended.
 */
static int
mask_of(uint32_t events)
{
    uint32_t failed = events & (EPOLLERR | EPOLLHUP);

    return (events & EPOLLIN || failed ? CURL_CSELECT_IN : 0) |
           (events & EPOLLOUT || failed ? CURL_CSELECT_OUT : 0);
}

void
poller_deliver(struct poller *poller)
{
    int running;

    for (int i = 0; i < poller->ready; i++)
        if (poller->events[i].data.fd >= 0)
            curl_multi_socket_action(poller->multi, poller->events[i].data.fd,
                                     mask_of(poller->events[i].events), &running);
    poller->ready = 0;
}

void
poller_drive(struct poller *poller)
{
    int running;

    poller_deliver(poller);
    curl_multi_socket_action(poller->multi, CURL_SOCKET_TIMEOUT, 0, &running);
}

/* Drops the event of poller_wake(), if it is among the others. */
static void
take_wakeup(struct poller *poller)
{
    uint64_t count;

    for (int i = 0; i < poller->ready; i++) {
        if (poller->events[i].data.fd != poller->wakeup)
            continue;
        while (read(poller->wakeup, &count, sizeof(count)) < 0 && errno == EINTR)
            continue;
        poller->events[i] = poller->events[--poller->ready];
        return;
    }
}

void
poller_wait(struct poller *poller, int timeout_ms)
{
    long curl_ms = -1;
    int found;

    curl_multi_timeout(poller->multi, &curl_ms);
    if (curl_ms >= 0 && curl_ms < timeout_ms)
        timeout_ms = (int)curl_ms;
    found = epoll_wait(poller->epoll, poller->events, POLLER_EVENTS, timeout_ms);
    poller->ready = found > 0 ? found : 0;
    take_wakeup(poller);
}

void
poller_wake(struct poller *poller)
{
    const uint64_t one = 1;

    /* It fails when a wake-up is pending 2^64 - 2 times: then nothing is lost. */
    while (write(poller->wakeup, &one, sizeof(one)) < 0 && errno == EINTR)
        continue;
}
