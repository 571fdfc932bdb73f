/*
 * Tunnels over the HTTP front: which are refused and how, what goes through them, and what ends
 * them. The connection to the origin is a pair of sockets, of which the test has one end.
 */
#include <fcntl.h>

#include "server/http/http_ports.h"
#include "server/http/http_service.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"
#include "tests/unit/server/http/tunnels.h"

#define TARGET "origin.test:443"
#define URL "http://origin.test:443/"
#define CONNECT "CONNECT " TARGET " HTTP/1.1\r\nHost: " TARGET "\r\n\r\n"
#define ESTABLISHED "HTTP/1.1 200 Connection established\r\n\r\n"

static const struct scene_options defaults = {.max_body = MIB};
static struct http_answer answer;

static void
begin(void)
{
    if (!front_options.max_tunnels)
        front_options.max_tunnels = 100;
    front_server_start(&defaults, VICTIMS_ALL);
}

/* A refusal is the last response on its connection. */
static void
expect_refusal(int fd, unsigned status)
{
    char byte;

    ck_assert(http_receive(fd, &answer, false));
    ck_assert_msg(answer.status == status, "%s%s", answer.head, answer.body);
    ck_assert(http_has(&answer, "Connection: close"));
    ck_assert(!peer_read(fd, &byte, 1));
    close(fd);
}

static int
connect_tunnel(int *far)
{
    int fd = http_connect();

    ck_assert(http_send(fd, CONNECT));
    *far = tunnels_hand_over(await_fetch(URL));
    tunnels_expect(fd, ESTABLISHED);
    return fd;
}

/* ---- what goes through ----------------------------------------------------------------------- */

START_TEST(bytes_after_the_head_wait_for_the_connection)
{
    struct scene_fetch *fetch;
    int near, far;

    begin();
    near = http_connect();
    /* A request that states no content has none, and what follows is the tunnel's. */
    ck_assert(http_send(near, "CONNECT " TARGET
                              " HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nearly "));
    fetch = await_fetch(URL);
    ck_assert_uint_eq(fetch->flags, REQUEST_CONNECT_ONLY);
    ck_assert_str_eq(fetch->fields, "");
    ck_assert_str_eq(fetch->method, "");
    ck_assert_uint_eq(tunnels_stats().open, 1);
    ck_assert_uint_eq(tunnels_stats().opened, 0);
    ck_assert(http_send(near, "GET " URL " HTTP/1.1\r\n\r\n"));
    far = tunnels_hand_over(fetch);
    tunnels_expect(far, "early GET " URL " HTTP/1.1\r\n\r\n");
    ck_assert(peer_write(far, "late", 4));
    tunnels_expect(near, ESTABLISHED "late");
    /* Half of it may end. */
    ck_assert_int_eq(shutdown(near, SHUT_WR), 0);
    ck_assert(peer_is_cut(far));
    ck_assert(peer_write(far, "last", 4));
    close(far);
    tunnels_expect(near, "last");
    ck_assert(peer_is_cut(near));
    close(near);
    AWAIT(tunnels_stats().open == 0);
    ck_assert_uint_eq(tunnels_stats().opened, 1);
    ck_assert_uint_eq(tunnels_stats().sent_bytes, strlen("early GET " URL " HTTP/1.1\r\n\r\n"));
    ck_assert_uint_eq(tunnels_stats().received_bytes, 8);
    tunnels_end();
}
END_TEST

/* A request that was read before is answered before; a request that is bad is none. */
START_TEST(a_tunnel_after_other_requests)
{
    int near, far;

    begin();
    near = http_connect();
    ck_assert(http_send(near, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"
                              "CONNECT " TARGET " HTTP/1.0\r\n\r\nearly"));
    far = tunnels_hand_over(await_fetch(URL));
    ck_assert(http_receive(near, &answer, false));
    ck_assert_uint_eq(answer.status, 204);
    tunnels_expect(near, ESTABLISHED);
    tunnels_expect(far, "early");
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    tunnels_end();
}
END_TEST

