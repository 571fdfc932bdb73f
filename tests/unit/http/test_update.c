/* Fields of stored responses: RFC 9111 sections 3.1, 3.2 and 4.3.5. */
#include "http/update.h"

#include "http/hop_by_hop.h"
#include "tests/unit/unit.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define NOW 784111777
#define DATE "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" /* NOW */
#define OLD "Date: Sun, 06 Nov 1994 07:49:37 GMT\r\n"
#define LM "Last-Modified: Sun, 06 Nov 1994 07:49:37 GMT\r\n"
#define TAG "ETag: \"a\"\r\n"

START_TEST(what_is_stored)
{
    static const struct {
        const char *lines, *stored;
    } rows[] = {
        {"", DATE},
        {OLD, OLD},
        {"Date: foo\r\n", "Date: foo\r\n"},
        {"X: y\r\n", "X: y\r\n" DATE},
        {OLD "Connection: a, b\r\na: 1\r\nB: 2\r\nc: 3\r\n", OLD "c: 3\r\n"},
        {OLD "c: 3\r\na: 1\r\nConnection: close\r\nconnection: A\r\n", OLD "c: 3\r\n"},
        {OLD "Keep-Alive: 5\r\nTE: x\r\nTransfer-Encoding: chunked\r\nUpgrade: x\r\n"
             "Trailer: x\r\nProxy-Authenticate: x\r\nProxy-Authentication-Info: x\r\n"
             "Proxy-Authorization: x\r\nproxy-connection: x\r\nX: y\r\n",
         OLD "X: y\r\n"},
        /* no peer can have these removed */
        {OLD "Connection: Vary, Cache-Control\r\nVary: A\r\nCache-Control: x\r\n",
         OLD "Vary: A\r\nCache-Control: x\r\n"},
        {OLD "Age: 5\r\nX: y\r\n", OLD "X: y\r\n"},
        {OLD "Content-Range: x\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\nSet-Cookie: a\r\n",
         OLD
         "Content-Range: x\r\nContent-Length: 5\r\nContent-Encoding: gzip\r\nSet-Cookie: a\r\n"},
        /* 5.2.2.4, 5.2.2.7 */
        {OLD "Cache-Control: no-cache=\"a, b\"\r\na: 1\r\nb: 2\r\nc: 3\r\n",
         OLD "Cache-Control: no-cache=\"a, b\"\r\nc: 3\r\n"},
        {OLD "Set-Cookie: x\r\nCache-Control: private=set-cookie\r\n",
         OLD "Cache-Control: private=set-cookie\r\n"},
        {OLD "CDN-Cache-Control: private=\"x\"\r\nX: y\r\n",
         OLD "CDN-Cache-Control: private=\"x\"\r\nX: y\r\n"},
        /* what is no field is not stored */
        {OLD "X\r\n y\r\nX : y\r\n: z\r\n", OLD},
        {OLD "X: a\nY: b\n", OLD "X: a\r\nY: b\r\n"},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.drops_named_fields = true;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf out;

        buf_init(&out, 4096);
        ck_assert(http_stored_fields(span_str(rows[i].lines), &rules, NOW, &out));
        ck_assert_str_eq(buf_str(&out), rows[i].stored);
        buf_free(&out);
    }
}
END_TEST

START_TEST(by_the_rules)
{
    static const char lines[] = OLD "CDN-Cache-Control: private=\"x\"\r\nX: y\r\n"
                                    "Cache-Control: private=\"z\"\r\nZ: y\r\n";
    struct http_storing_rules rules;
    struct buf out;

    http_storing_rules_init(&rules);
    rules.drops_named_fields = true;
    rules.cdn_cache_control = true;
    buf_init(&out, 4096);
    ck_assert(http_stored_fields(span_str(lines), &rules, NOW, &out));
    ck_assert_str_eq(buf_str(&out), OLD "CDN-Cache-Control: private=\"x\"\r\n"
                                        "Cache-Control: private=\"z\"\r\nZ: y\r\n");
    buf_reset(&out);
    rules.drops_named_fields = false;
    ck_assert(http_stored_fields(span_str(lines), &rules, NOW, &out));
    ck_assert_str_eq(buf_str(&out), lines);
    buf_reset(&out);
    rules.drops_set_cookie = true;
    ck_assert(
        http_stored_fields(span_str(OLD "set-cookie: a\r\nSet-Cookie2: b\r\n"), &rules, NOW, &out));
    ck_assert_str_eq(buf_str(&out), OLD);
    buf_free(&out);
}
END_TEST

