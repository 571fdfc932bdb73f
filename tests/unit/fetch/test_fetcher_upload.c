/*
 * Methods, and bodies of requests.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"

#define LARGE ((size_t)700000)

static char *large; /* a body of LARGE bytes, numbered so that a lost or repeated piece shows */

static const struct line script[] = {
    {.path = "/", .bytes = OK},
    {.path = "/refused",
     .bytes = "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nno\n",
     .then = EARLY},
    {.path = "/early", .bytes = OK, .then = EARLY},
    {.path = "/early-chunks",
     .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
     .then = EARLY},
    {.path = "/early-empty", .bytes = "HTTP/1.1 204 No Content\r\n\r\n", .then = EARLY},
    {.path = "/early-half",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nfine",
     .then = EARLY},
    {.path = "/silent", .bytes = "", .then = EARLY},
    {.path = "/closing", .bytes = "", .then = CLOSE},
    {.path = "/see", .bytes = "HTTP/1.1 303 See\r\nLocation: /\r\nContent-Length: 3\r\n\r\nsee"},
    {.path = "/head", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: \"a\"\r\n\r\n"},
    {.path = "/head-lies", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"},
    {.path = "/head-chunks", .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
    {.path = NULL},
};

static void
set_up(void)
{
    fixture_set_up();
    large = malloc(LARGE + 1);
    for (size_t i = 0; i < LARGE; i += 7)
        snprintf(large + i, 8, "%06zu\n", i / 7);
}

static void
tear_down(void)
{
    free(large);
    fixture_tear_down();
}

struct sending {
    struct origin *origin;
    struct fetcher *fetcher;
    struct paced paced;
    struct request request;
    char url[64];
};

static void
sending_init(struct sending *s, const char *method, const char *path)
{
    s->origin = origin_start(script);
    s->fetcher = start_fetcher(&config);
    paced_init(&s->paced, s->fetcher);
    s->request = paced_request(s->url, sizeof(s->url), s->origin->port, method, path, 0);
}

/* With a body that the consumer supplies. */
static void
supplying_init(struct sending *s, const char *path, const char *bytes, size_t len, bool chunked)
{
    sending_init(s, "POST", path);
    s->paced.source = bytes;
    s->paced.source_len = len;
    s->request.body =
        (struct request_body){.kind = REQUEST_BODY_SUPPLIED, .length = chunked ? -1 : (int64_t)len};
}

static void
send_and_expect(struct sending *s, enum fetch_error error)
{
    paced_submit(&s->paced, &s->request);
    paced_expect(&s->paced, error);
}

static void
expect_received(const struct sending *s, const char *bytes, size_t len)
{
    pthread_mutex_lock(&s->origin->lock);
    ck_assert_uint_eq(s->origin->last_body_len, len);
    ck_assert_mem_eq(s->origin->last_body, bytes, len);
    pthread_mutex_unlock(&s->origin->lock);
}

static void
expect_line(const struct sending *s, const char *line)
{
    ck_assert_msg(strstr(s->origin->last_request, line) != NULL, "%s", s->origin->last_request);
}

static void
expect_no_line(const struct sending *s, const char *line)
{
    ck_assert_msg(!strcasestr(s->origin->last_request, line), "%s", s->origin->last_request);
}

static void
sending_free(struct sending *sending)
{
    paced_free(&sending->paced);
    fetcher_destroy(sending->fetcher);
    origin_stop(sending->origin);
}

/* ---- methods ------------------------------------------------------------------------- */

START_TEST(methods_reach_the_origin)
{
    static const char *const methods[] = {"GET",   "DELETE", "OPTIONS",  "TRACE", "PUT",
                                          "PATCH", "POST",   "PROPFIND", "get",   "M-SEARCH"};

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct sending s;
        char line[64];

        sending_init(&s, methods[i], "/");
        send_and_expect(&s, FETCH_OK);
        ck_assert_str_eq(s.paced.outcome.body, "fine");
        snprintf(line, sizeof(line), "%s / HTTP/1.1\r\n", methods[i]);
        ck_assert_msg(strncmp(s.origin->last_request, line, strlen(line)) == 0, "%s",
                      s.origin->last_request);
        expect_no_line(&s, "\r\nContent-Length:");
        expect_no_line(&s, "\r\nTransfer-Encoding:");
        sending_free(&s);
    }
}
END_TEST

START_TEST(methods_that_are_refused)
{
    static const struct request_body body = {.kind = REQUEST_BODY_SUPPLIED};
    char too_long[66];
    const struct {
        const char *method;
        bool has_body;
    } rows[] = {{"CONNECT", false}, {"TWO WORDS", false}, {"GET\r\nX: y", false}, {"a/b", false},
                {"HEAD", true},     {"TRACE", true},      {too_long, false}};

    memset(too_long, 'A', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char why[256] = "";
        struct sending s;

        sending_init(&s, rows[i].method, "/");
        if (rows[i].has_body)
            s.request.body = body;
        s.request.method = http_method_of(s.request.method_name);
        ck_assert_int_eq(fetch_check_request(&s.request, s.request.fields, why, sizeof(why)),
                         FETCH_BAD_METHOD);
        ck_assert_str_ne(why, "");
        send_and_expect(&s, FETCH_BAD_METHOD);
        ck_assert_str_eq(s.paced.outcome.sentence, why);
        ck_assert_uint_eq(origin_requests(s.origin), 0);
        sending_free(&s);
    }
}
END_TEST

/* The length that the head states is that of another answer. */
START_TEST(a_head_has_no_body)
{
    struct sending s;

    sending_init(&s, "HEAD", "/head");
    for (unsigned i = 0; i < 3; i++) {
        struct paced paced;

        paced_init(&paced, s.fetcher);
        paced_submit(&paced, &s.request);
        paced_expect(&paced, FETCH_OK);
        ck_assert_uint_eq(paced.outcome.status, 200);
        ck_assert_int_eq(paced.outcome.content_length, 0);
        ck_assert_uint_eq(paced.outcome.body_len, 0);
        ck_assert_str_eq(paced.outcome.headers, "Content-Length: 1000\r\nETag: \"a\"\r\n");
        paced_free(&paced);
    }
    ck_assert_ptr_nonnull(strstr(s.origin->last_request, "HEAD /head HTTP/1.1\r\n"));
    ck_assert_uint_eq(s.origin->connections, 1);
    sending_free(&s);
    sending_init(&s, "HEAD", "/head-chunks");
    send_and_expect(&s, FETCH_OK);
    ck_assert_uint_eq(s.paced.outcome.body_len, 0);
    sending_free(&s);
}
END_TEST

/* A body that comes all the same is no part of the answer, and must not become the next one. */
START_TEST(a_head_with_a_body)
{
    struct sending s;

    sending_init(&s, "HEAD", "/head-lies");
    send_and_expect(&s, FETCH_OK);
    ck_assert_uint_eq(s.paced.outcome.body_len, 0);
    expect_page(s.fetcher, "fine", "http://127.0.0.1:%u/", s.origin->port);
    ck_assert_uint_eq(s.origin->connections, 2);
    sending_free(&s);
}
END_TEST

/* ---- bodies -------------------------------------------------------------------------- */

START_TEST(a_body_of_any_bytes)
{
    struct sending s;

    sending_init(&s, "POST", "/");
    s.request.fields = span_str("Content-Type: text/plain\r\nContent-Encoding: x-a\r\n");
    s.request.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED, .length = 3};
    s.paced.source = "a\0b";
    s.paced.source_len = 3;
    send_and_expect(&s, FETCH_OK);
    ck_assert_str_eq(s.paced.outcome.body, "fine");
    expect_received(&s, "a\0b", 3);
    expect_line(&s, "POST / HTTP/1.1\r\n");
    expect_line(&s, "\r\nContent-Length: 3\r\n");
    expect_line(&s, "\r\nContent-Type: text/plain\r\n");
    expect_line(&s, "\r\nContent-Encoding: x-a\r\n");
    expect_no_line(&s, "Expect:");
    sending_free(&s);
}
END_TEST

