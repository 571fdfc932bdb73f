/* What a request head says: target, host, framing, persistence, and the limits. */
#include "http/request_head.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct http_request request;
static struct http_refusal refusal;
static struct http_head_limits limits;

static enum http_head_step
read_once(const char *bytes)
{
    size_t searched = 0;

    refusal = (struct http_refusal){0};
    return http_request_head_read(&request, span_str(bytes), &searched, &limits, &refusal);
}

static void
accept(const char *bytes)
{
    ck_assert_msg(read_once(bytes) == HTTP_HEAD_COMPLETE, "\"%s\": %s", bytes,
                  refusal.reason ? refusal.reason : "partial");
}

static void
expect_span(struct span s, const char *text)
{
    ck_assert_msg(span_equal(s, span_str(text)), "\"%.*s\", not \"%s\"", (int)s.len, s.ptr, text);
}

static void
set_up(void)
{
    http_head_limits_default(&limits);
}

START_TEST(a_head_is_spans_of_its_bytes)
{
    static const char head[] = "GET /a?b=c HTTP/1.1\r\nHost: Example.com:8080\r\n"
                               "Accept: */*\r\nX:  y \r\n\r\nbody";

    accept(head);
    expect_span(request.method, "GET");
    ck_assert_int_eq(request.method_id, HTTP_GET);
    ck_assert_int_eq(request.form, HTTP_ORIGIN_FORM);
    expect_span(request.target, "/a?b=c");
    expect_span(request.path, "/a?b=c");
    expect_span(request.host, "Example.com");
    ck_assert_uint_eq(request.port, 8080);
    ck_assert_uint_eq(request.minor, 1);
    expect_span(request.fields, "Host: Example.com:8080\r\nAccept: */*\r\nX:  y \r\n");
    ck_assert_uint_eq(request.field_count, 3);
    ck_assert_uint_eq(request.head_len, sizeof(head) - 1 - 4);
    ck_assert_uint_eq(request.has, HTTP_HAS_HOST);
    ck_assert_int_eq(request.content_length, -1);
    ck_assert(!request.chunked && !request.expects_continue && request.persistent);
    ck_assert(!http_request_has_body(&request));
    ck_assert_uint_eq(request.upgrade.len, 0);
    ck_assert_ptr_eq(request.method.ptr, head);
}
END_TEST

START_TEST(members_of_connection_are_counted_over_all_lines)
{
    accept("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    ck_assert_uint_eq(request.connection_options, 0);
    accept(
        "GET / HTTP/1.1\r\nHost: h\r\nConnection: a,, b ,\r\nVia: 1.1 c\r\nCONNECTION: d\r\n\r\n");
    ck_assert_uint_eq(request.connection_options, 3);
    ck_assert_uint_eq(request.has, HTTP_HAS_HOST | HTTP_HAS_CONNECTION | HTTP_HAS_VIA);
}
END_TEST

START_TEST(methods)
{
    static const struct {
        const char *name;
        enum http_method id;
    } rows[] = {
        /* RFC 9110 section 9.1: the names are case-sensitive */
        {"GET", HTTP_GET},        {"HEAD", HTTP_HEAD},      {"POST", HTTP_POST},
        {"PUT", HTTP_PUT},        {"DELETE", HTTP_DELETE},  {"OPTIONS", HTTP_OPTIONS},
        {"TRACE", HTTP_TRACE},    {"PATCH", HTTP_PATCH},    {"PURGE", HTTP_PURGE},
        {"get", HTTP_OTHER},      {"GE", HTTP_OTHER},       {"GETS", HTTP_OTHER},
        {"M-SEARCH", HTTP_OTHER}, {"OPTIONSX", HTTP_OTHER}, {"!#$%&'*+-.^_`|~", HTTP_OTHER},
    };
    char head[128];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        snprintf(head, sizeof(head), "%s / HTTP/1.1\r\nHost: h\r\n\r\n", rows[i].name);
        accept(head);
        ck_assert_msg(request.method_id == rows[i].id, "%s", rows[i].name);
        expect_span(request.method, rows[i].name);
    }
}
END_TEST

