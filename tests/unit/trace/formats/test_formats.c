/*
 * Every format of a request a line: what is read, what is malformed, what is sniffed, and what
 * options choose.
 */
#include "tests/unit/trace/loading.h"
#include "trace/formats/formats.h"

#define T "[01/Jan/1970:00:00:0"

/* Text of a format, with every method and status, and the requests that it has. */
static const struct {
    const char *format;
    const char *text;
    const char *requests;
    unsigned bad;
} texts[] = {
    {"access",
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\n"
     "h - u " T "2 +0000] \"GET /b?x=\\\"y\\\" HTTP/1.1\" 404 - \"-\" \"Agent [\\\"x\\\"]\"\r\n",
     "http://localhost/a@1=7/200 http://localhost/b?x=\\\"y\\\"@2/404", 0},
    {"access",
     "www.a.test:80 h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 7 \"-\" \"-\"\n"
     "www.a.test:8080 h - - " T "2 +0000] \"POST /a HTTP/1.0\" 200 7\n"
     "www.a.test:443 h - - " T "3 +0000] \"GET /a HTTP/2.0\" 200 7\n"
     "www.b.test h - - " T "4 +0000] \"GET http://c.test/ HTTP/1.0\" 200 7\n",
     "http://www.a.test/a@1=7/200 http://www.a.test:8080/a@2=7/200 https://www.a.test/a@3=7/200 "
     "http://c.test/@4=7/200",
     0},
    /* Unescaped quotes, HTTP/0.9, no ident, blanks and a missing slash in a target. */
    {"access",
     "h " T "1 +0000] \"GET /a\"b HTTP/1.0\" 200 7\nh " T "2 +0000] \"GET /a\" 200 7\n"
     "h " T "3 +0000] \"GET /a b HTTP/1.0\" 200 7\nh " T "4 +0000] \"GET c HTTP/1.0\" 400 0\n"
     "h " T "5 +0000] \"OPTIONS * HTTP/1.0\" 200 0\n",
     "http://localhost/a\"b@1=7/200 http://localhost/a@2=7/200 http://localhost/a b@3=7/200 "
     "http://localhost/c@4=0/400 http://localhost/*@5=0/200",
     0},
    {"access",
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\n\n# comment\n"
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200\nh - - " T "1 +0000] \"-\" 408\n"
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 x\nh - - [today] \"GET / HTTP/1.0\" 200 1\n"
     "h - - " T "1 +0000] \"GET /a HTTP/1.0 200 1\nnonsense\n"
     "h - - " T "2 +0000] \"GET /b HTTP/1.0\" 200 7\nh - - " T
     "3 +0000] \"GET /c HTTP/1.0\" 200 1\n"
     "h - - " T "3 +0000] \"GET /c HTTP/1.0\" 200 1\nh - - " T
     "3 +0000] \"GET /c HTTP/1.0\" 200 1\n"
     "h - - " T "3 +0000] \"GET /c HTTP/1.0\" 200 1\nh - - " T "3 +0000] \"GET /c HTTP/1.0\" 200 1",
     "http://localhost/a@1=7/200 http://localhost/b@2=7/200 http://localhost/c@3=1/200 "
     "http://localhost/c@3=1/200 http://localhost/c@3=1/200 http://localhost/c@3=1/200 "
     "http://localhost/c@3=1/200",
     6},
    /* Users with blanks, addresses in brackets, fractions of seconds, chains of proxies. */
    {"access",
     "a - John Smith " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\n"
     "::1 - John Smith " T "1 +0000] \"GET /b HTTP/1.0\" 200 7\n"
     "[::1] - John [x] " T "1.25 +0000] \"GET /c HTTP/1.0\" 200 7\n"
     "[::1]:8080 h - - " T "2.5] \"GET /d HTTP/1.0\" 200 7\n"
     "www.a.test:80 h - John Smith " T "3 +0000] \"GET /e HTTP/1.0\" 200 7\n"
     "www.b.test h - John Smith " T "3 +0000] \"GET /f HTTP/1.0\" 200 7\n"
     "1.2.3.4, 5.6.7.8 - - " T "3 +0000] \"GET /g HTTP/1.0\" 200 7\n"
     "1.2.3.4 - \"\" " T "3 +0000] \"GET /h HTTP/1.0\" 200 7\n"
     "1.2.3.4:5678 - John Smith " T "3 +0000] \"GET /w HTTP/1.0\" 200 7\n"
     "h - - " T "3.x +0000] \"GET /i HTTP/1.0\" 200 7\n",
     "http://localhost/a@1=7/200 http://localhost/b@1=7/200 http://localhost/c@1.25=7/200 "
     "http://[::1]:8080/d@2.5=7/200 http://www.a.test/e@3=7/200 http://www.b.test/f@3=7/200 "
     "http://localhost/g@3=7/200 http://localhost/h@3=7/200 "
     "http://localhost/w@3=7/200",
     1},
    /* Ports that are none, hosts of one word, targets with blanks and without a version. */
    {"access",
     "a.test:99999 h - u " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\n"
     "a.test:x h - u " T "1 +0000] \"GET /b HTTP/1.0\" 200 7\n"
     ":80 h - u " T "1 +0000] \"GET /c HTTP/1.0\" 200 7\n"
     "[::1:80 h - u " T "1 +0000] \"GET /d HTTP/1.0\" 200 7\n"
     "h - - " T "1 +0000] \"GET /e HTTP\" 200 7\n"
     "h - - " T "1 +0000] \"GET /f FTP/1.00\" 200 7\n"
     "h - - " T "1 +0000] \"GET HTTP/1.0\" 200 7\n",
     "http://a.test:99999/a@1=7/200 http://a.test:x/b@1=7/200 http://:80/c@1=7/200 "
     "http://[::1:80/d@1=7/200 http://localhost/e HTTP@1=7/200 "
     "http://localhost/f FTP/1.00@1=7/200 http://localhost/HTTP/1.0@1=7/200",
     0},
    /* Logs of nothing but one kind of target. */
    {"squid",
     "1 1 10.1.1.1 TCP_MISS/200 7 CONNECT a - NONE/- -\n"
     "1 1 10.1.1.1 TCP_MISS/200 7 CONNECT b.test - NONE/- -\n"
     "2 1 10.1.1.1 TCP_MISS/200 7 CONNECT c.test:443 - NONE/- -\n"
     "3 1 10.1.1.1 TCP_MISS/200 7 CONNECT http://d.test/ - NONE/- -\n",
     "https://a@1=7/200 https://b.test@1=7/200 https://c.test@2=7/200 http://d.test/@3=7/200", 0},
    {"access",
     "h - - " T "1 +0000] \"OPTIONS * HTTP/1.0\" 200 7\n"
     "h - - " T "2 +0000] \"OPTIONS * HTTP/1.0\" 200 7\n",
     "http://localhost/*@1=7/200 http://localhost/*@2=7/200", 0},
    {"access",
     "h - - " T "1 +0000] \"GET http://a.test/ HTTP/1.0\" 200 7\n"
     "h - - " T "2 +0000] \"GET http://b.test/ HTTP/1.0\" 200 7\n",
     "http://a.test/@1=7/200 http://b.test/@2=7/200", 0},
    {"zeek",
     "#separator \\x09\n#fields\tts\thost\turi\tid.resp_p\n"
     "1\thhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh:81\t/a\t80\n2\thhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh:81\t*\t8080\n3\ta:b\t/c\t80\n",
     "http://hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh:81/a@1 http://hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh:81/*@2 http://a:b/c@3",
     0},
    /* Lines that end too early, and what stands where a status or a size should. */
    {"access",
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\nh - - " T "1 +0000]\n"
     "h - - " T "1 +0000] x\nh - - " T "1 +0000] \"\nh - - " T "1 +0000] GET /a\n"
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\"\nh - - " T "1 +0000] \"GET /a HTTP/1.0\" \n"
     "h - - " T "1 +0000] \"GET /a HTTP/1.0\" :1 7\nh - - " T
     "1 +0000] \"GET /a HTTP/1.0\" *1 7\nh - - " T "1 +0000] \"GET /a\\",
     "http://localhost/a@1=7/200", 9},
    {"squid",
     "1.5   5006 10.1.1.1 TCP_MISS/200 19763 CONNECT a.test:443 u DIRECT/209.73.177.115 -\n"
     "2.25 -1 10.1.1.1 TCP_HIT/000 0 GET http://b.test/ - NONE/- text/html\n"
     "3 1 10.1.1.1 TCP_MISS/200 x GET http://b.test/ - NONE/- text/html\n"
     "4 1 10.1.1.1 TCP_MISS 1 GET http://b.test/ - NONE/- text/html\n"
     "5 1 10.1.1.1 TCP_MISS/200 1 GET http://b.test/ - NONE/- text/html\n"
     "6 1 10.1.1.1 TCP_MISS/200 1 CONNECT c.test:8443 - NONE/- -\n",
     "https://a.test@1.5=19763/200 http://b.test/@2.25=0/1 http://b.test/@5=1/200 "
     "https://c.test:8443@6=1/200",
     2},
    {"zeek",
     "#separator \\x09\n#set_separator\t,\n#path\thttp\n"
     "#fields\tts\tmethod\thost\turi\tid.resp_h\tid.resp_p\tresponse_body_len\tstatus_code\tx\n"
     "#types\ttime\tstring\n1.5\tGET\ta.test\t/x\t10.0.0.1\t80\t12\t200\t-\n"
     "2\tPOST\t-\t/y\t10.0.0.1\t8080\t-\t-\t-\n3\tGET\ta.test:81\t/\t1.2.3.4\t81\t0\t301\t\n"
     "4\t-\t-\t-\t10.0.0.1\t80\t0\t-\t-\n5\tGET\tb.test\thttp://c.test/\t1.2.3.4\t80\t0\t200\t-\n"
     "6\tGET\tb.test\n#close\tx\n#separator \\x2c\n#fields,uri,host,ts\n/z,d.test,7\nx\n",
     "http://a.test/x@1.5=12/200 http://10.0.0.1:8080/y@2/1 http://a.test:81/@3=0/301 "
     "http://c.test/@5=0/200 http://d.test/z@7/0",
     2},
    {"zeek",
     "{\"ts\":1.5,\"uid\":\"C1\",\"id.resp_h\":\"10.0.0.1\",\"id.resp_p\":80,\"method\":\"GET\","
     "\"host\":\"a.test\",\"uri\":\"/x\\u00e9\",\"response_body_len\":12,\"status_code\":200,"
     "\"tags\":[]}\n"
     "{\"ts\":\"1970-01-01T00:00:02.25Z\",\"id.resp_h\":\"10.0.0.1\",\"id.resp_p\":8080,"
     "\"method\":\"POST\",\"uri\":\"/y\"}\n"
     "{\"ts\":1704067200123,\"host\":\"b.test\",\"uri\":\"http://c.test/\",\"method\":\"GET\","
     "\"status_code\":304}\n"
     "{\"ts\":4,\"id.resp_h\":\"10.0.0.1\",\"id.resp_p\":80}\n"
     "{\"ts\":5,\"uri\":7,\"host\":\"d.test\"}\n{\"ts\":6,\"uri\":\"/\",\"ho\n[1]\n"
     "{\"ts\":1e300,\"uri\":\"/\"}",
     "http://a.test/x\xc3\xa9@1.5=12/200 http://10.0.0.1:8080/y@2.25/1 "
     "http://c.test/@1.70407e+09/304",
     4},
    /* Addresses of IPv6, with and without brackets and ports. */
    {"zeek",
     "#separator \\x09\n#fields\tts\thost\turi\tid.resp_h\tid.resp_p\n"
     "1\t-\t/a\t2001:db8::1\t8080\n2\t-\t/b\t2001:db8::1\t80\n"
     "3\t[2001:db8::1]\t/c\t2001:db8::1\t8080\n4\t[2001:db8::1]:81\t/d\t2001:db8::1\t8080\n"
     "5\t2001:db8::1\t/e\t2001:db8::1\t443\n",
     "http://[2001:db8::1]:8080/a@1 http://[2001:db8::1]/b@2 "
     "http://[2001:db8::1]:8080/c@3 http://[2001:db8::1]:81/d@4 http://[2001:db8::1]/e@5",
     0},
    /* JSON omits what is not known: until a line has a status, the log may have none. */
    {"zeek",
     "{\"ts\":1,\"host\":\"a.test\",\"uri\":\"/\"}\n"
     "{\"ts\":2,\"host\":\"a.test\",\"uri\":\"/\",\"status_code\":200}\n"
     "{\"ts\":3,\"host\":\"a.test\",\"uri\":\"/\"}\n",
     "http://a.test/@1/0 http://a.test/@2/200 http://a.test/@3/1", 0},
    {"table",
     "Time,URL,Size,Method,Status,other\n1.5,http://a.test/,12,GET,200,x\n"
     "1970-01-01T00:00:02Z,\"http://a.test/\"\"q\"\",r\",,PUT,404,\"a,b\"\r\n\n3,/p,0,GET,,\n"
     "4,http://a.test/,1,GET,200\n5,http://a.test/,-3,GET,200,x\n6,\"http://a.test/,1,GET,200,x\n"
     "7,\"http://a.test/\"x,1,GET,200,x\nnow,http://a.test/,1,GET,200,x\n8,word,1,GET,200,x\n"
     "9,,1,GET,200,x\n",
     "http://a.test/@1.5=12/200 http://a.test/\"q\",r@2/404 http://localhost/p@3=0/0", 7},
    {"table", "url\thost\ttime_us\n/a\tb.test\t1500000\n\"q\tb.test\t2\nhttp://c.test/\tb\t-1\n",
     "http://b.test/a@1.5 http://c.test/@-1e-06", 1},
    {"table", "id;time_ms;bytes\n18446744073709551615;1500;3\n7;2000;\nx;3000;1\n",
     "18446744073709551615@1.5=3 7@2", 1},
    {"table", "\xef\xbb\xbfkey\nuser:1\n42\nuser:1\n",
     "http://localhost/user:1 http://localhost/42 http://localhost/user:1", 0},
    {"adaptsize", "1 0 68\n2\t1 7454 \n3 0 4294967295\n4 1 2 3\n5 x 1\n6 2 -1\n\n9 5 1",
     "0@1=68 1@2=7454 0@3=4294967294 5@9=1", 3},
};

