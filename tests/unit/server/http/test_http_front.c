/*
 * The HTTP front: requests byte by byte and many at once, responses from the cache and as they
 * arrive, their framing, and what ends a connection. The origin is the test's.
 */
#include <poll.h>

#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

#define GET REQUEST("GET", "")

static struct http_answer answer;

/* The connection ends without a further response. */
static void
expect_end(int fd)
{
    char byte;

    ck_assert(!peer_read(fd, &byte, 1));
    close(fd);
}

static void
store(const char *url, const char *lines, const char *body)
{
    char request[512];
    int fd = http_connect();

    snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", url);
    ck_assert(http_send(fd, request));
    origin_responds(url, lines, BODY_INLINE, body, strlen(body));
    http_expect_status(fd, &answer, 200);
    close(fd);
}

START_TEST(a_miss_and_then_hits_on_one_connection)
{
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, GET));
    origin_responds(URL, MAX_AGE "X-Field: value\r\nContent-Length: 5\r\n", BODY_INLINE, "hello",
                    5);
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "hello");
    ck_assert(http_has(&answer, "X-Field: value"));
    ck_assert(http_has(&answer, "Content-Length: 5"));
    ck_assert(http_has_start(&answer, "Via: 1.1 sunproxy-"));
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; fwd=uri-miss"));
    http_expect_hit(fd, URL, "hello", 5);
    http_expect_hit(fd, "HTTP://ORIGIN.test:80/page", "hello", 5);
    close(fd);
    fd = http_connect_local();
    http_expect_hit(fd, URL, "hello", 5);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(bytes_that_come_one_by_one)
{
    static const char text[] = "\r\n" GET "HEAD " URL " HTTP/1.1\r\nHost: x\r\n\r\n" GET;
    int fd;

    http_begin();
    store(URL, MAX_AGE "Content-Length: 4\r\n", "page");
    fd = http_connect();
    for (const char *c = text; *c; c++)
        ck_assert(peer_write(fd, c, 1));
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_receive(fd, &answer, true));
    ck_assert(http_has(&answer, "Content-Length: 4"));
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "page");
    close(fd);
    front_server_stop();
}
END_TEST

/* More than one connection may have in work, and more than one read takes. */
START_TEST(pipelined_hits_are_answered_in_order)
{
    enum { REQUESTS = 2000 };
    static char text[REQUESTS * 64];
    size_t len = 0;
    int fd;

    http_begin();
    store(URL "0", MAX_AGE, "zero");
    store(URL "1", MAX_AGE, "one");
    for (int i = 0; i < REQUESTS; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len,
                                "GET %s%d HTTP/1.1\r\nHost: x\r\n\r\n", URL, i % 3 == 0);
    fd = http_connect();
    ck_assert(peer_write(fd, text, len));
    for (int i = 0; i < REQUESTS; i++) {
        http_expect_status(fd, &answer, 200);
        ck_assert_str_eq(answer.body, i % 3 == 0 ? "one" : "zero");
    }
    close(fd);
    front_server_stop();
}
END_TEST

/* Sends the text on all connections again and again until none takes any more. */
static void
send_until_stuck(struct pollfd *fds, unsigned count, const char *text, size_t len)
{
    size_t at[8] = {0};

    ck_assert_uint_le(count, 8);
    while (poll(fds, count, 300) > 0) {
        for (unsigned i = 0; i < count; i++) {
            ssize_t n;

            if (!fds[i].revents)
                continue;
            n = send(fds[i].fd, text + at[i], len - at[i], MSG_DONTWAIT | MSG_NOSIGNAL);
            ck_assert(n > 0 || errno == EAGAIN);
            at[i] = n > 0 ? (at[i] + (size_t)n) % len : at[i];
        }
    }
}