START_TEST(targets)
{
    static const struct {
        const char *method, *target, *host, *path;
        unsigned port;
        enum http_target_form form;
        bool https;
    } rows[] = {
        /* RFC 9112 sections 3.2.1 to 3.2.4 */
        {"GET", "/", "h", "/", 0, HTTP_ORIGIN_FORM, false},
        {"GET", "//i/a", "h", "//i/a", 0, HTTP_ORIGIN_FORM, false},
        {"GET", "/http://i/", "h", "/http://i/", 0, HTTP_ORIGIN_FORM, false},
        {"GET", "/%2e%2E/..;a?b?/%", "h", "/%2e%2E/..;a?b?/%", 0, HTTP_ORIGIN_FORM, false},
        {"GET", "http://i/a?b", "i", "/a?b", 0, HTTP_ABSOLUTE_FORM, false},
        {"GET", "HTTP://I:80/", "I", "/", 80, HTTP_ABSOLUTE_FORM, false},
        {"GET", "https://i:8443/", "i", "/", 8443, HTTP_ABSOLUTE_FORM, true},
        {"GET", "http://i", "i", "/", 0, HTTP_ABSOLUTE_FORM, false},
        {"GET", "http://i:", "i", "/", 0, HTTP_ABSOLUTE_FORM, false},
        {"GET", "http://i?x@y", "i", "?x@y", 0, HTTP_ABSOLUTE_FORM, false},
        {"GET", "http://i/@b:c", "i", "/@b:c", 0, HTTP_ABSOLUTE_FORM, false},
        {"GET", "http://[::1]:81/a", "[::1]", "/a", 81, HTTP_ABSOLUTE_FORM, false},
        {"OPTIONS", "*", "h", "*", 0, HTTP_ASTERISK_FORM, false},
        {"OPTIONS", "http://i", "i", "*", 0, HTTP_ABSOLUTE_FORM, false},
        {"OPTIONS", "http://i/", "i", "/", 0, HTTP_ABSOLUTE_FORM, false},
        {"OPTIONS", "http://i?x", "i", "?x", 0, HTTP_ABSOLUTE_FORM, false},
        {"CONNECT", "i:443", "i", "", 443, HTTP_AUTHORITY_FORM, false},
        {"CONNECT", "[::1]:443", "[::1]", "", 443, HTTP_AUTHORITY_FORM, false},
    };
    char head[256];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: h\r\n\r\n", rows[i].method,
                 rows[i].target);
        accept(head);
        expect_span(request.target, rows[i].target);
        expect_span(request.host, rows[i].host);
        expect_span(request.path, rows[i].path);
        ck_assert_msg(request.port == rows[i].port && request.form == rows[i].form &&
                          request.https == rows[i].https,
                      "%s", rows[i].target);
    }
}
END_TEST

START_TEST(http_1_0_may_have_no_host)
{
    accept("GET /a HTTP/1.0\r\n\r\n");
    ck_assert_uint_eq(request.minor, 0);
    ck_assert_uint_eq(request.host.len, 0);
    ck_assert_uint_eq(request.fields.len, 0);
    accept("GET /a HTTP/1.0\r\nHost: h:81\r\n\r\n");
    expect_span(request.host, "h");
    ck_assert_uint_eq(request.port, 81);
    accept("GET /a HTTP/1.9\r\nHost: h\r\n\r\n");
    ck_assert_uint_eq(request.minor, 1);
}
END_TEST

START_TEST(persistence)
{
    static const struct {
        const char *head;
        bool persistent;
    } rows[] = {
        /* RFC 9112 section 9.3 */
        {"GET / HTTP/1.1\r\nHost: h\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, x, CLOSE\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nConnection: keep-alive\r\n\r\n", false},
        {"GET / HTTP/1.1\r\nHost: h\r\nConnection: closed\r\n\r\n", true},
        {"GET / HTTP/1.1\r\nHost: h\r\nProxy-Connection: close\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nHost: h\r\n\r\n", false},
        {"GET / HTTP/1.0\r\nHost: h\r\nConnection: Keep-Alive\r\n\r\n", true},
        {"GET / HTTP/1.0\r\nHost: h\r\nConnection: keep-alive, close\r\n\r\n", false},
        {"GET http://h/ HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n", false},
        {"GET http://h/ HTTP/1.0\r\nHost: h\r\nProxy-Connection: keep-alive\r\n\r\n", false},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        accept(rows[i].head);
        ck_assert_msg(request.persistent == rows[i].persistent, "%s", rows[i].head);
    }
}
END_TEST

