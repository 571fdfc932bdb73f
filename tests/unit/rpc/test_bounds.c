/*
 * What a peer may ask of the server has bounds, and so have descriptors and patience. Each test
 * ends with a look whether everybody else is still served.
 */
#include <sys/resource.h>

#include "net/timeouts.h"
#include "net/relief.h"
#include "tests/unit/rpc/here.h"
#include "tests/unit/rpc/small_server.h"

/* ---- too much of it -------------------------------------------------------------------------- */

START_TEST(calls_in_flight_are_bounded)
{
    enum { CALLS = 10 };
    int fd = peer_connect(&tiny), other = peer_connect(&tiny);
    unsigned answered = 0;

    for (uint32_t i = 0; i < CALLS; i++)
        ck_assert(peer_call(fd, i, TINY_DEFER, 100));
    while (answered < CALLS) {
        unsigned now = CALLS - answered < 4 ? CALLS - answered : 4;

        AWAIT(atomic_load(&tiny.deferred) == answered + now);
        expect_alive(other);
        usleep(5000);
        ck_assert_uint_eq(atomic_load(&tiny.deferred), answered + now);
        ck_assert(peer_call(other, 1, TINY_ANSWER, 0));
        EXPECT_ACCEPTED(other, 1, SUCCESS, now);
        for (unsigned i = 0; i < now; i++)
            expect_body(&tiny, fd, answered + now - 1 - i, 100);
        answered += now;
    }
    close(fd);
    close(other);
}
END_TEST

START_TEST(one_byte_a_moment_costs_no_other_client)
{
    enum { CALLS = 40, SIZE = 3 << 20 };
    int fd = peer_connect(&tiny);
    uint32_t mark;
    struct buf rest;

    for (uint32_t i = 0; i < CALLS; i++)
        ck_assert(peer_call(fd, i, TINY_BODY, SIZE));
    AWAIT(tiny_stats(&tiny).calls >= 2);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(peer_read(fd, (char *)&mark + i, 1));
        expect_serving(&tiny);
    }
    /* The bound, two replies over it, and what the kernel's buffers take. */
    ck_assert_uint_lt(tiny_stats(&tiny).calls, CALLS / 2 + 8);
    ck_assert_uint_eq(ntohl(mark), 0x80000000u | (28 + SIZE));
    buf_init(&rest, 8u << 20);
    rest.data = malloc(28 + SIZE);
    ck_assert(peer_read(fd, rest.data, 28 + SIZE));
    ck_assert(memcmp(rest.data + 28, tiny.body, SIZE) == 0);
    buf_free(&rest);
    for (uint32_t i = 1; i < CALLS; i++)
        expect_body(&tiny, fd, i, SIZE);
    close(fd);
}
END_TEST

START_TEST(replies_not_taken_are_bounded)
{
    enum { CALLS = 200, SIZE = 100000 };
    struct rpc_limits limits = small;
    struct buf stream;
    int fd;

    limits.net.max_requests = CALLS * 2;
    limits.net.max_queued_bytes = 10 * SIZE;
    tiny_start(&tiny, &limits, 1);
    fd = peer_connect_unix(&tiny);
    /* In one write: the server will not read another. */
    buf_init(&stream, 1u << 20);
    for (uint32_t i = 0; i < CALLS; i++) {
        put_word(&stream, 0x80000000u | 44);
        put_call(&stream, i, TINY_BODY);
        put_word(&stream, SIZE);
    }
    ck_assert(peer_write(fd, stream.data, stream.len));
    buf_free(&stream);
    AWAIT(tiny_stats(&tiny).calls >= 10);
    for (int i = 0; i < 20; i++)
        expect_serving(&tiny);
    /* Those of the other connections, the bound, and what an AF_UNIX socket takes. */
    ck_assert_uint_lt(tiny_stats(&tiny).calls, 20 + CALLS / 2);
    for (uint32_t i = 0; i < CALLS; i++)
        expect_body(&tiny, fd, i, SIZE);
    close(fd);
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}
END_TEST