START_TEST(clients_that_do_not_read_take_little_memory)
{
    enum { CLIENTS = 8 };
    static char text[100 * sizeof(GET)], page[2000];
    const int little = 65536;
    struct pollfd fds[CLIENTS];

    http_begin();
    /* The larger a page is, the fewer responses fill the buffers of the kernel. */
    memset(page, 'p', sizeof(page) - 1);
    store(URL, MAX_AGE, page);
    for (unsigned i = 0; i < 100; i++)
        memcpy(text + i * (sizeof(GET) - 1), GET, sizeof(GET));
    for (unsigned i = 0; i < CLIENTS; i++) {
        fds[i] = (struct pollfd){.fd = http_connect(), .events = POLLOUT};
        ck_assert_int_eq(setsockopt(fds[i].fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
    }
    send_until_stuck(fds, CLIENTS, text, strlen(text));
    /* What was read and waits, and no response: as many as a worker keeps are not charged. */
    ck_assert_uint_le(memory_used(&front_service.memory, MEMORY_REQUESTS), CLIENTS * 65536);
    for (unsigned i = 0; i < CLIENTS; i++) {
        /* Once it reads it gets its responses, and more is taken. */
        for (unsigned j = 0; j < 4000; j++)
            http_expect_status(fds[i].fd, &answer, 200);
        close(fds[i].fd);
    }
    front_server_stop();
}
END_TEST

START_TEST(a_pipelined_request_waits_for_the_miss_before_it)
{
    int fd;

    http_begin();
    store(URL "hit", MAX_AGE, "hit");
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL "1 HTTP/1.1\r\nHost: x\r\n\r\n"
                            "GET " URL "2 HTTP/1.1\r\nHost: x\r\n\r\n"
                            "GET " URL "hit HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                            "GET " URL "hit HTTP/1.1\r\nHost: x\r\n\r\n"));
    (void)await_fetch(URL "1");
    ck_assert_uint_eq(scene_fetches(), 1);
    origin_responds(URL "1", "", BODY_INLINE, "first", 5);
    (void)await_fetch(URL "2");
    origin_responds(URL "2", "", BODY_SEGMENTED, "second", 6);
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "first");
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "second");
    http_expect_status(fd, &answer, 200);
    ck_assert_str_eq(answer.body, "hit");
    ck_assert(http_has(&answer, "Connection: close"));
    expect_end(fd);
    front_server_stop();
}
END_TEST

/* The parts of a body that come, before the response is complete. */
static void
expect_part(int fd, const char *part)
{
    char bytes[64];

    ck_assert(peer_read(fd, bytes, strlen(part)));
    ck_assert_msg(memcmp(bytes, part, strlen(part)) == 0, "%.*s", (int)strlen(part), bytes);
}

static void
expect_head(int fd)
{
    char bytes[2] = "", last[5] = "";

    while (strcmp(last, "\r\n\r\n") != 0) {
        ck_assert(peer_read(fd, bytes, 1));
        memmove(last, last + (strlen(last) == 4), 4);
        strcat(last, bytes);
    }
}

START_TEST(a_body_is_passed_on_while_it_arrives)
{
    struct scene_fetch *fetch;
    int first, second, old;

    http_begin();
    first = http_connect();
    second = http_connect();
    old = http_connect();
    ck_assert(http_send(first, GET));
    fetch = origin_begins(URL, MAX_AGE, -1);
    expect_head(first);
    (void)fetch->sink->body(fetch->context, "abc", 3);
    expect_part(first, "3\r\nabc");
    /* Others join the same response. */
    ck_assert(http_send(second, GET));
    expect_head(second);
    expect_part(second, "3\r\nabc");
    ck_assert(http_send(old, "GET " URL " HTTP/1.0\r\n\r\n"));
    expect_head(old);
    expect_part(old, "abc");
    (void)fetch->sink->body(fetch->context, "0123456789abcdef", 16);
    expect_part(first, "\r\n10\r\n0123456789abcdef");
    expect_part(second, "\r\n10\r\n0123456789abcdef");
    expect_part(old, "0123456789abcdef");
    scene_done(fetch, FETCH_OK, "");
    expect_part(first, "\r\n0\r\n\r\n");
    expect_part(second, "\r\n0\r\n\r\n");
    expect_end(old);
    http_expect_hit(first, URL, "abc0123456789abcdef", 19);
    close(first);
    close(second);
    front_server_stop();
}
END_TEST

