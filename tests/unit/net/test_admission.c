/* Which peers get a connection, with connections and descriptors taken. */
#include <sys/resource.h>

#include "tests/unit/net/echo.h"

/* A local peer of this user. */
static bool
is_local(void *context, const struct net_peer *peer)
{
    REQUIRE(context == &echo);
    return peer->has_uid && peer->uid == getuid();
}

static struct net_limits
limits_of(uint32_t connections, uint32_t per_client, uint32_t reserved)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;

    limits.max_connections = connections;
    limits.max_connections_per_client = per_client;
    limits.reserved = reserved;
    limits.is_privileged = is_local;
    limits.context = &echo;
    return limits;
}

static void
start(uint32_t connections, uint32_t per_client, uint32_t reserved)
{
    struct net_limits limits = limits_of(connections, per_client, reserved);

    echo_start(&limits, 2);
}

static void
stop(void)
{
    ck_assert_uint_eq(echo_stop(5000000), 0);
}

static uint64_t
refused(enum net_refusal why)
{
    return echo_stats().connections_refused[why];
}

static void
expect_refused(int fd)
{
    ck_assert(peer_is_cut(fd));
    close(fd);
}

static void
close_all(const int *fds, int count)
{
    for (int i = 0; i < count; i++)
        close(fds[i]);
}

START_TEST(privileged_peers_have_a_reserve)
{
    int fds[4], local[3];

    start(4, 0, 2);
    for (int i = 0; i < 4; i++) {
        fds[i] = echo_connect();
        echo_expect_alive(fds[i]);
    }
    expect_refused(echo_connect());
    for (int i = 0; i < 2; i++) {
        local[i] = echo_connect_unix();
        echo_expect_alive(local[i]);
    }
    expect_refused(echo_connect_unix());
    ck_assert_uint_eq(refused(NET_REFUSED_FULL), 2);
    /* The reserve comes on top: others get the place of one of their own only. */
    close(local[0]);
    AWAIT(echo_stats().connections == 5);
    expect_refused(echo_connect());
    close(fds[0]);
    AWAIT(echo_stats().connections == 4);
    fds[0] = echo_connect();
    echo_expect_alive(fds[0]);
    /* And privileged peers may take what others leave. */
    close_all(fds, 4);
    AWAIT(echo_stats().connections == 1);
    local[0] = echo_connect_unix();
    local[2] = echo_connect_unix();
    for (int i = 0; i < 3; i++)
        echo_expect_alive(local[i]);
    fds[0] = echo_connect();
    echo_expect_alive(fds[0]);
    close(fds[0]);
    close_all(local, 3);
    stop();
}
END_TEST

START_TEST(a_client_has_its_share)
{
    int fds[2], local[5];

    start(100, 2, 4);
    for (int i = 0; i < 2; i++) {
        fds[i] = echo_connect();
        echo_expect_alive(fds[i]);
    }
    expect_refused(echo_connect());
    ck_assert_uint_eq(refused(NET_REFUSED_CLIENT), 1);
    ck_assert_uint_eq(echo_stats().clients.clients, 1);
    for (int i = 0; i < 5; i++) {
        local[i] = echo_connect_unix();
        echo_expect_alive(local[i]);
    }
    ck_assert_uint_eq(echo_stats().clients.clients, 1);
    close(fds[0]);
    AWAIT(echo_stats().connections == 6);
    fds[0] = echo_connect();
    echo_expect_alive(fds[0]);
    close_all(fds, 2);
    close_all(local, 5);
    AWAIT(echo_stats().connections == 0);
    ck_assert_uint_eq(echo_stats().clients.clients, 0);
    stop();
}
END_TEST

START_TEST(a_user_without_privilege_is_a_client)
{
    struct net_limits limits = limits_of(100, 2, 4);
    int local[2];

    limits.is_privileged = NULL;
    echo_start(&limits, 1);
    for (int i = 0; i < 2; i++) {
        local[i] = echo_connect_unix();
        echo_expect_alive(local[i]);
    }
    expect_refused(echo_connect_unix());
    ck_assert_uint_eq(refused(NET_REFUSED_CLIENT), 1);
    close_all(local, 2);
    stop();
}
END_TEST

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Sets the soft limit so that `left` more descriptors can be had; returns the limit before. */
static struct rlimit
leave_descriptors(rlim_t left)
{
    struct rlimit before, few;
    int lowest = dup(0);

    ck_assert_int_ge(lowest, 0);
    close(lowest);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)lowest + left;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    return before;
}

START_TEST(the_last_descriptors_are_for_privileged_peers)
{
    enum { RESERVE = 3 };
    struct rlimit before;
    int tcp[4], local[RESERVE];

    start(100, 0, RESERVE);
    for (int i = 0; i < 4; i++)
        tcp[i] = socket(AF_INET, SOCK_STREAM, 0);
    for (int i = 0; i < RESERVE; i++)
        local[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    before = leave_descriptors(RESERVE + 1);
    connect_to_port(tcp[0], echo.port);
    echo_expect_alive(tcp[0]);
    for (int i = 1; i < 3; i++) {
        connect_to_port(tcp[i], echo.port);
        ck_assert(peer_is_cut(tcp[i]));
    }
    ck_assert_uint_eq(refused(NET_REFUSED_DESCRIPTORS), 2);
    for (int i = 0; i < RESERVE; i++) {
        connect_to_path(local[i], echo.path);
        echo_expect_alive(local[i]);
    }
    connect_to_port(tcp[3], echo.port);
    ck_assert(peer_is_cut(tcp[3]));
    ck_assert_uint_eq(refused(NET_REFUSED_DESCRIPTORS), 3);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close_all(tcp, 4);
    close_all(local, RESERVE);
    stop();
}
END_TEST

/* The reserve itself has run out, as it may when the limit is lowered from outside. */
START_TEST(the_spare_descriptor_lets_a_privileged_peer_in)
{
    struct rlimit before;
    int tcp = -1, local = -1, late = -1;

    start(100, 0, 2);
    tcp = socket(AF_INET, SOCK_STREAM, 0);
    local = socket(AF_UNIX, SOCK_STREAM, 0);
    late = socket(AF_UNIX, SOCK_STREAM, 0);
    before = leave_descriptors(0);
    connect_to_port(tcp, echo.port);
    ck_assert(peer_is_cut(tcp));
    ck_assert_uint_eq(refused(NET_REFUSED_DESCRIPTORS), 1);
    connect_to_path(local, echo.path);
    echo_expect_alive(local);
    /* Now there is none at all: the next one waits, and is let in when the first has gone. */
    connect_to_path(late, echo.path);
    usleep(150000);
    echo_expect_alive(local);
    close(local);
    echo_expect_alive(late);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(tcp);
    close(late);
    tcp = echo_connect();
    echo_expect_alive(tcp);
    close(tcp);
    stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: admission");
    TCase *tcase = tcase_create("admission");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, privileged_peers_have_a_reserve);
    tcase_add_test(tcase, a_client_has_its_share);
    tcase_add_test(tcase, a_user_without_privilege_is_a_client);
    tcase_add_test(tcase, the_last_descriptors_are_for_privileged_peers);
    tcase_add_test(tcase, the_spare_descriptor_lets_a_privileged_peer_in);
    suite_add_tcase(suite, tcase);
    return suite;
}
