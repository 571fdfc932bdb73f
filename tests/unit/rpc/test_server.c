/* The server's ordinary work: calls, answers at once and later, in any order, and its end. */
#include <pthread.h>
#include <signal.h>

#include "tests/unit/rpc/peer.h"

static struct tiny tiny;

static void
start(void)
{
    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 2);
}

/* One worker, so that any connection can have the deferred requests of all answered. */
static void
start_one(void)
{
    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 1);
}

static void
stop(void)
{
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}

START_TEST(a_null_call_is_answered)
{
    int tcp = peer_connect(&tiny), local = peer_connect_unix(&tiny);

    expect_alive(tcp);
    expect_alive(local);
    close(tcp);
    close(local);
    AWAIT(tiny_stats(&tiny).net.connections == 0);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_total, 2);
    ck_assert_uint_eq(tiny_stats(&tiny).calls, 2);
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, 0);
    ck_assert_uint_eq(tiny_stats(&tiny).net.bytes_in, 2 * 44);
    ck_assert_uint_eq(tiny_stats(&tiny).net.bytes_out, 2 * 28);
}
END_TEST

START_TEST(bodies_of_all_sizes)
{
    static const uint32_t sizes[] = {0,    1,    3,     4,      508,     511,     512,          513,
                                     1000, 4095, 20480, 300001, 1000003, 8388608, TINY_MAX_BODY};
    int fd = peer_connect(&tiny);

    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ck_assert(peer_call(fd, i, TINY_BODY, sizes[i]));
        expect_body(&tiny, fd, i, sizes[i]);
    }
    close(fd);
}
END_TEST

START_TEST(what_is_not_held_is_copied)
{
    int fd = peer_connect(&tiny);

    for (uint32_t n = 0; n <= 8192; n += n < 1100 ? 1 : 1000) {
        struct buf b;

        buf_init(&b, 1u << 20);
        put_call(&b, n, TINY_ECHO);
        put_word(&b, n);
        ck_assert(buf_append(&b, tiny.body, (n + 3) & ~3u));
        ck_assert(peer_send(fd, &b));
        expect_body(&tiny, fd, n, n);
    }
    close(fd);
}
END_TEST

START_TEST(pipelined_calls_are_answered_in_order)
{
    enum { CALLS = 5000 };
    int fd = peer_connect(&tiny);
    struct buf b, record;

    buf_init(&record, 1u << 20);
    for (uint32_t i = 0; i < CALLS; i++) {
        buf_init(&b, 1024);
        put_call(&b, i, TINY_BODY);
        put_word(&b, i % 700);
        put_word(&record, 0x80000000u | (uint32_t)b.len);
        ck_assert(buf_append(&record, b.data, b.len));
        buf_free(&b);
    }
    ck_assert(peer_write(fd, record.data, record.len));
    buf_free(&record);
    for (uint32_t i = 0; i < CALLS; i++)
        expect_body(&tiny, fd, i, i % 700);
    close(fd);
}
END_TEST

START_TEST(the_socket_identifies_the_caller)
{
    int tcp = peer_connect(&tiny), local = peer_connect_unix(&tiny);

    ck_assert(peer_call(tcp, 1, TINY_PEER, 0));
    EXPECT_ACCEPTED(tcp, 1, SUCCESS, AF_INET, 0, 0, 0, CLIENT_INET);
    ck_assert(peer_call(local, 2, TINY_PEER, 0));
    EXPECT_ACCEPTED(local, 2, SUCCESS, AF_UNIX, 1, getuid(), (uint32_t)getpid(), CLIENT_UID);
    close(tcp);
    close(local);
}
END_TEST

START_TEST(procedures_may_fail_or_keep_silent)
{
    int fd = peer_connect(&tiny);

    ck_assert(peer_call(fd, 1, TINY_FAIL, 0));
    EXPECT_ACCEPTED(fd, 1, SYSTEM_ERR);
    ck_assert(peer_call(fd, 2, TINY_BROKEN, 0));
    EXPECT_ACCEPTED(fd, 2, SYSTEM_ERR);
    ck_assert(peer_call(fd, 3, TINY_SILENT, 0));
    ck_assert(peer_call(fd, 4, TINY_AT_ONCE, 0));
    expect_body(&tiny, fd, 4, 600);
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, 2);
    close(fd);
}
END_TEST