START_TEST(large_bodies)
{
    const size_t len = 2 * MIB;
    const char *bytes = plain_bytes(len);
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, GET));
    origin_responds(URL, MAX_AGE, BODY_SEGMENTED, bytes, len);
    http_expect_status(fd, &answer, 200);
    ck_assert_uint_eq(answer.body_len, len);
    ck_assert(memcmp(answer.body, bytes, len) == 0);
    http_expect_hit(fd, URL, bytes, len);
    ck_assert(http_send(fd, "GET " URL "1 HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_responds(URL "1", MAX_AGE "Content-Length: 1000000\r\n", BODY_INLINE, bytes, 1000000);
    http_expect_status(fd, &answer, 200);
    http_expect_hit(fd, URL "1", bytes, 1000000);
    close(fd);
    /* A peer that does not read: its connection holds no more than a part, and others are served.
     */
    fd = http_connect_local();
    for (int i = 0; i < 10; i++)
        ck_assert(http_send(fd, GET));
    for (int i = 0; i < 5; i++) {
        int other = http_connect();

        http_expect_hit(other, URL, bytes, len);
        close(other);
    }
    for (int i = 0; i < 5; i++)
        http_expect_status(fd, &answer, 200);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(versions_and_persistence)
{
    int fd;

    http_begin();
    store(URL, MAX_AGE, "page");
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL " HTTP/1.0\r\n\r\n"));
    http_expect_status(fd, &answer, 200);
    ck_assert(http_has(&answer, "Connection: close"));
    ck_assert(http_has(&answer, "Content-Length: 4"));
    expect_end(fd);
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL " HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n"));
    http_expect_status(fd, &answer, 200);
    ck_assert(http_has(&answer, "Connection: close"));
    expect_end(fd);
    /* A peer that has shut down its side is answered. */
    fd = http_connect();
    ck_assert(http_send(fd, GET GET));
    ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
    http_expect_status(fd, &answer, 200);
    http_expect_status(fd, &answer, 200);
    expect_end(fd);
    front_server_stop();
}
END_TEST

