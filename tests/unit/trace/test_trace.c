/*
 * Loading: lists of URLs, the builder's filters and numbers, base URLs, and what cannot be loaded.
 */
#include "trace/trace.h"

#include "base/hash.h"
#include "tests/unit/trace/scratch.h"
#include "trace/base_url.h"

static char why[1024];

static struct trace *
load_with(const char *text, struct trace_options options)
{
    struct trace *trace = NULL;
    const char *path = scratch_write("list", text, strlen(text));
    enum trace_error error = trace_load(path, &options, &trace, why, sizeof(why));

    ck_assert_msg(error == TRACE_OK, "%s", why);
    ck_assert_uint_eq(trace->counts.requests, trace->request_count);
    return trace;
}

static struct trace *
load(const char *text)
{
    return load_with(text, TRACE_OPTIONS_DEFAULT);
}

static enum trace_error
refuse(const char *name, struct trace_options options)
{
    struct trace *trace = (struct trace *)&options;
    enum trace_error error = trace_load(scratch_path(name), &options, &trace, why, sizeof(why));

    ck_assert_ptr_null(trace);
    return error;
}

/* The requests as text: a number each. */
static const char *
order(const struct trace *trace)
{
    static char text[256];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < trace->request_count; i++)
        len +=
            (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? " " : "", trace->ids[i]);
    return text;
}

START_TEST(a_list_is_read_in_order_and_numbered)
{
    struct trace *t = load("# comment\n\nhttp://b.test/\nhttps://a.test/x?y#z\r\nhttp://b.test/\n"
                           "  http://c.test/ \nhttp://b.test");

    ck_assert_str_eq(t->format, "urls");
    ck_assert_str_eq(order(t), "0 1 0 2 3");
    ck_assert_uint_eq(t->url_count, 4);
    ck_assert_str_eq(t->urls[1].ptr, "https://a.test/x?y");
    ck_assert_uint_eq(t->urls[1].len, strlen("https://a.test/x?y"));
    ck_assert_str_eq(t->urls[2].ptr, "http://c.test/");
    ck_assert_uint_eq(t->keys[2], hash64_bytes(span_str("http://c.test/")));
    ck_assert_ptr_null(t->sizes);
    ck_assert_ptr_null(t->times_us);
    ck_assert_ptr_null(t->statuses);
    ck_assert_ptr_null(t->numbers);
    ck_assert_uint_eq(t->counts.skipped_bad, 0);
    trace_free(t);
}
END_TEST

START_TEST(sizes_stand_by_request_and_fill_the_unknown)
{
    const char *text = "http://a.test/\nhttp://a.test/\t12\r\nhttp://a.test/\nhttp://a.test/\t99\n"
                       "http://a.test/\nhttp://b.test/\t0\nhttp://c.test/\n"
                       "http://d.test/\t9223372036854775807\nhttp://e.test/\t4294967294\n";
    static const uint32_t filled[] = {
        12, 12, 12, 99, 99, 0, TRACE_SIZE_UNKNOWN, TRACE_SIZE_UNKNOWN - 1, TRACE_SIZE_UNKNOWN - 1};
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t = load(text);

    ck_assert_mem_eq(t->sizes, filled, sizeof(filled));
    ck_assert_uint_eq(t->counts.large_sizes, 1);
    ck_assert_uint_eq(t->counts.inferred_sizes, 3);
    ck_assert_uint_eq(t->counts.inferred_bytes, 12 + 12 + 99);
    trace_free(t);
    options.sizes_as_read = true;
    t = load_with(text, options);
    ck_assert_uint_eq(t->sizes[0], TRACE_SIZE_UNKNOWN);
    ck_assert_uint_eq(t->sizes[1], 12);
    ck_assert_uint_eq(t->sizes[2], TRACE_SIZE_UNKNOWN);
    ck_assert_uint_eq(t->sizes[3], 99);
    ck_assert_uint_eq(t->sizes[4], TRACE_SIZE_UNKNOWN);
    ck_assert_uint_eq(t->counts.inferred_sizes, 0);
    trace_free(t);
}
END_TEST

