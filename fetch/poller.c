#include "fetch/poller.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static bool
is_watched(const struct poller *poller, int fd)
{
    return (size_t)fd < poller->size && poller->watched[fd];
}

/* Makes room for the descriptor in what is known of all. False without memory. */
static bool
know(struct poller *poller, int fd)
{
    size_t size = (size_t)fd < poller->size ? poller->size : 2 * (size_t)fd + 64;
    bool *watched = poller->watched;

    if (size == poller->size)
        return true;
    watched = realloc(watched, size * sizeof(*watched));
    if (!watched)
        return false;
    memset(watched + poller->size, 0, (size - poller->size) * sizeof(*watched));
    poller->watched = watched;
    poller->size = size;
    return true;
}

/* Watches a socket for these events from now on. */
static void
watch(struct poller *poller, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (!know(poller, fd))
        return;
    /* A socket that was watched may have been closed, and this one have its descriptor. */
    if (!poller->watched[fd] || epoll_ctl(poller->epoll, EPOLL_CTL_MOD, fd, &event) != 0)
        epoll_ctl(poller->epoll, EPOLL_CTL_ADD, fd, &event);
    poller->watched[fd] = true;
}

/* libcurl says what it waits for on a socket: CURLMOPT_SOCKETFUNCTION. */
static int
on_interest(CURL *easy, curl_socket_t fd, int what, void *context, void *of_socket)
{
    struct poller *poller = context;

    (void)easy;
    (void)of_socket;
    if (what == CURL_POLL_REMOVE)
        poller_remove(poller, fd);
    else
        watch(poller, fd,
              (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u));
    /* An error here would end all transfers of the handle. */
    return 0;
}

void
poller_add(struct poller *poller, int fd)
{
    for (int i = 0; i < poller->ready; i++)
        if (poller->events[i].data.fd == fd)
            poller->events[i].data.fd = -1;
    if (is_watched(poller, fd))
        poller->watched[fd] = false;
    watch(poller, fd, EPOLLOUT);
}

void
poller_remove(struct poller *poller, int fd)
{
    if (!is_watched(poller, fd))
        return;
    epoll_ctl(poller->epoll, EPOLL_CTL_DEL, fd, NULL);
    poller->watched[fd] = false;
}

bool
poller_init(struct poller *poller, CURLM *multi)
{
    struct epoll_event event = {.events = EPOLLIN};

    *poller = (struct poller){.multi = multi};
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
    free(poller->watched);
    poller->watched = NULL;
    poller->size = 0;
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