START_TEST(an_empty_body)
{
    struct sending s;

    supplying_init(&s, "/", "", 0, false);
    send_and_expect(&s, FETCH_OK);
    expect_line(&s, "\r\nContent-Length: 0\r\n");
    sending_free(&s);
    supplying_init(&s, "/", "", 0, true);
    send_and_expect(&s, FETCH_OK);
    expect_line(&s, "\r\nTransfer-Encoding: chunked\r\n");
    expect_received(&s, "", 0);
    sending_free(&s);
}
END_TEST

/* Long enough for libcurl to expect 100 (Continue), if it was left to itself. */
START_TEST(a_supplied_body)
{
    struct sending s;

    supplying_init(&s, "/", large, LARGE, _i);
    s.paced.source_piece = 10007;
    send_and_expect(&s, FETCH_OK);
    expect_received(&s, large, LARGE);
    expect_line(&s, _i ? "\r\nTransfer-Encoding: chunked\r\n" : "\r\nContent-Length: 700000\r\n");
    expect_no_line(&s, "Expect:");
    expect_no_line(&s, _i ? "\r\nContent-Length:" : "\r\nTransfer-Encoding:");
    sending_free(&s);
}
END_TEST

/* Nothing at first, or in the middle, for longer than the time limits. */
START_TEST(a_source_that_waits)
{
    static const size_t dry[] = {0, 1, 300000};
    struct sending s;

    config.first_byte_timeout_us = 1000000;
    config.stall_timeout_us = 1000000;
    supplying_init(&s, "/", large, LARGE, _i % 2);
    s.paced.source_dry_at = dry[_i / 2];
    s.paced.dry_at_once = dry[_i / 2] == 0;
    paced_submit(&s.paced, &s.request);
    paced_wait_dry(&s.paced);
    ck_assert_uint_eq(s.paced.supplied, dry[_i / 2]);
    usleep(1500000);
    ck_assert(!outcome_is_over(&s.paced.outcome));
    paced_go_on(&s.paced);
    paced_expect(&s.paced, FETCH_OK);
    expect_received(&s, large, LARGE);
    sending_free(&s);
}
END_TEST