START_TEST(expectations)
{
    accept("PUT / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    ck_assert(request.expects_continue);
    /* RFC 9110 section 10.1.1: not in HTTP/1.0 */
    accept("PUT / HTTP/1.0\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n");
    ck_assert(!request.expects_continue);
    accept("PUT / HTTP/1.1\r\nHost: h\r\nExpect: ,\r\nContent-Length: 1\r\n\r\n");
    ck_assert(!request.expects_continue);
}
END_TEST

START_TEST(upgrades)
{
    static const struct {
        const char *fields, *upgrade;
    } rows[] = {
        /* RFC 9110 section 7.8 */
        {"Connection: Upgrade\r\nUpgrade: websocket\r\n", "websocket"},
        {"Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n", "websocket"},
        {"Upgrade: websocket\r\n", ""},
        {"Connection: upgrade\r\n", ""},
        {"Connection: upgrade\r\nUpgrade: websocket\r\nUpgrade: x\r\n", ""},
        {"Connection: upgrade\r\nUpgrade: h2c\r\n", ""},
        {"Connection: upgrade\r\nUpgrade: websocket, H2C\r\n", ""},
    };
    char head[256];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\nHost: h\r\n%s\r\n", rows[i].fields);
        accept(head);
        expect_span(request.upgrade, rows[i].upgrade);
        snprintf(head, sizeof(head), "GET / HTTP/1.0\r\nHost: h\r\n%s\r\n", rows[i].fields);
        accept(head);
        expect_span(request.upgrade, "");
    }
}
END_TEST

START_TEST(known_fields_are_flagged)
{
    static const struct {
        const char *line;
        uint32_t flag;
    } rows[] = {
        {"Host: h", HTTP_HAS_HOST},
        {"content-length: 1", HTTP_HAS_CONTENT_LENGTH},
        {"TRANSFER-ENCODING: chunked", HTTP_HAS_TRANSFER_ENCODING},
        {"Connection: close", HTTP_HAS_CONNECTION},
        {"te: trailers", HTTP_HAS_TE},
        {"Expect: 100-continue", HTTP_HAS_EXPECT},
        {"Upgrade: x", HTTP_HAS_UPGRADE},
        {"Range: bytes=0-", HTTP_HAS_RANGE},
        {"If-Range: \"a\"", HTTP_HAS_IF_RANGE},
        {"If-Match: *", HTTP_HAS_IF_MATCH},
        {"If-None-Match: *", HTTP_HAS_IF_NONE_MATCH},
        {"If-Modified-Since: x", HTTP_HAS_IF_MODIFIED_SINCE},
        {"If-Unmodified-Since: x", HTTP_HAS_IF_UNMODIFIED_SINCE},
        {"Cache-Control: no-cache", HTTP_HAS_CACHE_CONTROL},
        {"Pragma: no-cache", HTTP_HAS_PRAGMA},
        {"Authorization: x", HTTP_HAS_AUTHORIZATION},
        {"Cookie: a=b", HTTP_HAS_COOKIE},
        {"Accept-Encoding: gzip", HTTP_HAS_ACCEPT_ENCODING},
        {"Max-Forwards: 1", HTTP_HAS_MAX_FORWARDS},
        {"Trailer: x", HTTP_HAS_TRAILER},
        {"Rang: x", 0},
        {"Ranges: x", 0},
        {"Content_Length: 5", 0},
        {"X-Abcdefghijklmnopqrstuvwxyz: 5", 0},
    };
    char head[256];

    for (size_t i = 0; i < LENGTH(rows); i++) {
        uint32_t host = i ? HTTP_HAS_HOST : 0;

        snprintf(head, sizeof(head), "GET / HTTP/1.1\r\n%s%s\r\n\r\n", i ? "Host: h\r\n" : "",
                 rows[i].line);
        accept(head);
        ck_assert_msg(request.has == (rows[i].flag | host), "%s: %x", rows[i].line, request.has);
    }
}
END_TEST

/* A head with a path and a field of these lengths. */
static char *
long_head(size_t path, size_t field, const char *end)
{
    char *head = malloc(path + field + 128);
    size_t len = (size_t)sprintf(head, "GET /");

    ck_assert_ptr_nonnull(head);
    memset(head + len, 'a', path);
    len += path;
    len += (size_t)sprintf(head + len, " HTTP/1.1\r\nHost: h\r\nA: ");
    memset(head + len, 'b', field);
    strcpy(head + len + field, end);
    return head;
}

START_TEST(the_request_line_has_a_limit)
{
    char *head = long_head(100, 1, "\r\n\r\n");

    limits.max_line = 116; /* "GET /", 100, " HTTP/1.1", CR LF */
    accept(head);
    limits.max_line = 115;
    ck_assert_int_eq(read_once(head), HTTP_HEAD_REFUSED);
    ck_assert_uint_eq(refusal.status, 414);
    free(head);
}
END_TEST

