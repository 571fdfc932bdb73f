/* Conditions and ranges of requests over HTTP, evaluated on objects. The origin is the test's. */
#include "server/http/http_page.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

#define ETAG "ETag: \"one\"\r\n"
#define MODIFIED "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n"

static struct http_answer answer;

START_TEST(conditions_are_evaluated_on_what_is_stored)
{
    static const struct {
        const char *line;
        unsigned status;
    } cases[] = {
        {"If-None-Match: \"one\"\r\n", 304},
        {"If-None-Match: \"two\", W/\"one\"\r\n", 304},
        {"If-None-Match: \"two\"\r\n", 200},
        {"If-None-Match: *\r\n", 304},
        {"If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304},
        {"If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT\r\n", 200},
        {"If-None-Match: \"two\"\r\nIf-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 200},
    };
    char request[512];
    int fd;

    http_begin();
    http_store(
        URL, MAX_AGE ETAG MODIFIED "Content-Type: text/plain\r\nContent-Length: 4\r\nX-Kept: x\r\n",
        "page");
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(request, sizeof(request), REQUEST("GET", "%s"), cases[i].line);
        http_expect(fd, request, &answer, cases[i].status);
        ck_assert(http_has(&answer, "ETag: \"one\""));
        ck_assert(http_has(&answer, "X-Kept: x"));
        ck_assert(http_has(&answer, "Cache-Control: max-age=3600"));
        ck_assert(http_has_start(&answer, "Content-Length:") == (cases[i].status == 200));
        ck_assert(http_has_start(&answer, "Content-Type:") == (cases[i].status == 200));
        if (cases[i].status == 200)
            ck_assert_str_eq(answer.body, "page");
    }
    close(fd);
    front_server_stop();
}
END_TEST

/* What is fetched is no stored response: the origin's answer to a condition is the client's. */
START_TEST(conditions_of_a_miss_are_the_origins)
{
    static const struct {
        const char *line;    /* of the request */
        unsigned status;     /* of the origin's response, */
        const char *headers; /* and its lines */
        bool stored;
    } cases[] = {
        /* Its Date is not later, but says nothing about a response without Last-Modified. */
        {"If-Modified-Since: Fri, 31 Dec 2100 23:59:59 GMT\r\n", 200,
         "Cache-Control: no-store\r\nContent-Length: 4\r\n", false},
        {"If-None-Match: \"one\"\r\n", 200, "Cache-Control: no-store\r\n" ETAG
         "Content-Length: 4\r\n", false},
        {"If-None-Match: \"one\"\r\n", 200, MAX_AGE ETAG "Content-Length: 4\r\n", true},
        {"If-None-Match: \"one\"\r\n", 304, MAX_AGE ETAG, false},
        {"If-None-Match: \"one\"\r\n", 412, "Content-Length: 0\r\n", false},
    };
    char request[512];
    int fd;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool is_200 = cases[i].status == 200;

        http_begin();
        fd = http_connect();
        snprintf(request, sizeof(request), REQUEST("GET", "%s"), cases[i].line);
        ck_assert(http_send(fd, request));
        ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, cases[i].line));
        origin_answers(URL, cases[i].status, cases[i].headers, is_200 ? "page" : "");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, cases[i].status);
        ck_assert_str_eq(answer.body, is_200 ? "page" : "");
        if (cases[i].stored)
            http_expect(fd, request, &answer, 304);
        close(fd);
        front_server_stop();
    }
}
END_TEST

