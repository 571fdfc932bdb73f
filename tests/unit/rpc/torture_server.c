/*
 * The server with its allocations failing one after the other. Allocations fail on the thread that
 * asked for it, so that the worker's loop runs here, in turns with a peer on the other end of a
 * socket pair.
 */
#include "tests/unit/rpc/here.h"
#include "tests/unit/rpc/peer.h"
#include "tests/unit/torture.h"

static struct tiny tiny;
static struct rpc_server *server;

static const struct rpc_limits small = {
    .net.max_connections_per_client = 64,
    .net.rates.calls = {.per_second = 1000000, .burst = 1000000},
    .max_record = 100000,
    .max_empty_fragments = 64,
    .request_data = sizeof(struct tiny_waiting),
    .net.max_requests = 4,
    .net.max_queued_bytes = 1u << 20,
    .net.max_connections = 16,
};

/* 64 runs by reference and 64 copied ones: the pieces and the buffer overflow. */
static bool_t
xdr_much(XDR *xdr, struct span *body)
{
    for (unsigned i = 0; i < 64; i++) {
        struct span piece = span_of(body->ptr, 512 + i), copied = span_of(body->ptr, 300);

        if (!tiny_xdr_body(xdr, &piece) || !tiny_xdr_body(xdr, &copied))
            return FALSE;
    }
    return TRUE;
}

static void
dispatch(struct svc_req *req, SVCXPRT *transport)
{
    struct span body = span_of(tiny.body, 3000);

    if (req->rq_vers == 1) {
        tiny_dispatch(req, transport);
        return;
    }
    tiny_hold(&tiny, rpc_request_of(transport));
    tiny_send(transport, (xdrproc_t)xdr_much, &body);
}

static const struct rpc_program programs[] = {{TINY_PROGRAM, 1, dispatch},
                                              {TINY_PROGRAM, 2, dispatch}};

static void
turn(void)
{
    here_turn(server);
}

/* Creating either works or has no effect. */
static void
create(void *context)
{
    (void)context;
    errno = 0;
    server = rpc_server_create(&small, 2, programs, 2, &tiny);
    if (!server) {
        REQUIRE(torture_failed());
        REQUIRE(errno == ENOMEM);
        return;
    }
    rpc_server_destroy(server);
}

START_TEST(creating)
{
    ck_assert_uint_ge(torture_walk(create, NULL), 5);
}
END_TEST

START_TEST(listening)
{
    int port, fd, error;

    server = rpc_server_create(&small, 1, programs, 2, &tiny);
    ck_assert_ptr_nonnull(server);
    fd = listen_tcp(&port);
    torture_fail_at(1);
    error = rpc_server_listen(server, fd);
    REQUIRE(torture_failed());
    torture_fail_at(0);
    ck_assert_int_eq(error, ENOMEM);
    /* Still the caller's, and as good as before. */
    ck_assert_int_eq(rpc_server_listen(server, fd), 0);
    rpc_server_destroy(server);
}
END_TEST

/*
 * A newcomer while the n-th allocation fails, which is the client's entry, the connection or its
 * throttle: it is closed, nothing is left of it, and the next one is served.
 */
static bool
accept_one(unsigned n)
{
    struct rpc_stats stats;
    bool failed;
    int listener, fd;

    server = rpc_server_create(&small, 1, programs, 2, &tiny);
    ck_assert_ptr_nonnull(server);
    listener = listen_tcp(&tiny.port);
    ck_assert_int_eq(rpc_server_listen(server, listener), 0);
    fd = peer_connect(&tiny);
    torture_fail_at(n);
    turn();
    failed = torture_failed();
    torture_fail_at(0);
    rpc_server_get_stats(server, &stats);
    ck_assert_uint_eq(stats.net.connections, failed ? 0 : 1);
    ck_assert_uint_eq(stats.net.clients.clients, failed ? 0 : 1);
    if (failed) {
        ck_assert_uint_eq(
            stats.net.connections_refused[NET_REFUSED_MEMORY] + stats.net.connections_total, 1);
        ck_assert(peer_is_cut(fd));
        close(fd);
        fd = peer_connect(&tiny);
        turn();
    }
    ck_assert(peer_call(fd, 7, TINY_NULL, 0));
    turn();
    EXPECT_ACCEPTED(fd, 7, SUCCESS);
    close(fd);
    rpc_server_destroy(server);
    return failed;
}

START_TEST(accepting)
{
    unsigned seams = 0;

    while (accept_one(seams + 1))
        seams++;
    ck_assert_uint_ge(seams, 3);
}
END_TEST

/* ---- a conversation -------------------------------------------------------------------------- */

