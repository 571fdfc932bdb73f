/*
 * Methods that the proxy answers itself: OPTIONS and PURGE, and what a soft purge leads to. The
 * origin is the test's.
 */
#include <poll.h>

#include "tests/unit/server/http/http_scene.h"

static struct http_answer answer;

START_TEST(options_of_the_proxy_itself)
{
    int fd;

    http_begin();
    fd = http_connect();
    http_expect(fd, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 204);
    http_expect(fd, REQUEST("OPTIONS", "Max-Forwards: 0\r\n"), &answer, 204);
    ck_assert(http_send(fd, REQUEST("OPTIONS", "Max-Forwards: 7\r\n")));
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, "Max-Forwards: 6\r\n"));
    origin_responds(URL, "", BODY_INLINE, "", 0);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(purging)
{
    static char loopback[] = "127.0.0.0/8";
    static char other[] = "192.0.2.0/24";
    static char *items[] = {loopback, NULL}, *others[] = {other, NULL};
    int fd;

    http_begin();
    http_store(URL, MAX_AGE, "page");
    fd = http_connect();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 403);
    http_expect_hit(fd, URL, "page", 4);
    close(fd);
    /* An administrator, over the AF_UNIX socket. */
    fd = http_connect_local();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 200);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
    front_options.purge_net = (struct option_list){.items = items, .count = 1};
    http_begin();
    http_store(URL, MAX_AGE, "page");
    fd = http_connect();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 200);
    close(fd);
    front_server_stop();
    /* Purging takes no permission to use the proxy. */
    front_options.purge_net = (struct option_list){.items = items, .count = 1};
    front_options.client_net = (struct option_list){.items = others, .count = 1};
    http_begin();
    fd = http_connect();
    http_expect(fd, REQUEST("GET", ""), &answer, 403);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(purging_more_than_one_url_and_softly)
{
    static char any[] = "/=http://origin.test,http://second.test";
    static char *items[] = {any, NULL};
    int fd;

    http_begin();
    fd = http_connect_local();
    http_store(URL, MAX_AGE "ETag: \"one\"\r\n", "page");
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 404);
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\nPurge: other\r\n\r\n",
                &answer, 400);
    /* Softly: it is validated before it is used. */
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\nPurge: prefix, soft\r\n\r\n",
                &answer, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "1 stored response expired"));
    ck_assert(http_send(fd, REQUEST("GET", "")));
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, "If-None-Match: \"one\"\r\n"));
    origin_responds(URL, MAX_AGE "Surrogate-Key: red green\r\n", BODY_INLINE, "next", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "next");
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: blue\r\n"), &answer, 404);
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: blue, green\r\n"), &answer, 200);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
    /* Of a reverse proxy, whichever URL it came from. */
    front_options.origin = (struct option_list){.items = items, .count = 1};
    http_begin();
    fd = http_connect_local();
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_fails("http://origin.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/x", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 200);
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 404);
    close(fd);
    front_server_stop();
}
END_TEST

/* Until this many requests wait for the fetch's object. */
static void
await_waiters(const struct scene_fetch *fetch, unsigned count)
{
    const struct cache_fill *fill = fetch->given_context;

    while (atomic_load(&fill->waiter_count) < count)
        poll(NULL, 0, 1);
}

/* RFC 9211 section 2.3: the status of the origin is stated where it is not that of the response. */
START_TEST(a_validated_response_states_the_status_of_the_origin)
{
    static const char lines[] = MAX_AGE "ETag: \"one\"\r\n";
    struct scene_fetch *fetch;
    int fd, joined;

    http_begin();
    fd = http_connect_local();
    joined = http_connect_local();
    http_store(URL, lines, "page");
    http_expect(fd, REQUEST("PURGE", "Purge: soft\r\n"), &answer, 200);
    ck_assert(http_send(fd, REQUEST("GET", "")));
    fetch = await_fetch(URL);
    ck_assert(http_send(joined, REQUEST("GET", "")));
    await_waiters(fetch, 2);
    fetch->sink->begin(fetch->context);
    scene_response(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 304, lines, 0), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored"));
    ck_assert(http_receive(joined, &answer, false));
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_has_start(
        &answer, "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored; collapsed"));
    close(fd);
    close(joined);
    front_server_stop();
}
END_TEST

/* What is refused has removed nothing. */
START_TEST(purges_that_are_refused)
{
    static char row[128 + 200] = "/=http://origin.test,http://second.test/";
    static char *items[] = {row, NULL};
    static char request[16384];
    size_t len;
    int fd;

    http_begin();
    http_store(URL, MAX_AGE "Surrogate-Key: t0\r\n", "page");
    fd = http_connect_local();
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key:\r\nPurge: prefix\r\n"), &answer, 400);
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: t0\r\nSurrogate-Key: ,\r\n"), &answer, 400);
    len = (size_t)sprintf(request, "PURGE " URL " HTTP/1.1\r\nHost: x\r\nSurrogate-Key:");
    for (int i = 0; i < 65; i++)
        len += (size_t)sprintf(request + len, " t%d", i);
    memcpy(request + len, "\r\n\r\n", 5);
    http_expect(fd, request, &answer, 400);
    http_expect_hit(fd, URL, "page", 4);
    memcpy(request + len - 4, "\r\n\r\n", 5);
    http_expect(fd, request, &answer, 200);
    close(fd);
    front_server_stop();
    /* The URL fits for the first origin, and does not for the second. */
    memset(row + strlen(row), 'p', 200);
    front_options.origin = (struct option_list){.items = items, .count = 1};
    http_begin();
    fd = http_connect_local();
    ck_assert(http_send(fd, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_responds("http://origin.test/keep", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    len = (size_t)sprintf(request, "PURGE /");
    memset(request + len, 'q', 8100);
    strcpy(request + len + 8100, " HTTP/1.1\r\nHost: x\r\nPurge: prefix\r\n\r\n");
    http_expect(fd, request, &answer, 414);
    http_expect(fd, "PURGE /keep HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 200);
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: methods that the proxy answers");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, options_of_the_proxy_itself);
    tcase_add_test(tcase, purging);
    tcase_add_test(tcase, purging_more_than_one_url_and_softly);
    tcase_add_test(tcase, a_validated_response_states_the_status_of_the_origin);
    tcase_add_test(tcase, purges_that_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
