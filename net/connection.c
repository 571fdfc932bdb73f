#include "net/connection.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "net/delivery.h"
#include "net/protocol.h"

/* ---- the set's lists ------------------------------------------------------------------------- */

/*
 * A byte has moved. The list is not put in order for each: -4 % CPU per hit of 1 KiB with 5,000
 * connections, since the neighbours in the list are rarely in the processor's caches.
 */
static void
touch(struct net_connection *c)
{
    struct net_connections *set = c->set;

    c->active_us = set->worker->now_us;
    if (c->active_us - c->listed_us >= set->list_us)
        net_connection_list(c);
}

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

/* No message is begun any more. */
static void
end_partial(struct net_connection *c)
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

/* Of a connection that lingers, the input that is read as it comes. */
#define LINGER_BYTES ((uint64_t)16 << 20)

/*
 * Watches for input unless reading is paused, and for space for output while that waits for it.
 * Input alone is reported once (read_once() asks for more), so that the kernel does not
 * look after each message whether there is another: -3 % CPU per hit of 1 KiB at 32 connections.
 * While reading is paused the end of the input is reported, once for each pause. A connection that
 * lingers is over as soon as its peer has ended its side; what comes before is discarded.
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
    else if (c->lingering)
        events = c->discarded < LINGER_BYTES ? EPOLLIN | EPOLLRDHUP : EPOLLRDHUP | EPOLLET;
    return net_poller_watch(&c->set->poller, &c->watch, events);
}

/* Input is watched for from here on. False with errno. */
static bool
begin_reading(struct net_connection *c)
{
    c->reading = true;
    return update_watch(c);
}

static void
end_reading(struct net_connection *c)
{
    c->reading = false;
    (void)update_watch(c);
}

/* The connection waits until the kernel takes more output. False with errno. */
static bool
begin_writing(struct net_connection *c)
{
    c->writing = true;
    return update_watch(c);
}

static void
end_writing(struct net_connection *c)
{
    c->writing = false;
    (void)update_watch(c);
}

/* ---- closing, with and without the peer's receipt of all output ------------------------------ */

/* How long the last output may take to arrive on a connection that is otherwise over. */
#define LINGER_US (5 * (int64_t)1000000)

/* Of its client, a connection that lingers leaves the bound of open connections, but no more of
 * them linger than that bound. */
static void
leave_bound(struct net_connection *c)
{
    c->beside = c->bounded && client_linger(c->client);
    if (c->beside)
        c->bounded = false;
}

