/*
 * Upgrades to WebSocket through a reverse or forward proxy: the handshake with the origin, which
 * the test plays on a pair of sockets, and what becomes of a request whose handshake fails.
 */
#include <fcntl.h>

#include "server/http/http_service.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"
#include "tests/unit/server/http/tunnels.h"

#define CONNECT_URL "http://backend.test:81/base/chat?x=1"
#define KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define VERSION "Sec-WebSocket-Version: 13\r\n"
#define WISH "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nKeep-Alive: 5\r\n"
#define ASK WISH KEY VERSION
#define REQUEST "GET /chat?x=1 HTTP/1.1\r\nHost: front.test\r\n" ASK "\r\n"
#define AGREE                                       \
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: " \
    "WebSocket\r\nConnection: Upgrade, X-Hop\r\nX-Hop: 1\r\nSec-WebSocket-Accept: abc=\r\n\r\n"

static const struct scene_options defaults = {.max_body = MIB};
static struct http_answer answer;

static void
begin_with(const char *url)
{
    static char row[128];
    static char *rows[] = {row, NULL};

    snprintf(row, sizeof(row), "/=%s", url);
    front_options.origin = (struct option_list){.items = rows, .count = 1};
    if (!front_options.max_tunnels)
        front_options.max_tunnels = 10;
    front_server_start(&defaults, VICTIMS_ALL);
}

static void
begin(void)
{
    begin_with("http://backend.test:81/base");
}

/* Reads a head into `answer.head`. */
static void
read_head(int fd)
{
    size_t len = 0;

    do {
        ck_assert_uint_lt(len, sizeof(answer.head) - 1);
        ck_assert(peer_read(fd, answer.head + len, 1));
        answer.head[++len] = '\0';
    } while (len < 4 || strcmp(answer.head + len - 4, "\r\n\r\n") != 0);
}

/* A connection whose handshake has reached the origin. */
static int
ask(int *far)
{
    int fd = http_connect();

    ck_assert(http_send(fd, REQUEST));
    *far = tunnels_hand_over(await_fetch(CONNECT_URL));
    read_head(*far);
    return fd;
}

/* The request goes to the origin as if it had not asked for an upgrade. */
static void
expect_plain(int fd, const char *url)
{
    struct scene_fetch *fetch = await_fetch(url);

    ck_assert_uint_eq(fetch->flags & REQUEST_CONNECT_ONLY, 0);
    ck_assert_ptr_null(strcasestr(fetch->fields, "upgrade"));
    ck_assert_ptr_null(strcasestr(fetch->fields, "connection"));
    origin_responds(url, "Content-Length: 4\r\n", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "page");
}

START_TEST(a_connection_is_upgraded)
{
    int near, far;

    begin();
    near = http_connect();
    ck_assert(http_send(near, REQUEST "early"));
    far = tunnels_hand_over(await_fetch(CONNECT_URL));
    read_head(far);
    ck_assert_ptr_eq(strstr(answer.head, "GET /base/chat?x=1 HTTP/1.1\r\nHost: front.test\r\n"),
                     answer.head);
    ck_assert(http_has(&answer, "Connection: Upgrade"));
    ck_assert(http_has(&answer, "Upgrade: websocket"));
    ck_assert(http_has(&answer, "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="));
    ck_assert(http_has_start(&answer, "Via: 1.1 sunproxy"));
    ck_assert(http_has(&answer, "X-Forwarded-For: 127.0.0.1"));
    ck_assert(http_has(&answer, "X-Forwarded-Host: front.test"));
    ck_assert_ptr_null(strstr(answer.head, "Keep-Alive"));
    ck_assert_uint_eq(tunnels_stats().opened, 0);
    for (const char *c = AGREE; *c; c++)
        ck_assert(peer_write(far, c, 1));
    read_head(near);
    ck_assert_ptr_eq(strstr(answer.head, "HTTP/1.1 101 Switching Protocols\r\n"), answer.head);
    ck_assert(http_has(&answer, "Connection: Upgrade"));
    ck_assert(http_has(&answer, "Upgrade: websocket"));
    ck_assert(http_has(&answer, "Sec-WebSocket-Accept: abc="));
    ck_assert(http_has_start(&answer, "Via: 1.1 sunproxy"));
    ck_assert_ptr_null(strstr(answer.head, "X-Hop"));
    tunnels_expect(far, "early");
    ck_assert(peer_write(far, "frame", 5));
    tunnels_expect(near, "frame");
    /* The buffers of the handshake, of 16 KiB, are not held for as long as the tunnel is open. */
    AWAIT(memory_used(&front_service.memory, MEMORY_REQUESTS) < 16384);
    ck_assert(http_send(near, REQUEST));
    tunnels_expect(far, "GET /chat?x=1 HTTP/1.1\r\n");
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    AWAIT(tunnels_stats().open == 0);
    ck_assert_uint_eq(tunnels_stats().opened, 1);
    ck_assert_uint_eq(tunnels_stats().received_bytes, 5);
    tunnels_end();
}
END_TEST

