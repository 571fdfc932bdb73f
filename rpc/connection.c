/*
 * A connection: bytes in, records to dispatch; replies out, as far as the kernel takes them; and
 * the bounds that hold the one back while the other is stuck.
 */
#include "rpc/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <linux/sockios.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "rpc/admission.h"
#include "rpc/throttle.h"

/* How long the last replies may take to arrive on a connection that is otherwise over. */
#define LINGER_US (5 * (int64_t)1000000)

enum { DISCARD_AT_ONCE = 16 }; /* reads */

/* ---- bounds ---------------------------------------------------------------------------------- */

static const struct rpc_limits *
limits_of(const struct rpc_connection *c)
{
    return &c->worker->server->limits;
}

/* While memory is short, a connection has one reply at a time that is not written. */
static bool
is_too_slow(const struct rpc_connection *c)
{
    return c->requests > c->deferred && memory_is_full(limits_of(c)->memory, MEMORY_REQUESTS);
}

static bool
is_over_bound(const struct rpc_connection *c)
{
    return c->requests >= limits_of(c)->max_requests ||
           c->queued > limits_of(c)->max_queued_bytes || is_too_slow(c);
}

/* Half of the bytes must have gone, so that reading does not stop and go with every write. */
static bool
has_cleared(const struct rpc_connection *c)
{
    return c->requests < limits_of(c)->max_requests &&
           c->queued <= limits_of(c)->max_queued_bytes / 2 && !rpc_throttle_waits(c) &&
           !is_too_slow(c);
}

/* ---- the worker's lists ---------------------------------------------------------------------- */

/* A byte has moved. The list is sorted anew once a tick at most: no time-out is finer than that. */
static void
touch(struct rpc_connection *c)
{
    struct rpc_worker *worker = c->worker;

    c->active_us = worker->now_us;
    if (c->epoch == worker->epoch)
        return;
    c->epoch = worker->epoch;
    TAILQ_REMOVE(&worker->open, c, link);
    TAILQ_INSERT_TAIL(&worker->open, c, link);
}

static void
begin_partial(struct rpc_connection *c)
{
    if (c->in_partial)
        return;
    c->in_partial = true;
    c->partial_since_us = c->worker->now_us;
    TAILQ_INSERT_TAIL(&c->worker->partial, c, partial);
}

static void
end_partial(struct rpc_connection *c)
{
    if (!c->in_partial)
        return;
    c->in_partial = false;
    TAILQ_REMOVE(&c->worker->partial, c, partial);
}

void
rpc_connection_mark(struct rpc_connection *c)
{
    if (c->marked)
        return;
    c->marked = true;
    STAILQ_INSERT_TAIL(&c->worker->marked, c, mark);
}

/* ---- writing --------------------------------------------------------------------------------- */

void
rpc_connection_queue(struct rpc_connection *c, struct rpc_request *request)
{
    request->queued_us = c->worker->now_us;
    STAILQ_INSERT_TAIL(&c->out, request, queue);
    c->queued += request->reply.len;
    rpc_throttle_charge(c, request->reply.len);
    rpc_connection_mark(c);
}

/* What stands first in the queue, as many pieces as the kernel is given at once. */
static unsigned
gather_pieces(struct rpc_connection *c, struct iovec *pieces, size_t *len)
{
    struct rpc_request *request;
    unsigned count = 0;

    *len = 0;
    STAILQ_FOREACH(request, &c->out, queue)
    {
        const struct rpc_reply *reply = &request->reply;

        for (unsigned i = reply->sent; i < reply->count; i++) {
            if (count == RPC_SEND_PIECES)
                return count;
            pieces[count++] = reply->pieces[i];
            *len += reply->pieces[i].iov_len;
        }
    }
    return count;
}

/* Takes `len` bytes that have been written off the queue. */
static void
take_off(struct rpc_connection *c, size_t len)
{
    struct rpc_request *request;

    c->queued -= len;
    while ((request = STAILQ_FIRST(&c->out))) {
        struct rpc_reply *reply = &request->reply;

        while (reply->sent < reply->count && len >= reply->pieces[reply->sent].iov_len)
            len -= reply->pieces[reply->sent++].iov_len;
        if (reply->sent < reply->count) {
            struct iovec *piece = &reply->pieces[reply->sent];

            piece->iov_base = (char *)piece->iov_base + len;
            piece->iov_len -= len;
            return;
        }
        STAILQ_REMOVE_HEAD(&c->out, queue);
        rpc_request_unref(request);
    }
}

/* MSG_NOSIGNAL, so that a peer that has gone raises no SIGPIPE, whatever the process ignores. */
static ssize_t
send_pieces(int fd, struct iovec *pieces, unsigned count)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = count};

    if (count == 1)
        return send(fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL);
    return sendmsg(fd, &message, MSG_NOSIGNAL);
}

