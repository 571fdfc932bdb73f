#include "tests/unit/net/echo.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "net/connection.h"
#include "net/protocol.h"

struct echo echo;

struct echo_connection {
    struct net_connection net;
    char line[ECHO_LINE];
    size_t len;
    bool charged;
    bool holding;
    bool ends; /* when what it holds is answered */
};

struct echo_reply {
    struct net_output output;
    TAILQ_ENTRY(echo_reply) link;
    struct echo_connection *connection;
    struct iovec piece;
    unsigned chunks; /* still to be queued */
    char text[ECHO_LINE];
};

/* ---- replies --------------------------------------------------------------------------------- */

static void
send_piece(struct echo_reply *reply, const void *bytes, size_t len)
{
    reply->piece = (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    reply->output.pieces = &reply->piece;
    reply->output.count = 1;
    reply->output.sent = 0;
    reply->output.len = len;
    net_connection_send(&reply->connection->net, &reply->output);
}

static void
end_reply(struct echo_reply *reply)
{
    net_connection_end_request(&reply->connection->net);
    atomic_fetch_add(&echo.released, 1);
    free(reply);
}

static void
release(struct net_output *output)
{
    struct echo_reply *reply = (struct echo_reply *)output;

    if (reply->chunks && net_connection_is_open(&reply->connection->net)) {
        reply->chunks--;
        send_piece(reply, echo.body, ECHO_CHUNK);
    } else {
        end_reply(reply);
    }
}

static void
answer_all(struct net_task *task)
{
    struct echo_reply *reply;

    (void)task;
    while ((reply = TAILQ_FIRST(&echo.waiting))) {
        TAILQ_REMOVE(&echo.waiting, reply, link);
        net_connection_resume_request(&reply->connection->net);
        if (reply->connection->ends) {
            net_connection_set_unread(&reply->connection->net);
            net_connection_finish(&reply->connection->net);
        }
        reply->connection->holding = false;
        net_connection_release_input(&reply->connection->net);
        if (net_connection_is_open(&reply->connection->net))
            send_piece(reply, reply->text, strlen(reply->text));
        else
            end_reply(reply);
    }
}

static bool
answer(struct echo_connection *c, struct span line)
{
    struct echo_reply *reply = calloc(1, sizeof(*reply));
    unsigned n = 0;

    if (!reply)
        return false;
    reply->connection = c;
    reply->output.release = release;
    net_connection_begin_request(&c->net);
    atomic_fetch_add(&echo.replies, 1);
    memcpy(reply->text, line.ptr, line.len);
    if (sscanf(reply->text, "body %u", &n) == 1 && n <= ECHO_BODY) {
        send_piece(reply, echo.body, n);
    } else if (sscanf(reply->text, "stream %u", &n) == 1 && n > 0) {
        reply->chunks = n - 1;
        send_piece(reply, echo.body, ECHO_CHUNK);
    } else if (span_starts_with(line, span_str("later ")) ||
               span_starts_with(line, span_str("hold ")) ||
               span_starts_with(line, span_str("last "))) {
        c->ends = span_starts_with(line, span_str("last "));
        c->holding = c->ends || reply->text[0] == 'h';
        net_connection_defer_request(&c->net);
        TAILQ_INSERT_TAIL(&echo.waiting, reply, link);
        atomic_fetch_add(&echo.deferred, 1);
    } else {
        send_piece(reply, reply->text, line.len);
    }
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void
opened(struct net_connection *net)
{
    (void)net;
}

static void
forget_line(struct net_connection *net)
{
    struct echo_connection *c = (struct echo_connection *)net;

    if (c->charged)
        memory_uncharge(net->set->limits->memory, MEMORY_RECORDS, ECHO_LINE);
    c->charged = false;
    c->len = 0;
}

static enum net_input
take_line(struct net_connection *net, struct span *input)
{
    struct echo_connection *c = (struct echo_connection *)net;
    const char *end = memchr(input->ptr, '\n', input->len);
    size_t take = end ? (size_t)(end - input->ptr) + 1 : input->len;
    bool answered;

    if (c->holding) {
        atomic_fetch_add(&echo.held, 1);
        return NET_INPUT_HOLD;
    }
    /* One byte stays for the end of a string. */
    if (take >= sizeof(c->line) - c->len)
        return NET_INPUT_END;
    if (!end && !c->charged) {
        if (!memory_charge(net->set->limits->memory, MEMORY_RECORDS, ECHO_LINE))
            return NET_INPUT_NO_MEMORY;
        c->charged = true;
    }
    memcpy(c->line + c->len, input->ptr, take);
    c->len += take;
    *input = span_of(input->ptr + take, input->len - take);
    if (!end)
        return NET_INPUT_PARTIAL;
    atomic_fetch_add(&echo.lines, 1);
    answered = answer(c, span_of(c->line, c->len));
    forget_line(net);
    return answered ? NET_INPUT_MESSAGE : NET_INPUT_END;
}

static void
abandon(struct net_connection *net)
{
    struct echo_reply *reply, *next;

    for (reply = TAILQ_FIRST(&echo.waiting); reply; reply = next) {
        next = TAILQ_NEXT(reply, link);
        if (&reply->connection->net == net) {
            TAILQ_REMOVE(&echo.waiting, reply, link);
            end_reply(reply);
        }
    }
}

static const struct net_protocol lines = {
    .connection_size = sizeof(struct echo_connection),
    .opened = opened,
    .received = take_line,
    .stopped = forget_line,
    .closed = abandon,
};

/* ---- greetings ------------------------------------------------------------------------------- */

struct greeting {
    struct net_connection net;
    struct net_output output;
    struct iovec piece;
};

static void
release_greeting(struct net_output *output)
{
    (void)output;
    atomic_fetch_add(&echo.released, 1);
}

static void
greet(struct net_connection *net)
{
    struct greeting *g = (struct greeting *)net;
    const struct echo *context = net->context;

    g->piece = (struct iovec){.iov_base = context->body, .iov_len = ECHO_BODY};
    g->output = (struct net_output){
        .pieces = &g->piece, .count = 1, .len = ECHO_BODY, .release = release_greeting};
    atomic_fetch_add(&echo.replies, 1);
    net_connection_send(net, &g->output);
    net_connection_mark(net);
}

static enum net_input
end_input(struct net_connection *net, struct span *input)
{
    (void)net;
    (void)input;
    return NET_INPUT_END;
}

static void
nothing(struct net_connection *net)
{
    (void)net;
}

static const struct net_protocol greetings = {
    .connection_size = sizeof(struct greeting),
    .opened = greet,
    .received = end_input,
    .stopped = nothing,
    .closed = nothing,
};

/* ---- a server -------------------------------------------------------------------------------- */

void
echo_start(const struct net_limits *limits, unsigned workers)
{
    memset(&echo, 0, sizeof(echo));
    TAILQ_INIT(&echo.waiting);
    echo.answer_task.run = answer_all;
    echo.body = malloc(ECHO_BODY);
    ck_assert_ptr_nonnull(echo.body);
    for (size_t i = 0; i < ECHO_BODY; i++)
        echo.body[i] = (char)(i * 7 + i / 251);
    echo.server = net_server_create(limits, workers);
    ck_assert_ptr_nonnull(echo.server);
    snprintf(echo.path, sizeof(echo.path), "/tmp/sunproxy-echo-%d", (int)getpid());
    ck_assert_int_eq(net_server_listen(echo.server, listen_tcp(&echo.port), &lines, NULL), 0);
    ck_assert_int_eq(net_server_listen(echo.server, listen_unix(echo.path), &lines, NULL), 0);
    ck_assert_int_eq(
        net_server_listen(echo.server, listen_tcp(&echo.greeting_port), &greetings, &echo), 0);
    ck_assert_int_eq(net_server_start(echo.server), 0);
}

unsigned
echo_stop(int64_t timeout_us)
{
    unsigned cut_off = net_server_stop(echo.server, timeout_us);

    net_server_destroy(echo.server);
    ck_assert_uint_eq(atomic_load(&echo.released), atomic_load(&echo.replies));
    unlink(echo.path);
    free(echo.body);
    return cut_off;
}

struct net_stats
echo_stats(void)
{
    struct net_stats stats;

    net_server_get_stats(echo.server, &stats);
    return stats;
}

void
echo_answer(void)
{
    net_worker_post(net_server_connections(echo.server, 0)->worker, &echo.answer_task);
}

/* ---- peers ----------------------------------------------------------------------------------- */

int
echo_connect(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_port(fd, echo.port);
    return fd;
}

int
echo_connect_unix(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    connect_to_path(fd, echo.path);
    return fd;
}

void
echo_send(int fd, const char *text)
{
    ck_assert(peer_write(fd, text, strlen(text)));
}

void
echo_expect(int fd, const char *text)
{
    char got[ECHO_LINE] = "";
    size_t len = strlen(text);

    ck_assert_uint_lt(len, sizeof(got));
    ck_assert(peer_read(fd, got, len));
    ck_assert_str_eq(got, text);
}

void
echo_expect_body(int fd, size_t len)
{
    char *got = malloc(len);

    ck_assert_ptr_nonnull(got);
    ck_assert(peer_read(fd, got, len));
    ck_assert(memcmp(got, echo.body, len) == 0);
    free(got);
}

void
echo_expect_alive(int fd)
{
    echo_send(fd, "alive\n");
    echo_expect(fd, "alive\n");
}