static void
forget_input(struct net_connection *c)
{
    end_partial(c);
    c->protocol->stopped(c);
    net_backlog_drop(&c->backlog, c->set->limits->memory);
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
    if (c->beside)
        client_end_lingering(c->client);
    c->beside = false;
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

/* Can it be closed without a loss? Discards what has come. */
static bool
is_over(struct net_connection *c)
{
    bool ended = net_discard_input(c->fd, c->set->scratch, sizeof(c->set->scratch), &c->discarded);

    return ended || (!c->unread && net_is_delivered(c->fd, c->peer.address.ss_family));
}

void
net_connection_finish(struct net_connection *c)
{
    struct net_connections *set = c->set;

    if (c->fd < 0 || c->lingering)
        return;
    c->finished = true;
    end_reading(c);
    net_throttle_cancel(c->throttle, set->worker->now_us);
    forget_input(c);
    if (c->requests || !net_output_queue_is_empty(&c->out))
        return;
    if (c->resets || is_over(c)) {
        net_connection_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    c->partial_since_us = set->worker->now_us;
    TAILQ_INSERT_TAIL(&set->lingering, c, partial);
    leave_bound(c);
    /* If it fails, the end of the peer's side is found at the next check. */
    (void)update_watch(c);
}

void
net_connection_check_lingering(struct net_connection *c)
{
    struct net_connections *set = c->set;

    if (is_over(c) || set->worker->now_us - c->partial_since_us >= LINGER_US)
        net_connection_close(c);
    else
        (void)update_watch(c);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Output of fewer bytes is short. For SHARED_US after the latest short one, the connections of a
 * worker write NET_TURN_BYTES_SHARED in a turn. */
#define SHORT_BYTES 16384u
#define SHARED_US ((int64_t)50000)

/* While memory is short, a connection has one output at a time that is not written. */
static bool
is_too_slow(const struct net_connection *c)
{
    return c->requests > c->deferred && memory_is_full(c->set->limits->memory, MEMORY_REQUESTS);
}

/* Is it over a bound of requests or of queued output, so that it is not read? */
static bool
is_over_bound(const struct net_connection *c)
{
    const struct net_limits *limits = c->set->limits;

    return c->requests >= limits->max_requests || c->out.bytes > limits->max_queued_bytes ||
           is_too_slow(c);
}

/* Can a paused connection be read again? Half of the bytes must have gone, so that reading does not
 * stop and go with every write. */
static bool
has_cleared(const struct net_connection *c)
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

/* Writes what is queued, as much as a turn allows. May close the connection. */
static void
write_queued(struct net_connection *c)
{
    struct net_connections *set = c->set;
    bool shared = set->worker->now_us - set->short_us < SHARED_US;
    size_t written;
    enum net_send_status status = net_output_queue_send(
        &c->out, c->fd, shared ? NET_TURN_BYTES_SHARED : NET_TURN_BYTES, set->pieces, &written);

    if (written) {
        net_counter_add(&set->bytes_out, written);
        touch(c);
    }
    if (status == NET_SENT) {
        end_writing(c);
    } else if (status == NET_SEND_FAILED || !begin_writing(c)) {
        net_connection_close(c);
    }
}

/* ---- input ----------------------------------------------------------------------------------- */

/*
 * Reads no more until a bound has cleared; keeps what has been read and not looked at. False
 * without memory for that.
 */
static bool
pause_reading(struct net_connection *c, struct span rest)
{
    if (!net_backlog_keep(&c->backlog, c->set->limits->memory, rest))
        return false;
    c->paused = true;
    end_reading(c);
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
        if (is_over_bound(c)) {
            if (!c->writing)
                write_queued(c);
            if (c->fd < 0)
                return false;
            if (is_over_bound(c))
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
            end_partial(c);
            net_throttle_used(c->throttle);
            break;
        case NET_INPUT_STREAM:
            end_partial(c);
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
    if (is_over_bound(c) && !c->writing)
        write_queued(c);
    return c->fd >= 0 && (!is_over_bound(c) || pause_reading(c, input));
}

/* Reads on where a bound or the protocol stopped it, the backlog first. May close or finish the
 * connection. */
static void
read_on(struct net_connection *c)
{
    struct span rest = net_backlog_begin(&c->backlog);
    bool alive;

    c->paused = false;
    /* The messages in the backlog begin now: it may have waited for long. */
    c->set->worker->now_us = clock_monotonic_us();
    c->read_us = c->set->worker->now_us;
    alive = begin_reading(c) && consume(c, rest);
    net_backlog_end(&c->backlog, c->set->limits->memory);
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

/* The peer has ended its side, or has gone, while reading is paused; by these events. May close or
 * finish the connection. */
static void
note_end(struct net_connection *c, uint32_t events)
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

/* Reads once after a report with these events. May close or finish the connection. */
static void
read_once(struct net_connection *c, uint32_t events)
{
    struct net_connections *set = c->set;
    struct net_worker *worker = set->worker;
    ssize_t n = recv(c->fd, set->scratch, sizeof(set->scratch), 0);

    /* Once an event: reading on until EAGAIN costs 5 % more CPU per hit at 32 connections. Less
     * than was asked for is all that there was (epoll(7)), unless the peer has ended its side. */
    if (n > 0) {
        worker->now_us = clock_monotonic_us();
        net_counter_add(&set->bytes_in, (uint64_t)n);
        touch(c);
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

/* ---- reports --------------------------------------------------------------------------------- */

/* In the list of open connections, listed_us is at most that much before active_us, or an eighth of
 * the idle timeout if that is less. */
#define LIST_US ((int64_t)1000000)

static void
on_ready(struct net_watch *watch, uint32_t events)
{
    struct net_connection *c = container_of(watch, struct net_connection, watch);
    struct net_connections *set = c->set;

    set->worker->events++;
    if (c->reading && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        read_once(c, events);
    else if (c->paused && !c->finished && !c->writing &&
             (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP)))
        note_end(c, events);
    else if (c->lingering)
        net_connection_check_lingering(c);
    if (c->writing && (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) {
        set->worker->now_us = clock_monotonic_us();
        write_queued(c);
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
    if (set->draining || !attach_throttle(c) || !begin_reading(c))
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
        write_queued(c);
    if (c->fd >= 0 && c->paused && !c->finished && has_cleared(c))
        read_on(c);
    if (c->fd >= 0 && c->finished && c->requests == 0)
        net_connection_finish(c);
    if (c->fd < 0 && c->requests == 0 && c->kept == 0 && !c->marked)
        free_connection(c);
}

/* ---- the set --------------------------------------------------------------------------------- */

static void
set_list_us(struct net_connections *set)
{
    const int64_t idle_us = set->limits->idle_timeout_us;

    set->list_us = idle_us && idle_us / 8 < LIST_US ? idle_us / 8 : LIST_US;
}

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
    set_list_us(set);
    return net_poller_begin(&set->poller, worker->base, on_ready, settle_group);
}

/* A connection that waits for a bound is looked at. Without memory for a throttle the rates do not
 * hold for a connection that has begun without. */
void
net_connections_set_limits(struct net_connections *set, const struct net_limits *limits)
{
    struct net_connection *c;

    set->limits = limits;
    set_list_us(set);
    TAILQ_FOREACH(c, &set->open, link)
    {
        if (!c->throttle)
            (void)attach_throttle(c);
        if (c->paused)
            net_connection_mark(c);
    }
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
net_connections_close_lingering(struct net_connections *set)
{
    struct net_connection *c, *next;
    unsigned count = 0;

    TAILQ_FOREACH(c, &set->lingering, partial)
    count++;
    for (c = TAILQ_FIRST(&set->lingering), count = (count + 1) / 2; count; count--, c = next) {
        next = TAILQ_NEXT(c, partial);
        (void)net_discard_input(c->fd, set->scratch, sizeof(set->scratch), &c->discarded);
        net_connection_close(c);
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