START_TEST(whoever_reads_slowest_goes_when_memory_is_short)
{
    enum { SIZE = 16 << 20 };
    int slow = peer_connect(&tiny), slower, idle = peer_connect(&tiny);
    uint32_t mark;

    slower = slow;
    ck_assert(peer_call(slower, 1, TINY_BODY, SIZE));
    ck_assert(peer_read(slower, (char *)&mark, sizeof(mark)));
    rpc_server_relieve(tiny.server);
    expect_serving(&tiny);
    /* It has been given a second. */
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 0);
    usleep(1100000);
    slow = peer_connect(&tiny);
    ck_assert(peer_call(slow, 1, TINY_BODY, SIZE));
    ck_assert(peer_read(slow, (char *)&mark, sizeof(mark)));
    rpc_server_relieve(tiny.server);
    AWAIT(tiny_stats(&tiny).net.connections_timed_out == 1);
    /* Neither the one with nothing to read, nor the one that has only begun to. */
    usleep(20000);
    rpc_server_relieve(tiny.server);
    expect_alive(idle);
    expect_serving(&tiny);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 1);
    close(slow);
    close(slower);
    close(idle);
}
END_TEST

START_TEST(connections_are_bounded)
{
    int fds[24], newcomer;

    for (size_t i = 0; i < small.net.max_connections; i++) {
        fds[i] = peer_connect(&tiny);
        expect_alive(fds[i]);
    }
    newcomer = peer_connect(&tiny);
    ck_assert(peer_is_cut(newcomer));
    close(newcomer);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_refused[NET_REFUSED_FULL], 1);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, small.net.max_connections);
    expect_alive(fds[3]);
    close(fds[0]);
    AWAIT(tiny_stats(&tiny).net.connections < small.net.max_connections);
    fds[0] = peer_connect(&tiny);
    expect_alive(fds[0]);
    for (size_t i = 0; i < small.net.max_connections; i++)
        close(fds[i]);
    AWAIT(tiny_stats(&tiny).net.connections == 0);
}
END_TEST

/* ---- no descriptors -------------------------------------------------------------------------- */

/* The lowest descriptor that is free. */
static rlim_t
next_descriptor(void)
{
    int fd = dup(0);

    ck_assert_int_ge(fd, 0);
    close(fd);
    return (rlim_t)fd;
}

static void
connect_in_place(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tiny.port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

START_TEST(no_descriptor_left)
{
    struct rlimit before, none;
    int standing = peer_connect(&tiny), newcomers[3];

    expect_alive(standing);
    for (int i = 0; i < 3; i++)
        newcomers[i] = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = next_descriptor();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    for (int i = 0; i < 3; i++) {
        connect_in_place(newcomers[i]);
        ck_assert(peer_is_cut(newcomers[i]));
        expect_alive(standing);
    }
    for (int i = 0; i < 3; i++)
        close(newcomers[i]);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_refused[NET_REFUSED_DESCRIPTORS], 3);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(standing);
}
END_TEST

/* Not even the spare one helps: the newcomer waits until there is one. */
START_TEST(no_descriptor_left_and_the_spare_one_lost)
{
    struct rlimit before, none;
    int standing = peer_connect(&tiny), newcomer = socket(AF_INET, SOCK_STREAM, 0);
    struct buf b;

    expect_alive(standing);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    connect_in_place(newcomer);
    buf_init(&b, 1024);
    put_call(&b, 1, TINY_NULL);
    ck_assert(peer_send(newcomer, &b));
    usleep(150000);
    expect_alive(standing);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_ACCEPTED(newcomer, 1, SUCCESS);
    close(newcomer);
    close(standing);
}
END_TEST

/* ---- time-outs: on the test's own thread, by the test's own clock ---------------------------- */

#define TIMEOUT_US ((int64_t)1000000000)

static struct net_connections *
start_here(struct rpc_limits limits)
{
    static const struct rpc_program program = {TINY_PROGRAM, 1, tiny_dispatch};

    limits.request_data = sizeof(struct tiny_waiting);
    memset(&tiny, 0, sizeof(tiny));
    tiny_fill(&tiny);
    tiny.server = rpc_server_create(&limits, 1, &program, 1, &tiny);
    ck_assert_ptr_nonnull(tiny.server);
    return here_connections(tiny.server);
}

static int
connect_here(struct net_connection **c)
{
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *c = here_adopt(tiny.server, fds[0]);
    ck_assert_ptr_nonnull(*c);
    return fds[1];
}