/* No client sends a fragment: the server has one page for these. */
START_TEST(urls_have_no_fragment)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t = load("http://a.test/x#1\nhttp://a.test/x#2\nhttp://a.test/x\n"
                           "http://a.test#?a\nhttp://a.test/y?b#c?d\nhttp://a.test/y\n");

    ck_assert_str_eq(order(t), "0 0 0 1 2 3");
    ck_assert_str_eq(t->urls[0].ptr, "http://a.test/x");
    ck_assert_str_eq(t->urls[2].ptr, "http://a.test/y?b");
    trace_free(t);
    options.limit = 6; /* takes the other way through the builder */
    options.cut_query = true;
    ck_assert_int_eq(trace_load(scratch_path("list"), &options, &t, why, sizeof(why)), TRACE_OK);
    ck_assert_str_eq(order(t), "0 0 0 1 2 2");
    trace_free(t);
}
END_TEST

/* What a program writes that does not know sizes. */
START_TEST(sizes_of_1_alone_are_unknown)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t = load("http://a.test/\t1\nhttp://b.test/\nhttp://a.test/\t1\n");

    ck_assert_ptr_null(t->sizes);
    ck_assert_uint_eq(t->counts.remark_count, 1);
    ck_assert_str_eq(t->counts.remarks[0], "all sizes are 1 and taken to be unknown");
    ck_assert_uint_eq(t->counts.inferred_sizes, 0);
    trace_free(t);
    options.sizes_as_read = true;
    ck_assert_int_eq(trace_load(scratch_path("list"), &options, &t, why, sizeof(why)), TRACE_OK);
    ck_assert_uint_eq(t->sizes[0], 1);
    trace_free(t);
    t = load("http://a.test/\t1\nhttp://b.test/\t0\n");
    ck_assert_uint_eq(t->sizes[0], 1);
    ck_assert_uint_eq(t->counts.remark_count, 0);
    trace_free(t);
}
END_TEST

START_TEST(malformed_lines_are_counted_and_passed_over)
{
    struct trace *t =
        load("http://a.test/\nwww.example.com\nhttp://b.test/\thuge\nhttp://c.test/ x\n"
             "http://d.test/\t-1\nhttp://e.test/\t9223372036854775808\nhttp://f.test/\t\n"
             "http://g.test/\t1\t2\n:\nhttp:///path\nhttp:relative\nhttp://h.test/\n");

    ck_assert_str_eq(order(t), "0 1");
    ck_assert_uint_eq(t->counts.skipped_bad, 10);
    ck_assert_uint_eq(t->counts.first_bad_line, 2);
    ck_assert_uint_eq(t->counts.bad_count, TRACE_BAD_LINES);
    ck_assert_uint_eq(t->counts.bad[1].line, 3);
    ck_assert_str_eq(t->counts.bad[1].text, "http://b.test/?huge");
    trace_free(t);
}
END_TEST

START_TEST(zero_bytes_and_endless_lines_are_malformed)
{
    static const char begin[] = "http://a.test/\nhttp://z.test/";
    static const char end[] = "\nhttp://b.test/\0hidden\nhttp://c.test/\t\nhttp://";
    size_t len = 3U * 1024U * 1024U; /* more than a URL may have */
    char *text = malloc(len);
    struct trace *t = NULL;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    memset(text, 'x', len);
    memcpy(text, begin, sizeof(begin) - 1);
    memcpy(text + len - (sizeof(end) - 1), end, sizeof(end) - 1);
    options.format = "urls";
    ck_assert_int_eq(trace_load(scratch_write("long", text, len), &options, &t, why, sizeof(why)),
                     TRACE_OK);
    ck_assert_str_eq(order(t), "0");
    ck_assert_uint_eq(t->counts.skipped_bad, 4);
    ck_assert_uint_eq(t->counts.first_bad_line, 2);
    trace_free(t);
    free(text);
}
END_TEST

START_TEST(only_the_web_unless_all_schemes)
{
    const char *text = "http://a.test/\nftp://f.test/\nHTTPS://b.test/\nfile:///etc/hosts\n"
                       "mailto:x@y.test\n";
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t = load(text);

    ck_assert_str_eq(order(t), "0 1");
    ck_assert_uint_eq(t->counts.skipped_scheme, 3);
    trace_free(t);
    options.all_schemes = true;
    t = load_with(text, options);
    ck_assert_str_eq(order(t), "0 1 2 3 4");
    ck_assert_uint_eq(t->counts.skipped_scheme, 0);
    trace_free(t);
}
END_TEST

