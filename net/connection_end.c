#include <sys/socket.h>
#include <unistd.h>

#include "net/connection_parts.h"
#include "net/delivery.h"
#include "net/protocol.h"

/* How long the last output may take to arrive on a connection that is otherwise over. */
#define LINGER_US (5 * (int64_t)1000000)

static void
forget_input(struct net_connection *c)
{
    net_connection_end_partial(c);
    c->protocol->stopped(c);
    net_connection_drop_backlog(c);
}

void
net_connection_close(struct net_connection *c)
{
    struct net_connections *set = c->set;

    if (c->fd < 0)
        return;
    net_poller_forget(&set->poller, &c->watch);
    c->reading = c->writing = false;
    close(c->fd);
    c->fd = -1;
    forget_input(c);
    if (c->lingering)
        TAILQ_REMOVE(&set->lingering, c, partial);
    net_output_queue_drop(&c->out);
    TAILQ_REMOVE(&set->open, c, link);
    TAILQ_INSERT_TAIL(&set->closed, c, link);
    net_throttle_destroy(c->throttle, set->worker->now_us);
    c->throttle = NULL;
    net_admission_leave(set->admission, &c->peer, c->bounded ? c->client : NULL);
    c->bounded = false;
    if (atomic_fetch_sub(&set->count, 1) == 1)
        set->hooks->emptied(set->owner);
    net_connection_mark(c);
}

void
net_connection_set_reset(struct net_connection *c)
{
    const struct linger none = {.l_onoff = 1};

    if (c->fd >= 0 && setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0)
        c->resets = true;
}

void
net_connection_time_out(struct net_connection *c)
{
    net_counter_add(&c->set->timed_out, 1);
    net_connection_close(c);
}

void
net_connection_finish(struct net_connection *c)
{
    struct net_connections *set = c->set;

    if (c->fd < 0 || c->lingering)
        return;
    c->finished = true;
    net_connection_end_reading(c);
    net_throttle_cancel(c->throttle, set->worker->now_us);
    forget_input(c);
    if (c->requests || !net_output_queue_is_empty(&c->out))
        return;
    net_discard_input(c->fd, set->scratch, sizeof(set->scratch));
    if (c->resets || net_is_delivered(c->fd, c->peer.address.ss_family)) {
        net_connection_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    c->partial_since_us = set->worker->now_us;
    TAILQ_INSERT_TAIL(&set->lingering, c, partial);
}

void
net_connection_check_lingering(struct net_connection *c)
{
    struct net_connections *set = c->set;

    net_discard_input(c->fd, set->scratch, sizeof(set->scratch));
    if (net_is_delivered(c->fd, c->peer.address.ss_family) ||
        set->worker->now_us - c->partial_since_us >= LINGER_US)
        net_connection_close(c);
}