START_TEST(lines)
{
    struct trace_counts counts =
        loading_expect(texts[_i].text, texts[_i].format, texts[_i].requests);

    ck_assert_uint_eq(counts.skipped_bad, texts[_i].bad);
}
END_TEST

/* A log without statuses is one of answers that went well, in either form. */
START_TEST(zeek_without_statuses)
{
    static const char *const logs[] = {
        "#separator \\x09\n#fields\tts\tmethod\thost\turi\n1\tGET\ta.test\t/\n",
        "{\"ts\":1,\"method\":\"GET\",\"host\":\"a.test\",\"uri\":\"/\"}\n",
    };

    for (size_t i = 0; i < sizeof(logs) / sizeof(logs[0]); i++) {
        struct trace *t = loading_text(logs[i], TRACE_OPTIONS_DEFAULT);

        ck_assert_str_eq(loading_picture(t), "http://a.test/@1");
        trace_free(t);
    }
}
END_TEST

/* A line that is whole, but for a request in it: the client sent none, or no HTTP. */
START_TEST(lines_without_a_request)
{
    struct trace *t = loading_text(
        "h - - " T "1 +0000] \"-\" 408 -\nh - - " T "1 +0000] \"\" 400 0\nh - - " T
        "1 +0000] \"\\x16\\x03\\x01\" 400 226\nh - - " T "2 +0000] \"GET / HTTP/1.0\" 200 5\n",
        loading_all());

    ck_assert_str_eq(loading_picture(t), "http://localhost/@2=5/200");
    ck_assert_uint_eq(t->counts.skipped_orphan, 3);
    ck_assert_uint_eq(t->counts.skipped_bad, 0);
    trace_free(t);
}
END_TEST