/* However many lines are left out between others. */
START_TEST(no_field_is_lost)
{
    static const struct {
        const char *line;
        unsigned status;
        bool languages;
    } cases[] = {
        {"", 200, true},
        {"If-None-Match: \"one\"\r\n", 304, false},
        {"Range: bytes=0-1\r\n", 206, true},
        {"Range: bytes=0-0,2-2\r\n", 206, true},
    };
    char lines[1024], request[512], field[32];
    size_t len = (size_t)sprintf(lines, MAX_AGE ETAG);
    int fd;

    http_begin();
    for (int i = 10; i < 30; i++)
        len += (size_t)sprintf(lines + len, "Age: 0\r\nContent-Language: en\r\nX-%d: y\r\n", i);
    http_store(URL, lines, "page");
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(request, sizeof(request), REQUEST("GET", "%s"), cases[i].line);
        http_expect(fd, request, &answer, cases[i].status);
        for (int k = 10; k < 30; k++) {
            snprintf(field, sizeof(field), "X-%d: y", k);
            ck_assert_msg(http_has(&answer, field), "%s%s", field, answer.head);
        }
        ck_assert(http_has(&answer, "Content-Language: en") == cases[i].languages);
        ck_assert(http_has(&answer, "ETag: \"one\""));
    }
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(ranges_of_a_stored_object)
{
    static const struct {
        const char *range;
        unsigned status;
        const char *content_range, *body;
    } cases[] = {
        {"bytes=0-0", 206, "bytes 0-0/10", "0"},
        {"bytes=2-5", 206, "bytes 2-5/10", "2345"},
        {"bytes=7-", 206, "bytes 7-9/10", "789"},
        {"bytes=-3", 206, "bytes 7-9/10", "789"},
        {"bytes=-30", 206, "bytes 0-9/10", "0123456789"},
        {"bytes=8-30", 206, "bytes 8-9/10", "89"},
        {"bytes=10-", 416, "bytes */10", NULL},
        {"bytes=-0", 416, "bytes */10", NULL},
        {"bytes=5-2", 200, NULL, "0123456789"},
        {"lines=1-2", 200, NULL, "0123456789"},
        {"bytes=0-5,2-7", 200, NULL, "0123456789"},
    };
    char request[512], line[64];
    int fd;

    http_begin();
    http_store(URL, MAX_AGE ETAG MODIFIED "Content-Type: text/plain\r\nContent-Length: 10\r\n",
               "0123456789");
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(request, sizeof(request), REQUEST("GET", "Range: %s\r\n"), cases[i].range);
        http_expect(fd, request, &answer, cases[i].status);
        snprintf(line, sizeof(line), "Content-Range: %s",
                 cases[i].content_range ? cases[i].content_range : "");
        ck_assert_msg(cases[i].content_range ? http_has(&answer, line)
                                             : !http_has_start(&answer, "Content-Range"),
                      "%s: %s", cases[i].range, answer.head);
        if (cases[i].body)
            ck_assert_msg(strcmp(answer.body, cases[i].body) == 0, "%s: %s", cases[i].range,
                          answer.body);
    }
    /* If-Range is for what is stored, or the whole is the response. A condition comes first. */
    http_expect(fd, REQUEST("GET", "Range: bytes=1-2\r\nIf-Range: \"one\"\r\n"), &answer, 206);
    http_expect(fd, REQUEST("GET", "Range: bytes=1-2\r\nIf-Range: \"two\"\r\n"), &answer, 200);
    http_expect(fd,
                REQUEST("GET", "Range: bytes=1-2\r\nIf-Range: Sun, 06 Nov 1994 08:49:37 GMT\r\n"),
                &answer, 206);
    http_expect(fd, REQUEST("GET", "Range: bytes=1-2\r\nIf-None-Match: \"one\"\r\n"), &answer, 304);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_browser_may_see_that_a_range_is_not_satisfiable)
{
    static const char *const lines[] = {"Access-Control-Allow-Origin: http://page.test",
                                        "access-control-expose-headers: Content-Range",
                                        "Vary: Origin", "Timing-Allow-Origin: *"};
    char fields[2048 + HTTP_PAGE_LINES];
    size_t len = (size_t)sprintf(fields, MAX_AGE "X-Kept: x\r\n");
    int fd;

    http_begin();
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        len += (size_t)sprintf(fields + len, "%s\r\n", lines[i]);
    len += (size_t)sprintf(fields + len, "Access-Control-Allow-Headers: ");
    memset(fields + len, 'x', HTTP_PAGE_LINES);
    strcpy(fields + len + HTTP_PAGE_LINES, "\r\nContent-Length: 4\r\n");
    http_store(URL, fields, "page");
    fd = http_connect();
    http_expect(fd, REQUEST("GET", "Range: bytes=4-\r\n"), &answer, 416);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        ck_assert_msg(http_has(&answer, lines[i]), "%s: %s", lines[i], answer.head);
    ck_assert(http_has(&answer, "Content-Range: bytes */4"));
    ck_assert(!http_has_start(&answer, "X-Kept"));
    /* There is no space for it. */
    ck_assert(!http_has_start(&answer, "Access-Control-Allow-Headers"));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(several_ranges_are_a_multipart)
{
    const size_t len = 1500000;
    const char *bytes = plain_bytes(len), *at;
    char boundary[64], expected[128];
    int fd;

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("GET", "")));
    origin_responds(URL, MAX_AGE "Content-Type: text/x\r\n", BODY_SEGMENTED, bytes, len);
    ck_assert(http_receive(fd, &answer, false));
    http_expect(fd, REQUEST("GET", "Range: bytes=100-599999,1-3,-5\r\n"), &answer, 206);
    ck_assert(!http_has(&answer, "Content-Type: text/x"));
    at = strstr(answer.head, "Content-Type: multipart/byteranges; boundary=");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(strchr(at, '=') + 1, "%63[^\r]", boundary), 1);
    at = answer.body;
    for (int i = 0; i < 3; i++) {
        static const size_t first[] = {100, 1, 1499995}, last[] = {599999, 3, 1499999};

        at = strstr(at, boundary);
        ck_assert_ptr_nonnull(at);
        snprintf(expected, sizeof(expected), "Content-Range: bytes %zu-%zu/1500000\r\n\r\n",
                 first[i], last[i]);
        at = strstr(at, expected);
        ck_assert_ptr_nonnull(at);
        at += strlen(expected);
        ck_assert(memcmp(at, bytes + first[i], last[i] - first[i] + 1) == 0);
        at += last[i] - first[i] + 1;
    }
    snprintf(expected, sizeof(expected), "\r\n--%s--\r\n", boundary);
    ck_assert_str_eq(at, expected);
    /* The connection goes on behind it. */
    http_expect_hit(fd, URL, bytes, len);
    close(fd);
    front_server_stop();
}
END_TEST