START_TEST(much_goes_both_ways)
{
    const size_t len = MIB;
    const char *bytes = plain_bytes(len);
    char *got = malloc(len);
    int near, far;

    ck_assert_ptr_nonnull(got);
    begin();
    near = connect_tunnel(&far);
    for (int i = 0; i < 4; i++) {
        int from = i % 2 ? near : far, to = i % 2 ? far : near;

        /* Pieces that the sockets' buffers take: the test has one thread. */
        for (size_t at = 0; at < len; at += 32768) {
            ck_assert(peer_write(from, bytes + at, 32768));
            ck_assert(peer_read(to, got + at, 32768));
        }
        ck_assert(memcmp(bytes, got, len) == 0);
    }
    close(far);
    ck_assert(peer_is_cut(near));
    close(near);
    free(got);
    tunnels_end();
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

START_TEST(failures_to_connect)
{
    static const struct {
        enum fetch_error error;
        unsigned status;
    } cases[] = {
        {FETCH_DENIED, 403},    {FETCH_RESOLVE_FAILED, 502},    {FETCH_CONNECT_FAILED, 502},
        {FETCH_TIMED_OUT, 504}, {FETCH_CONNECT_TIMED_OUT, 504}, {FETCH_OVERLOADED, 503},
        {FETCH_DISPLACED, 503}, {FETCH_STOPPING, 503},          {FETCH_INTERNAL, 500},
    };

    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = http_connect();

        ck_assert(http_send(fd, CONNECT "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"));
        origin_fails(URL, cases[i].error, "there is nothing");
        expect_refusal(fd, cases[i].status);
        /* What the fetcher says of an origin is for the operator. */
        ck_assert_msg(!strstr(answer.body, "there is nothing") ==
                          (cases[i].status != 503 && cases[i].status != 500),
                      "%s", answer.body);
    }
    ck_assert_uint_eq(tunnels_stats().opened, 0);
    tunnels_end();
}
END_TEST

