#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "net/connection_parts.h"
#include "net/protocol.h"

/*
 * Reads no more until a bound has cleared; keeps what has been read and not looked at. False
 * without memory for that.
 */
static bool
pause_reading(struct net_connection *c, struct span rest)
{
    if (!net_connection_keep_input(c, rest))
        return false;
    c->paused = true;
    net_connection_end_reading(c);
    return true;
}

/*
 * Passes bytes of the stream to the protocol; false when no more can be read: requests that were
 * read before are still answered.
 */
static bool
consume(struct net_connection *c, struct span input)
{
    while (input.len) {
        if (net_connection_is_over_bound(c)) {
            if (!c->writing)
                net_connection_write(c);
            if (c->fd < 0)
                return false;
            if (net_connection_is_over_bound(c))
                return pause_reading(c, input);
        }
        if (net_throttle_holds(c->throttle, c->set->worker->now_us))
            return pause_reading(c, input);
        switch (c->protocol->received(c, &input)) {
        case NET_INPUT_PARTIAL:
            net_connection_begin_partial(c);
            if (!input.len)
                return true;
            break;
        case NET_INPUT_MESSAGE:
            net_connection_end_partial(c);
            net_throttle_used(c->throttle);
            break;
        case NET_INPUT_STREAM:
            net_connection_end_partial(c);
            break;
        case NET_INPUT_HOLD:
            c->held = true;
            return pause_reading(c, input);
        case NET_INPUT_NO_MEMORY:
            net_connection_begin_partial(c);
            if (!c->set->hooks->free_memory(c->set->owner, c))
                return false;
            break;
        default:
            return false;
        }
    }
    if (net_connection_is_over_bound(c) && !c->writing)
        net_connection_write(c);
    return c->fd >= 0 && (!net_connection_is_over_bound(c) || pause_reading(c, input));
}

void
net_connection_resume(struct net_connection *c)
{
    struct span rest = net_connection_begin_backlog(c);
    bool alive;

    c->paused = false;
    /* The messages in the backlog begin now: it may have waited for long. */
    c->set->worker->now_us = clock_monotonic_us();
    c->read_us = c->set->worker->now_us;
    alive = net_connection_begin_reading(c) && consume(c, rest);
    net_connection_end_backlog(c);
    if (!alive)
        net_connection_finish(c);
    net_connection_mark(c);
}

/* There may be input left, or the end, of which no further report comes. */
static void
read_again(struct net_connection *c)
{
    if (c->reading && !c->writing && !net_poller_again(&c->set->poller, &c->watch))
        net_connection_close(c);
}

/*
 * The peer has ended its side; it may wait for answers. If none is left to write, nothing can come
 * that would reset the connection once it is closed, so that no lingering is needed. It counts for
 * no limit any more while the kernel sends what it has of the output (tcp_max_orphans).
 */
static void
end_input(struct net_connection *c)
{
    c->ended = true;
    if (c->requests == 0 && net_output_queue_is_empty(&c->out))
        net_connection_close(c);
    else
        net_connection_finish(c);
}

void
net_connection_note_end(struct net_connection *c, uint32_t events)
{
    bool closed = events & EPOLLHUP; /* no answer can be delivered */

    if ((events & EPOLLERR) || (closed && c->protocol->answers_all)) {
        net_connection_close(c);
    } else if (!c->protocol->left || !c->protocol->left(c)) {
        return; /* the input is taken in its turn */
    } else if (closed) {
        net_connection_close(c);
    } else {
        c->ended = true;
        net_connection_finish(c);
    }
}

void
net_connection_read(struct net_connection *c, uint32_t events)
{
    struct net_connections *set = c->set;
    struct net_worker *worker = set->worker;
    ssize_t n = recv(c->fd, set->scratch, sizeof(set->scratch), 0);

    /* Once an event: reading on until EAGAIN costs 5 % more CPU per hit at 32 connections. Less
     * than was asked for is all that there was (epoll(7)), unless the peer has ended its side. */
    if (n > 0) {
        worker->now_us = clock_monotonic_us();
        net_counter_add(&set->bytes_in, (uint64_t)n);
        net_connection_touch(c);
        c->read_us = worker->now_us;
        if (!consume(c, span_of(set->scratch, (size_t)n)))
            net_connection_finish(c);
        else if ((size_t)n == sizeof(set->scratch) || (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)))
            read_again(c);
    } else if (n == 0 && c->protocol->answers_all && (events & (EPOLLERR | EPOLLHUP))) {
        net_connection_close(c); /* both sides have ended: no answer can be delivered */
    } else if (n == 0) {
        end_input(c);
    } else if (errno == EINTR) {
        read_again(c);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        net_connection_close(c);
    }
}