/* From the middle of an object whose length is known, as it arrives; also one that begins far
 * behind the beginning, but in what has come. */
START_TEST(a_range_of_a_growing_object)
{
    const char *bytes = plain_bytes(2000000);
    const struct cache_fill *fill;
    struct scene_fetch *fetch;
    int first, second, third;
    char part[64];

    http_begin();
    first = http_connect();
    second = http_connect();
    third = http_connect();
    ck_assert(http_send(first, REQUEST("GET", "")));
    fetch = await_fetch(URL);
    fill = fetch->given_context;
    fetch->sink->begin(fetch->context);
    scene_response(fetch, MAX_AGE "Content-Length: 2000000\r\n", false);
    ck_assert_int_eq(scene_head(fetch, 200, MAX_AGE "Content-Length: 2000000\r\n", 2000000),
                     FETCH_CONTINUE);
    ck_assert(peer_read(first, part, 17));
    ck_assert(http_send(second, REQUEST("GET", "Range: bytes=60000-60009\r\n")));
    for (size_t at = 0; at < 1500000; at += 10000)
        (void)fetch->sink->body(fetch->context, bytes + at, 10000);
    ck_assert(http_receive(second, &answer, false));
    ck_assert_uint_eq(answer.status, 206);
    ck_assert(http_has(&answer, "Content-Range: bytes 60000-60009/2000000"));
    ck_assert_uint_eq(answer.body_len, 10);
    ck_assert(memcmp(answer.body, bytes + 60000, 10) == 0);
    while (atomic_load(&fill->waiter_count) > 1)
        usleep(1000);
    ck_assert(http_send(third, REQUEST("GET", "Range: bytes=1400000-1599999\r\n")));
    while (atomic_load(&fill->waiter_count) < 2)
        usleep(1000);
    for (size_t at = 1500000; at < 2000000; at += 10000)
        (void)fetch->sink->body(fetch->context, bytes + at, 10000);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(http_receive(third, &answer, false));
    ck_assert_uint_eq(answer.status, 206);
    ck_assert(http_has(&answer, "Content-Range: bytes 1400000-1599999/2000000"));
    ck_assert_uint_eq(answer.body_len, 200000);
    ck_assert(memcmp(answer.body, bytes + 1400000, 200000) == 0);
    http_expect_hit(second, URL, bytes, 2000000);
    close(first);
    close(second);
    close(third);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: HTTP ranges");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, conditions_are_evaluated_on_what_is_stored);
    tcase_add_test(tcase, conditions_of_a_miss_are_the_origins);
    tcase_add_test(tcase, no_field_is_lost);
    tcase_add_test(tcase, ranges_of_a_stored_object);
    tcase_add_test(tcase, a_browser_may_see_that_a_range_is_not_satisfiable);
    tcase_add_test(tcase, several_ranges_are_a_multipart);
    tcase_add_test(tcase, a_range_of_a_growing_object);
    suite_add_tcase(suite, tcase);
    return suite;
}
