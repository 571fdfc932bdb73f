/* The head of an answer: status lines, what its fields say, and what goes on. */
#define UNIT_STARTS_NO_THREAD

#include "http/response_read.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct http_status_line ok = {.version = 11, .status = 200};

START_TEST(status_lines)
{
    static const struct {
        const char *line;
        unsigned version, status;
    } good[] = {
        {"HTTP/1.1 200 OK\r\n", 11, 200}, {"HTTP/1.0 404", 10, 404},
        {"HTTP/1.1 204 \r\n", 11, 204},   {"HTTP/2 200 \r\n", 20, 200},
        {"HTTP/1.1 999 x", 11, 999},      {"HTTP/1.1 302\n", 11, 302},
    };
    static const char *const bad[] = {
        "",
        "HTTP/",
        "HTTP/1.1",
        "HTTP/1.1 ",
        "HTTP/1.1 20",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 x",
        "HTTP/1.1 20x OK",
        "HTTP/1.1  200 OK",
        "HTTP/11 200 OK",
        "HTTP/1. 200 OK",
        "HTTP 200 OK",
        "http/1.1 200 OK",
        "<html>",
    };
    struct http_status_line status;

    for (size_t i = 0; i < LENGTH(good); i++) {
        ck_assert_msg(http_status_line_read(&status, span_str(good[i].line)), "%s", good[i].line);
        ck_assert_uint_eq(status.version, good[i].version);
        ck_assert_uint_eq(status.status, good[i].status);
    }
    for (size_t i = 0; i < LENGTH(bad); i++)
        ck_assert_msg(!http_status_line_read(&status, span_str(bad[i])), "%s", bad[i]);
    ck_assert(!http_status_line_read(&status, span_of("HTTP/1.1 200\0", 13)));
}
END_TEST

START_TEST(answers_headers)
{
    static const struct {
        const char *lines, *fields;
        int64_t length;
    } cases[] = {
        {"", "", -1},
        {"A: b\r\nContent-Length: 5\r\n", "A: b\r\nContent-Length: 5\r\n", 5},
        {"content-length: 5\r\nContent-Length: 05\r\n", "content-length: 5\r\n", 5},
        {"Content-Length: 00012\r\n", "Content-Length: 12\r\n", 12},
        {"Connection: Content-Length, Cache-Control\r\nContent-Length: 5\r\nCache-Control: private\r\n",
         "Content-Length: 5\r\nCache-Control: private\r\n", 5},
        {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "", -1},
        {"Connection: close, X-Hop ,y-hop\r\nX-Hop: 1\r\nY-HOP: 2\r\nZ-Hop: 3\r\n", "Z-Hop: 3\r\n",
         -1},
        {"X-Hop: 1\r\nConnection: x-hop\r\n", "", -1},
        {"Keep-Alive: a\r\nProxy-Connection: b\r\nProxy-Authenticate: c\r\nTE: d\r\nTrailer: e\r\n"
         "Upgrade: f\r\nA: b\r\n",
         "A: b\r\n", -1},
        {"A: b\r\n  folded\r\n\tagain\r\nC: d\r\n", "A: b folded again\r\nC: d\r\n", -1},
        {"Keep-Alive: b\r\n folded\r\nC: d\r\n", "C: d\r\n", -1},
        {" folded at once\r\nC: d\r\n", "C: d\r\n", -1},
        {"A: b\nC: d\n", "A: b\r\nC: d\r\n", -1},
        {"A: b\x01 c\x7f d\r\n", "A: b  c  d\r\n", -1},
        {"A : b\r\nC\t :d\r\n", "A: b\r\nC:d\r\n", -1},
        /* Whatever the coding is, the body comes as it was sent, and so do the fields. */
        {"Content-Length: 5\r\nContent-Encoding: gzip\r\nLocation: /a\r\n",
         "Content-Length: 5\r\nContent-Encoding: gzip\r\nLocation: /a\r\n", 5},
        {"Content-Encoding: br, rot13\r\nContent-Encoding:\r\n",
         "Content-Encoding: br, rot13\r\nContent-Encoding:\r\n", -1},
    };

    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct http_response_head head;
        bool no_memory;
        const char *malformed = http_response_head_read(&head, &ok, span_str(cases[i].lines), &no_memory);

        ck_assert_msg(!malformed, "%s: %s", cases[i].lines, malformed);
        ck_assert_str_eq(buf_str(&head.fields), cases[i].fields);
        ck_assert_int_eq(head.content_length, cases[i].length);
        http_response_head_free(&head);
    }
}
END_TEST

