#include "rpc/throttle.h"

#include <stdlib.h>

#include "base/clock.h"

/* The connection's turn has come. */
static void
on_turn(evutil_socket_t fd, short what, void *context)
{
    struct rpc_connection *c = context;
    struct rpc_worker *worker = c->worker;

    (void)fd;
    (void)what;
    worker->now_us = clock_monotonic_us();
    client_entry_redeem(c->client, &c->throttle->booking, worker->now_us);
    c->throttle->admitted = true;
    c->read_us = worker->now_us;
    rpc_connection_mark(c);
    rpc_worker_settle(worker);
}

bool
rpc_throttle_attach(struct rpc_connection *c)
{
    const struct client_rates *rates = &c->worker->server->limits.rates;

    if (!c->client || (!rates->calls.per_second && !rates->bytes.per_second))
        return true;
    c->throttle = calloc(1, sizeof(*c->throttle));
    return c->throttle && event_assign(&c->throttle->turn, c->worker->base, -1, 0, on_turn, c) == 0;
}

void
rpc_throttle_cancel(struct rpc_connection *c)
{
    if (!rpc_throttle_waits(c))
        return;
    event_del(&c->throttle->turn);
    client_entry_cancel(c->client, &c->throttle->booking, c->worker->now_us);
}

void
rpc_throttle_detach(struct rpc_connection *c)
{
    rpc_throttle_cancel(c);
    free(c->throttle);
    c->throttle = NULL;
}

bool
rpc_throttle_ask(struct rpc_connection *c)
{
    struct rpc_throttle *throttle = c->throttle;
    struct timeval wait;
    int64_t wait_us;

    if (throttle->admitted)
        return false;
    if (throttle->booking.waiting)
        return true;
    wait_us = client_entry_book_call(c->client, &throttle->booking, c->worker->now_us);
    if (wait_us == 0) {
        throttle->admitted = true;
        return false;
    }
    wait.tv_sec = (time_t)(wait_us / 1000000);
    wait.tv_usec = (suseconds_t)(wait_us % 1000000);
    if (event_add(&throttle->turn, &wait) == 0)
        return true;
    /* No memory for a timer: now rather than never. The call is counted, so others pay for it. */
    client_entry_redeem(c->client, &throttle->booking, c->worker->now_us);
    throttle->admitted = true;
    return false;
}