START_TEST(unique_and_limit)
{
    const char *text = "http://a.test/\nhttp://b.test/\nhttp://a.test/\nftp://c.test/\n"
                       "http://c.test/\t5\nhttp://d.test/\n";
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    options.limit = 3;
    t = load_with(text, options);
    ck_assert_str_eq(order(t), "0 1 0");
    ck_assert_uint_eq(t->url_count, 2);
    trace_free(t);
    options.unique = true;
    t = load_with(text, options);
    ck_assert_str_eq(order(t), "0 1 2");
    ck_assert_uint_eq(t->counts.skipped_unique, 1);
    ck_assert_uint_eq(t->counts.skipped_scheme, 1);
    ck_assert_int_eq(t->sizes[2], 5);
    trace_free(t);
}
END_TEST

START_TEST(a_list_has_no_times)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.since_us = 1;
    scratch_write("list", "http://a.test/\n", 15);
    ck_assert_int_eq(refuse("list", options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(why, "1 outside the chosen times"));
}
END_TEST

static const struct {
    const char *url;
    const char *base;
} bases[] = {
    {"http://a.test", "http://a.test"},
    {"http://a.test/", "http://a.test"},
    {"http://a.test?q=/x", "http://a.test"},
    {"http://a.test#f@g", "http://a.test"},
    {"https://a.test:8443/x/y", "https://a.test:8443"},
    {"http://user:p%40ss@a.test:80/x@y", "http://a.test:80"},
    {"http://user@odd@a.test/", "http://a.test"},
    {"http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080"},
    {"http://u:p@[::1]/", "http://[::1]"},
    {"HTTP://A.Test/Path", "http://a.test"},
    {"http://a.test\\@b.test/", "http://a.test"},
    {"http://a.test//double", "http://a.test"},
    {"file:///etc/hosts", "file://"},
    {"chrome://settings/x", "chrome://settings"},
    {"mailto:x@y.test", "mailto:x@y.test"},
    {"no scheme", "no scheme"},
};

START_TEST(base_urls)
{
    struct buf out;

    buf_init(&out, 256);
    ck_assert(base_url_append(&out, span_str(bases[_i].url)));
    ck_assert_str_eq(buf_str(&out), bases[_i].base);
    buf_free(&out);
}
END_TEST

START_TEST(sites)
{
    static const char *const none[] = {"",           "foo",         "http:",      "http:///a",
                                       "ftp://a.b/", "http://a b",  "http://a\n", "http://a?b",
                                       "http://a#b", "http://a\x7f"};
    char longest[4098];

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        ck_assert_msg(!base_url_is_site(none[i]), "%s", none[i]);
    ck_assert(base_url_is_site("http://a") && base_url_is_site("HTTPS://a:8/b/"));
    memset(longest, 'a', sizeof(longest));
    memcpy(longest, "http://", 7);
    longest[4097] = '\0';
    ck_assert(!base_url_is_site(longest));
    longest[4096] = '\0';
    ck_assert(base_url_is_site(longest));
    ck_assert_uint_eq(base_url_site("http://a//").len, 8);
    ck_assert_uint_eq(base_url_site("http://a").len, 8);
}
END_TEST

START_TEST(base_urls_share_a_number)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    options.base_urls = true;
    t = load_with("http://a.test/1\t7\nhttp://u@a.test/2\t9\nhttps://a.test/1\nhttp://a.test:80\n",
                  options);
    ck_assert_str_eq(order(t), "0 0 1 2");
    ck_assert_str_eq(t->urls[0].ptr, "http://a.test");
    ck_assert_int_eq(t->sizes[0], 7);
    trace_free(t);
}
END_TEST

START_TEST(many_urls_keep_their_numbers)
{
    enum { URLS = 30000, STEP = 7 };
    struct buf text;
    struct trace *t;

    buf_init(&text, 8U * 1024U * 1024U);
    for (int i = 0; i < URLS; i++) {
        ck_assert(buf_printf(&text, "http://%d.test/%d\n", i % 100, i));
        ck_assert(buf_printf(&text, "http://%d.test/%d\n", (i / STEP) % 100, i / STEP));
    }
    t = load(buf_str(&text));
    ck_assert_uint_eq(t->url_count, URLS);
    ck_assert_uint_eq(t->request_count, 2U * URLS);
    for (uint32_t i = 0; i < URLS; i++) {
        char url[64];

        snprintf(url, sizeof(url), "http://%u.test/%u", i % 100, i);
        ck_assert_str_eq(t->urls[i].ptr, url);
        ck_assert_uint_eq(t->ids[2 * i], i);
        ck_assert_uint_eq(t->ids[2 * i + 1], i / STEP);
    }
    trace_free(t);
    buf_free(&text);
}
END_TEST