START_TEST(a_source_that_waits_too_long)
{
    struct sending s;

    config.pause_timeout_us = 200000;
    supplying_init(&s, "/", large, LARGE, true);
    s.paced.source_dry_at = 1;
    send_and_expect(&s, FETCH_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(s.paced.outcome.sentence, "pause"));
    sending_free(&s);
}
END_TEST

START_TEST(a_source_that_fails)
{
    struct sending s;

    supplying_init(&s, "/", "some", 4, true);
    s.paced.source_end = FETCH_SUPPLY_FAILED;
    send_and_expect(&s, FETCH_BODY_FAILED);
    ck_assert_uint_eq(s.paced.outcome.heads, 0);
    sending_free(&s);
    supplying_init(&s, "/", "some", 4, false);
    s.request.body.length = 5;
    send_and_expect(&s, FETCH_BODY_FAILED);
    ck_assert_ptr_nonnull(strstr(s.paced.outcome.sentence, "stated length"));
    sending_free(&s);
}
END_TEST

START_TEST(a_source_that_is_cancelled)
{
    struct sending s;

    supplying_init(&s, "/", large, LARGE, _i);
    s.paced.source_dry_at = 1;
    paced_submit(&s.paced, &s.request);
    paced_wait_dry(&s.paced);
    fetcher_cancel(s.fetcher, s.paced.id);
    paced_expect(&s.paced, FETCH_CANCELLED);
    sending_free(&s);
}
END_TEST

START_TEST(stopped_while_the_source_waits)
{
    struct sending s;

    supplying_init(&s, "/", large, LARGE, true);
    s.paced.source_dry_at = 1;
    paced_submit(&s.paced, &s.request);
    paced_wait_dry(&s.paced);
    fetcher_stop(s.fetcher);
    paced_expect(&s.paced, FETCH_STOPPING);
    sending_free(&s);
}
END_TEST

/* ---- origins ------------------------------------------------------------------------- */

/* The whole answer has come: the rest of the request is not sent, nor its connection kept. */
START_TEST(an_answer_before_the_body_is_sent)
{
    static const struct {
        const char *path;
        unsigned status;
        const char *body;
    } rows[] = {
        {"/refused", 413, "no\n"},
        {"/early", 200, "fine"},
        {"/early-chunks", 200, "fine"},
        {"/early-empty", 204, NULL},
    };
    struct sending s;

    supplying_init(&s, rows[_i / 2].path, large, LARGE, _i % 2);
    s.paced.source_dry_at = 10000;
    send_and_expect(&s, FETCH_OK);
    ck_assert_uint_eq(s.paced.outcome.status, rows[_i / 2].status);
    if (rows[_i / 2].body)
        ck_assert_str_eq(s.paced.outcome.body, rows[_i / 2].body);
    else
        ck_assert_uint_eq(s.paced.outcome.body_len, 0);
    ck_assert_uint_le(s.paced.supplied, 10000);
    expect_page(s.fetcher, "fine", "http://127.0.0.1:%u/", s.origin->port);
    ck_assert_uint_eq(s.origin->connections, 2);
    sending_free(&s);
}
END_TEST