START_TEST(idle_connections_are_closed)
{
    struct rpc_limits limits = small;
    struct net_connections *set;
    struct net_connection *c, *first;
    int idle, waiting, stuck;
    int64_t begin_us;

    limits.net.idle_timeout_us = TIMEOUT_US;
    limits.net.max_queued_bytes = 64u << 20;
    set = start_here(limits);
    idle = connect_here(&first);
    begin_us = first->active_us;
    waiting = connect_here(&c);
    stuck = connect_here(&c);
    ck_assert(peer_call(waiting, 1, TINY_DEFER, 7));
    ck_assert(peer_call(stuck, 2, TINY_BODY, TINY_MAX_BODY));
    here_turn(tiny.server);
    net_timeouts_check(set, begin_us + TIMEOUT_US - 1);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 3);
    /* A byte begins the time anew. */
    ck_assert(peer_write(idle, "\x80", 1));
    here_turn(tiny.server);
    begin_us = first->active_us;
    net_timeouts_check(set, begin_us + TIMEOUT_US - 1);
    ck_assert_uint_ge(tiny_stats(&tiny).net.connections, 2);
    /* One that takes nothing of its answer is closed too, and one that waits for us is not. */
    net_timeouts_check(set, begin_us + TIMEOUT_US);
    ck_assert(peer_is_cut(idle));
    net_timeouts_check(set, begin_us + 2 * TIMEOUT_US);
    ck_assert(peer_is_cut(stuck));
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 1);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 2);
    ck_assert_uint_eq(tiny_answer(&tiny), 1);
    net_connections_settle(set);
    expect_body(&tiny, waiting, 1, 7);
    net_timeouts_check(set, begin_us + 4 * TIMEOUT_US);
    ck_assert(peer_is_cut(waiting));
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 3);
    close(idle);
    close(waiting);
    close(stuck);
    ck_assert_uint_eq(tiny_stop(&tiny, 0), 0);
}
END_TEST

START_TEST(records_must_come_to_an_end)
{
    struct rpc_limits limits = small;
    struct net_connections *set;
    struct net_connection *c;
    int slow, quiet, full;
    int64_t begin_us;
    struct buf b;

    limits.net.message_timeout_us = TIMEOUT_US;
    set = start_here(limits);
    quiet = connect_here(&c);
    ck_assert(peer_call(quiet, 1, TINY_NULL, 0));
    slow = connect_here(&c);
    ck_assert(peer_write(slow, "\x80\0", 2));
    here_turn(tiny.server);
    ck_assert(c->in_partial);
    begin_us = c->partial_since_us;
    /* More calls in flight than may be, and a record begun behind them. */
    full = connect_here(&c);
    buf_init(&b, 4096);
    for (uint32_t i = 0; i < small.net.max_requests + 1; i++) {
        put_word(&b, 0x80000000u | 44);
        put_call(&b, i, TINY_DEFER);
        put_word(&b, 10);
    }
    put_word(&b, 0x80000000u | 44);
    ck_assert(peer_write(full, b.data, b.len));
    buf_free(&b);
    here_turn(tiny.server);
    ck_assert(c->paused);
    /* A byte now and then does not help. */
    net_timeouts_check(set, begin_us + TIMEOUT_US - 1);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 3);
    ck_assert(peer_write(slow, "\0", 1));
    here_turn(tiny.server);
    net_timeouts_check(set, begin_us + TIMEOUT_US);
    ck_assert(peer_is_cut(slow));
    net_timeouts_check(set, begin_us + 10 * TIMEOUT_US);
    /* A connection that is quiet between records is not concerned, nor one that is not read. */
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 2);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 1);
    EXPECT_ACCEPTED(quiet, 1, SUCCESS);
    ck_assert_uint_eq(tiny_answer(&tiny), small.net.max_requests);
    net_connections_settle(set);
    ck_assert_uint_eq(tiny_answer(&tiny), 1);
    net_connections_settle(set);
    for (uint32_t i = 0; i < small.net.max_requests; i++)
        expect_body(&tiny, full, small.net.max_requests - 1 - i, 10);
    expect_body(&tiny, full, small.net.max_requests, 10);
    ck_assert(c->in_partial && !c->paused);
    close(slow);
    close(quiet);
    close(full);
    ck_assert_uint_eq(tiny_stop(&tiny, 0), 0);
}
END_TEST