START_TEST(first_bad_lines_are_kept)
{
    struct trace *t = loading_text("1.5 1 h A/200 1 GET http://b.test/ - - -\noops\n"
                                   "1.6 1 h A/200 1 GET http:///x - - -\n"
                                   "1.5 1 h A/200 1 GET http://b.test/ - - -\n\x01zz\n"
                                   "1.5 1 h A/200 1 GET http://b.test/ - - -\n",
                                   loading_all());

    ck_assert_uint_eq(t->counts.skipped_bad, 3);
    ck_assert_uint_eq(t->counts.first_bad_line, 2);
    ck_assert_uint_eq(t->counts.bad[0].line, 2);
    ck_assert_str_eq(t->counts.bad[0].text, "oops");
    ck_assert_uint_eq(t->counts.bad[1].line, 3);
    ck_assert_str_eq(t->counts.bad[1].text, "http:///x");
    ck_assert_uint_eq(t->counts.bad[2].line, 5);
    ck_assert_str_eq(t->counts.bad[2].text, "?zz");
    trace_free(t);
}
END_TEST

/* ---- choices ------------------------------------------------------------------------------- */

static const char choices[] = "h - - " T "1 +0000] \"GET /a?q HTTP/1.0\" 200 7\n"
                              "h - - " T "2 +0000] \"GET /a?r HTTP/1.0\" 304 99\n"
                              "h - - " T "3 +0000] \"HEAD /b HTTP/1.0\" 200 0\n"
                              "h - - " T "4 +0000] \"GET /c HTTP/1.0\" 302 5\n"
                              "h - - " T "5 +0000] \"GET /d HTTP/1.0\" 404 6\n"
                              "h - - " T "6 +0000] \"GET /a?q HTTP/1.0\" 304 -\n";