static void
append_call(struct buf *stream, uint32_t version, uint32_t xid, uint32_t procedure, uint32_t word,
            size_t extra)
{
    put_word(stream, 0x80000000u | (uint32_t)(44 + extra));
    put_call_to(stream, xid, TINY_PROGRAM, version, procedure);
    put_word(stream, word);
    for (size_t i = 0; i < extra; i++)
        ck_assert(buf_append_char(stream, 'e'));
}

/* Calls that need each kind of memory: requests, overflowing replies, collected records, a backlog.
 */
static void
write_conversation(struct buf *stream)
{
    buf_init(stream, 1u << 20);
    append_call(stream, 1, 1, TINY_NULL, 0, 0);
    append_call(stream, 2, 2, 0, 0, 0);
    append_call(stream, 1, 3, TINY_ECHO, 6000, 6000);
    append_call(stream, 1, 4, TINY_BODY, 70000, 90000);
    append_call(stream, 1, 5, TINY_LATER, 0, 0);
    for (uint32_t i = 0; i < 3; i++)
        append_call(stream, 1, 6 + i, TINY_DEFER, 20000, 0);
    append_call(stream, 1, 9, TINY_BROKEN, 0, 0);
    append_call(stream, 1, 10, TINY_BODY, 2000000, 0);
}

struct outcome {
    unsigned answers;  /* whole replies */
    unsigned failures; /* of those, errors */
    bool cut;
};

/* Takes what has come; counts the replies that are whole. */
static void
read_replies(int fd, struct buf *in, struct outcome *outcome)
{
    static char chunk[65536];
    ssize_t n;

    while ((n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0)
        REQUIRE(buf_append(in, chunk, (size_t)n));
    if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK))
        outcome->cut = true;
    while (in->len >= 28) {
        size_t len = 4 + (get_word(in, 0) & 0x7fffffffu);

        if (in->len < len)
            break;
        outcome->answers++;
        if (get_word(in, 6) != SUCCESS)
            outcome->failures++;
        drop_front(in, len);
    }
}

/*
 * One conversation with the n-th allocation failing; false if it has fewer. The peer stands on the
 * same thread, so all of its memory is there before the first turn.
 */
static bool
converse(unsigned n)
{
    static char output[4 << 20];
    struct buf stream, in;
    struct outcome outcome = {0};
    struct net_connection *c;
    size_t sent = 0;
    int fds[2];
    bool failed;

    write_conversation(&stream);
    buf_init(&in, sizeof(output));
    in.data = output;
    in.capacity = sizeof(output);
    server = rpc_server_create(&small, 1, programs, 2, &tiny);
    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    atomic_store(&tiny.held, 0);
    atomic_store(&tiny.released, 0);
    torture_fail_at(n);
    c = here_adopt(server, fds[0]);
    if (c) {
        net_connections_settle(here_connections(server));
        for (unsigned i = 0; i < 400 && !outcome.cut && outcome.answers < 10; i++) {
            size_t step = i % 3 ? 30000 : 50;
            size_t take = stream.len - sent < step ? stream.len - sent : step;
            ssize_t written = take ? send(fds[1], stream.data + sent, take, MSG_NOSIGNAL) : 0;

            if (written > 0)
                sent += (size_t)written;
            turn();
            if (i % 5 == 4)
                (void)tiny_answer(&tiny);
            net_connections_settle(here_connections(server));
            read_replies(fds[1], &in, &outcome);
        }
    } else {
        close(fds[0]);
    }
    failed = torture_failed();
    torture_fail_at(0);
    /* All is answered, some perhaps with SYSTEM_ERR in place of a result, or it is cut off. */
    if (!failed) {
        ck_assert_uint_eq(outcome.answers, 10);
        ck_assert_uint_eq(outcome.failures, 2);
    } else {
        ck_assert(!c || outcome.cut || (outcome.answers == 10 && outcome.failures <= 3));
    }
    (void)tiny_answer(&tiny);
    close(fds[1]);
    turn();
    rpc_server_destroy(server);
    ck_assert_uint_eq(atomic_load(&tiny.released), atomic_load(&tiny.held));
    buf_free(&stream);
    return failed;
}

START_TEST(conversing)
{
    unsigned seams = 0;

    while (converse(seams + 1))
        seams++;
    ck_assert_uint_ge(seams, 15);
}
END_TEST

static void
start(void)
{
    memset(&tiny, 0, sizeof(tiny));
    tiny_fill(&tiny);
}

static void
stop(void)
{
}

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc torture");
    TCase *tcase = tcase_create("server");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, start, stop);
    tcase_add_test(tcase, creating);
    tcase_add_test(tcase, listening);
    tcase_add_test(tcase, accepting);
    tcase_add_test(tcase, conversing);
    suite_add_tcase(suite, tcase);
    return suite;
}