/* A connection whose peer does not read a reply and has begun a record behind the call. */
static int
connect_unread(struct net_connection **c)
{
    struct buf b;
    int fd = connect_here(c);

    buf_init(&b, 128);
    put_word(&b, 0x80000000u | 44);
    put_call(&b, 1, TINY_DEFER);
    put_word(&b, TINY_MAX_BODY);
    put_word(&b, 0x80000000u | 44);
    ck_assert(peer_write(fd, b.data, b.len));
    buf_free(&b);
    here_turn(tiny.server);
    ck_assert((*c)->in_partial && !(*c)->paused);
    ck_assert_uint_eq(tiny_answer(&tiny), 1);
    net_connections_settle((*c)->set);
    ck_assert(peer_write(fd, "\0", 1));
    here_turn(tiny.server);
    ck_assert((*c)->in_partial && (*c)->paused && (*c)->writing);
    return fd;
}

START_TEST(unread_replies_excuse_no_record)
{
    struct rpc_limits limits = small;
    struct net_connections *set;
    struct net_connection *c;
    int64_t active_us;
    int fd;

    limits.net.message_timeout_us = TIMEOUT_US;
    limits.net.max_queued_bytes = 65536;
    set = start_here(limits);
    fd = connect_unread(&c);
    active_us = c->active_us;
    /* It has read a part within the time, and afterwards nothing. */
    net_timeouts_check(set, active_us + TIMEOUT_US - 1);
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 1);
    net_timeouts_check(set, active_us + 3 * TIMEOUT_US);
    ck_assert(peer_is_cut(fd));
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections_timed_out, 1);
    close(fd);
    fd = connect_unread(&c);
    ck_assert(net_relief_close_partial(set, NULL));
    ck_assert(peer_is_cut(fd));
    ck_assert(!net_relief_close_partial(set, NULL));
    close(fd);
    ck_assert_uint_eq(tiny_stop(&tiny, 0), 0);
}
END_TEST

START_TEST(the_client_with_most_records_begun_loses_one)
{
    struct net_connection *c[4];
    struct net_connections *set = start_here(small);
    int fds[4];

    for (unsigned i = 0; i < 4; i++) {
        fds[i] = connect_here(&c[i]);
        client_release(&c[i]->client);
        c[i]->client = client_retain(unit_client(i % 2 || i == 2 ? 2 : 1));
        ck_assert(peer_write(fds[i], "\x80\0", 2));
        here_turn(tiny.server);
    }
    /* Not the one that was begun first, which is its client's only one. */
    ck_assert(net_relief_close_partial(set, NULL));
    ck_assert(peer_is_cut(fds[1]));
    ck_assert(net_relief_close_partial(set, c[2]));
    ck_assert_uint_eq(tiny_stats(&tiny).net.connections, 2);
    ck_assert_int_ge(c[2]->fd, 0);
    for (unsigned i = 0; i < 4; i++)
        close(fds[i]);
    ck_assert_uint_eq(tiny_stop(&tiny, 0), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc bounds");
    TCase *tcase = tcase_create("bounds"), *times = tcase_create("own limits");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, small_start, small_stop);
    tcase_add_test(tcase, calls_in_flight_are_bounded);
    tcase_add_test(tcase, one_byte_a_moment_costs_no_other_client);
    tcase_add_test(tcase, whoever_reads_slowest_goes_when_memory_is_short);
    tcase_add_test(tcase, connections_are_bounded);
    tcase_add_test(tcase, no_descriptor_left);
    tcase_add_test(tcase, no_descriptor_left_and_the_spare_one_lost);
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(times, 120);
    tcase_add_test(times, replies_not_taken_are_bounded);
    tcase_add_test(times, idle_connections_are_closed);
    tcase_add_test(times, records_must_come_to_an_end);
    tcase_add_test(times, unread_replies_excuse_no_record);
    tcase_add_test(times, the_client_with_most_records_begun_loses_one);
    suite_add_tcase(suite, times);
    return suite;
}