static void
write_queue(struct rpc_connection *c)
{
    struct rpc_worker *worker = c->worker;

    while (!STAILQ_EMPTY(&c->out)) {
        size_t len;
        unsigned count = gather_pieces(c, worker->pieces, &len);
        ssize_t n = send_pieces(c->fd, worker->pieces, count);

        if (n < 0) {
            if (errno == EINTR)
                continue;
            if (errno != EAGAIN && errno != EWOULDBLOCK) {
                rpc_connection_close(c);
                return;
            }
            n = 0;
        }
        if (n > 0) {
            rpc_counter_add(&worker->bytes_out, (uint64_t)n);
            touch(c);
            take_off(c, (size_t)n);
        }
        if ((size_t)n < len) {
            if (!c->writing && event_add(&c->write_event, NULL) != 0) {
                rpc_connection_close(c);
                return;
            }
            c->writing = true;
            return;
        }
    }
    if (c->writing) {
        event_del(&c->write_event);
        c->writing = false;
    }
}

static void
on_writable(evutil_socket_t fd, short what, void *context)
{
    struct rpc_connection *c = context;
    struct rpc_worker *worker = c->worker;

    (void)fd;
    (void)what;
    worker->now_us = clock_monotonic_us();
    write_queue(c);
    rpc_connection_mark(c);
    rpc_worker_settle(worker);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void
free_backlog(struct rpc_connection *c, char *backlog, size_t len)
{
    if (!backlog)
        return;
    memory_uncharge(limits_of(c)->memory, MEMORY_REQUESTS, len);
    free(backlog);
}

static void
drop_backlog(struct rpc_connection *c)
{
    free_backlog(c, c->backlog, c->backlog_len);
    c->backlog = NULL;
}

/*
 * Reads no more until a bound has cleared; keeps what has been read and not looked at. False
 * without memory for that.
 */
static bool
pause_reading(struct rpc_connection *c, struct span rest)
{
    struct memory_account *memory = limits_of(c)->memory;
    char *copy = NULL;

    if (rest.len) {
        if (!memory_charge(memory, MEMORY_REQUESTS, rest.len))
            return false;
        copy = memory_realloc(memory, NULL, rest.len);
        if (!copy) {
            memory_uncharge(memory, MEMORY_REQUESTS, rest.len);
            return false;
        }
        memcpy(copy, rest.ptr, rest.len);
    }
    drop_backlog(c);
    c->backlog = copy;
    c->backlog_len = rest.len;
    c->backlog_rest = span_of(copy, rest.len);
    if (!c->paused)
        event_del(&c->read_event);
    c->paused = true;
    return true;
}

/* The memory for records is in other workers' hands. */
static void
shed_elsewhere(struct rpc_worker *worker)
{
    const struct rpc_server *server = worker->server;

    for (unsigned i = 0; i < server->worker_count; i++) {
        if (server->workers[i] != worker)
            rpc_worker_ask_to_shed(server->workers[i]);
    }
}

/*
 * Looks at bytes of the stream; false when it cannot be read any further: what has been asked for
 * until then is still answered.
 */
static bool
consume(struct rpc_connection *c, struct span input)
{
    while (input.len) {
        struct span record;
        bool taken;

        if (is_over_bound(c)) {
            if (!c->writing)
                write_queue(c);
            if (c->fd < 0)
                return false;
            if (is_over_bound(c))
                return pause_reading(c, input);
        }
        if (rpc_throttle_holds(c))
            return pause_reading(c, input);
        switch (rpc_record_feed(&c->record, limits_of(c), &input, &record)) {
        case RPC_RECORD_MORE:
            begin_partial(c);
            return true;
        case RPC_RECORD_NO_ROOM:
            begin_partial(c);
            if (!rpc_worker_shed_partial(c->worker, c)) {
                shed_elsewhere(c->worker);
                return false;
            }
            break;
        case RPC_RECORD_COMPLETE:
            end_partial(c);
            rpc_throttle_used(c);
            taken = rpc_request_take(c, record);
            rpc_record_reset(&c->record);
            if (!taken)
                return false;
            break;
        default:
            return false;
        }
    }
    if (is_over_bound(c) && !c->writing)
        write_queue(c);
    return c->fd >= 0 && (!is_over_bound(c) || pause_reading(c, input));
}

/* Goes on where pause_reading() stopped. */
static void
resume_reading(struct rpc_connection *c)
{
    char *backlog = c->backlog;
    size_t len = c->backlog_len;
    bool alive;

    c->backlog = NULL;
    c->paused = false;
    alive = event_add(&c->read_event, NULL) == 0 && consume(c, c->backlog_rest);
    free_backlog(c, backlog, len);
    if (!alive)
        rpc_connection_finish(c);
    rpc_connection_mark(c);
}

/* Not without end: a peer may send as fast as we read. */
static void
discard_input(struct rpc_connection *c)
{
    for (int i = 0; i < DISCARD_AT_ONCE; i++) {
        if (recv(c->fd, c->worker->scratch, sizeof(c->worker->scratch), MSG_DONTWAIT) <= 0)
            break;
    }
}

static void
on_readable(evutil_socket_t fd, short what, void *context)
{
    struct rpc_connection *c = context;
    struct rpc_worker *worker = c->worker;
    ssize_t n = recv(fd, worker->scratch, sizeof(worker->scratch), 0);

    (void)what;
    if (n > 0) {
        worker->now_us = clock_monotonic_us();
        worker->reads++;
        rpc_counter_add(&worker->bytes_in, (uint64_t)n);
        touch(c);
        c->read_us = worker->now_us;
        if (!consume(c, span_of(worker->scratch, (size_t)n)))
            rpc_connection_finish(c);
    } else if (n == 0) {
        /* It may have shut down its side only, and wait for answers. */
        rpc_connection_finish(c);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
        rpc_connection_close(c);
    }
    rpc_worker_settle(worker);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static void
adopt(struct rpc_task *task)
{
    struct rpc_connection *c = container_of(task, struct rpc_connection, adopt);

    rpc_connection_adopt(c);
}

struct rpc_connection *
rpc_connection_create(struct rpc_worker *worker, int fd, const struct rpc_peer *peer)
{
    struct rpc_connection *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->worker = worker;
    c->fd = fd;
    c->peer = *peer;
    c->adopt.run = adopt;
    STAILQ_INIT(&c->out);
    LIST_INIT(&c->waiting);
    return c;
}

void
rpc_connection_adopt(struct rpc_connection *c)
{
    struct rpc_worker *worker = c->worker;

    worker->now_us = clock_monotonic_us();
    c->active_us = worker->now_us;
    c->epoch = worker->epoch;
    TAILQ_INSERT_TAIL(&worker->open, c, link);
    event_assign(&c->read_event, worker->base, c->fd, EV_READ | EV_PERSIST, on_readable, c);
    event_assign(&c->write_event, worker->base, c->fd, EV_WRITE | EV_PERSIST, on_writable, c);
    if (worker->draining || !rpc_throttle_attach(c) || event_add(&c->read_event, NULL) != 0)
        rpc_connection_close(c);
}

void
rpc_connection_look(struct rpc_connection *c)
{
    if (c->fd >= 0 && !c->writing)
        write_queue(c);
    if (c->fd >= 0 && c->paused && !c->finished && has_cleared(c))
        resume_reading(c);
    if (c->fd >= 0 && c->finished && c->requests == 0)
        rpc_connection_finish(c);
    if (c->fd < 0 && c->requests == 0 && !c->marked) {
        TAILQ_REMOVE(&c->worker->closed, c, link);
        rpc_connection_free(c);
    }
}

void
rpc_connection_close(struct rpc_connection *c)
{
    struct rpc_request *request;

    if (c->fd < 0)
        return;
    event_del(&c->read_event);
    event_del(&c->write_event);
    close(c->fd);
    c->fd = -1;
    end_partial(c);
    if (c->lingering)
        TAILQ_REMOVE(&c->worker->lingering, c, partial);
    rpc_record_reset(&c->record);
    drop_backlog(c);
    while ((request = STAILQ_FIRST(&c->out))) {
        STAILQ_REMOVE_HEAD(&c->out, queue);
        rpc_request_unref(request);
    }
    c->queued = 0;
    TAILQ_REMOVE(&c->worker->open, c, link);
    TAILQ_INSERT_TAIL(&c->worker->closed, c, link);
    rpc_throttle_detach(c);
    rpc_admission_leave(c);
    rpc_worker_lost_connection(c->worker);
    rpc_connection_mark(c);
}

/* A peer that has closed resets the connection when it is sent something. */
static bool
is_reset(const struct rpc_connection *c)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);

    return getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           info.tcpi_state == TCP_CLOSE;
}