START_TEST(defaults)
{
    struct trace *t = loading_text(choices, TRACE_OPTIONS_DEFAULT);

    /* A 304 says nothing of the size: the page's own is known from elsewhere, or not. */
    ck_assert_str_eq(loading_picture(t), "http://localhost/a?q@1=7/200 http://localhost/a?r@2/304 "
                                         "http://localhost/a?q@6=7/304");
    ck_assert_uint_eq(t->counts.skipped_method, 1);
    ck_assert_uint_eq(t->counts.skipped_redirect, 1);
    ck_assert_uint_eq(t->counts.skipped_status, 1);
    trace_free(t);
}
END_TEST

START_TEST(options_choose)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    options.site = "https://site.test:8443/";
    options.cut_query = true;
    options.redirects = TRACE_REDIRECTS_KEEP;
    options.methods = "GET,HEAD";
    t = loading_text(choices, options);
    ck_assert_str_eq(loading_picture(t),
                     "https://site.test:8443/a@1=7/200 https://site.test:8443/a@2=7/304 "
                     "https://site.test:8443/b@3=0/200 https://site.test:8443/c@4=5/302 "
                     "https://site.test:8443/a@6=7/304");
    trace_free(t);
    options.statuses = "all";
    options.redirects = TRACE_REDIRECTS_DROP;
    options.since_us = 3000000;
    options.until_us = 6000000;
    t = loading_text(choices, options);
    ck_assert_str_eq(loading_picture(t),
                     "https://site.test:8443/b@3=0/200 https://site.test:8443/d@5=6/404");
    ck_assert_uint_eq(t->counts.skipped_redirect, 1);
    ck_assert_uint_eq(t->counts.skipped_time, 3);
    trace_free(t);
    options = TRACE_OPTIONS_DEFAULT;
    options.statuses = "5xx";
    ck_assert_int_eq(loading_refused(scratch_path("trace"), options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(
        strstr(loading_why, "1 of other methods, 4 of other statuses, 1 redirected"));
}
END_TEST

START_TEST(options_that_are_none)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    scratch_write("trace", choices, sizeof(choices) - 1);
    options.methods = "GET PUT";
    ck_assert_int_eq(loading_refused(scratch_path("trace"), options), TRACE_BAD_OPTION);
    ck_assert_ptr_nonnull(strstr(loading_why, "'GET PUT'"));
    options = TRACE_OPTIONS_DEFAULT;
    options.statuses = "2x";
    ck_assert_int_eq(loading_refused(scratch_path("trace"), options), TRACE_BAD_OPTION);
    options = TRACE_OPTIONS_DEFAULT;
    options.site = "www.a.test";
    ck_assert_int_eq(loading_refused(scratch_path("trace"), options), TRACE_BAD_OPTION);
}
END_TEST

START_TEST(a_table_without_names)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.format = "table";
    scratch_write("bare", "1,2,3\n", 6);
    ck_assert_int_eq(loading_refused(scratch_path("bare"), options), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(strstr(loading_why, "names no column url or id"));
    /* All malformed is fatal, and is reported. */
    scratch_write("bad", "url,size\nx\ny\n", 13);
    ck_assert_int_eq(loading_refused(scratch_path("bad"), options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(loading_why, "; left out: 2 malformed"));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("formats");
    TCase *tcase = tcase_create("formats");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, lines, 0, COUNT(texts));
    tcase_add_test(tcase, zeek_without_statuses);
    tcase_add_test(tcase, lines_without_a_request);
    tcase_add_test(tcase, first_bad_lines_are_kept);
    tcase_add_test(tcase, defaults);
    tcase_add_test(tcase, options_choose);
    tcase_add_test(tcase, options_that_are_none);
    tcase_add_test(tcase, a_table_without_names);
    suite_add_tcase(suite, tcase);
    return suite;
}
