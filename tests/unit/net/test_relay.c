/*
 * Relays: bytes between a connection and another socket.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include "net/relay.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "net/connection.h"
#include "net/server.h"
#include "tests/unit/net/stream.h"

enum { BULK = 8 << 20 };

struct tunnel {
    struct net_connection net; /* first */
    struct net_relay *relay;
};

static struct net_server *server;
static struct memory_account account;
static int port, far_port, far_listener;
static atomic_uint begun, ended;
static net_counter sent_bytes, received_bytes;
static char *pattern;

/* ---- a protocol whose connections are tunnels from their first byte -------------------------- */

static void
opened(struct net_connection *net)
{
    struct tunnel *tunnel = (struct tunnel *)net;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    REQUIRE(fd >= 0);
    connect_to_port(fd, far_port);
    REQUIRE(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    tunnel->relay = net_relay_create(net, fd);
    REQUIRE(tunnel->relay);
    net_relay_count(tunnel->relay, &sent_bytes, &received_bytes);
    atomic_fetch_add(&begun, 1);
}

static enum net_input
received(struct net_connection *net, struct span *input)
{
    return net_relay_received(((struct tunnel *)net)->relay, input);
}

static void
stopped(struct net_connection *net)
{
    net_relay_stopped(((struct tunnel *)net)->relay);
}

static void
closed(struct net_connection *net)
{
    net_relay_destroy(((struct tunnel *)net)->relay);
    atomic_fetch_add(&ended, 1);
}

static const struct net_protocol protocol = {
    .connection_size = sizeof(struct tunnel),
    .opened = opened,
    .received = received,
    .stopped = stopped,
    .closed = closed,
};

static void
start_limited(int64_t idle_us, struct token_rate calls)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;

    limits.rates.calls = calls;
    limits.idle_timeout_us = idle_us;
    limits.memory = &account;
    server = net_server_create(&limits, 1);
    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq(net_server_listen(server, listen_tcp(&port), &protocol, NULL), 0);
    ck_assert_int_eq(net_server_start(server), 0);
}

static void
start(int64_t idle_us)
{
    start_limited(idle_us, (struct token_rate){0});
}

static void
set_up(void)
{
    atomic_store(&begun, 0);
    atomic_store(&ended, 0);
    atomic_store(&sent_bytes, 0);
    atomic_store(&received_bytes, 0);
    memory_account_init(&account, 64 << 20, NULL);
    far_listener = listen_tcp(&far_port);
    pattern = malloc(BULK);
    ck_assert_ptr_nonnull(pattern);
    for (size_t i = 0; i < BULK; i++)
        pattern[i] = (char)(i * 31 + (i >> 13));
}

/* The connections have ended by themselves. */
static void
tear_down(void)
{
    if (server) {
        AWAIT(atomic_load(&ended) == atomic_load(&begun));
        ck_assert_uint_eq(net_server_stop(server, 0), 0);
        net_server_destroy(server);
    }
    ck_assert_uint_eq(atomic_load(&ended), atomic_load(&begun));
    for (unsigned kind = 0; kind < MEMORY_KINDS; kind++)
        ck_assert_uint_eq(memory_used(&account, (enum memory_kind)kind), 0);
    close(far_listener);
    free(pattern);
}

/* Both ends of a new tunnel. */
static void
open_tunnel(int *near, int *far)
{
    *near = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(*near, 0);
    connect_to_port(*near, port);
    *far = accept(far_listener, NULL, NULL);
    ck_assert_int_ge(*far, 0);
}

/* ---- writers that wait for their readers ----------------------------------------------------- */

struct writer {
    pthread_t thread;
    int fd;
};

static void *
write_bulk(void *context)
{
    struct writer *writer = context;

    REQUIRE(peer_write(writer->fd, pattern, BULK));
    return NULL;
}

static void
begin_writing(struct writer *writer, int fd)
{
    writer->fd = fd;
    ck_assert_int_eq(pthread_create(&writer->thread, NULL, write_bulk, writer), 0);
}

static void
expect_bulk(int fd)
{
    char *bytes = malloc(BULK);

    ck_assert_ptr_nonnull(bytes);
    ck_assert(peer_read(fd, bytes, BULK));
    ck_assert_mem_eq(bytes, pattern, BULK);
    free(bytes);
}

/* Bytes that can be written to a peer that is not read: until nothing has moved for 0.3 s. */
static size_t
fill(int fd)
{
    size_t total = 0;
    struct pollfd p = {.fd = fd, .events = POLLOUT};

    while (poll(&p, 1, 300) == 1) {
        ssize_t n = send(fd, pattern + total % BULK, 4096, MSG_NOSIGNAL | MSG_DONTWAIT);

        ck_assert_int_gt(n, 0);
        total += (size_t)n;
        ck_assert_uint_lt(total, 256u << 20);
    }
    return total;
}

