#include <stdlib.h>
#include <string.h>

#include "net/connection_parts.h"

/* ---- the set's lists ------------------------------------------------------------------------- */

void
net_connection_list(struct net_connection *c)
{
    struct net_connections *set = c->set;

    c->listed_us = c->active_us;
    TAILQ_REMOVE(&set->open, c, link);
    TAILQ_INSERT_TAIL(&set->open, c, link);
}

void
net_connection_begin_partial(struct net_connection *c)
{
    if (c->in_partial)
        return;
    c->in_partial = true;
    c->partial_since_us = c->set->worker->now_us;
    TAILQ_INSERT_TAIL(&c->set->partial, c, partial);
}

void
net_connection_end_partial(struct net_connection *c)
{
    if (!c->in_partial)
        return;
    c->in_partial = false;
    TAILQ_REMOVE(&c->set->partial, c, partial);
}

void
net_connection_excuse(struct net_connection *c)
{
    struct net_connections *set = c->set;

    if (!c->in_partial)
        return;
    c->partial_since_us = set->worker->now_us;
    TAILQ_REMOVE(&set->partial, c, partial);
    TAILQ_INSERT_TAIL(&set->partial, c, partial);
}

bool
net_connection_waits_for_us(const struct net_connection *c)
{
    return c->paused && !c->writing && (c->deferred || net_throttle_waits(c->throttle));
}

void
net_connection_mark(struct net_connection *c)
{
    if (c->marked)
        return;
    c->marked = true;
    STAILQ_INSERT_TAIL(&c->set->marked, c, mark);
}

void
net_connection_release_input(struct net_connection *c)
{
    if (!c->held)
        return;
    c->held = false;
    net_connection_mark(c);
}

/* ---- what is watched for --------------------------------------------------------------------- */

/*
 * Watches for input unless reading is paused, and for space for output while that waits for it.
 * Input alone is reported once (net_connection_read() asks for more), so that the kernel does not
 * look after each message whether there is another: -3 % CPU per hit of 1 KiB at 32 connections.
 * While reading is paused the end of the input is reported, once for each pause.
 */
static bool
update_watch(struct net_connection *c)
{
    uint32_t events = 0;

    if (c->writing)
        events = EPOLLOUT | (c->reading ? EPOLLIN : 0u);
    else if (c->reading)
        events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    else if (c->paused && !c->finished)
        events = EPOLLRDHUP | EPOLLET;
    return net_poller_watch(&c->set->poller, &c->watch, events);
}

bool
net_connection_begin_reading(struct net_connection *c)
{
    c->reading = true;
    return update_watch(c);
}

void
net_connection_end_reading(struct net_connection *c)
{
    c->reading = false;
    (void)update_watch(c);
}

bool
net_connection_begin_writing(struct net_connection *c)
{
    c->writing = true;
    return update_watch(c);
}

void
net_connection_end_writing(struct net_connection *c)
{
    c->writing = false;
    (void)update_watch(c);
}

/* ---- the backlog ----------------------------------------------------------------------------- */

static void
free_backlog(struct net_connection *c, char *backlog, size_t len)
{
    if (!backlog)
        return;
    memory_uncharge(c->set->limits->memory, MEMORY_REQUESTS, len);
    free(backlog);
}

void
net_connection_drop_backlog(struct net_connection *c)
{
    free_backlog(c, c->backlog, c->backlog_len);
    c->backlog = NULL;
}

bool
net_connection_keep_input(struct net_connection *c, struct span rest)
{
    struct memory_account *memory = c->set->limits->memory;

    c->backlog_rest = rest;
    if (!rest.len)
        return true;
    if (c->resumed) {
        c->backlog = c->resumed;
        c->resumed = NULL;
        return true;
    }
    if (!memory_charge(memory, MEMORY_REQUESTS, rest.len))
        return false;
    c->backlog = memory_realloc(memory, NULL, rest.len);
    if (!c->backlog) {
        memory_uncharge(memory, MEMORY_REQUESTS, rest.len);
        return false;
    }
    memcpy(c->backlog, rest.ptr, rest.len);
    c->backlog_len = rest.len;
    c->backlog_rest = span_of(c->backlog, rest.len);
    return true;
}

struct span
net_connection_begin_backlog(struct net_connection *c)
{
    c->resumed = c->backlog;
    c->backlog = NULL;
    return c->backlog_rest;
}

void
net_connection_end_backlog(struct net_connection *c)
{
    free_backlog(c, c->resumed, c->backlog_len);
    c->resumed = NULL;
}
