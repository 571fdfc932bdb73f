/* Which peers are near: those on this host, and none that is farther away. */
#define UNIT_STARTS_NO_THREAD

#include "net/near_peer.h"

#include <limits.h>

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

/* By itself the kernel has a default of some KiB, and grows it. */
START_TEST(a_connection_of_this_host_is_near)
{
    int port, server = listen_tcp(&port), client, accepted, before;

    /* The time of a handshake may be long on a busy machine, but not every time. */
    for (unsigned i = 0; i < 100; i++) {
        client = socket(AF_INET, SOCK_STREAM, 0);
        connect_to_port(client, port);
        accepted = accept(server, NULL, NULL);
        ck_assert_int_ge(accepted, 0);
        net_near_peer_tune(accepted);
        before = send_buffer_of(accepted);
        close(client);
        close(accepted);
        if (before == 2 * NET_NEAR_BYTES)
            break;
    }
    ck_assert_int_eq(before, 2 * NET_NEAR_BYTES);
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

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net: near peers");
    TCase *tcase = tcase_create("near peers");

    tcase_add_test(tcase, distant_peers_have_the_kernels_buffer);
    tcase_add_test(tcase, near_peers_are_not_slowed_down);
    tcase_add_test(tcase, a_connection_of_this_host_is_near);
    tcase_add_test(tcase, other_sockets_are_left_alone);
    suite_add_tcase(suite, tcase);
    return suite;
}