/* The head is written anew without X-A, and with its target encoded. */
START_TEST(a_rewritten_request_is_upgraded)
{
    int near, far;

    begin();
    near = http_connect();
    ck_assert(http_send(near,
                        "GET /\xc3\xa4 HTTP/1.1\r\nHost: front.test\r\nX-A: 1\r\n"
                        "Connection: Upgrade, X-A\r\nUpgrade: websocket\r\n" KEY VERSION "\r\n"));
    far = tunnels_hand_over(await_fetch("http://backend.test:81/base/%C3%A4"));
    read_head(far);
    ck_assert_ptr_eq(strstr(answer.head, "GET /base/%C3%A4 HTTP/1.1\r\n"), answer.head);
    ck_assert(http_has(&answer, "Upgrade: websocket"));
    ck_assert_ptr_null(strstr(answer.head, "X-A"));
    ck_assert(http_send(far, AGREE));
    read_head(near);
    ck_assert_ptr_eq(strstr(answer.head, "HTTP/1.1 101 Switching Protocols\r\n"), answer.head);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    tunnels_end();
}
END_TEST

#define FORWARD_URL "http://chat.test:81/room?x=1"
#define FORWARD(url) "GET " url " HTTP/1.1\r\nHost: ignored.test\r\n" ASK "\r\n"

static void
begin_forward(void)
{
    front_options.max_tunnels = 10;
    front_server_start(&defaults, VICTIMS_ALL);
}

START_TEST(a_forward_proxy_upgrades)
{
    int near, far;

    begin_forward();
    near = http_connect();
    ck_assert(http_send(near, FORWARD(FORWARD_URL)));
    far = tunnels_hand_over(await_fetch(FORWARD_URL));
    read_head(far);
    ck_assert_ptr_eq(strstr(answer.head, "GET /room?x=1 HTTP/1.1\r\nHost: chat.test:81\r\n"),
                     answer.head);
    ck_assert(http_has(&answer, "Connection: Upgrade"));
    ck_assert(http_has_start(&answer, "Via: 1.1 sunproxy"));
    /* As in any request of a forward proxy. */
    ck_assert_ptr_null(strstr(answer.head, "X-Forwarded"));
    ck_assert(http_send(far, AGREE "frame"));
    read_head(near);
    ck_assert_ptr_eq(strstr(answer.head, "HTTP/1.1 101 Switching Protocols\r\n"), answer.head);
    tunnels_expect(near, "frame");
    ck_assert(http_send(near, "answer"));
    tunnels_expect(far, "answer");
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    tunnels_end();
}
END_TEST