/* The answer is read in the turn in which the source then has nothing more: no pause holds it up.
 */
START_TEST(an_answer_that_comes_while_the_source_is_asked)
{
    int64_t begun_us = clock_monotonic_us();
    struct sending s;

    config.pause_timeout_us = 5000000;
    supplying_init(&s, _i / 2 ? "/early-empty" : "/early", large, LARGE, _i % 2);
    s.paced.source_dry_at = 5000;
    s.paced.source_us = 50000;
    send_and_expect(&s, FETCH_OK);
    ck_assert_uint_eq(s.paced.outcome.status, _i / 2 ? 204 : 200);
    ck_assert_int_lt(clock_monotonic_us() - begun_us, config.pause_timeout_us);
    sending_free(&s);
}
END_TEST

/* Both bodies at once: the rest of the request is sent while the answer is incomplete. */
START_TEST(an_answer_that_waits_for_the_body)
{
    struct sending s;

    config.stall_timeout_us = 1000000;
    supplying_init(&s, "/early-half", large, LARGE, true);
    s.paced.source_dry_at = 10000;
    paced_submit(&s.paced, &s.request);
    paced_wait_dry(&s.paced);
    while (paced_len(&s.paced) < 4)
        usleep(1000);
    paced_go_on(&s.paced);
    paced_expect(&s.paced, FETCH_TIMED_OUT);
    ck_assert_uint_eq(s.paced.supplied, LARGE);
    ck_assert_str_eq(s.paced.outcome.body, "fine");
    sending_free(&s);
}
END_TEST

/* It takes the body, and says nothing: what runs then is the limit for the first byte. */
START_TEST(an_origin_that_does_not_answer)
{
    struct sending s;

    config.first_byte_timeout_us = 200000;
    /* A body that is known to be empty has been sent with the head. */
    for (size_t size = 0; size <= 1000; size += 1000) {
        supplying_init(&s, "/silent", large, size, size != 0);
        send_and_expect(&s, FETCH_TIMED_OUT);
        ck_assert_ptr_nonnull(strstr(s.paced.outcome.sentence, "first byte"));
        sending_free(&s);
    }
}
END_TEST

/* It takes no more than the kernel does for it: sending has stalled. */
START_TEST(an_origin_that_does_not_read)
{
    const size_t size = (size_t)16 << 20;
    char *much = calloc(1, size);
    struct fetcher *fetcher;
    struct request request;
    struct paced paced;
    uint16_t port;
    int listener = scripted_listen(&port, 8);
    char url[64];

    config.stall_timeout_us = 300000;
    fetcher = start_fetcher(&config);
    paced_init(&paced, fetcher);
    paced.source = much;
    paced.source_len = size;
    request = paced_request(url, sizeof(url), port, "PUT", "/", 0);
    request.body = (struct request_body){.kind = REQUEST_BODY_SUPPLIED, .length = (int64_t)size};
    paced_submit(&paced, &request);
    paced_expect(&paced, FETCH_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(paced.outcome.sentence, "sending"));
    ck_assert_uint_lt(paced.supplied, size);
    paced_free(&paced);
    fetcher_destroy(fetcher);
    close(listener);
    free(much);
}
END_TEST

/*
 * An origin that closes a connection instead of answering, which was kept from a first fetch. What
 * may be repeated is sent again, with all of its body; what may not is not.
 */
