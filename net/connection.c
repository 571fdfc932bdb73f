#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "net/connection_parts.h"
#include "net/protocol.h"

/* In the list of open connections, listed_us is at most that much before active_us, or an eighth of
 * the idle timeout if that is less. */
#define LIST_US ((int64_t)1000000)

/* ---- reports --------------------------------------------------------------------------------- */

static void
on_ready(struct net_watch *watch, uint32_t events)
{
    struct net_connection *c = container_of(watch, struct net_connection, watch);
    struct net_connections *set = c->set;

    set->worker->events++;
    if (c->reading && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        net_connection_read(c, events);
    else if (c->paused && !c->writing && (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
        net_connection_note_end(c, events);
    if (c->writing && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
        set->worker->now_us = clock_monotonic_us();
        net_connection_write(c);
        net_connection_mark(c);
    }
}

/*
 * Not after each connection: -2 % CPU per hit of 1 KiB at 32 and at 5,000 connections, since the
 * code that reads requests and the one that writes responses displace each other in the processor's
 * caches.
 */
static void
settle_group(struct net_poller *poller)
{
    net_connections_settle(container_of(poller, struct net_connections, poller));
}

/* The time that was booked for the client's next message has come. */
static void
on_turn(evutil_socket_t fd, short what, void *context)
{
    struct net_connection *c = context;
    struct net_connections *set = c->set;

    (void)fd;
    (void)what;
    set->worker->now_us = clock_monotonic_us();
    net_throttle_begin_turn(c->throttle, set->worker->now_us);
    c->read_us = set->worker->now_us;
    net_connection_mark(c);
    net_connections_settle(set);
}

/* ---- beginning ------------------------------------------------------------------------------- */

static void
adopt_by_task(struct net_task *task)
{
    net_connection_adopt(container_of(task, struct net_connection, adopt));
}

struct net_connection *
net_connection_create(struct net_connections *set, int fd, const struct net_peer *peer,
                      const struct net_protocol *protocol, void *context)
{
    struct net_connection *c = calloc(1, protocol->connection_size);

    if (!c)
        return NULL;
    c->set = set;
    c->protocol = protocol;
    c->context = context;
    c->fd = c->watch.fd = fd;
    c->peer = *peer;
    c->adopt.run = adopt_by_task;
    net_output_queue_init(&c->out);
    return c;
}

/* Gives the connection its throttle, if its client has such rates; false without memory. */
static bool
attach_throttle(struct net_connection *c)
{
    const struct client_rates *rates = &c->set->limits->rates;

    if (!c->bounded || (!rates->calls.per_second && !rates->bytes.per_second))
        return true;
    c->throttle = net_throttle_create(c->client, c->set->worker->base, on_turn, c);
    return c->throttle != NULL;
}

struct client *
net_connection_find_client(struct net_connection *c, const struct sockaddr *address)
{
    return clients_find(net_admission_clients(c->set->admission), address, c->set->worker->now_us);
}

bool
net_connection_set_client(struct net_connection *c, struct client *client, bool bounded)
{
    assert(c->peer.for_others && !c->bounded);
    if (!client)
        return false;
    client_release(&c->client);
    c->client = client;
    c->bounded = bounded && client_connect(client);
    return c->bounded == bounded && attach_throttle(c);
}

void
net_connection_adopt(struct net_connection *c)
{
    struct net_connections *set = c->set;

    set->worker->now_us = clock_monotonic_us();
    c->active_us = c->listed_us = set->worker->now_us;
    TAILQ_INSERT_TAIL(&set->open, c, link);
    c->protocol->opened(c);
    if (set->draining || !attach_throttle(c) || !net_connection_begin_reading(c))
        net_connection_close(c);
}

static void
free_connection(struct net_connection *c)
{
    TAILQ_REMOVE(&c->set->closed, c, link);
    c->protocol->closed(c);
    client_release(&c->client);
    free(c);
}

/* Writes what is queued, reads on where a bound has cleared, frees what is over. */
static void
look_at(struct net_connection *c)
{
    if (c->fd >= 0 && !c->writing)
        net_connection_write(c);
    if (c->fd >= 0 && c->paused && !c->finished && net_connection_has_cleared(c))
        net_connection_resume(c);
    if (c->fd >= 0 && c->finished && c->requests == 0)
        net_connection_finish(c);
    if (c->fd < 0 && c->requests == 0 && c->kept == 0 && !c->marked)
        free_connection(c);
}

/* ---- the set --------------------------------------------------------------------------------- */

bool
net_connections_init(struct net_connections *set, struct net_worker *worker,
                     const struct net_limits *limits, struct net_admission *admission,
                     const struct net_connections_hooks *hooks, void *owner)
{
    set->worker = worker;
    set->limits = limits;
    set->admission = admission;
    set->hooks = hooks;
    set->owner = owner;
    TAILQ_INIT(&set->open);
    TAILQ_INIT(&set->closed);
    TAILQ_INIT(&set->partial);
    TAILQ_INIT(&set->lingering);
    STAILQ_INIT(&set->marked);
    set->list_us = LIST_US;
    if (limits->idle_timeout_us && limits->idle_timeout_us / 8 < set->list_us)
        set->list_us = limits->idle_timeout_us / 8;
    return net_poller_begin(&set->poller, worker->base, on_ready, settle_group);
}

void
net_connections_settle(struct net_connections *set)
{
    struct net_connection *c;

    while ((c = STAILQ_FIRST(&set->marked))) {
        STAILQ_REMOVE_HEAD(&set->marked, mark);
        c->marked = false;
        look_at(c);
    }
}

void
net_connections_free(struct net_connections *set)
{
    struct net_connection *c;

    while ((c = TAILQ_FIRST(&set->open)))
        net_connection_close(c);
    net_connections_settle(set);
    while ((c = TAILQ_FIRST(&set->closed)))
        free_connection(c);
    net_poller_end(&set->poller);
}