/* Without a connection, without an agreement, and for https. */
START_TEST(a_forward_proxy_serves_what_is_not_upgraded)
{
    int near, far;

    begin_forward();
    near = http_connect();
    ck_assert(http_send(near, FORWARD(FORWARD_URL)));
    origin_fails(FORWARD_URL, FETCH_CONNECT_FAILED, "refused");
    expect_plain(near, FORWARD_URL);
    ck_assert(http_send(near, FORWARD("http://chat.test:81/2")));
    far = tunnels_hand_over(await_fetch("http://chat.test:81/2"));
    read_head(far);
    ck_assert(http_send(far, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    expect_plain(near, "http://chat.test:81/2");
    close(far);
    ck_assert(http_send(near, FORWARD("https://chat.test/3")));
    expect_plain(near, "https://chat.test/3");
    close(near);
    tunnels_end();
}
END_TEST

START_TEST(only_clients_of_a_forward_proxy_are_upgraded)
{
    static char net[] = "203.0.113.0/24", *nets[] = {net, NULL};
    int near;

    front_options.client_net = (struct option_list){.items = nets, .count = 1};
    begin_forward();
    near = http_connect();
    ck_assert(http_send(near, FORWARD(FORWARD_URL)));
    ck_assert(http_receive(near, &answer, false));
    ck_assert_uint_eq(answer.status, 403);
    ck_assert_uint_eq(scene_fetches(), 0);
    close(near);
    tunnels_end();
}
END_TEST

START_TEST(bytes_that_come_with_the_response)
{
    int near, far;

    begin();
    near = ask(&far);
    ck_assert(http_send(far, AGREE "frame"));
    close(far);
    read_head(near);
    tunnels_expect(near, "frame");
    ck_assert(peer_is_cut(near));
    close(near);
    AWAIT(tunnels_stats().open == 0);
    ck_assert_uint_eq(tunnels_stats().received_bytes, 5);
    tunnels_end();
}
END_TEST

#define SWITCHING "HTTP/1.1 101 Switching Protocols\r\n"

/* None of them is a switch to WebSocket without any doubt. */
static const char *const other_responses[] = {
    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage",
    "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.0 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "HTTP/1.1 1010 Much\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    SWITCHING "\r\n",
    SWITCHING "Upgrade: websocket\r\n\r\n",
    SWITCHING "Connection: Upgrade\r\n\r\n",
    SWITCHING "Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: close\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nTransfer-Encoding: chunked\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX : y\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX: y\r\n folded\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX: y\nZ: z\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX: y\rZ\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX: \x01\r\n\r\n",
    SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nno colon\r\n\r\n",
    "SSH-2.0\r\n\r\n",
    "\r\n\r\n",
    "",
};

START_TEST(responses_that_switch_nothing)
{
    begin();
    for (size_t i = 0; i < sizeof(other_responses) / sizeof(other_responses[0]); i++) {
        int far, near = ask(&far);

        ck_assert(http_send(far, other_responses[i]));
        ck_assert_int_eq(shutdown(far, SHUT_WR), 0);
        ck_assert(peer_is_cut(far));
        close(far);
        expect_plain(near, CONNECT_URL);
        /* The connection is one of HTTP still. */
        ck_assert(http_send(near, "GET /other HTTP/1.1\r\nHost: front.test\r\n\r\n"));
        expect_plain(near, "http://backend.test:81/base/other");
        close(near);
    }
    ck_assert_uint_eq(tunnels_stats().opened, 0);
    tunnels_end();
}
END_TEST

START_TEST(a_response_whose_head_does_not_end)
{
    static char filler[20000];
    int near, far;

    begin();
    memset(filler, 'x', sizeof(filler) - 1);
    near = ask(&far);
    ck_assert(http_send(far, SWITCHING "Upgrade: websocket\r\nConnection: Upgrade\r\nX: "));
    (void)http_send(far, filler);
    expect_plain(near, CONNECT_URL);
    close(far);
    close(near);
    tunnels_end();
}
END_TEST

START_TEST(an_origin_that_does_not_respond)
{
    int near, far;

    front_options.first_byte_timeout = 50000;
    begin();
    near = ask(&far);
    ck_assert(http_send(far, SWITCHING "Upgrade: web"));
    ck_assert(peer_is_cut(far));
    expect_plain(near, CONNECT_URL);
    close(far);
    close(near);
    tunnels_end();
}
END_TEST

START_TEST(an_origin_that_cannot_be_reached)
{
    int near;

    begin();
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    origin_fails(CONNECT_URL, FETCH_CONNECT_FAILED, "refused");
    AWAIT(scene_find(CONNECT_URL) != NULL);
    origin_fails(CONNECT_URL, FETCH_CONNECT_FAILED, "refused");
    ck_assert(http_receive(near, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    close(near);
    tunnels_end();
}
END_TEST

/* Of several URLs the next one is tried; not for an upgrade, if it is https. */
START_TEST(the_next_origin)
{
    int near, far;

    begin_with("http://backend.test:81/base,http://second.test,https://third.test");
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    origin_fails(CONNECT_URL, FETCH_CONNECT_TIMED_OUT, "silent");
    far = tunnels_hand_over(await_fetch("http://second.test/chat?x=1"));
    read_head(far);
    ck_assert(http_has(&answer, "Host: front.test"));
    ck_assert(http_send(far, AGREE));
    read_head(near);
    close(near);
    close(far);
    /* The one that failed is not the first to be tried any more. */
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    origin_fails("http://second.test/chat?x=1", FETCH_RESOLVE_FAILED, "unknown");
    expect_plain(near, "https://third.test/chat?x=1");
    close(near);
    tunnels_end();
}
END_TEST

/* A member that is left is in use again when it has agreed, not when it accepts a connection. */
START_TEST(a_member_that_hangs_stays_left)
{
    static const char second[] = "http://second.test/chat?x=1";
    int near, far;

    begin_with("http://backend.test:81/base,http://second.test");
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    origin_fails(CONNECT_URL, FETCH_CONNECT_TIMED_OUT, "silent");
    far = tunnels_hand_over(await_fetch(second));
    ck_assert(http_send(far, AGREE));
    read_head(near);
    close(near);
    close(far);
    scene.now_us += ORIGIN_ROUTE_LONGEST_US;
    near = ask(&far);
    close(far);
    expect_plain(near, second);
    scene.now_us += ORIGIN_ROUTE_LONGEST_US;
    close(near);
    near = ask(&far);
    ck_assert(http_send(far, AGREE));
    read_head(near);
    close(near);
    close(far);
    near = http_connect();
    ck_assert(http_send(near, "GET /chat?x=1 HTTP/1.1\r\nHost: front.test\r\n\r\n"));
    expect_plain(near, CONNECT_URL);
    close(near);
    tunnels_end();
}
END_TEST

/* What has answered otherwise is tried by the request itself. */
START_TEST(a_trial_that_is_not_agreed_to)
{
    int near, far;

    begin_with("http://backend.test:81/base,http://second.test");
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    origin_fails(CONNECT_URL, FETCH_CONNECT_TIMED_OUT, "silent");
    far = tunnels_hand_over(await_fetch("http://second.test/chat?x=1"));
    ck_assert(http_send(far, AGREE));
    read_head(near);
    close(near);
    close(far);
    scene.now_us += ORIGIN_ROUTE_LONGEST_US;
    near = ask(&far);
    ck_assert(http_send(far, "HTTP/1.1 200 OK\r\n\r\n"));
    expect_plain(near, CONNECT_URL);
    close(near);
    close(far);
    tunnels_end();
}
END_TEST

START_TEST(without_tunnels_left)
{
    int near[2], far;

    front_options.max_tunnels = 1;
    begin();
    near[0] = ask(&far);
    near[1] = http_connect();
    ck_assert(http_send(near[1], REQUEST));
    ck_assert(http_receive(near[1], &answer, false));
    ck_assert_uint_eq(answer.status, 503);
    ck_assert(http_send(far, AGREE));
    read_head(near[0]);
    close(near[0]);
    close(near[1]);
    close(far);
    tunnels_end();
}
END_TEST

/* Not one of them asks for WebSocket, or not as RFC 6455, section 4.1, wants it. */
static const char *const other_requests[] = {
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" WISH "\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" WISH KEY "\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" WISH VERSION "\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" WISH VERSION "Sec-WebSocket-Key:\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" WISH KEY "Sec-WebSocket-Version: 8\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" ASK "Sec-WebSocket-Version: 8\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" ASK KEY "\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Upgrade: h2c\r\n\r\n",
    "PUT /chat?x=1 HTTP/1.1\r\nHost: x\r\n" ASK "Content-Length: 0\r\n\r\n",
    "GET /chat?x=1 HTTP/1.1\r\nHost: x\r\n" ASK "Content-Length: 0\r\n\r\n",
};

START_TEST(requests_that_are_not_upgraded)
{
    int fd;

    begin();
    fd = http_connect();
    for (size_t i = 0; i < sizeof(other_requests) / sizeof(other_requests[0]); i++) {
        ck_assert(http_send(fd, other_requests[i]));
        expect_plain(fd, CONNECT_URL);
    }
    close(fd);
    fd = http_connect();
    ck_assert(http_send(fd, "GET /chat?x=1 HTTP/1.0\r\nHost: x\r\n" ASK "\r\n"));
    expect_plain(fd, CONNECT_URL);
    close(fd);
    tunnels_end();
}
END_TEST

/* There is one for the upgrade and the request that it becomes. */
START_TEST(an_upgrade_that_fails_takes_one_token)
{
    int near, far;

    front_options.rate_fetches = (struct token_rate){.per_second = 1, .burst = 1};
    begin();
    near = ask(&far);
    close(far);
    expect_plain(near, CONNECT_URL);
    close(near);
    tunnels_end();
}
END_TEST

START_TEST(no_upgrade_over_tls)
{
    int fd;

    begin_with("https://backend.test");
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST));
    expect_plain(fd, "https://backend.test/chat?x=1");
    close(fd);
    tunnels_end();
}
END_TEST

START_TEST(a_client_that_leaves)
{
    struct scene_fetch *fetch;
    int near, far;

    begin();
    near = ask(&far);
    close(near);
    ck_assert(peer_is_cut(far));
    close(far);
    AWAIT(tunnels_stats().open == 0);
    near = http_connect();
    ck_assert(http_send(near, REQUEST));
    fetch = await_fetch(CONNECT_URL);
    close(near);
    AWAIT(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "cancelled");
    tunnels_end();
}
END_TEST

START_TEST(a_stop)
{
    int near[2], far[2];

    begin();
    near[0] = ask(&far[0]);
    ck_assert(http_send(far[0], AGREE));
    read_head(near[0]);
    near[1] = ask(&far[1]);
    (void)front_server_halt(0);
    front_server_free();
    for (int i = 0; i < 2; i++) {
        ck_assert(peer_is_cut(near[i]));
        ck_assert(peer_is_cut(far[i]));
        close(near[i]);
        close(far[i]);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: upgrades over HTTP");
    TCase *tcase = tcase_create("upgrades");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_connection_is_upgraded);
    tcase_add_test(tcase, a_rewritten_request_is_upgraded);
    tcase_add_test(tcase, a_forward_proxy_upgrades);
    tcase_add_test(tcase, a_forward_proxy_serves_what_is_not_upgraded);
    tcase_add_test(tcase, only_clients_of_a_forward_proxy_are_upgraded);
    tcase_add_test(tcase, bytes_that_come_with_the_response);
    tcase_add_test(tcase, responses_that_switch_nothing);
    tcase_add_test(tcase, a_response_whose_head_does_not_end);
    tcase_add_test(tcase, an_origin_that_does_not_respond);
    tcase_add_test(tcase, an_origin_that_cannot_be_reached);
    tcase_add_test(tcase, the_next_origin);
    tcase_add_test(tcase, a_member_that_hangs_stays_left);
    tcase_add_test(tcase, a_trial_that_is_not_agreed_to);
    tcase_add_test(tcase, without_tunnels_left);
    tcase_add_test(tcase, requests_that_are_not_upgraded);
    tcase_add_test(tcase, an_upgrade_that_fails_takes_one_token);
    tcase_add_test(tcase, no_upgrade_over_tls);
    tcase_add_test(tcase, a_client_that_leaves);
    tcase_add_test(tcase, a_stop);
    suite_add_tcase(suite, tcase);
    return suite;
}
