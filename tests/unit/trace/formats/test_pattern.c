/* Logs of which the format string is known. */
#define UNIT_STARTS_NO_THREAD
#include "tests/unit/trace/loading.h"

static const struct {
    const char *format;
    const char *text;
    const char *requests;
    unsigned bad, orphans;
} logs[] = {
    /* What Apache writes by the same string. */
    {"%v:%p %h %l %u %t \\\"%r\\\" %>s %b \\\"%{Referer}i\\\"",
     "[::1]:8080 192.0.2.1 - - [01/Jan/1970:00:00:01 +0000] \"GET /a\\\"b HTTP/1.1\" 200 7 \"-\"\n"
     "a.test:443 2001:db8::1 - jo [01/Jan/1970:00:00:02 +0000] \"GET /\\x20\\x5c HTTP/1.1\" 200 - \"x \\\" y\"\n"
     "a.test:80 - - - [01/Jan/1970:00:00:03 +0000] \"-\" 408 - \"-\"\n"
     "a.test 192.0.2.1 - - [01/Jan/1970:00:00:04 +0000] \"GET / HTTP/1.1\" 200 7 \"-\"\n"
     "a.test:80 192.0.2.1 - - [01/Jan/1970:00:00:04 +0000] \"GET / HTTP/1.1\" 200 7 \"-\" more\n",
     "http://[::1]:8080/a\\\"b@1=7/200 https://a.test/ \\@2/200", 2, 1},
    /* Calls over RPC. */
    {"%h \"%r\" %s %B", "unix:0 \"GET http://a.test/x RPC/2\" 200 9\n- \"GET http://a.test/ RPC/1\" - 0\n",
     "http://a.test/x=9/200 http://a.test//1", 0, 0},
    /* The URL counts more than the request, and the outcome is known. */
    {"%{%FT%T}t.%{usec_frac}tZ|%m|%{url}x|%{outcome}x|%r|%s|%B",
     "1970-01-01T00:00:01.250000Z|GET|http://a.test/\\x7c\\xff|hit|GET / HTTP/1.1|200|5\n"
     "1970-01-01T00:00:02.000000Z|CONNECT|b.test:443|tunnel|-|200|6\n"
     "1970-01-01T00:00:02.0Z|GET|http://a.test/|hit|-|two|6\n"
     "1970-01-01 00:00:02.0Z|GET|http://a.test/|hit|-|200|6\n",
     "http://a.test/|\xff@1.25=5/200 https://b.test@2=6/200", 2, 0},
    /* Path and query. */
    {"%{msec}t %V %m %U%q %D", "1500 a.test GET /x?y=\\x20 5\n2500 a.test GET /x 5\n- - GET - 5\n",
     "http://a.test/x?y= @1.5 http://a.test/x@2.5", 0, 1},
    /* Of the two times that of the beginning counts. */
    {"%{end:sec}t %{url}x %{sec}t", "3 http://a.test/ 2\n4 http://a.test/ -\n",
     "http://a.test/@2 http://a.test/@4", 0, 0},
    {"%{url}x %{usec}t", "http://a.test/ 1795876415983160\nhttp://a.test/ 99999999999999999999\n",
     "http://a.test/@1.79588e+09", 1, 0},
    /* A value may be left out by the status. */
    {"%200{url}x %m %U %s", "- GET /a 404\nhttp://a.test/ GET /a 200\n",
     "http://localhost/a/404 http://a.test//200", 0, 0},
};

START_TEST(lines_by_a_format_string)
{
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        struct trace_options options = loading_all();
        struct trace *t;

        options.format = logs[i].format;
        t = loading_text(logs[i].text, options);
        ck_assert_str_eq(loading_picture(t), logs[i].requests);
        ck_assert_uint_eq(t->counts.skipped_bad, logs[i].bad);
        ck_assert_uint_eq(t->counts.skipped_orphan, logs[i].orphans);
        trace_free(t);
    }
}
END_TEST

START_TEST(outcomes)
{
    struct trace_options options = loading_all();
    struct trace *t;

    options.format = "%{url}x %{outcome}x";
    t = loading_text("http://a/ hit\nhttp://a/ miss\nhttp://a/ stale\nhttp://a/ -\n", options);
    ck_assert_uint_eq(t->counts.logged_outcomes, 3);
    ck_assert_uint_eq(t->counts.logged_hits, 2);
    trace_free(t);
}
END_TEST

START_TEST(formats_that_do_not_help)
{
    static const char *const wrong[][2] = {
        {"%h %t", "the format '%h %t': it has no URL: none of %r, %U and %{url}x"},
        {"%h%r", "nothing stands between"},
        {"%{ulr}x", "did you mean %{url}x?"},
    };

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct trace_options options = loading_all();

        options.format = wrong[i][0];
        ck_assert_int_eq(loading_refused(scratch_write("trace", "x\n", 2), options),
                         TRACE_BAD_OPTION);
        ck_assert_msg(strstr(loading_why, wrong[i][1]) != NULL, "%s", loading_why);
    }
}
END_TEST

/* Every prefix of a log, and every log with a byte replaced, is read without a fault. */
START_TEST(damage)
{
    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        const size_t len = strlen(logs[i].text);
        struct trace_options options = loading_all();

        options.format = logs[i].format;
        for (size_t at = 0; at < len; at++) {
            char *text = strdup(logs[i].text);
            struct trace *t = NULL;

            ck_assert_ptr_nonnull(text);
            text[at] = "\\\"[ \xff\n"[at % 6];
            trace_load(scratch_write("trace", text, at % 2 ? len : at), &options, &t, loading_why,
                       sizeof(loading_why));
            trace_free(t);
            free(text);
        }
    }
}
END_TEST

static Suite *
unit_suite(void)
{
    Suite *suite = suite_create("trace/formats/pattern");
    TCase *tc = tcase_create("pattern");

    tcase_add_checked_fixture(tc, scratch_make, scratch_remove);
    tcase_add_test(tc, lines_by_a_format_string);
    tcase_add_test(tc, outcomes);
    tcase_add_test(tc, formats_that_do_not_help);
    tcase_add_test(tc, damage);
    suite_add_tcase(suite, tc);
    return suite;
}