START_TEST(framing)
{
    static const struct {
        const char *lines;
        bool chunked, ambiguous;
        int64_t length;
    } rows[] = {
        {"Transfer-Encoding: Chunked\r\n", true, false, -1},
        {"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", true, true, -1},
        {"Content-Length: 5\r\n", false, false, 5},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_response_head head;
        bool no_memory;

        ck_assert_ptr_null(http_response_head_read(&head, &ok, span_str(rows[i].lines), &no_memory));
        ck_assert_int_eq(head.chunked, rows[i].chunked);
        ck_assert_int_eq(head.ambiguous, rows[i].ambiguous);
        ck_assert_int_eq(head.content_length, rows[i].length);
        http_response_head_free(&head);
    }
}
END_TEST

/* RFC 9110 section 8.6: which statuses may state a length. */
START_TEST(lengths_of_answers_without_body)
{
    static const struct {
        unsigned status;
        const char *fields;
    } rows[] = {
        {103, "A: b\r\n"},
        {204, "A: b\r\n"},
        {304, "Content-Length: 5\r\nA: b\r\n"},
        {200, "Content-Length: 5\r\nA: b\r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct http_status_line status = {.version = 11, .status = rows[i].status};
        struct http_response_head head;
        bool no_memory;

        ck_assert_ptr_null(http_response_head_read(&head, &status,
                                            span_str("Content-Length: 5\r\nA: b\r\n"), &no_memory));
        ck_assert_str_eq(buf_str(&head.fields), rows[i].fields);
        ck_assert_int_eq(http_status_has_body(rows[i].status), rows[i].status == 200);
        http_response_head_free(&head);
    }
}
END_TEST

START_TEST(answers_that_contradict_themselves)
{
    static const char *const cases[] = {
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: -1\r\n",
        "Content-Length:\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 2abc\r\n",
        "Content-Length : 5\r\n",
        "Content-Length: 5\r\n 6\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding: \vchunked\r\n",
        "A: b\rc\r\n",
        "A: b\r\r\n",
        "no colon\r\n",
        "Bad Name: x\r\n",
        ": y\r\n",
        "HTTP/1.1 200 OK\r\n",
    };
    struct http_response_head head;
    struct buf many;
    bool no_memory;

    for (size_t i = 0; i < LENGTH(cases); i++) {
        ck_assert_msg(http_response_head_read(&head, &ok, span_str(cases[i]), &no_memory) != NULL, "%s",
                      cases[i]);
        ck_assert(!no_memory);
        http_response_head_free(&head);
    }
    ck_assert_ptr_nonnull(http_response_head_read(&head, &ok, span_of("A: b\0c\r\n", 8), &no_memory));
    http_response_head_free(&head);
    /* Chunks are of HTTP/1.1 alone. */
    for (unsigned version = 10; version <= 20; version += 10) {
        struct span lines = span_str("Transfer-Encoding: chunked\r\n");

        ck_assert_ptr_nonnull(http_response_head_read(
            &head, &(struct http_status_line){.version = version, .status = 200}, lines, &no_memory));
        http_response_head_free(&head);
    }
    buf_init(&many, 65536);
    buf_append_str(&many, "Connection: ");
    for (unsigned i = 0; i < 100; i++)
        buf_printf(&many, "x%u,", i);
    buf_append_str(&many, "\r\n");
    ck_assert_ptr_nonnull(http_response_head_read(&head, &ok, buf_span(&many), &no_memory));
    http_response_head_free(&head);
    buf_free(&many);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/response_read");
    TCase *tc = tcase_create("answer");

    tcase_add_test(tc, status_lines);
    tcase_add_test(tc, answers_headers);
    tcase_add_test(tc, framing);
    tcase_add_test(tc, lengths_of_answers_without_body);
    tcase_add_test(tc, answers_that_contradict_themselves);
    suite_add_tcase(suite, tc);
    return suite;
}