static const struct {
    const char *request;
    unsigned status;
} hostile[] = {
    {"CONNECT origin.test HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT origin.test:0 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT origin.test: HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT origin.test:65979 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT origin.test:443/ HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT http://origin.test:443 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT user@origin.test:443 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT /path HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT :443 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400},
    {"CONNECT " TARGET " HTTP/1.1\r\n\r\n", 400},
    {"CONNECT " TARGET " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n", 400},
    {"CONNECT " TARGET " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
    {"CONNECT origin.test:80 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 403},
    {"CONNECT origin.test:444 HTTP/1.1\r\nHost: origin.test\r\n\r\n", 403},
};

START_TEST(requests_that_are_refused)
{
    begin();
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        int fd = http_connect();

        ck_assert(http_send(fd, hostile[i].request));
        (void)http_send(fd, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n");
        expect_refusal(fd, hostile[i].status);
    }
    ck_assert_uint_eq(scene_fetches(), 0);
    tunnels_end();
}
END_TEST

START_TEST(a_reverse_proxy_makes_none)
{
    static char row[] = "/=http://backend.test";
    static char *rows[] = {row, NULL};
    int fd;

    front_options.origin = (struct option_list){.items = rows, .count = 1};
    begin();
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    expect_refusal(fd, 405);
    tunnels_end();
}
END_TEST

START_TEST(only_clients_of_the_proxy_have_tunnels)
{
    static char net[] = "192.0.2.0/24";
    static char *nets[] = {net, NULL};
    int fd, far;

    front_options.client_net = (struct option_list){.items = nets, .count = 1};
    begin();
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    expect_refusal(fd, 403);
    fd = http_connect_local();
    ck_assert(http_send(fd, CONNECT));
    far = tunnels_hand_over(await_fetch(URL));
    tunnels_expect(fd, ESTABLISHED);
    close(fd);
    close(far);
    tunnels_end();
}
END_TEST

/* Begins, and opens two tunnels; a third one is refused. */
static void
begin_with_two(int near[2], int far[2])
{
    int fd;

    begin();
    for (int i = 0; i < 2; i++)
        near[i] = connect_tunnel(&far[i]);
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    expect_refusal(fd, 503);
}

/* A client may have a quarter of what the others leave, unless clients have no shares. */
START_TEST(a_client_has_a_share_of_the_tunnels)
{
    int near[2], far[2];

    front_options.max_tunnels = 8;
    front_options.max_fetches_per_client = 1;
    begin_with_two(near, far);
    for (int i = 0; i < 2; i++) {
        close(near[i]);
        close(far[i]);
    }
    tunnels_end();
}
END_TEST

START_TEST(tunnels_are_bounded_in_number)
{
    int near[2], far[2];

    front_options.max_tunnels = 2;
    begin_with_two(near, far);
    close(near[0]);
    close(far[0]);
    AWAIT(tunnels_stats().open == 1);
    near[0] = connect_tunnel(&far[0]);
    for (int i = 0; i < 2; i++) {
        close(near[i]);
        close(far[i]);
    }
    ck_assert_uint_eq(tunnels_stats().opened, 3);
    tunnels_end();
}
END_TEST

START_TEST(without_memory_or_a_fetcher)
{
    uint64_t left;
    int fd;

    begin();
    scene.refuses = ESHUTDOWN;
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    expect_refusal(fd, 503);
    scene.refuses = 0;
    fd = http_connect();
    AWAIT(memory_used(&front_service.memory, MEMORY_REQUESTS) == 0);
    left = memory_left(&front_service.memory, MEMORY_REQUESTS);
    ck_assert(memory_charge(&front_service.memory, MEMORY_REQUESTS, (size_t)left - 600));
    ck_assert(http_send(fd, CONNECT));
    expect_refusal(fd, 503);
    memory_uncharge(&front_service.memory, MEMORY_REQUESTS, (size_t)left - 600);
    tunnels_end();
}
END_TEST

/* ---- early ends ------------------------------------------------------------------------------ */

START_TEST(a_client_that_leaves_cancels)
{
    struct scene_fetch *fetch;
    int fd, far;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    fetch = await_fetch(URL);
    close(fd);
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "no request waits");
    AWAIT(tunnels_stats().open == 0);
    /* The connection was made before it could be cancelled. */
    fd = http_connect();
    ck_assert(http_send(fd, CONNECT));
    fetch = await_fetch(URL);
    close(fd);
    AWAIT(scene_is_cancelled(fetch));
    far = tunnels_hand_over(fetch);
    ck_assert(peer_is_cut(far));
    close(far);
    ck_assert_uint_eq(tunnels_stats().opened, 0);
    tunnels_end();
}
END_TEST

START_TEST(a_stop_cuts_what_is_connected_and_refuses_the_rest)
{
    struct scene_fetch *fetch;
    int near, far, other, connecting;

    begin();
    near = connect_tunnel(&far);
    connecting = http_connect();
    ck_assert(http_send(connecting, CONNECT));
    fetch = await_fetch(URL);
    rpc_server_stop_accepting(front_service.rpc);
    ck_assert(peer_is_cut(near));
    ck_assert(peer_is_cut(far));
    ck_assert_uint_eq(scene_is_cancelled(fetch), 0);
    other = tunnels_hand_over(fetch);
    ck_assert(peer_is_cut(other));
    expect_refusal(connecting, 503);
    close(near);
    close(far);
    close(other);
    tunnels_end();
}
END_TEST

/* The threads end while it connects. */
START_TEST(a_stop_that_does_not_wait)
{
    struct scene_fetch *fetch;
    int near, far, connecting;

    begin();
    near = connect_tunnel(&far);
    connecting = http_connect();
    ck_assert(http_send(connecting, CONNECT));
    fetch = await_fetch(URL);
    scene_done(fetch, FETCH_STOPPING, "stopping");
    (void)front_server_halt(0);
    front_server_free();
    ck_assert(peer_is_cut(near));
    ck_assert(peer_is_cut(far));
    ck_assert(peer_is_cut(connecting));
    close(near);
    close(far);
    close(connecting);
}
END_TEST

/* ---- ports ----------------------------------------------------------------------------------- */

static bool
read_ports(struct http_ports *ports, char *first, char *second)
{
    char *items[] = {first, second, NULL};
    const struct option_list list = {.items = items, .count = second ? 2 : first ? 1 : 0};
    struct buf why;
    bool taken;

    buf_init(&why, 256);
    taken = http_ports_read(ports, &list, &why);
    ck_assert(taken == (why.len == 0));
    buf_free(&why);
    return taken;
}

START_TEST(lists_of_ports)
{
    char imaps[] = "993", most[] = "65535", any[] = "any";
    char bad[][8] = {"0", "65536", "", "https", "44 3", "-1", "all"};
    struct http_ports ports;

    ck_assert(read_ports(&ports, NULL, NULL));
    for (unsigned port = 0; port < 65536; port++)
        ck_assert(http_ports_have(&ports, (uint16_t)port) == (port == 443));
    ck_assert(read_ports(&ports, imaps, most));
    for (unsigned port = 0; port < 65536; port++)
        ck_assert(http_ports_have(&ports, (uint16_t)port) == (port == 993 || port == 65535));
    ck_assert(read_ports(&ports, imaps, any));
    for (unsigned port = 0; port < 65536; port++)
        ck_assert(http_ports_have(&ports, (uint16_t)port));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ck_assert_msg(!read_ports(&ports, bad[i], NULL), "%s", bad[i]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: tunnels over HTTP");
    TCase *tcase = tcase_create("tunnels");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bytes_after_the_head_wait_for_the_connection);
    tcase_add_test(tcase, a_tunnel_after_other_requests);
    tcase_add_test(tcase, much_goes_both_ways);
    tcase_add_test(tcase, failures_to_connect);
    tcase_add_test(tcase, requests_that_are_refused);
    tcase_add_test(tcase, a_reverse_proxy_makes_none);
    tcase_add_test(tcase, only_clients_of_the_proxy_have_tunnels);
    tcase_add_test(tcase, a_client_has_a_share_of_the_tunnels);
    tcase_add_test(tcase, tunnels_are_bounded_in_number);
    tcase_add_test(tcase, without_memory_or_a_fetcher);
    tcase_add_test(tcase, a_client_that_leaves_cancels);
    tcase_add_test(tcase, a_stop_cuts_what_is_connected_and_refuses_the_rest);
    tcase_add_test(tcase, a_stop_that_does_not_wait);
    tcase_add_test(tcase, lists_of_ports);
    suite_add_tcase(suite, tcase);
    return suite;
}