START_TEST(what_cannot_be_opened)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    ck_assert_int_eq(refuse("absent", options), TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(why, "absent: cannot open the trace: No such file"));
    ck_assert_int_eq(refuse(".", options), TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(why, ": a folder, not a trace"));
    ck_assert_ptr_null(strstr(why, "history"));
    ck_assert_int_eq(mkdir(scratch_path("Default"), 0700), 0);
    scratch_write("Default/History", "", 0);
    ck_assert_int_eq(refuse(".", options), TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(why, "the browser's history in it is Default/History"));
    ck_assert_int_eq(unlink(scratch_path("Default/History")), 0);
    ck_assert_int_eq(rmdir(scratch_path("Default")), 0);
    scratch_write("places.sqlite", "", 0);
    ck_assert_int_eq(refuse(".", options), TRACE_CANNOT_OPEN);
    ck_assert_ptr_nonnull(strstr(why, "the browser's history in it is places.sqlite"));
    if (geteuid() != 0) {
        scratch_write("closed", "http://a.test/\n", 15);
        ck_assert_int_eq(chmod(scratch_path("closed"), 0), 0);
        ck_assert_int_eq(refuse("closed", options), TRACE_CANNOT_OPEN);
        ck_assert_ptr_nonnull(strstr(why, "Permission denied"));
    }
}
END_TEST

START_TEST(what_is_no_trace)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    scratch_write("empty", "", 0);
    ck_assert_int_eq(refuse("empty", options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(why, "empty: the file is empty"));
    scratch_write("comments", "# only\n\n", 8);
    ck_assert_int_eq(refuse("comments", options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(why, "comments: no requests, read as "));
    ck_assert_ptr_nonnull(strstr(why, "read as urls"));
    scratch_write("ftp", "ftp://a.test/\nhttp:///\nhttp://b.test/\tx", 39);
    ck_assert_int_eq(refuse("ftp", options), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(why, "; left out: 1 neither http nor https, 2 malformed"));
    ck_assert_ptr_nonnull(strstr(why, "; malformed: line 2 'http:///', line 3 'http://b.test/?x'"));
    scratch_write("prose", "To whom it may concern\n", 23);
    ck_assert_int_eq(refuse("prose", options), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(strstr(why, "prose: unknown trace format"));
    ck_assert_ptr_nonnull(
        strstr(why, "its first line is 'To whom it may concern'; name the format"));
    scratch_write("binary", "http://a.test/\0\n", 16);
    ck_assert_int_eq(refuse("binary", options), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(strstr(why, "its first bytes are 68 74 74 70 3a 2f 2f 61 2e 74 65"));
    options.format = "parchment";
    ck_assert_int_eq(refuse("ftp", options), TRACE_NOT_A_TRACE);
    ck_assert_ptr_nonnull(
        strstr(why, "no trace format is called 'parchment'; there are: request-db, firefox"));
}
END_TEST

START_TEST(a_small_buffer_for_the_sentence_is_respected)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;
    char small[8];

    memset(small, 'x', sizeof(small));
    scratch_write("prose", "To whom it may concern\n", 23);
    ck_assert_int_eq(trace_load(scratch_path("prose"), &options, &t, small, 4), TRACE_NOT_A_TRACE);
    ck_assert_int_eq(small[3], '\0');
    ck_assert_int_eq(small[4], 'x');
    trace_free(NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("trace");
    TCase *tcase = tcase_create("loading");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, a_list_is_read_in_order_and_numbered);
    tcase_add_test(tcase, sizes_stand_by_request_and_fill_the_unknown);
    tcase_add_test(tcase, urls_have_no_fragment);
    tcase_add_test(tcase, sizes_of_1_alone_are_unknown);
    tcase_add_test(tcase, malformed_lines_are_counted_and_passed_over);
    tcase_add_test(tcase, zero_bytes_and_endless_lines_are_malformed);
    tcase_add_test(tcase, only_the_web_unless_all_schemes);
    tcase_add_test(tcase, unique_and_limit);
    tcase_add_test(tcase, a_list_has_no_times);
    tcase_add_loop_test(tcase, base_urls, 0, (int)(sizeof(bases) / sizeof(bases[0])));
    tcase_add_test(tcase, sites);
    tcase_add_test(tcase, base_urls_share_a_number);
    tcase_add_test(tcase, many_urls_keep_their_numbers);
    tcase_add_test(tcase, what_cannot_be_opened);
    tcase_add_test(tcase, what_is_no_trace);
    tcase_add_test(tcase, a_small_buffer_for_the_sentence_is_respected);
    suite_add_tcase(suite, tcase);
    return suite;
}