START_TEST(what_a_304_changes)
{
    static const struct {
        const char *stored, *update, *result;
    } rows[] = {
        {OLD "A: 1\r\n", DATE, "A: 1\r\n" DATE},
        {OLD "A: 1\r\n", "", "A: 1\r\n" DATE},
        {OLD "Test-Header: 1\r\nX-Content-Foo: 1\r\n",
         DATE "x-content-foo: 2\r\nTEST-header: 2\r\n",
         DATE "x-content-foo: 2\r\nTEST-header: 2\r\n"},
        {OLD "Cache-Control: max-age=1\r\nExpires: 0\r\n", DATE "Cache-Control: max-age=3600\r\n",
         "Expires: 0\r\n" DATE "Cache-Control: max-age=3600\r\n"},
        /* all lines of a name */
        {OLD "A: 1\r\nB: 1\r\nA: 2\r\n", DATE "A: 3\r\n", "B: 1\r\n" DATE "A: 3\r\n"},
        {OLD "A: 1\r\n", DATE "A: 2\r\nA: 3\r\n", DATE "A: 2\r\nA: 3\r\n"},
        {OLD, DATE "New: x\r\n", DATE "New: x\r\n"},
        /* of the content */
        {OLD "Content-Length: 36\r\nContent-Encoding: gzip\r\nContent-Range: a\r\n",
         DATE "Content-Length: 10\r\nContent-Encoding: br\r\nContent-Range: b\r\n",
         "Content-Length: 36\r\nContent-Encoding: gzip\r\nContent-Range: a\r\n" DATE},
        {OLD "Content-Type: a\r\n", DATE "Content-Type: b\r\n", DATE "Content-Type: b\r\n"},
        /* what is not stored changes nothing */
        {OLD "A: 1\r\n", DATE "Connection: a\r\nA: 2\r\nTransfer-Encoding: chunked\r\nAge: 5\r\n",
         "A: 1\r\n" DATE},
        {OLD "A: 1\r\n", DATE "Proxy-Connection: x\r\nKeep-Alive: x\r\n", "A: 1\r\n" DATE},
        /* the directives of the 304 hold for all fields, those of before where it has none */
        {OLD "A: 1\r\nB: 1\r\n", DATE "Cache-Control: private=\"a\"\r\nB: 2\r\n",
         DATE "Cache-Control: private=\"a\"\r\nB: 2\r\n"},
        {OLD "Cache-Control: private=\"a\"\r\n", DATE "A: 2\r\n",
         "Cache-Control: private=\"a\"\r\n" DATE},
    };
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    rules.drops_named_fields = true;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct buf out;

        buf_init(&out, 4096);
        ck_assert(http_update_fields(span_str(rows[i].stored), span_str(rows[i].update), &rules,
                                     NOW, &out));
        ck_assert_str_eq(buf_str(&out), rows[i].result);
        buf_free(&out);
    }
}
END_TEST

START_TEST(too_much_to_search)
{
    struct http_storing_rules rules;
    struct buf lines, out;

    http_storing_rules_init(&rules);
    rules.drops_named_fields = true;
    buf_init(&lines, 65536);
    buf_init(&out, 65536);
    buf_append_str(&lines, "Connection: a0");
    for (unsigned i = 1; i <= HTTP_CONNECTION_OPTIONS_MAX; i++)
        buf_printf(&lines, ", a%u", i);
    buf_append_str(&lines, "\r\n");
    ck_assert(!http_stored_fields(buf_span(&lines), &rules, NOW, &out));
    ck_assert(!http_update_fields(span_str(OLD), buf_span(&lines), &rules, NOW, &out));
    buf_reset(&lines);
    for (unsigned i = 0; i < HTTP_UPDATES_MAX; i++)
        buf_printf(&lines, "a%u: 1\r\n", i);
    ck_assert(http_update_fields(span_str(OLD), buf_span(&lines), &rules, NOW, &out));
    buf_append_str(&lines, "A0: 2\r\n");
    buf_reset(&out);
    ck_assert(http_update_fields(span_str(OLD), buf_span(&lines), &rules, NOW, &out));
    buf_append_str(&lines, "b: 1\r\n");
    buf_reset(&out);
    ck_assert(!http_update_fields(span_str(OLD), buf_span(&lines), &rules, NOW, &out));
    ck_assert(!buf_failed(&out));
    buf_free(&lines);
    buf_free(&out);
    /* A buffer that is full. */
    buf_init(&out, 8);
    ck_assert(!http_stored_fields(span_str(OLD), &rules, NOW, &out));
    ck_assert(buf_failed(&out));
    buf_free(&out);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("http/update");
    TCase *tests = tcase_create("update");

    tcase_add_test(tests, what_is_stored);
    tcase_add_test(tests, by_the_rules);
    tcase_add_test(tests, what_a_304_changes);
    tcase_add_test(tests, too_much_to_search);
    suite_add_tcase(suite, tests);
    return suite;
}
