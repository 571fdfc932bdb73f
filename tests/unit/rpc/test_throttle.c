/*
 * Clients over their rates: their calls wait, are answered all the same, and cost no other client
 * anything. A rate bounds time from below, so that is what is asserted.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include <sys/resource.h>

#include "tests/unit/rpc/peer.h"

/* Timers go by the loop's clock, which may be a little behind. */
#define SLACK_US 20000

static struct tiny tiny;

static bool
is_local(void *context, const struct net_peer *peer)
{
    REQUIRE(context == &tiny);
    return peer->has_uid;
}

static struct rpc_limits
limits_of(uint64_t per_second, uint64_t burst)
{
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    limits.net.is_privileged = is_local;
    limits.net.reserved = 4;
    limits.net.rates.calls = (struct token_rate){.per_second = per_second, .burst = burst};
    return limits;
}

static void
start(const struct rpc_limits *limits, unsigned workers)
{
    tiny_start(&tiny, limits, workers);
}

static void
stop(void)
{
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}

static int
connect_from(const char *source)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(inet_pton(AF_INET, source, &address.sin_addr), 1);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)tiny.port);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Null calls, numbered from 0, in one write. */
static void
send_calls(int fd, uint32_t count)
{
    struct buf stream;

    buf_init(&stream, 1u << 20);
    for (uint32_t i = 0; i < count; i++) {
        put_word(&stream, 0x80000000u | 40);
        put_call(&stream, i, TINY_NULL);
    }
    ck_assert(peer_write(fd, stream.data, stream.len));
    buf_free(&stream);
}

static void
expect_answers(int fd, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        EXPECT_ACCEPTED(fd, i, SUCCESS);
}

static uint64_t
delayed(void)
{
    return tiny_stats(&tiny).net.clients.calls_delayed;
}

START_TEST(calls_over_the_rate_wait)
{
    struct rpc_limits limits = limits_of(50, 5);
    int64_t begin_us;
    int fd;

    start(&limits, 1);
    fd = peer_connect(&tiny);
    begin_us = clock_monotonic_us();
    send_calls(fd, 15);
    expect_answers(fd, 15);
    ck_assert_int_ge(clock_monotonic_us() - begin_us, 200000 - SLACK_US);
    ck_assert_uint_ge(delayed(), 1);
    ck_assert_uint_le(delayed(), 10);
    ck_assert_uint_eq(tiny_stats(&tiny).calls_bad, 0);
    close(fd);
    stop();
}
END_TEST

START_TEST(connections_of_a_client_share_a_rate)
{
    struct rpc_limits limits = limits_of(50, 5);
    int64_t begin_us;
    int fds[4];

    start(&limits, 2);
    for (int i = 0; i < 4; i++)
        fds[i] = peer_connect(&tiny);
    begin_us = clock_monotonic_us();
    for (int i = 0; i < 4; i++)
        send_calls(fds[i], 5);
    for (int i = 0; i < 4; i++)
        expect_answers(fds[i], 5);
    ck_assert_int_ge(clock_monotonic_us() - begin_us, 300000 - SLACK_US);
    ck_assert_uint_eq(tiny_stats(&tiny).net.clients.clients, 1);
    for (int i = 0; i < 4; i++)
        close(fds[i]);
    stop();
}
END_TEST

START_TEST(the_others_do_not_wait)
{
    struct rpc_limits limits = limits_of(1, 2);
    int fd, other, local;

    start(&limits, 1);
    fd = connect_from("127.0.0.1");
    send_calls(fd, 6);
    AWAIT(delayed() == 1);
    other = connect_from("127.0.0.2");
    local = peer_connect_unix(&tiny);
    expect_alive(other);
    expect_alive(other);
    for (int i = 0; i < 50; i++)
        expect_alive(local);
    ck_assert_uint_le(delayed(), 5);
    ck_assert_uint_ge(tiny_stats(&tiny).net.clients.clients, 2);
    expect_answers(fd, 3);
    close(fd);
    close(other);
    close(local);
    /* The one that waits is closed like any other that has nothing in flight. */
    stop();
}
END_TEST