/* Each with the status of its refusal; the table of all cases is that of http/request_head.h. */
static const struct {
    const char *request;
    unsigned status;
} hostile[] = {
    {"GET " URL " HTTP/1.1\r\n\r\n", 400},
    {"GET " URL " HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
    {"GET " URL " HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
     400},
    {"GET " URL " HTTP/1.1\nHost: x\n\n", 400},
    {"GET " URL " HTTP/1.1\r\nHost : x\r\n\r\n", 400},
    {"GET " URL " HTTP/2.0\r\n\r\n", 505},
    {"GET " URL " HTTP/1.1\r\nHost: x\r\nExpect: more\r\n\r\n", 417},
    {"POST " URL " HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
    {"\x16\x03\x01\r\n\r\n", 400},
    {"GET /page HTTP/1.1\r\nHost: origin.test\r\n\r\n", 400}, /* no whole URL */
    {"TRACE " URL " HTTP/1.1\r\nHost: x\r\n\r\n", 405},
};

START_TEST(a_bad_request_is_refused_after_what_was_before_it)
{
    http_begin();
    store(URL, MAX_AGE, "page");
    for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
        bool closes = hostile[i].status != 405 &&
                      !strstr(hostile[i].request, "/page HTTP/1.1\r\nHost: origin");
        int fd = http_connect();

        ck_assert(http_send(fd, GET));
        ck_assert(http_send(fd, hostile[i].request));
        ck_assert(http_send(fd, GET));
        http_expect_status(fd, &answer, 200);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_msg(answer.status == hostile[i].status, "%zu: %s", i, answer.head);
        ck_assert(http_has(&answer, "Cache-Control: no-store"));
        if (closes) {
            ck_assert(http_has(&answer, "Connection: close"));
            expect_end(fd);
        } else {
            http_expect_status(fd, &answer, 200);
            close(fd);
        }
    }
    front_server_stop();
}
END_TEST

/* HTTP_CONNECTION_OPTIONS_MAX of them can be. */
START_TEST(connection_with_too_many_members)
{
    static char most[64 * 2 + 1];
    int fd;

    http_begin();
    store(URL, MAX_AGE, "page");
    for (size_t i = 0; i < sizeof(most) - 1; i++)
        most[i] = i % 2 ? ',' : 'a';
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL " HTTP/1.1\r\nHost: x\r\nConnection: "));
    ck_assert(http_send(fd, most));
    ck_assert(http_send(fd, "\r\n\r\n"));
    http_expect_status(fd, &answer, 200);
    ck_assert(http_send(fd, "GET " URL " HTTP/1.1\r\nHost: x\r\nConnection: "));
    ck_assert(http_send(fd, most));
    ck_assert(http_send(fd, "a\r\n\r\n"));
    http_expect_status(fd, &answer, 431);
    ck_assert(http_send(fd, GET));
    http_expect_status(fd, &answer, 200);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_head_that_is_too_large)
{
    static char filler[70000];
    int fd;

    http_begin();
    memset(filler, 'x', sizeof(filler) - 1);
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL " HTTP/1.1\r\nHost: x\r\nX: "));
    (void)http_send(fd, filler);
    http_expect_status(fd, &answer, 431);
    close(fd);
    fd = http_connect();
    ck_assert(http_send(fd, "GET http://origin.test/"));
    (void)http_send(fd, filler);
    http_expect_status(fd, &answer, 414);
    close(fd);
    /* Between what the parser takes and what is a URL. */
    fd = http_connect();
    filler[10000] = '\0';
    ck_assert(http_send(fd, "GET http://origin.test/"));
    ck_assert(http_send(fd, filler));
    ck_assert(http_send(fd, " HTTP/1.1\r\nHost: x\r\n\r\n"));
    http_expect_status(fd, &answer, 414);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(failures_before_the_head_are_pages)
{
    static const struct {
        enum fetch_error error;
        unsigned status;
        const char *detail;
    } cases[] = {
        {FETCH_RESOLVE_FAILED, 502, "resolve-failed"},
        {FETCH_CONNECT_FAILED, 502, "connect-failed"},
        {FETCH_TIMED_OUT, 504, "timed-out"},
        {FETCH_CONNECT_TIMED_OUT, 504, "timed-out"},
        {FETCH_DENIED, 403, "denied"},
        {FETCH_OVERLOADED, 503, "overloaded"},
        {FETCH_ORIGIN_BROKE, 502, "origin-broke"},
    };
    int fd;

    http_begin();
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[128];

        ck_assert(http_send(fd, GET));
        origin_fails(URL, cases[i].error, "there is <nothing>");
        http_expect_status(fd, &answer, cases[i].status);
        /* What the fetcher says of an origin is for the operator. */
        ck_assert_msg(!strstr(answer.body, "there is <nothing>") == (cases[i].status != 503), "%s",
                      answer.body);
        snprintf(line, sizeof(line), "Cache-Status: sunproxy; fwd=uri-miss; detail=%s",
                 cases[i].detail);
        ck_assert_msg(http_has(&answer, line), "%s", answer.head);
    }
    ck_assert(http_send(fd, "GET " URL " HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\n\r\n"));
    origin_fails(URL, FETCH_OVERLOADED, "there is <nothing>");
    http_expect_status(fd, &answer, 503);
    ck_assert_ptr_nonnull(strstr(answer.body, "there is &lt;nothing&gt;"));
    close(fd);
    front_server_stop();
}
END_TEST

