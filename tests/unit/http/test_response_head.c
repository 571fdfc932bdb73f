/* Status lines, fields and error pages. */
#include "http/response_head.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char bytes[2 * HTTP_ERROR_PAGE_MAX];
static struct http_writer writer;

static void
set_up(void)
{
    memset(bytes, 'x', sizeof(bytes));
    writer = http_writer_of(bytes, sizeof(bytes));
}

static void
expect(const char *wanted)
{
    ck_assert_msg(span_equal(http_written(&writer), span_str(wanted)), "\"%.*s\", not \"%s\"",
                  (int)writer.len, writer.bytes, wanted);
}

START_TEST(heads)
{
    http_write_status(&writer, 200);
    http_write_field(&writer, "A", span_str("b"));
    http_write_number(&writer, "Content-Length", UINT64_MAX);
    http_write_number(&writer, "Age", 0);
    http_write_end(&writer);
    ck_assert(!writer.full);
    expect("HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 18446744073709551615\r\nAge: 0\r\n\r\n");
}
END_TEST

START_TEST(status_lines)
{
    static const struct {
        unsigned status;
        const char *line;
    } rows[] = {
        /* RFC 9112 section 4: the blank stays where there is no phrase */
        {103, "HTTP/1.1 103 Early Hints\r\n"},
        {206, "HTTP/1.1 206 Partial Content\r\n"},
        {299, "HTTP/1.1 299 \r\n"},
        {304, "HTTP/1.1 304 Not Modified\r\n"},
        {431, "HTTP/1.1 431 Request Header Fields Too Large\r\n"},
        {511, "HTTP/1.1 511 Network Authentication Required\r\n"},
        {512, "HTTP/1.1 512 \r\n"},
        {999, "HTTP/1.1 999 \r\n"},
    };

    for (size_t i = 0; i < LENGTH(rows); i++) {
        set_up();
        http_write_status(&writer, rows[i].status);
        expect(rows[i].line);
    }
    ck_assert_str_eq(http_reason(0), "");
    ck_assert_str_eq(http_reason(404), "Not Found");
}
END_TEST

START_TEST(nothing_is_written_in_part)
{
    writer = http_writer_of(bytes, 10);
    http_write_field(&writer, "A", span_str("bcdef"));
    ck_assert(!writer.full);
    http_write_field(&writer, "A", span_str("b"));
    ck_assert(writer.full);
    expect("A: bcdef\r\n");
    ck_assert_int_eq(bytes[10], 'x');
}
END_TEST

START_TEST(a_plain_error_page)
{
    http_write_error_page(&writer, &(struct http_error_page){
                                       .status = 502,
                                       .detail = span_str("h <sent>\r\nSet-Cookie: a"),
                                       .lines = span_str("Cache-Status: p; fwd=miss\r\n"),
                                   });
    expect("HTTP/1.1 502 Bad Gateway\r\n"
           "Cache-Status: p; fwd=miss\r\n"
           "Content-Type: text/plain; charset=utf-8\r\n"
           "Content-Length: 41\r\n"
           "Cache-Control: no-store\r\n"
           "\r\n"
           "502 Bad Gateway\n\nh <sent>??Set-Cookie: a\n");
}
END_TEST

START_TEST(a_page_in_html_is_escaped)
{
    http_write_error_page(&writer, &(struct http_error_page){
                                       .status = 403,
                                       .detail = span_str("<script>\"&'\x1b</script>"),
                                       .html = true,
                                       .close = true,
                                   });
    ck_assert(memmem(bytes, writer.len, "Content-Type: text/html; charset=utf-8\r\n", 40));
    ck_assert(memmem(bytes, writer.len, "Connection: close\r\n", 19));
    ck_assert(memmem(bytes, writer.len, "<title>403 Forbidden</title>", 28));
    ck_assert(
        memmem(bytes, writer.len, "<p>&lt;script&gt;&quot;&amp;&#39;?&lt;/script&gt;</p>", 53));
    ck_assert(!memmem(bytes, writer.len, "<script", 7));
}
END_TEST

/* The number behind Content-Length in what was written, and where the body begins. */
static size_t
stated_length(const char **body)
{
    const char *field = memmem(bytes, writer.len, "\r\nContent-Length: ", 18);
    const char *end = memmem(bytes, writer.len, "\r\n\r\n", 4);

    ck_assert_ptr_nonnull(field);
    ck_assert_ptr_nonnull(end);
    *body = end + 4;
    return strtoul(field + 18, NULL, 10);
}

START_TEST(every_page_states_its_length)
{
    static const unsigned statuses[] = {400, 403, 404, 405, 408, 411, 413, 414, 417,
                                        421, 431, 500, 501, 502, 503, 504, 505};
    static char detail[5000]; /* more than a page takes, all of it escaped */

    memset(detail, '"', sizeof(detail));
    for (size_t i = 0; i < 2 * LENGTH(statuses); i++) {
        const char *body;

        set_up();
        writer.size = HTTP_ERROR_PAGE_MAX;
        http_write_error_page(&writer, &(struct http_error_page){
                                           .status = statuses[i / 2],
                                           .detail = span_of(detail, sizeof(detail)),
                                           .html = i % 2,
                                       });
        ck_assert(!writer.full);
        ck_assert_str_ne(http_reason(statuses[i / 2]), "");
        ck_assert_uint_eq(stated_length(&body), writer.len - (size_t)(body - bytes));
        ck_assert_uint_ge(stated_length(&body), 512);
    }
}
END_TEST

START_TEST(head_gets_the_same_head)
{
    struct http_error_page page = {.status = 404, .detail = span_str("no"), .html = true};
    static char with_body[HTTP_ERROR_PAGE_MAX];
    const char *body;
    size_t len;

    http_write_error_page(&writer, &page);
    stated_length(&body);
    len = (size_t)(body - bytes);
    memcpy(with_body, bytes, len);
    set_up();
    page.no_body = true;
    http_write_error_page(&writer, &page);
    ck_assert(span_equal(http_written(&writer), span_of(with_body, len)));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/response_head");
    TCase *tests = tcase_create("head");

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, heads);
    tcase_add_test(tests, status_lines);
    tcase_add_test(tests, nothing_is_written_in_part);
    tcase_add_test(tests, a_plain_error_page);
    tcase_add_test(tests, a_page_in_html_is_escaped);
    tcase_add_test(tests, every_page_states_its_length);
    tcase_add_test(tests, head_gets_the_same_head);
    suite_add_tcase(suite, tests);
    return suite;
}
