/* Requests that are served otherwise than they came: without the fields that Connection lists, and
 * with the bytes over 127 of their target encoded. */
#include "tests/unit/server/http/http_scene.h"

static struct http_answer answer;

/* The next fetch of the page has this line, or has it not. It is answered with these lines. */
static void
expect_fetched(const char *line, bool has, const char *lines, const char *body)
{
    struct scene_fetch *fetch = await_fetch(URL);

    ck_assert_msg(!strstr(fetch->fields, line) == !has, "%s", fetch->fields);
    origin_responds(URL, lines, BODY_INLINE, body, strlen(body));
}

#define MANY_LINES                                          \
    "Connection: keep-alive, if-none-match\r\n"             \
    "If-None-Match: *\r\n"                                  \
    "If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n"

START_TEST(neither_conditions_nor_ranges_nor_directives_count)
{
    static const char *const lines[] = {
        "Connection: If-None-Match\r\nIf-None-Match: *\r\n",
        MANY_LINES,
        "Connection: Range\r\nRange: bytes=0-0\r\n",
        "Range: bytes=0-0\r\nConnection: a, Range\r\nConnection: b\r\n",
        "Connection: Cache-Control, Pragma\r\nCache-Control: no-cache\r\nPragma: no-cache\r\n",
    };
    int fd;

    http_begin();
    http_store(URL, MAX_AGE "ETag: \"a\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
               "page");
    fd = http_connect();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        char request[400];

        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", URL, lines[i]);
        ck_assert(http_send(fd, request));
        http_expect_page(fd, &answer, "page");
        ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    }
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(they_select_no_variant)
{
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("GET", "Connection: X-A\r\nX-A: 1\r\n")));
    expect_fetched("X-A: 1", false, MAX_AGE "Vary: X-A\r\n", "without");
    http_expect_page(fd, &answer, "without");
    ck_assert(http_send(fd, REQUEST("GET", "")));
    http_expect_page(fd, &answer, "without");
    ck_assert(http_send(fd, REQUEST("GET", "X-A: 1\r\n")));
    expect_fetched("X-A: 1", true, MAX_AGE "Vary: X-A\r\n", "with");
    http_expect_page(fd, &answer, "with");
    ck_assert(http_send(fd, REQUEST("GET", "X-A: 1\r\nConnection: close, x-a\r\n")));
    http_expect_page(fd, &answer, "without");
    ck_assert(http_has(&answer, "Connection: close"));
    close(fd);
    front_server_stop();
}
END_TEST

/* The origin has answered for anyone, so the response is not that of a user. */
START_TEST(a_cookie_that_is_listed_is_nobodys)
{
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("GET", "Connection: Cookie\r\nCookie: user=1\r\n")));
    expect_fetched("user=1", false, MAX_AGE, "anyone's");
    http_expect_page(fd, &answer, "anyone's");
    ck_assert(http_send(fd, REQUEST("GET", "")));
    http_expect_page(fd, &answer, "anyone's");
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_body_and_the_next_request_follow)
{
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("POST", "Connection: X-A, Content-Length\r\nX-A: 1\r\n"
                                            "Content-Length: 4\r\n") "body"
                                REQUEST("GET", "")));
    expect_fetched("X-A: 1", false, "", "posted");
    http_expect_page(fd, &answer, "posted");
    expect_fetched("X-A", false, "", "got");
    http_expect_page(fd, &answer, "got");
    close(fd);
    front_server_stop();
}
END_TEST

/* One page under its encoded URL, whoever encodes it. */
START_TEST(bytes_over_127_in_a_target_are_encoded)
{
    static const char encoded[] = "http://origin.test/%C3%A4?%FF=%e4";
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(
        http_send(fd, "GET http://origin.test/\xc3\xa4?\xff=%e4 HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_responds(encoded, MAX_AGE, BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    http_expect_hit(fd, encoded, "page", 4);
    http_expect_hit(fd, "http://origin.test/\xc3\xa4?\xff=%e4", "page", 4);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_target_that_is_too_long_encoded_is_refused)
{
    static char request[9000];
    int fd, len = snprintf(request, sizeof(request), "GET http://origin.test/");

    memset(request + len, '\xff', 6000);
    snprintf(request + len + 6000, sizeof(request) - (size_t)len - 6000,
             " HTTP/1.1\r\nHost: x\r\n\r\n");
    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, request));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 414);
    /* By the bound on URLs: the connection persists. */
    memset(request + len + 3000, 'a', 3000);
    ck_assert(http_send(fd, request));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 414);
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: rewritten requests");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, neither_conditions_nor_ranges_nor_directives_count);
    tcase_add_test(tests, they_select_no_variant);
    tcase_add_test(tests, a_cookie_that_is_listed_is_nobodys);
    tcase_add_test(tests, a_body_and_the_next_request_follow);
    tcase_add_test(tests, bytes_over_127_in_a_target_are_encoded);
    tcase_add_test(tests, a_target_that_is_too_long_encoded_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