START_TEST(deferred_calls_are_answered_in_any_order)
{
    int fd = peer_connect(&tiny), other = peer_connect(&tiny);

    ck_assert(peer_call(fd, 1, TINY_DEFER, 100));
    ck_assert(peer_call(fd, 2, TINY_DEFER, 100000));
    ck_assert(peer_call(fd, 3, TINY_LATER, 0));
    ck_assert(peer_call(other, 9, TINY_DEFER, 5000));
    expect_alive(fd);
    AWAIT(atomic_load(&tiny.deferred) == 4);
    ck_assert(peer_call(other, 10, TINY_ANSWER, 0));
    expect_body(&tiny, other, 9, 5000);
    EXPECT_ACCEPTED(other, 10, SUCCESS, 4);
    EXPECT_ACCEPTED(fd, 3, SYSTEM_ERR);
    expect_body(&tiny, fd, 2, 100000);
    expect_body(&tiny, fd, 1, 100);
    close(fd);
    close(other);
}
END_TEST

START_TEST(a_peer_may_shut_down_its_side_and_wait)
{
    int fd = peer_connect(&tiny), other = peer_connect(&tiny);

    ck_assert(peer_call(fd, 1, TINY_DEFER, 3000000));
    ck_assert(peer_call(fd, 2, TINY_BODY, 3000000));
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_body(&tiny, fd, 2, 3000000);
    ck_assert(peer_call(other, 3, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(other, 3, SUCCESS, 1);
    expect_body(&tiny, fd, 1, 3000000);
    ck_assert(peer_is_cut(fd));
    close(fd);
    close(other);
}
END_TEST

/* A reset, not an orderly end: unread bytes in our own buffer do it. */
static void
vanish(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
}

START_TEST(a_peer_gone_before_its_answer)
{
    int fd = peer_connect(&tiny), local = peer_connect_unix(&tiny), other = peer_connect(&tiny);

    for (uint32_t i = 0; i < 10; i++) {
        ck_assert(peer_call(fd, i, TINY_DEFER, 100000));
        ck_assert(peer_call(local, i, i % 2 ? TINY_DEFER : TINY_LATER, 100000));
    }
    AWAIT(atomic_load(&tiny.deferred) == 20);
    vanish(fd);
    close(local);
    AWAIT(tiny_stats(&tiny).net.connections <= 2);
    ck_assert_uint_eq(atomic_load(&tiny.released), 0);
    ck_assert(peer_call(other, 1, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(other, 1, SUCCESS, 20);
    AWAIT(atomic_load(&tiny.released) == 20);
    AWAIT(tiny_stats(&tiny).net.connections == 1);
    close(other);
}
END_TEST

/* Over AF_UNIX, where a closed connection is not one of which the peer has ended its side alone. */
START_TEST(a_local_peer_gone_is_noticed_before_its_answer)
{
    int local = peer_connect_unix(&tiny), half = peer_connect_unix(&tiny);
    int other = peer_connect(&tiny);

    ck_assert(peer_call(local, 1, TINY_DEFER, 100));
    ck_assert(peer_call(half, 2, TINY_DEFER, 100));
    AWAIT(atomic_load(&tiny.deferred) == 2);
    ck_assert_int_eq(shutdown(half, SHUT_WR), 0);
    close(local);
    AWAIT(tiny_stats(&tiny).net.connections == 2);
    ck_assert_uint_eq(atomic_load(&tiny.released), 0);
    ck_assert(peer_call(other, 3, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(other, 3, SUCCESS, 2);
    expect_body(&tiny, half, 2, 100);
    ck_assert(peer_is_cut(half));
    close(half);
    close(other);
}
END_TEST

START_TEST(a_peer_gone_with_its_answer_half_written)
{
    int fd = peer_connect(&tiny), other = peer_connect(&tiny);

    for (uint32_t i = 0; i < 3; i++)
        ck_assert(peer_call(fd, i, TINY_BODY, TINY_MAX_BODY / 2));
    AWAIT(atomic_load(&tiny.held) >= 2);
    ck_assert_uint_eq(atomic_load(&tiny.released), 0);
    vanish(fd);
    AWAIT(tiny_stats(&tiny).net.connections == 1);
    AWAIT(atomic_load(&tiny.released) == atomic_load(&tiny.held));
    expect_alive(other);
    close(other);
}
END_TEST

/* ---- work posted ----------------------------------------------------------------------------- */

enum { POSTERS = 4, POSTS = 2000 };

struct posted {
    struct net_task task;
    unsigned poster;
    unsigned number;
};

static struct net_worker *worker;
static struct posted posts[POSTERS][POSTS];
static unsigned seen[POSTERS]; /* the worker's */
static bool in_order;          /* likewise */
static atomic_uint runs;

static void
count(struct net_task *task)
{
    struct posted *posted = (struct posted *)task;

    in_order = in_order && posted->number == seen[posted->poster]++;
    atomic_fetch_add(&runs, 1);
}

static void *
post(void *context)
{
    struct posted *own = context;

    for (unsigned i = 0; i < POSTS; i++) {
        own[i].task.run = count;
        own[i].number = i;
        net_worker_post(worker, &own[i].task);
    }
    return NULL;
}

static void
find_worker(struct svc_req *req, SVCXPRT *transport)
{
    (void)req;
    worker = rpc_request_worker(rpc_request_of(transport));
    ck_assert(svc_sendreply(transport, (xdrproc_t)(void (*)(void))xdr_void, NULL));
}

START_TEST(tasks_run_in_the_order_of_their_posting)
{
    static const struct rpc_program program = {TINY_PROGRAM, 1, find_worker};
    pthread_t threads[POSTERS];
    int fd;

    tiny.server = rpc_server_create(&RPC_LIMITS_DEFAULT, 1, &program, 1, NULL);
    ck_assert_ptr_nonnull(tiny.server);
    ck_assert_int_eq(rpc_server_listen(tiny.server, listen_tcp(&tiny.port)), 0);
    ck_assert_int_eq(rpc_server_start(tiny.server), 0);
    fd = peer_connect(&tiny);
    expect_alive(fd);
    ck_assert_uint_eq(net_worker_number(worker), 0);
    in_order = true;
    for (unsigned i = 0; i < POSTERS; i++) {
        for (unsigned j = 0; j < POSTS; j++)
            posts[i][j].poster = i;
        ck_assert_int_eq(pthread_create(&threads[i], NULL, post, posts[i]), 0);
    }
    for (unsigned i = 0; i < POSTERS; i++)
        pthread_join(threads[i], NULL);
    /* What has been posted before the stop is run, whether there was time for it or not. */
    (void)rpc_server_stop(tiny.server, 0);
    ck_assert_uint_eq(atomic_load(&runs), POSTERS * POSTS);
    ck_assert(in_order);
    rpc_server_destroy(tiny.server);
    close(fd);
}
END_TEST

/* ---- workers --------------------------------------------------------------------------------- */

/* On which worker is the connection? */
static uint32_t
ask_worker(int fd)
{
    struct buf reply;
    uint32_t number;

    ck_assert(peer_call(fd, 1, TINY_WORKER, 0));
    ck_assert(peer_receive(fd, &reply));
    number = get_word(&reply, 6);
    buf_free(&reply);
    return number;
}

START_TEST(connections_are_spread_over_the_workers)
{
    enum { WORKERS = 3, EACH = 50 };
    int fds[WORKERS * EACH], i;
    unsigned of[WORKERS] = {0};

    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, WORKERS);
    for (i = 0; i < WORKERS * EACH; i++)
        fds[i] = i % 2 ? peer_connect(&tiny) : peer_connect_unix(&tiny);
    for (i = 0; i < WORKERS * EACH; i++)
        of[ask_worker(fds[i])]++;
    for (i = 0; i < WORKERS; i++)
        ck_assert_uint_eq(of[i], EACH);
    /* The worker that has lost its connections gets the next ones. */
    for (i = 0; i < WORKERS * EACH; i++) {
        if (ask_worker(fds[i]) == 1) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
    AWAIT(tiny_stats(&tiny).net.connections == (WORKERS - 1) * EACH);
    for (i = 0; i < WORKERS * EACH; i++) {
        if (fds[i] < 0) {
            fds[i] = peer_connect(&tiny);
            ck_assert_uint_eq(ask_worker(fds[i]), 1);
        }
    }
    for (i = 0; i < WORKERS * EACH; i++)
        close(fds[i]);
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}
END_TEST

/* ---- the end --------------------------------------------------------------------------------- */

START_TEST(a_server_that_never_started)
{
    int port;

    tiny.server = rpc_server_create(&RPC_LIMITS_DEFAULT, 3, NULL, 0, NULL);
    ck_assert_ptr_nonnull(tiny.server);
    ck_assert_int_eq(rpc_server_listen(tiny.server, listen_tcp(&port)), 0);
    rpc_server_stop_accepting(tiny.server);
    ck_assert_uint_eq(rpc_server_stop(tiny.server, 1000000), 0);
    rpc_server_destroy(tiny.server);
    rpc_server_destroy(NULL);
    ck_assert_ptr_null(rpc_server_create(&RPC_LIMITS_DEFAULT, 0, NULL, 0, NULL));
    ck_assert_int_eq(errno, EINVAL);
    errno = 0;
    ck_assert_ptr_null(rpc_server_create(&(struct rpc_limits){0}, 1, NULL, 0, NULL));
    ck_assert_int_eq(errno, EINVAL);
}
END_TEST

START_TEST(a_descriptor_that_is_no_socket)
{
    int fds[2];

    tiny.server = rpc_server_create(&RPC_LIMITS_DEFAULT, 1, NULL, 0, NULL);
    ck_assert_int_eq(rpc_server_listen(tiny.server, -1), EBADF);
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_eq(rpc_server_listen(tiny.server, fds[0]), ENOTSOCK);
    close(fds[0]);
    close(fds[1]);
    rpc_server_destroy(tiny.server);
}
END_TEST

static void
answer_all(struct net_task *task)
{
    (void)task;
    (void)tiny_answer(&tiny);
}

START_TEST(calls_in_flight_are_answered_at_the_end)
{
    static struct net_task task = {.run = answer_all};
    int fd, idle;

    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 1);
    fd = peer_connect(&tiny);
    idle = peer_connect(&tiny);
    expect_alive(idle);
    ck_assert(peer_call(fd, 1, TINY_DEFER, 8000000));
    AWAIT(atomic_load(&tiny.deferred) == 1);
    rpc_server_stop_accepting(tiny.server);
    ck_assert(peer_is_cut(idle));
    /* Not read any more, and no reason to reset the connection under the answer to the first. */
    ck_assert(peer_call(fd, 2, TINY_NULL, 0));
    net_worker_post(rpc_request_worker(rpc_request_of_data(tiny.waiting)), &task);
    expect_body(&tiny, fd, 1, 8000000);
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
    close(fd);
    close(idle);
}
END_TEST

/* All is written, but not all has arrived, when the peer says one thing more: no reason to reset.
 */
START_TEST(a_late_call_costs_no_answer)
{
    enum { SIZE = 200000 };
    static struct net_task task = {.run = answer_all};
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), little = 4096;

    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 1);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)tiny.port);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    ck_assert(peer_call(fd, 1, TINY_DEFER, SIZE));
    AWAIT(atomic_load(&tiny.deferred) == 1);
    rpc_server_stop_accepting(tiny.server);
    net_worker_post(rpc_request_worker(rpc_request_of_data(tiny.waiting)), &task);
    AWAIT(atomic_load(&tiny.released) == 1);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert(peer_call(fd, 2 + i, TINY_NULL, 0));
        usleep(20000);
    }
    expect_body(&tiny, fd, 1, SIZE);
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
    close(fd);
}
END_TEST