START_TEST(waiting_takes_no_time_of_the_processor)
{
    struct rpc_limits limits = limits_of(1, 1);
    struct rusage before, after;
    int fds[20];
    int64_t used_us;

    start(&limits, 2);
    for (int i = 0; i < 20; i++) {
        fds[i] = peer_connect(&tiny);
        send_calls(fds[i], 20);
    }
    AWAIT(delayed() == 20);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
    usleep(400000);
    ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
    used_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
               before.ru_stime.tv_sec) *
                  1000000 +
              after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
              before.ru_stime.tv_usec;
    ck_assert_int_lt(used_us, 150000);
    ck_assert_uint_le(delayed(), 60);
    for (int i = 0; i < 20; i++)
        close(fds[i]);
    stop();
}
END_TEST

START_TEST(answers_are_paid_for_afterwards)
{
    struct rpc_limits limits = limits_of(0, 0);
    int64_t begin_us;
    int fd;

    limits.net.rates.bytes = (struct token_rate){.per_second = 100000, .burst = 1000};
    start(&limits, 1);
    fd = peer_connect(&tiny);
    begin_us = clock_monotonic_us();
    ck_assert(peer_call(fd, 1, TINY_BODY, 30000));
    expect_body(&tiny, fd, 1, 30000);
    ck_assert_uint_eq(delayed(), 0);
    expect_alive(fd);
    ck_assert_uint_eq(delayed(), 1);
    ck_assert_int_ge(clock_monotonic_us() - begin_us, 290000 - SLACK_US);
    /* Debt stays with the client, not with the connection. */
    ck_assert(peer_call(fd, 2, TINY_BODY, 30000));
    expect_body(&tiny, fd, 2, 30000);
    close(fd);
    begin_us = clock_monotonic_us();
    expect_serving(&tiny);
    ck_assert_int_ge(clock_monotonic_us() - begin_us, 200000);
    stop();
}
END_TEST

START_TEST(a_deferred_answer_is_paid_for_when_it_comes)
{
    struct rpc_limits limits = limits_of(0, 0);
    int fd, local;

    limits.net.rates.bytes = (struct token_rate){.per_second = 100000, .burst = 1000};
    start(&limits, 1);
    fd = peer_connect(&tiny);
    local = peer_connect_unix(&tiny);
    ck_assert(peer_call(fd, 1, TINY_DEFER, 20000));
    expect_alive(fd);
    ck_assert_uint_eq(delayed(), 0);
    ck_assert(peer_call(local, 1, TINY_ANSWER, 0));
    EXPECT_ACCEPTED(local, 1, SUCCESS, 1);
    expect_body(&tiny, fd, 1, 20000);
    expect_alive(fd);
    ck_assert_uint_eq(delayed(), 1);
    close(fd);
    close(local);
    stop();
}
END_TEST

/* Whoever waits for its turn is neither idle nor slow; and its last calls count after its end. */
START_TEST(waiting_is_not_the_peers_fault)
{
    struct rpc_limits limits = limits_of(5, 1);
    int fd;

    limits.net.idle_timeout_us = 80000;
    limits.net.message_timeout_us = 80000;
    start(&limits, 1);
    fd = peer_connect(&tiny);
    send_calls(fd, 4);
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    expect_answers(fd, 4);
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 0);
    close(fd);
    stop();
}
END_TEST

/* The entry of a client stays until its burst is full again: for 200 ms after the last call. */
START_TEST(peers_that_go_while_they_wait)
{
    struct rpc_limits limits = limits_of(50, 10);

    start(&limits, 2);
    for (int i = 0; i < 40; i++) {
        int fd = peer_connect(&tiny);

        send_calls(fd, 3);
        if (i % 2) {
            struct linger at_once = {.l_onoff = 1};

            setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        }
        close(fd);
    }
    /* Not before the first of them have been accepted. */
    AWAIT(delayed() >= 1);
    AWAIT(tiny_stats(&tiny).net.connections == 0);
    ck_assert_uint_eq(tiny_stats(&tiny).net.clients.clients, 1);
    AWAIT((expect_serving(&tiny), tiny_stats(&tiny).net.connections <= 1));
    stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc throttle");
    TCase *tcase = tcase_create("throttle");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, calls_over_the_rate_wait);
    tcase_add_test(tcase, connections_of_a_client_share_a_rate);
    tcase_add_test(tcase, the_others_do_not_wait);
    tcase_add_test(tcase, waiting_takes_no_time_of_the_processor);
    tcase_add_test(tcase, answers_are_paid_for_afterwards);
    tcase_add_test(tcase, a_deferred_answer_is_paid_for_when_it_comes);
    tcase_add_test(tcase, waiting_is_not_the_peers_fault);
    tcase_add_test(tcase, peers_that_go_while_they_wait);
    suite_add_tcase(suite, tcase);
    return suite;
}
