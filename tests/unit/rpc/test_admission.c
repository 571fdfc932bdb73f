/* Who gets a connection: privileged peers and others, with connections and descriptors taken. */
#include <sys/resource.h>

#include "rpc/internal.h"
#include "tests/unit/rpc/peer.h"

static struct tiny tiny;

/* Whoever is known by uid. */
static bool
is_local(void *context, const struct rpc_peer *peer)
{
    ck_assert_ptr_eq(context, &tiny);
    return peer->has_uid && peer->uid == getuid();
}

static struct rpc_limits
limits_of(uint32_t connections, uint32_t per_client, uint32_t reserved)
{
    struct rpc_limits limits = RPC_LIMITS_DEFAULT;

    limits.max_connections = connections;
    limits.max_connections_per_client = per_client;
    limits.reserved = reserved;
    limits.is_privileged = is_local;
    return limits;
}

static void
start(uint32_t connections, uint32_t per_client, uint32_t reserved)
{
    struct rpc_limits limits = limits_of(connections, per_client, reserved);

    tiny_start(&tiny, &limits, 2);
}

static void
stop(void)
{
    ck_assert_uint_eq(tiny_stop(&tiny, 5000000), 0);
}

static uint64_t
refused(enum rpc_refusal why)
{
    return tiny_stats(&tiny).connections_refused[why];
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
        fds[i] = peer_connect(&tiny);
        expect_alive(fds[i]);
    }
    expect_refused(peer_connect(&tiny));
    for (int i = 0; i < 2; i++) {
        local[i] = peer_connect_unix(&tiny);
        expect_alive(local[i]);
    }
    expect_refused(peer_connect_unix(&tiny));
    ck_assert_uint_eq(refused(RPC_REFUSED_FULL), 2);
    /* The reserve comes on top: others get the place of one of their own only. */
    close(local[0]);
    AWAIT(tiny_stats(&tiny).connections == 5);
    expect_refused(peer_connect(&tiny));
    close(fds[0]);
    AWAIT(tiny_stats(&tiny).connections == 4);
    fds[0] = peer_connect(&tiny);
    expect_alive(fds[0]);
    /* And privileged peers may take what others leave. */
    close_all(fds, 4);
    AWAIT(tiny_stats(&tiny).connections == 1);
    local[0] = peer_connect_unix(&tiny);
    local[2] = peer_connect_unix(&tiny);
    for (int i = 0; i < 3; i++)
        expect_alive(local[i]);
    fds[0] = peer_connect(&tiny);
    expect_alive(fds[0]);
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
        fds[i] = peer_connect(&tiny);
        expect_alive(fds[i]);
    }
    expect_refused(peer_connect(&tiny));
    ck_assert_uint_eq(refused(RPC_REFUSED_CLIENT), 1);
    ck_assert_uint_eq(tiny_stats(&tiny).clients.clients, 1);
    for (int i = 0; i < 5; i++) {
        local[i] = peer_connect_unix(&tiny);
        expect_alive(local[i]);
    }
    ck_assert_uint_eq(tiny_stats(&tiny).clients.clients, 1);
    close(fds[0]);
    AWAIT(tiny_stats(&tiny).connections == 6);
    fds[0] = peer_connect(&tiny);
    expect_alive(fds[0]);
    close_all(fds, 2);
    close_all(local, 5);
    AWAIT(tiny_stats(&tiny).connections == 0);
    ck_assert_uint_eq(tiny_stats(&tiny).clients.clients, 0);
    stop();
}
END_TEST

START_TEST(a_user_without_privilege_is_a_client)
{
    struct rpc_limits limits = limits_of(100, 2, 4);
    int local[2];

    limits.is_privileged = NULL;
    tiny_start(&tiny, &limits, 1);
    for (int i = 0; i < 2; i++) {
        local[i] = peer_connect_unix(&tiny);
        expect_alive(local[i]);
    }
    expect_refused(peer_connect_unix(&tiny));
    ck_assert_uint_eq(refused(RPC_REFUSED_CLIENT), 1);
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

static void
connect_tcp(int fd)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)tiny.port)};

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void
connect_local(int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    memcpy(address.sun_path, tiny.path, sizeof(tiny.path));
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
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
    connect_tcp(tcp[0]);
    expect_alive(tcp[0]);
    for (int i = 1; i < 3; i++) {
        connect_tcp(tcp[i]);
        ck_assert(peer_is_cut(tcp[i]));
    }
    ck_assert_uint_eq(refused(RPC_REFUSED_DESCRIPTORS), 2);
    for (int i = 0; i < RESERVE; i++) {
        connect_local(local[i]);
        expect_alive(local[i]);
    }
    connect_tcp(tcp[3]);
    ck_assert(peer_is_cut(tcp[3]));
    ck_assert_uint_eq(refused(RPC_REFUSED_DESCRIPTORS), 3);
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
    connect_tcp(tcp);
    ck_assert(peer_is_cut(tcp));
    ck_assert_uint_eq(refused(RPC_REFUSED_DESCRIPTORS), 1);
    connect_local(local);
    expect_alive(local);
    /* Now there is none at all: the next one waits, and is let in when the first has gone. */
    connect_local(late);
    usleep(150000);
    expect_alive(local);
    close(local);
    expect_alive(late);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(tcp);
    close(late);
    tcp = peer_connect(&tiny);
    expect_alive(tcp);
    close(tcp);
    stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("rpc admission");
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