/*
 * Has the peer's kernel all that we sent, or will never have it? Nobody asks this of AF_UNIX, where
 * sent is delivered.
 */
static bool
is_delivered(const struct rpc_connection *c)
{
    int unsent = 0;

    return c->peer.address.ss_family == AF_UNIX || ioctl(c->fd, SIOCOUTQ, &unsent) != 0 ||
           unsent == 0 || is_reset(c);
}

/*
 * Closing a TCP socket with unread input resets it, and a reset throws away what the kernel has not
 * delivered yet. So what has come is read and forgotten, and while replies are still on their way
 * the socket is only shut down.
 */
void
rpc_connection_finish(struct rpc_connection *c)
{
    struct rpc_worker *worker = c->worker;

    if (c->fd < 0 || c->lingering)
        return;
    c->finished = true;
    event_del(&c->read_event);
    rpc_throttle_cancel(c);
    end_partial(c);
    rpc_record_reset(&c->record);
    drop_backlog(c);
    if (c->requests)
        return;
    discard_input(c);
    if (is_delivered(c)) {
        rpc_connection_close(c);
        return;
    }
    shutdown(c->fd, SHUT_WR);
    c->lingering = true;
    c->partial_since_us = worker->now_us;
    TAILQ_INSERT_TAIL(&worker->lingering, c, partial);
}

void
rpc_connection_check_lingering(struct rpc_connection *c)
{
    discard_input(c);
    if (is_delivered(c) || c->worker->now_us - c->partial_since_us >= LINGER_US)
        rpc_connection_close(c);
}

void
rpc_connection_free(struct rpc_connection *c)
{
    struct rpc_request *request;

    while ((request = LIST_FIRST(&c->waiting))) {
        LIST_REMOVE(request, link);
        rpc_request_unref(request);
    }
    free(c);
}
