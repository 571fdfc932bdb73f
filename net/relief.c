#include "net/relief.h"

#include "base/container_of.h"
#include "net/connection.h"

/* An output that has waited no longer than this is not given up for want of memory. */
#define RELIEF_AGE_US ((int64_t)1000000)

/* Slow readers are not looked for again before this time. */
#define RELIEF_EVERY_US ((int64_t)10000)

/* Connections that net_relief_close_partial() looks at. */
#define MOST_PASSED 64

/* Since when the next output has waited to be written; INT64_MAX if none does. */
static int64_t
waiting_since(const struct net_connection *c)
{
    return c->writing ? net_output_queue_since(&c->out) : INT64_MAX;
}

static void
close_slowest(struct net_relief *relief)
{
    struct net_connections *set = relief->set;
    int64_t now_us = set->worker->now_us;
    struct net_connection *c, *slowest = NULL;

    if (relief->looked_us && now_us - relief->looked_us < RELIEF_EVERY_US)
        return;
    relief->looked_us = now_us;
    TAILQ_FOREACH(c, &set->open, link)
    {
        if (waiting_since(c) < (slowest ? waiting_since(slowest) : INT64_MAX))
            slowest = c;
    }
    if (slowest && now_us - waiting_since(slowest) >= RELIEF_AGE_US)
        net_connection_time_out(slowest);
}

/* How many of the connections are of the same client as `connection`. */
static unsigned
count_of_client(struct net_connection *const *connections, unsigned count,
                const struct net_connection *connection)
{
    unsigned same = 0;

    for (unsigned i = 0; i < count; i++)
        same += connections[i]->client == connection->client;
    return same;
}

/* Output that is written once the group of connections that are ready has been read. */
static bool
has_new_output(const struct net_connection *c)
{
    return !c->writing && !net_output_queue_is_empty(&c->out);
}

bool
net_relief_close_partial(struct net_connections *set, const struct net_connection *but)
{
    struct net_connection *c, *next, *candidates[MOST_PASSED], *chosen = NULL;
    unsigned passed = 0, count = 0, most = 0;

    for (c = TAILQ_FIRST(&set->partial); c && passed < MOST_PASSED; c = next, passed++) {
        next = TAILQ_NEXT(c, partial);
        if (net_connection_waits_for_us(c))
            net_connection_excuse(c);
        else if (c != but && !has_new_output(c))
            candidates[count++] = c;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned same = count_of_client(candidates, count, candidates[i]);

        if (same > most) {
            most = same;
            chosen = candidates[i];
        }
    }
    if (chosen)
        net_connection_time_out(chosen);
    return chosen != NULL;
}

static void
relieve(struct net_task *task)
{
    struct net_relief *relief = container_of(task, struct net_relief, task);
    unsigned from = atomic_exchange(&relief->from, 0);

    if (from & NET_RELIEF_READERS)
        close_slowest(relief);
    if (from & NET_RELIEF_MESSAGES)
        (void)net_relief_close_partial(relief->set, NULL);
    if (from & NET_RELIEF_LINGERING)
        net_connections_close_lingering(relief->set);
}

void
net_relief_init(struct net_relief *relief, struct net_connections *set)
{
    relief->set = set;
    relief->task.run = relieve;
}

void
net_relief_post(struct net_relief *relief, enum net_relief_from from)
{
    if (atomic_fetch_or(&relief->from, from) == 0)
        net_worker_post(relief->set->worker, &relief->task);
}