START_TEST(a_connection_that_is_closed_without_an_answer)
{
    static const struct {
        const char *method;
        enum request_body_kind kind;
        bool repeated;
    } rows[] = {
        {"GET", REQUEST_BODY_NONE, true},      {"PUT", REQUEST_BODY_SUPPLIED, false},
        {"DELETE", REQUEST_BODY_NONE, false},  {"POST", REQUEST_BODY_SUPPLIED, false},
        {"POST", REQUEST_BODY_NONE, false},    {"PATCH", REQUEST_BODY_SUPPLIED, false},
        {"UNKNOWN", REQUEST_BODY_NONE, false},
    };
    struct sending s;

    sending_init(&s, rows[_i].method, "/closing");
    s.request.body = (struct request_body){.kind = rows[_i].kind, .length = 4};
    s.paced.source = "once";
    s.paced.source_len = 4;
    expect_page(s.fetcher, "fine", "http://127.0.0.1:%u/", s.origin->port);
    send_and_expect(&s, FETCH_ORIGIN_BROKE);
    ck_assert_uint_eq(origin_requests(s.origin), rows[_i].repeated ? 3 : 2);
    if (rows[_i].kind != REQUEST_BODY_NONE)
        expect_received(&s, "once", 4);
    sending_free(&s);
}
END_TEST

START_TEST(redirects_of_other_methods)
{
    static const char *const methods[] = {"POST", "DELETE", "HEAD"};

    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        struct sending s;

        sending_init(&s, methods[i], "/see");
        send_and_expect(&s, FETCH_OK);
        ck_assert_uint_eq(s.paced.outcome.status, 303);
        ck_assert_uint_eq(s.paced.outcome.body_len, strcmp(methods[i], "HEAD") == 0 ? 0 : 3);
        ck_assert_ptr_nonnull(strstr(s.paced.outcome.headers, "Location: /\r\n"));
        ck_assert_uint_eq(origin_requests(s.origin), 1);
        sending_free(&s);
    }
}
END_TEST

/* Content-Encoding describes a body; what frames it is the fetcher's. */
START_TEST(headers_of_requests_with_a_body)
{
    static const struct {
        const char *headers;
        bool has_body;
        enum fetch_error error;
    } rows[] = {
        {"Content-Encoding: gzip\r\n", false, FETCH_BAD_HEADERS},
        {"Content-Encoding: gzip\r\n", true, FETCH_OK},
        {"Content-Length: 4\r\n", true, FETCH_BAD_HEADERS},
        {"Transfer-Encoding: chunked\r\n", true, FETCH_BAD_HEADERS},
        {"Expect: 100-continue\r\n", true, FETCH_BAD_HEADERS},
        {"Trailer: X\r\n", true, FETCH_BAD_HEADERS},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct request request = GET(OUTCOME_CLIENT, "http://a.test/", rows[i].headers);
        char why[256] = "";

        request.method_name = span_str("POST");
        request.method = HTTP_POST;
        request.body.kind = rows[i].has_body ? REQUEST_BODY_SUPPLIED : REQUEST_BODY_NONE;
        ck_assert_int_eq(fetch_check_request(&request, request.fields, why, sizeof(why)),
                         rows[i].error);
        ck_assert((why[0] != '\0') == (rows[i].error != FETCH_OK));
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/upload");
    TCase *tc = tcase_create("upload");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, methods_reach_the_origin);
    tcase_add_test(tc, methods_that_are_refused);
    tcase_add_test(tc, a_head_has_no_body);
    tcase_add_test(tc, a_head_with_a_body);
    tcase_add_test(tc, a_body_of_any_bytes);
    tcase_add_test(tc, an_empty_body);
    tcase_add_loop_test(tc, a_supplied_body, 0, 2);
    tcase_add_loop_test(tc, a_source_that_waits, 0, 6);
    tcase_add_test(tc, a_source_that_waits_too_long);
    tcase_add_test(tc, a_source_that_fails);
    tcase_add_loop_test(tc, a_source_that_is_cancelled, 0, 2);
    tcase_add_test(tc, stopped_while_the_source_waits);
    tcase_add_loop_test(tc, an_answer_before_the_body_is_sent, 0, 8);
    tcase_add_loop_test(tc, an_answer_that_comes_while_the_source_is_asked, 0, 4);
    tcase_add_test(tc, an_answer_that_waits_for_the_body);
    tcase_add_test(tc, an_origin_that_does_not_answer);
    tcase_add_test(tc, an_origin_that_does_not_read);
    tcase_add_loop_test(tc, a_connection_that_is_closed_without_an_answer, 0, 7);
    tcase_add_test(tc, redirects_of_other_methods);
    tcase_add_test(tc, headers_of_requests_with_a_body);
    suite_add_tcase(suite, tc);
    return suite;
}
