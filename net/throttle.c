#include "net/throttle.h"

#include <stdlib.h>

struct net_throttle *
net_throttle_create(struct client *client, struct event_base *base, event_callback_fn on_turn,
                    void *context)
{
    struct net_throttle *throttle = calloc(1, sizeof(*throttle));

    if (!throttle)
        return NULL;
    throttle->client = client;
    if (event_assign(&throttle->turn, base, -1, 0, on_turn, context) != 0) {
        free(throttle);
        return NULL;
    }
    return throttle;
}

void
net_throttle_cancel(struct net_throttle *throttle, int64_t now_us)
{
    if (!net_throttle_waits(throttle))
        return;
    event_del(&throttle->turn);
    client_cancel(throttle->client, &throttle->booking, now_us);
}

void
net_throttle_destroy(struct net_throttle *throttle, int64_t now_us)
{
    net_throttle_cancel(throttle, now_us);
    free(throttle);
}

void
net_throttle_begin_turn(struct net_throttle *throttle, int64_t now_us)
{
    client_redeem(throttle->client, &throttle->booking, now_us);
    throttle->admitted = true;
}

bool
net_throttle_book(struct net_throttle *throttle, int64_t now_us)
{
    struct timeval wait;
    int64_t wait_us;

    if (throttle->admitted)
        return false;
    if (throttle->booking.waiting)
        return true;
    wait_us = client_book_call(throttle->client, &throttle->booking, now_us);
    if (wait_us == 0) {
        throttle->admitted = true;
        return false;
    }
    wait.tv_sec = (time_t)(wait_us / 1000000);
    wait.tv_usec = (suseconds_t)(wait_us % 1000000);
    if (event_add(&throttle->turn, &wait) == 0)
        return true;
    /* Without memory for a timer the message is admitted now rather than never. It is counted, so
     * the client's other messages wait longer. */
    net_throttle_begin_turn(throttle, now_us);
    return false;
}