START_TEST(no_caller_waits_longer_than_the_time_out)
{
    int fd;

    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 1);
    fd = peer_connect(&tiny);
    ck_assert(peer_call(fd, 1, TINY_DEFER, 10));
    ck_assert(peer_call(fd, 2, TINY_DEFER, 10));
    AWAIT(atomic_load(&tiny.deferred) == 2);
    ck_assert_uint_eq(tiny_stop(&tiny, 50000), 1);
    ck_assert_uint_eq(atomic_load(&tiny.released), 2);
    ck_assert(peer_is_cut(fd));
    close(fd);
}
END_TEST

enum { CALLERS = 6 };

struct caller {
    pthread_t thread;
    int fd;
    unsigned answers;
    bool cut_short; /* in the middle of a reply */
};

static atomic_uint answered;

/* Keeps a few calls in flight until the connection ends; notes whether it ended between replies. */
static void *
call_until_the_end(void *context)
{
    static const uint32_t sizes[] = {10, 1000, 200000, 70};
    struct caller *caller = context;
    uint32_t sent = 0;
    bool open = true;
    char *reply = malloc(1 << 20);

    while (reply) {
        uint32_t mark;

        for (; open && sent < caller->answers + 4; sent++)
            open = peer_call(caller->fd, sent, TINY_BODY, sizes[sent % 4]);
        if (!peer_read(caller->fd, &mark, sizeof(mark)))
            break;
        if (!peer_read(caller->fd, reply, ntohl(mark) & 0x7fffffffu)) {
            caller->cut_short = true;
            break;
        }
        caller->answers++;
        atomic_fetch_add(&answered, 1);
    }
    free(reply);
    return NULL;
}

