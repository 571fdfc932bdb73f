#include "net/connection_parts.h"

/* Output of fewer bytes is short. For SHARED_US after the latest short one, the connections of a
 * worker write NET_TURN_BYTES_SHARED in a turn. */
#define SHORT_BYTES 16384u
#define SHARED_US ((int64_t)50000)

/* ---- bounds ---------------------------------------------------------------------------------- */

/* While memory is short, a connection has one output at a time that is not written. */
static bool
is_too_slow(const struct net_connection *c)
{
    return c->requests > c->deferred && memory_is_full(c->set->limits->memory, MEMORY_REQUESTS);
}

bool
net_connection_is_over_bound(const struct net_connection *c)
{
    const struct net_limits *limits = c->set->limits;

    return c->requests >= limits->max_requests || c->out.bytes > limits->max_queued_bytes ||
           is_too_slow(c);
}

bool
net_connection_has_cleared(const struct net_connection *c)
{
    const struct net_limits *limits = c->set->limits;

    return !c->held && c->requests < limits->max_requests &&
           c->out.bytes <= limits->max_queued_bytes / 2 && !net_throttle_waits(c->throttle) &&
           !is_too_slow(c);
}

/* ---- writing --------------------------------------------------------------------------------- */

void
net_connection_send(struct net_connection *c, struct net_output *output)
{
    int64_t now_us = c->set->worker->now_us;

    if (output->len < SHORT_BYTES && net_output_queue_is_empty(&c->out))
        c->set->short_us = now_us;
    net_output_queue_add(&c->out, output, now_us);
    net_throttle_charge(c->throttle, output->len, now_us);
    net_connection_mark(c);
}

void
net_connection_write(struct net_connection *c)
{
    struct net_connections *set = c->set;
    bool shared = set->worker->now_us - set->short_us < SHARED_US;
    size_t written;
    enum net_send_status status = net_output_queue_send(
        &c->out, c->fd, shared ? NET_TURN_BYTES_SHARED : NET_TURN_BYTES, set->pieces, &written);

    if (written) {
        net_counter_add(&set->bytes_out, written);
        net_connection_touch(c);
    }
    if (status == NET_SENT) {
        net_connection_end_writing(c);
    } else if (status == NET_SEND_FAILED || !net_connection_begin_writing(c)) {
        net_connection_close(c);
    }
}