static void
drain(int fd, size_t len)
{
    static char bytes[65536];

    while (len) {
        size_t n = len < sizeof(bytes) ? len : sizeof(bytes);

        ck_assert(peer_read(fd, bytes, n));
        len -= n;
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(bytes_go_both_ways)
{
    struct writer writers[2];
    int near, far;

    start(0);
    open_tunnel(&near, &far);
    begin_writing(&writers[0], near);
    expect_bulk(far);
    pthread_join(writers[0].thread, NULL);
    begin_writing(&writers[1], far);
    expect_bulk(near);
    pthread_join(writers[1].thread, NULL);
    ck_assert_uint_eq(net_counter_read(&sent_bytes), BULK);
    ck_assert_uint_eq(net_counter_read(&received_bytes), BULK);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
}
END_TEST

START_TEST(the_near_side_ends_first)
{
    int near, far;

    start(0);
    open_tunnel(&near, &far);
    ck_assert(peer_write(near, "question", 8));
    ck_assert_int_eq(shutdown(near, SHUT_WR), 0);
    drain(far, 8);
    ck_assert(peer_is_cut(far));
    ck_assert_uint_eq(atomic_load(&ended), 0);
    ck_assert(peer_write(far, pattern, 100000));
    drain(near, 100000);
    close(far);
    ck_assert(peer_is_cut(near));
    close(near);
}
END_TEST

/* What was sent before the end arrives. */
START_TEST(the_far_side_ends_first)
{
    struct writer writer;
    int near, far;

    start(0);
    open_tunnel(&near, &far);
    begin_writing(&writer, far);
    ck_assert_int_eq(shutdown(far, SHUT_RD), 0);
    drain(near, BULK / 2);
    drain(near, BULK / 2);
    pthread_join(writer.thread, NULL);
    close(far);
    ck_assert(peer_is_cut(near));
    close(near);
}
END_TEST

/* Neither side is read faster than the other takes it; nothing of it is lost. */
START_TEST(a_side_that_is_not_read_holds_the_other_up)
{
    int near, far;
    size_t sent;

    start(0);
    open_tunnel(&near, &far);
    sent = fill(near);
    ck_assert_uint_lt(memory_used(&account, MEMORY_REQUESTS), 128 << 10);
    drain(far, sent);
    sent = fill(far);
    ck_assert_uint_gt(memory_used(&account, MEMORY_REPLIES), 0);
    ck_assert_uint_lt(memory_used(&account, MEMORY_REPLIES), 256 << 10);
    drain(near, sent);
    ck_assert(peer_write(near, "still", 5));
    drain(far, 5);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
}
END_TEST

START_TEST(a_reset_ends_the_other_side)
{
    const struct linger now = {.l_onoff = 1};
    int near, far;

    start(0);
    open_tunnel(&near, &far);
    ck_assert_int_eq(setsockopt(near, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    open_tunnel(&near, &far);
    ck_assert_int_eq(setsockopt(far, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
    close(far);
    ck_assert(peer_is_cut(near));
    close(near);
}
END_TEST

/* Bytes in either direction keep it open. */
START_TEST(an_idle_tunnel_times_out)
{
    struct net_stats stats;
    int near, far;

    start(400000);
    open_tunnel(&near, &far);
    for (int i = 0; i < 6; i++) {
        usleep(100000);
        ck_assert(peer_write(i % 2 ? near : far, "x", 1));
        drain(i % 2 ? far : near, 1);
    }
    ck_assert_uint_eq(atomic_load(&ended), 0);
    ck_assert(peer_is_cut(near));
    ck_assert(peer_is_cut(far));
    net_server_get_stats(server, &stats);
    ck_assert_uint_eq(stats.connections_timed_out, 1);
    close(near);
    close(far);
}
END_TEST

/* The rate is of messages, and a relay knows none. */
START_TEST(a_rate_of_calls_does_not_hold_it_up)
{
    struct net_stats stats;
    int near, far;

    start_limited(0, (struct token_rate){.per_second = 1, .burst = 1});
    open_tunnel(&near, &far);
    for (int i = 0; i < 20; i++) {
        ck_assert(peer_write(near, "x", 1));
        drain(far, 1);
    }
    net_server_get_stats(server, &stats);
    ck_assert_uint_eq(stats.clients.clients, 1);
    ck_assert_uint_eq(stats.clients.calls_delayed, 0);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
}
END_TEST

START_TEST(a_tunnel_without_memory_ends)
{
    int near, far;
    size_t left;

    start(0);
    open_tunnel(&near, &far);
    ck_assert(peer_write(far, "x", 1));
    drain(near, 1);
    AWAIT(memory_used(&account, MEMORY_REPLIES) == 0);
    left = (size_t)memory_left(&account, MEMORY_REPLIES);
    ck_assert(memory_charge(&account, MEMORY_REPLIES, left));
    ck_assert(peer_write(far, "y", 1));
    ck_assert(peer_is_cut(near));
    ck_assert(peer_is_cut(far));
    memory_uncharge(&account, MEMORY_REPLIES, left);
    close(near);
    close(far);
}
END_TEST

/* A server that stops waits for answers, but not for the end of tunnels. */
START_TEST(a_stop_cuts_tunnels)
{
    int near, far, half, far2;

    start(0);
    open_tunnel(&near, &far);
    ck_assert(peer_write(near, "x", 1));
    drain(far, 1);
    open_tunnel(&half, &far2);
    ck_assert_int_eq(shutdown(half, SHUT_WR), 0);
    ck_assert(peer_is_cut(far2));
    net_server_stop_accepting(server);
    ck_assert(peer_is_cut(near));
    ck_assert(peer_is_cut(far));
    ck_assert(peer_is_cut(half));
    ck_assert_uint_eq(net_server_stop(server, (int64_t)PATIENCE_MS * 1000), 0);
    net_server_destroy(server);
    server = NULL;
    close(near);
    close(far);
    close(half);
    close(far2);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: relay");
    TCase *tcase = tcase_create("relay");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, bytes_go_both_ways);
    tcase_add_test(tcase, the_near_side_ends_first);
    tcase_add_test(tcase, the_far_side_ends_first);
    tcase_add_test(tcase, a_side_that_is_not_read_holds_the_other_up);
    tcase_add_test(tcase, a_reset_ends_the_other_side);
    tcase_add_test(tcase, an_idle_tunnel_times_out);
    tcase_add_test(tcase, a_rate_of_calls_does_not_hold_it_up);
    tcase_add_test(tcase, a_tunnel_without_memory_ends);
    tcase_add_test(tcase, a_stop_cuts_tunnels);
    suite_add_tcase(suite, tcase);
    return suite;
}
