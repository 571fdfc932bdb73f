/* Which peers are near: those on this host, and none that is farther away. */
#define UNIT_STARTS_NO_THREAD

#include "net/near_peer.h"

#include <limits.h>
#include <netinet/tcp.h>

#include "net/connection.h"
#include "net/protocol.h"
#include "net/server.h"
#include "tests/unit/net/stream.h"

START_TEST(distant_peers_have_the_kernels_buffer)
{
    static const uint32_t far[] = {51,     100,      200,       1000,      20000,
                                   300000, 10000000, INT32_MAX, UINT32_MAX};

    for (size_t i = 0; i < sizeof(far) / sizeof(far[0]); i++)
        ck_assert_int_eq(net_near_peer_buffer(far[i]), 0);
}
END_TEST

START_TEST(near_peers_are_not_slowed_down)
{
    for (uint32_t rtt_us = 0; rtt_us <= NET_NEAR_RTT_US; rtt_us++) {
        int bytes = net_near_peer_buffer(rtt_us);

        ck_assert_int_eq(bytes, NET_NEAR_BYTES);
        /* What the kernel makes of it, per round trip, is 20 Gbit/s and more. */
        ck_assert_uint_ge((uint64_t)bytes * 2 * 8 * 1000000,
                          UINT64_C(20000000000) * (rtt_us ? rtt_us : 1));
    }
}
END_TEST

static int
send_buffer_of(int fd)
{
    int bytes;
    socklen_t len = sizeof(bytes);

    ck_assert_int_eq(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len), 0);
    return bytes;
}

static bool
has_reno(int fd)
{
    char name[16] = "";
    socklen_t len = sizeof(name);

    ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
    return strcmp(name, "reno") == 0;
}

/* By itself the kernel has a default of some KiB, and grows it. */
START_TEST(a_connection_of_this_host_is_near)
{
    int port, server = listen_tcp(&port), client, accepted, before;
    bool reno = false;

    /* The time of a handshake may be long on a busy machine, but not every time. */
    for (unsigned i = 0; i < 100; i++) {
        client = socket(AF_INET, SOCK_STREAM, 0);
        connect_to_port(client, port);
        accepted = accept(server, NULL, NULL);
        ck_assert_int_ge(accepted, 0);
        net_near_peer_tune(accepted);
        before = send_buffer_of(accepted);
        reno = has_reno(accepted);
        close(client);
        close(accepted);
        if (before == 2 * NET_NEAR_BYTES)
            break;
    }
    ck_assert_int_eq(before, 2 * NET_NEAR_BYTES);
    ck_assert(reno);
    close(server);
}
END_TEST

START_TEST(other_sockets_are_left_alone)
{
    int fds[2], before;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    before = send_buffer_of(fds[0]);
    net_near_peer_tune(fds[0]);
    ck_assert_int_eq(send_buffer_of(fds[0]), before);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

/* The socket is not bound: the address is only that of the parameter. */
static void
check_listener(const char *text, int family, bool is_near)
{
    struct sockaddr_in inet = {.sin_family = AF_INET};
    struct sockaddr_in6 inet6 = {.sin6_family = AF_INET6};
    bool is_inet = family == AF_INET;
    struct sockaddr *address = is_inet ? (struct sockaddr *)&inet : (struct sockaddr *)&inet6;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    static const char other[] = "cubic";

    ck_assert_int_ge(fd, 0);
    if (has_reno(fd) &&
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, other, sizeof(other) - 1) != 0) {
        close(fd); /* this kernel has no other */
        return;
    }
    ck_assert_int_eq(
        inet_pton(family, text, is_inet ? (void *)&inet.sin_addr : (void *)&inet6.sin6_addr), 1);
    net_near_peer_listen(fd, address);
    ck_assert_msg(has_reno(fd) == is_near, "%s", text);
    close(fd);
}

START_TEST(listeners_at_loopback_addresses_have_near_peers)
{
    check_listener("127.0.0.1", AF_INET, true);
    check_listener("127.255.255.254", AF_INET, true);
    check_listener("::1", AF_INET6, true);
    check_listener("0.0.0.0", AF_INET, false);
    check_listener("126.255.255.255", AF_INET, false);
    check_listener("128.0.0.1", AF_INET, false);
    check_listener("192.0.2.1", AF_INET, false);
    check_listener("::", AF_INET6, false);
    check_listener("2001:db8::1", AF_INET6, false);
    check_listener("fe80::1", AF_INET6, false);
}
END_TEST

START_TEST(a_server_asks_for_it_before_there_are_connections)
{
    static const struct net_protocol silent = {.connection_size = sizeof(struct net_connection)};
    struct net_server *server = net_server_create(&NET_LIMITS_DEFAULT, 1);
    int port, fd = listen_tcp(&port);

    ck_assert_ptr_nonnull(server);
    ck_assert_int_eq(net_server_listen(server, fd, &silent, NULL), 0);
    ck_assert(has_reno(fd));
    net_server_destroy(server);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: near peers");
    TCase *tcase = tcase_create("near peers");

    tcase_add_test(tcase, distant_peers_have_the_kernels_buffer);
    tcase_add_test(tcase, near_peers_are_not_slowed_down);
    tcase_add_test(tcase, a_connection_of_this_host_is_near);
    tcase_add_test(tcase, other_sockets_are_left_alone);
    tcase_add_test(tcase, listeners_at_loopback_addresses_have_near_peers);
    tcase_add_test(tcase, a_server_asks_for_it_before_there_are_connections);
    suite_add_tcase(suite, tcase);
    return suite;
}
