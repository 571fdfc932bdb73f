/* Connections to the servers: commands are sent one behind the other, and replies come in order. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "tier/tier_state.h"

#define RETRY_US ((int64_t)500000)  /* between two trials of a server that is down */
#define TIME_US ((int64_t)10000000) /* between two looks at its clock */
#define SLOW_REPLIES 4u             /* more than quick ones: then it is not used */
#define READ_SIZE ((size_t)64 << 10)

struct tier_op *
tier_op_create(enum tier_op_kind kind)
{
    struct tier_op *op = calloc(1, sizeof(*op));

    if (op)
        op->kind = kind;
    return op;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
fail_ops(struct tier *tier, struct tier_server *server)
{
    struct tier_op *op;

    while ((op = STAILQ_FIRST(&server->ops))) {
        STAILQ_REMOVE_HEAD(&server->ops, link);
        if (op->fill)
            tier->above->fail(tier, op->fill);
        free(op);
    }
}

void
tier_server_fail(struct tier *tier, struct tier_server *server, const char *why)
{
    const bool is_over = server->state != TIER_CONNECTS || !tier->above->next_address(server);

    if (server->fd >= 0)
        close(server->fd);
    server->fd = -1;
    server->state = TIER_DOWN;
    server->events = 0;
    if (!is_over) {
        server->again_us = 0;
        return;
    }
    atomic_store(&server->up, false);
    atomic_store(&server->lags, false);
    server->at_journal = server->is_probed = false;
    server->lost_us = 0;
    server->again_us = clock_monotonic_us() + RETRY_US;
    buf_reset(&server->in);
    buf_reset(&server->out);
    server->out_at = 0;
    server->unanswered = 0;
    if (!atomic_load(&tier->leaves))
        tier_say(tier, server->told_down ? TIER_LOG_AGAIN : TIER_LOG_WARNING,
                 "%s: %s; it is not used until it answers", server->address.name, why);
    server->told_down = true;
    server->is_tried = true;
    fail_ops(tier, server);
}

/* ---- its pace -------------------------------------------------------------------------------- */

static int64_t
quick_us(const struct tier *tier)
{
    return tier->config.late_us / 4;
}

static bool
is_slow(const struct tier *tier, int64_t sent_us, int64_t now_us)
{
    return now_us - sent_us >= quick_us(tier);
}

/* The one that was sent first goes on, as the probe. */
static void
pass_others(struct tier *tier, struct tier_server *server)
{
    struct tier_op *op;

    STAILQ_FOREACH(op, &server->ops, link)
    if (op->fill && op != STAILQ_FIRST(&server->ops)) {
        tier_add(tier, TIER_PASSED);
        tier->above->fail(tier, op->fill);
        op->fill = NULL;
    }
}

static void
begin_lag(struct tier *tier, struct tier_server *server)
{
    atomic_store(&server->lags, true);
    pass_others(tier, server);
}

void
tier_server_note_slow(struct tier *tier, struct tier_server *server, int64_t sent_us)
{
    const int64_t now_us = clock_monotonic_us();

    if (server->state != TIER_UP || !is_slow(tier, sent_us, now_us))
        return;
    begin_lag(tier, server);
    if (sent_us < server->slow_us)
        return;
    server->slow_us = now_us;
    if (++server->slow < SLOW_REPLIES)
        return;
    server->was_slow = true;
    server->slow--;
    tier_server_fail(tier, server, "it answers slowly");
}

static void
note_pace(struct tier *tier, struct tier_server *server, const struct tier_op *op)
{
    const bool slow = is_slow(tier, op->sent_us, clock_monotonic_us());

    if (slow && (op->kind == TIER_OP_GET || op->kind == TIER_OP_PROBE))
        tier_server_note_slow(tier, server, op->sent_us);
    else if (!slow && op->kind == TIER_OP_PROBE)
        atomic_store(&server->lags, false);
    else if (!slow && op->kind == TIER_OP_GET && server->slow)
        server->slow--;
}

static void
take_probe(struct tier *tier, struct tier_server *server, const struct tier_op *op)
{
    server->is_probed = false;
    if (server->was_slow && is_slow(tier, op->sent_us, clock_monotonic_us()))
        tier_server_fail(tier, server, "it answers slowly");
    else
        server->was_slow = false;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void
watch(struct tier *tier, struct tier_server *server, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = server};

    if (server->events != events)
        epoll_ctl(tier->poll, server->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, server->fd, &event);
    server->events = events;
}

bool
tier_server_send(struct tier *tier, struct tier_server *server, struct tier_op *op,
                 struct span command, struct span value)
{
    const bool has_value = value.len != 0;

    if (!op)
        return false;
    if (server->state < TIER_CHECKED || !buf_reserve(&server->out, command.len + value.len + 4)) {
        server->out.failed = false;
        free(op);
        return false;
    }
    buf_append(&server->out, command.ptr, command.len);
    buf_append(&server->out, "\r\n", 2);
    if (has_value) {
        buf_append(&server->out, value.ptr, value.len);
        buf_append(&server->out, "\r\n", 2);
    }
    op->sent_us = clock_monotonic_us();
    op->until_us = op->sent_us + tier->config.late_us;
    op->bytes = value.len;
    server->unanswered += value.len;
    STAILQ_INSERT_TAIL(&server->ops, op, link);
    return true;
}

bool
tier_server_flush(struct tier *tier, struct tier_server *server)
{
    while (server->out_at < server->out.len) {
        ssize_t n = send(server->fd, server->out.data + server->out_at,
                         server->out.len - server->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            break;
        if (n < 0) {
            tier_server_fail(tier, server, strerror(errno));
            return false;
        }
        server->out_at += (size_t)n;
    }
    if (server->out_at == server->out.len) {
        buf_reset(&server->out);
        server->out_at = 0;
    } else if (server->out_at >= READ_SIZE) {
        memmove(server->out.data, server->out.data + server->out_at,
                server->out.len - server->out_at);
        buf_truncate(&server->out, server->out.len - server->out_at);
        server->out_at = 0;
    }
    watch(tier, server, EPOLLIN | (server->out.len ? EPOLLOUT : 0u));
    return true;
}

static void
send_probe(struct tier *tier, struct tier_server *server)
{
    server->is_probed = tier_server_send(tier, server, tier_op_create(TIER_OP_PROBE),
                                         span_str("mn"), span_of(NULL, 0));
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void
check(struct tier *tier, struct tier_server *server)
{
    int error = 0;
    socklen_t len = sizeof(error);

    if (getsockopt(server->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
        error = errno;
    if (error) {
        tier_server_fail(tier, server, strerror(error));
        return;
    }
    server->state = TIER_CHECKED;
    server->polled_us = 0;
    server->timed_us = 0;
    server->cas = 0;
    send_probe(tier, server);
    (void)tier_server_flush(tier, server);
}

static void
connect_server(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    const struct tier_address *address = &server->address;
    const int one = 1;

    server->fd =
        socket(address->address.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    server->state = TIER_CONNECTS;
    server->again_us = now_us + tier->config.late_us;
    /* A short command is not to wait for the acknowledgement of the one before. */
    (void)setsockopt(server->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (server->fd < 0 ||
        (connect(server->fd, &address->address.any, address->len) < 0 && errno != EINPROGRESS)) {
        tier_server_fail(tier, server, strerror(errno));
        return;
    }
    watch(tier, server, EPOLLOUT);
}

/* ---- replies --------------------------------------------------------------------------------- */

/* What the reply took, at most, is no difference of the clocks. */
static void
take_time(const struct tier *tier, struct tier_server *server, const struct tier_op *op,
          const struct tier_meta *reply)
{
    const int64_t took_us = clock_monotonic_us() - op->sent_us;
    int64_t ahead_us;

    if (reply->code != TIER_META_STAT || !reply->time_s || reply->time_s >= UINT32_MAX)
        return;
    ahead_us = tier_wall_us(tier) - (int64_t)reply->time_s * 1000000 - 500000;
    if (ahead_us > 0)
        ahead_us = ahead_us > took_us ? ahead_us - took_us : 0;
    server->apart_us = ahead_us;
}

static void
take_set(struct tier *tier, const struct tier_meta *reply)
{
    tier_add(tier, reply->code == TIER_META_DONE ? TIER_STORED : TIER_NOT_STORED);
}

static void
take(struct tier *tier, struct tier_server *server, const struct tier_op *op,
     const struct tier_meta *reply)
{
    switch (op->kind) {
    case TIER_OP_GET:
    case TIER_OP_POLL:
    case TIER_OP_READ:
    case TIER_OP_WRITE:
        tier->above->take(tier, server, op, reply);
        break;
    case TIER_OP_SET:
        take_set(tier, reply);
        break;
    case TIER_OP_TIME:
        take_time(tier, server, op, reply);
        break;
    case TIER_OP_STALE:
        server->had_other = reply->code == TIER_META_EXISTS;
        break;
    case TIER_OP_DROP:
        break;
    case TIER_OP_PROBE:
        take_probe(tier, server, op);
        break;
    }
}

/* Is it a reply that this request can have? */
static bool
is_due(const struct tier_op *op, const struct tier_meta *reply)
{
    const bool is_stat = reply->code == TIER_META_STAT || reply->code == TIER_META_END;

    if (op->kind == TIER_OP_PROBE)
        return reply->code == TIER_META_NOTHING;
    if (reply->code == TIER_META_VALUE_HERE)
        return op->kind == TIER_OP_GET || op->kind == TIER_OP_READ;
    return (op->kind == TIER_OP_TIME) == is_stat || reply->code == TIER_META_ERROR;
}

static const char *
why_broken(struct span input)
{
    return span_starts_with(input, span_str("ERROR\r\n"))
               ? "it does not know meta commands, which memcached has since 1.6"
               : "it has sent what is no reply of memcached";
}

/* False: it has failed. */
static bool
take_replies(struct tier *tier, struct tier_server *server)
{
    size_t at = 0;

    for (;;) {
        struct tier_op *op = STAILQ_FIRST(&server->ops);
        struct span input = span_of(server->in.data + at, server->in.len - at);
        struct tier_meta reply;
        size_t used;
        const enum tier_meta_state state =
            input.len ? tier_meta_read(input, &reply, &used) : TIER_META_MORE;

        if (state == TIER_META_MORE)
            break;
        if (state == TIER_META_BROKEN || !op || !is_due(op, &reply)) {
            tier_server_fail(tier, server, why_broken(input));
            return false;
        }
        at += used;
        if (reply.code == TIER_META_STAT) {
            take(tier, server, op, &reply);
            continue;
        }
        STAILQ_REMOVE_HEAD(&server->ops, link);
        server->unanswered -= op->bytes;
        /* It is not asked for more before a quick answer. */
        if (server->state == TIER_UP && is_slow(tier, op->sent_us, clock_monotonic_us()))
            begin_lag(tier, server);
        take(tier, server, op, &reply);
        note_pace(tier, server, op);
        free(op);
        if (server->fd < 0)
            return false;
    }
    memmove(server->in.data, server->in.data + at, server->in.len - at);
    buf_truncate(&server->in, server->in.len - at);
    return true;
}

static void
receive(struct tier *tier, struct tier_server *server)
{
    for (;;) {
        ssize_t n;

        if (!buf_reserve(&server->in, READ_SIZE)) {
            tier_server_fail(tier, server, "there is no memory for its replies");
            return;
        }
        n = recv(server->fd, server->in.data + server->in.len, READ_SIZE, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n <= 0) {
            tier_server_fail(tier, server, n ? strerror(errno) : "it has closed the connection");
            return;
        }
        buf_truncate(&server->in, server->in.len + (size_t)n);
        if (!take_replies(tier, server))
            return;
        if ((size_t)n < READ_SIZE)
            return;
    }
}

void
tier_server_hurry(struct tier *tier, struct tier_server *server)
{
    if (server->state >= TIER_CHECKED)
        receive(tier, server);
}

void
tier_server_ready(struct tier *tier, struct tier_server *server, uint32_t events)
{
    if (server->fd < 0)
        return;
    if (server->state == TIER_CONNECTS) {
        check(tier, server);
        return;
    }
    if (events & EPOLLOUT && !tier_server_flush(tier, server))
        return;
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        receive(tier, server);
}

/* ---- what is due ----------------------------------------------------------------------------- */

/* What has come meanwhile counts: this thread may have waited, too. NULL: nothing is slow. */
static const struct tier_op *
find_slow(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    const struct tier_op *op = STAILQ_FIRST(&server->ops);

    if (!op || !is_slow(tier, op->sent_us, now_us))
        return NULL;
    receive(tier, server);
    op = STAILQ_FIRST(&server->ops);
    return op && is_slow(tier, op->sent_us, now_us) ? op : NULL;
}

static void
look_at_pace(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    const struct tier_op *op = find_slow(tier, server, now_us);

    if (op && now_us >= op->until_us) {
        if (op->fill)
            tier_add(tier, TIER_LATE);
        tier_server_fail(tier, server, "it does not answer in time");
    } else if (op && server->state == TIER_UP) {
        begin_lag(tier, server);
    } else if (!op && atomic_load(&server->lags) && !server->is_probed) {
        send_probe(tier, server);
    }
}

/* The moment at which its oldest request is slow, or late. */
int64_t
tier_server_next(const struct tier *tier, const struct tier_server *server)
{
    const struct tier_op *op = STAILQ_FIRST(&server->ops);

    if (server->state < TIER_CHECKED)
        return server->again_us;
    if (!op)
        return INT64_MAX;
    return server->state == TIER_UP && !atomic_load(&server->lags) ? op->sent_us + quick_us(tier)
                                                                   : op->until_us;
}

static void
ask_time(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    if (server->timed_us && now_us - server->timed_us < TIME_US)
        return;
    server->timed_us = now_us;
    (void)tier_server_send(tier, server, tier_op_create(TIER_OP_TIME), span_str("stats"),
                           span_of(NULL, 0));
}

void
tier_server_look(struct tier *tier, struct tier_server *server, int64_t now_us)
{
    if (server->state == TIER_DOWN && now_us >= server->again_us)
        connect_server(tier, server, now_us);
    if (server->state == TIER_CONNECTS && now_us >= server->again_us)
        tier_server_fail(tier, server, "it does not accept a connection in time");
    if (server->state >= TIER_CHECKED)
        look_at_pace(tier, server, now_us);
    if (server->state >= TIER_CHECKED)
        ask_time(tier, server, now_us);
}