START_TEST(stop_under_load_cuts_no_reply_short)
{
    struct caller callers[CALLERS] = {0};
    unsigned sum = 0;

    atomic_store(&answered, 0);
    tiny_start(&tiny, &RPC_LIMITS_DEFAULT, 2);
    for (int i = 0; i < CALLERS; i++) {
        callers[i].fd = i % 3 ? peer_connect(&tiny) : peer_connect_unix(&tiny);
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, call_until_the_end, &callers[i]),
                         0);
    }
    AWAIT(atomic_load(&answered) > 500);
    ck_assert_uint_eq(rpc_server_stop(tiny.server, 10000000), 0);
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_msg(!callers[i].cut_short, "caller %d", i);
        close(callers[i].fd);
        sum += callers[i].answers;
    }
    /* Every call that was taken has been answered, and every answer has arrived. */
    ck_assert_uint_eq(tiny_stats(&tiny).calls, sum);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 0);
    ck_assert_uint_eq(tiny_stop(&tiny, 0), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc server");
    TCase *calls = tcase_create("calls"), *one = tcase_create("deferred"),
          *end = tcase_create("end");

    tcase_set_timeout(calls, 120);
    tcase_add_checked_fixture(calls, start, stop);
    tcase_add_test(calls, a_null_call_is_answered);
    tcase_add_test(calls, bodies_of_all_sizes);
    tcase_add_test(calls, what_is_not_held_is_copied);
    tcase_add_test(calls, pipelined_calls_are_answered_in_order);
    tcase_add_test(calls, the_socket_identifies_the_caller);
    tcase_add_test(calls, procedures_may_fail_or_keep_silent);
    suite_add_tcase(suite, calls);
    tcase_set_timeout(one, 120);
    tcase_add_checked_fixture(one, start_one, stop);
    tcase_add_test(one, deferred_calls_are_answered_in_any_order);
    tcase_add_test(one, a_peer_may_shut_down_its_side_and_wait);
    tcase_add_test(one, a_peer_gone_before_its_answer);
    tcase_add_test(one, a_local_peer_gone_is_noticed_before_its_answer);
    tcase_add_test(one, a_peer_gone_with_its_answer_half_written);
    suite_add_tcase(suite, one);
    tcase_set_timeout(end, 120);
    tcase_add_test(end, tasks_run_in_the_order_of_their_posting);
    tcase_add_test(end, connections_are_spread_over_the_workers);
    tcase_add_test(end, a_server_that_never_started);
    tcase_add_test(end, a_descriptor_that_is_no_socket);
    tcase_add_test(end, calls_in_flight_are_answered_at_the_end);
    tcase_add_test(end, a_late_call_costs_no_answer);
    tcase_add_test(end, no_caller_waits_longer_than_the_time_out);
    tcase_add_test(end, stop_under_load_cuts_no_reply_short);
    suite_add_tcase(suite, end);
    return suite;
}