/* Neither a last chunk, nor the whole length, nor an orderly end of a body that ends with it. */
START_TEST(a_response_that_breaks_off_is_noticed)
{
    struct scene_fetch *fetch;
    int chunked, sized, old;
    char byte;

    http_begin();
    chunked = http_connect();
    old = http_connect();
    ck_assert(http_send(chunked, GET GET));
    fetch = origin_begins(URL, MAX_AGE, -1);
    ck_assert(http_send(old, "GET " URL " HTTP/1.0\r\n\r\n"));
    expect_head(chunked);
    expect_head(old);
    (void)fetch->sink->body(fetch->context, "abc", 3);
    expect_part(chunked, "3\r\nabc");
    expect_part(old, "abc");
    scene_done(fetch, FETCH_ORIGIN_BROKE, "it closed");
    expect_end(chunked);
    ck_assert_int_eq(recv(old, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    close(old);
    sized = http_connect();
    ck_assert(http_send(sized, GET));
    fetch = origin_begins(URL, MAX_AGE "Content-Length: 5\r\n", 5);
    (void)fetch->sink->body(fetch->context, "abc", 3);
    expect_head(sized);
    expect_part(sized, "abc");
    scene_done(fetch, FETCH_ORIGIN_BROKE, "it closed");
    expect_end(sized);
    front_server_stop();
}
END_TEST

START_TEST(clients_that_disconnect)
{
    struct scene_fetch *fetch;
    int early, late, stays;

    http_begin();
    store(URL "2", MAX_AGE, "hit");
    early = http_connect();
    late = http_connect();
    stays = http_connect();
    ck_assert(http_send(early, GET));
    (void)await_fetch(URL);
    /* When the hit has come, the request behind it waits for the fetch. */
    ck_assert(http_send(late, "GET " URL "2 HTTP/1.1\r\nHost: x\r\n\r\n" GET));
    http_expect_status(late, &answer, 200);
    ck_assert(http_send(stays, "GET " URL "2 HTTP/1.1\r\nHost: x\r\n\r\n" GET));
    http_expect_status(stays, &answer, 200);
    close(early);
    fetch = origin_begins(URL, MAX_AGE, -1);
    expect_head(late);
    close(late);
    for (int i = 0; i < 100; i++) {
        (void)fetch->sink->body(fetch->context, plain_bytes(10000), 10000);
        usleep(100);
    }
    scene_done(fetch, FETCH_OK, "");
    http_expect_status(stays, &answer, 200);
    ck_assert_uint_eq(answer.body_len, 1000000);
    http_expect_hit(stays, URL, answer.body, 1000000);
    close(stays);
    front_server_stop();
}
END_TEST

START_TEST(what_is_under_way_at_the_end_is_released)
{
    struct scene_fetch *fetch;
    int waits, streams, idle;

    http_begin();
    waits = http_connect();
    streams = http_connect();
    idle = http_connect();
    ck_assert(http_send(streams, GET));
    fetch = origin_begins(URL, "", -1);
    expect_head(streams);
    ck_assert(http_send(waits, "GET " URL "2 HTTP/1.1\r\nHost: x\r\n\r\nGET "));
    (void)await_fetch(URL "2");
    (void)front_server_halt(0);
    scene_done(fetch, FETCH_STOPPING, "stopping");
    origin_fails(URL "2", FETCH_STOPPING, "stopping");
    front_server_free();
    close(waits);
    close(streams);
    close(idle);
}
END_TEST

START_TEST(only_clients_of_the_networks_may_use_the_proxy)
{
    static char other[] = "192.0.2.0/24";
    static char *items[] = {other, NULL};
    int fd;

    front_options.client_net = (struct option_list){.items = items, .count = 1};
    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, GET));
    http_expect_status(fd, &answer, 403);
    close(fd);
    /* The permissions of an AF_UNIX socket decide which users may use it. */
    fd = http_connect_local();
    ck_assert(http_send(fd, GET));
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    http_expect_status(fd, &answer, 200);
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: HTTP front");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_miss_and_then_hits_on_one_connection);
    tcase_add_test(tcase, bytes_that_come_one_by_one);
    tcase_add_test(tcase, pipelined_hits_are_answered_in_order);
    tcase_add_test(tcase, clients_that_do_not_read_take_little_memory);
    tcase_add_test(tcase, a_pipelined_request_waits_for_the_miss_before_it);
    tcase_add_test(tcase, a_body_is_passed_on_while_it_arrives);
    tcase_add_test(tcase, large_bodies);
    tcase_add_test(tcase, versions_and_persistence);
    tcase_add_test(tcase, a_bad_request_is_refused_after_what_was_before_it);
    tcase_add_test(tcase, connection_with_too_many_members);
    tcase_add_test(tcase, a_head_that_is_too_large);
    tcase_add_test(tcase, failures_before_the_head_are_pages);
    tcase_add_test(tcase, a_response_that_breaks_off_is_noticed);
    tcase_add_test(tcase, clients_that_disconnect);
    tcase_add_test(tcase, what_is_under_way_at_the_end_is_released);
    tcase_add_test(tcase, only_clients_of_the_networks_may_use_the_proxy);
    suite_add_tcase(suite, tcase);
    return suite;
}
