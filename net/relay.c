#include "net/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "net/connection.h"

/* Bytes read from the socket at once, and those that may wait to be written to the connection. */
#define PIECE_BYTES 65536u
#define MAX_QUEUED (2 * PIECE_BYTES)

struct net_relay {
    struct net_connection *connection;
    int fd; /* -1: the relay is over */
    struct event read_event;
    struct event write_event;
    bool reading;
    size_t queued; /* bytes in the connection's output */
    uint64_t received;
    net_counter *all_sent; /* NULL: none */
    net_counter *all_received;
};

/* Bytes on their way to the connection; one allocation, charged as a reply. */
struct piece {
    struct net_output output; /* first */
    struct net_relay *relay;
    struct iovec rest; /* changed as it is sent */
    size_t len;
    char bytes[];
};

static struct memory_account *
account_of(const struct net_relay *relay)
{
    return relay->connection->set->limits->memory;
}

/* Nothing more is read or passed on; what is queued is still written. */
static void
end(struct net_relay *relay)
{
    if (relay->fd < 0)
        return;
    event_del(&relay->read_event);
    event_del(&relay->write_event);
    close(relay->fd);
    relay->fd = -1;
    net_connection_end_request(relay->connection);
    net_connection_release_input(relay->connection);
    if (!relay->connection->finished)
        net_connection_finish(relay->connection);
    net_connection_mark(relay->connection);
}

/* ---- from the socket to the connection ------------------------------------------------------- */

static void
resume(struct net_relay *relay)
{
    if (relay->fd < 0 || relay->reading || relay->queued >= MAX_QUEUED)
        return;
    relay->reading = event_add(&relay->read_event, NULL) == 0;
    if (!relay->reading)
        end(relay);
}

static void
release(struct net_output *output)
{
    struct piece *piece = (struct piece *)output;
    struct net_relay *relay = piece->relay;
    size_t len = piece->len;

    relay->queued -= len;
    memory_uncharge(account_of(relay), MEMORY_REPLIES, sizeof(*piece) + len);
    free(piece);
    resume(relay);
}

/* False without memory. */
static bool
pass_on(struct net_relay *relay, struct span head, struct span bytes)
{
    struct memory_account *account = account_of(relay);
    size_t len = head.len + bytes.len;
    struct piece *piece;

    if (!memory_charge(account, MEMORY_REPLIES, sizeof(*piece) + len))
        return false;
    piece = memory_realloc(account, NULL, sizeof(*piece) + len);
    if (!piece) {
        memory_uncharge(account, MEMORY_REPLIES, sizeof(*piece) + len);
        return false;
    }
    piece->relay = relay;
    piece->len = len;
    span_put(span_put(piece->bytes, head), bytes);
    piece->rest = (struct iovec){.iov_base = piece->bytes, .iov_len = len};
    piece->output =
        (struct net_output){.pieces = &piece->rest, .count = 1, .len = len, .release = release};
    relay->queued += len;
    relay->received += bytes.len;
    if (relay->all_received)
        net_counter_add(relay->all_received, bytes.len);
    net_connection_send(relay->connection, &piece->output);
    return true;
}

bool
net_relay_begin(struct net_relay *relay, struct span head, struct span first)
{
    return pass_on(relay, head, first);
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
    struct net_relay *relay = context;
    struct net_connections *set = relay->connection->set;
    ssize_t n = recv(fd, set->scratch, PIECE_BYTES, 0);

    (void)what;
    set->worker->now_us = clock_monotonic_us();
    if (n > 0 ? !pass_on(relay, span_of(NULL, 0), span_of(set->scratch, (size_t)n))
              : n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
        end(relay);
    } else if (relay->queued >= MAX_QUEUED) {
        event_del(&relay->read_event);
        relay->reading = false;
    }
    net_connections_settle(set);
}

/* ---- from the connection to the socket ------------------------------------------------------- */

enum net_input
net_relay_received(struct net_relay *relay, struct span *input)
{
    if (relay->fd < 0)
        return NET_INPUT_END;
    while (input->len) {
        ssize_t n = send(relay->fd, input->ptr, input->len, MSG_NOSIGNAL);

        if (n >= 0) {
            if (relay->all_sent)
                net_counter_add(relay->all_sent, (size_t)n);
            *input = span_of(input->ptr + n, input->len - (size_t)n);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            return event_add(&relay->write_event, NULL) == 0 ? NET_INPUT_HOLD : NET_INPUT_END;
        } else if (errno != EINTR) {
            return NET_INPUT_END;
        }
    }
    return NET_INPUT_STREAM;
}

static void
on_writable(evutil_socket_t fd, short what, void *context)
{
    struct net_relay *relay = context;
    struct net_connections *set = relay->connection->set;

    (void)fd;
    (void)what;
    set->worker->now_us = clock_monotonic_us();
    net_connection_release_input(relay->connection);
    net_connections_settle(set);
}

void
net_relay_stopped(struct net_relay *relay)
{
    if (!net_connection_is_open(relay->connection) || relay->connection->set->draining)
        end(relay);
    else if (relay->fd >= 0)
        shutdown(relay->fd, SHUT_WR);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct net_relay *
net_relay_create(struct net_connection *connection, int fd)
{
    struct event_base *base = connection->set->worker->base;
    struct net_relay *relay = calloc(1, sizeof(*relay));

    if (!relay)
        return NULL;
    relay->connection = connection;
    relay->fd = fd;
    event_assign(&relay->read_event, base, fd, EV_READ | EV_PERSIST, on_readable, relay);
    event_assign(&relay->write_event, base, fd, EV_WRITE, on_writable, relay);
    if (event_add(&relay->read_event, NULL) != 0) {
        free(relay);
        return NULL;
    }
    relay->reading = true;
    net_connection_begin_request(connection);
    return relay;
}

void
net_relay_count(struct net_relay *relay, net_counter *sent, net_counter *received)
{
    relay->all_sent = sent;
    relay->all_received = received;
}

uint64_t
net_relay_received_bytes(const struct net_relay *relay)
{
    return relay->received;
}

void
net_relay_destroy(struct net_relay *relay)
{
    if (!relay)
        return;
    if (relay->fd >= 0) {
        event_del(&relay->read_event);
        event_del(&relay->write_event);
        close(relay->fd);
        net_connection_end_request(relay->connection);
    }
    free(relay);
}