START_TEST(the_head_has_a_limit)
{
    char *head = long_head(1, 100, "\r\n\r\n");

    limits.max_bytes = (uint32_t)strlen(head);
    accept(head);
    limits.max_bytes--;
    limits.max_line = limits.max_bytes;
    ck_assert_int_eq(read_once(head), HTTP_HEAD_REFUSED);
    ck_assert_uint_eq(refusal.status, 431);
    free(head);
    limits.max_fields = 2;
    accept("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n");
    ck_assert_int_eq(read_once("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\nC: d\r\n\r\n"),
                     HTTP_HEAD_REFUSED);
    ck_assert_uint_eq(refusal.status, 431);
}
END_TEST

/* Feeds a head byte by byte, and returns how many bytes were seen when it was refused. */
static size_t
refused_after(const char *head)
{
    size_t searched = 0, len = strlen(head);

    for (size_t n = 0; n <= len; n++) {
        enum http_head_step step =
            http_request_head_read(&request, span_of(head, n), &searched, &limits, &refusal);

        ck_assert_int_ne(step, HTTP_HEAD_COMPLETE);
        if (step == HTTP_HEAD_REFUSED)
            return n;
    }
    ck_abort_msg("it was not refused");
}

START_TEST(limits_hold_for_heads_that_do_not_end)
{
    char *head = long_head(1000, 1000, "");

    limits = (struct http_head_limits){.max_bytes = 1500, .max_line = 500, .max_fields = 10};
    ck_assert_uint_le(refused_after(head), 503);
    ck_assert_uint_eq(refusal.status, 414);
    limits.max_line = 1100;
    ck_assert_uint_eq(refused_after(head), 1500);
    ck_assert_uint_eq(refusal.status, 431);
    free(head);
}
END_TEST

/* Heads that end for a lenient parser: the client waits, and must not run into a timeout. */
START_TEST(a_malformed_end_is_refused_at_once)
{
    static const char *const heads[] = {
        "GET /a HTTP/1.1\nHost: h\n\n",
        "GET /a HTTP/1.1\r\nHost: h\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\n\n",
    };

    for (size_t i = 0; i < LENGTH(heads); i++)
        ck_assert_uint_le(refused_after(heads[i]), strlen(heads[i]));
}
END_TEST

START_TEST(nonsense_is_refused_before_its_end)
{
    ck_assert_int_eq(read_once("\x16\x03\x01"), HTTP_HEAD_REFUSED);
    ck_assert_int_eq(read_once("GET /a\n"), HTTP_HEAD_REFUSED);
    ck_assert_int_eq(read_once("GET /a SPDY"), HTTP_HEAD_REFUSED);
    ck_assert_int_eq(read_once("GET /a HTTP/1.1\r\n "), HTTP_HEAD_REFUSED);
    ck_assert_int_eq(read_once(""), HTTP_HEAD_PARTIAL);
    ck_assert_int_eq(read_once("\r"), HTTP_HEAD_PARTIAL);
    ck_assert_int_eq(read_once("GET /a HTTP/1.1\r\nHost: h\r\n\r"), HTTP_HEAD_PARTIAL);
}
END_TEST

START_TEST(the_next_request_is_not_part_of_the_head)
{
    static const char two[] =
        "GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: i\r\n\r\n";
    size_t first, searched = 0;

    accept(two);
    expect_span(request.path, "/a");
    first = request.head_len;
    ck_assert_int_eq(
        http_request_head_read(&request, span_str(two + first), &searched, &limits, &refusal),
        HTTP_HEAD_COMPLETE);
    expect_span(request.path, "/b");
    ck_assert_uint_eq(first + request.head_len, sizeof(two) - 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/request_head");
    TCase *tests = tcase_create("head");

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_head_is_spans_of_its_bytes);
    tcase_add_test(tests, members_of_connection_are_counted_over_all_lines);
    tcase_add_test(tests, methods);
    tcase_add_test(tests, targets);
    tcase_add_test(tests, http_1_0_may_have_no_host);
    tcase_add_test(tests, persistence);
    tcase_add_test(tests, expectations);
    tcase_add_test(tests, upgrades);
    tcase_add_test(tests, known_fields_are_flagged);
    tcase_add_test(tests, the_request_line_has_a_limit);
    tcase_add_test(tests, the_head_has_a_limit);
    tcase_add_test(tests, limits_hold_for_heads_that_do_not_end);
    tcase_add_test(tests, a_malformed_end_is_refused_at_once);
    tcase_add_test(tests, nonsense_is_refused_before_its_end);
    tcase_add_test(tests, the_next_request_is_not_part_of_the_head);
    suite_add_tcase(suite, tests);
    return suite;
}
