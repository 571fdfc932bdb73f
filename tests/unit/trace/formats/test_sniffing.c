/*
 * How a trace is recognised when it is not as it should be: zero bytes, byte order marks, junk; and
 * what is nothing.
 */
#include "tests/unit/trace/loading.h"

#define T "[01/Jan/1970:00:00:0"

#define LOG_LINE "h - - " T "1 +0000] \"GET /a HTTP/1.0\" 200 7\n"

/* Zero bytes, as after a crash or in a truncated log, spoil the line that they stand in. */
static const struct {
    const char *format;
    const char *text; /* "@" stands for a zero byte */
    const char *requests;
    unsigned bad;
} damaged[] = {
    {"access", LOG_LINE "@@@@@@@" LOG_LINE LOG_LINE,
     "http://localhost/a@1=7/200 http://localhost/a@1=7/200", 1},
    {"access", "@@@@" LOG_LINE LOG_LINE, "http://localhost/a@1=7/200", 1},
    {"squid", "1 1 h A/200 1 GET http://b.test/ - - -\n1 1 h A@/200 1 GET http://b.test/ - - -\n",
     "http://b.test/@1/200", 1},
    {"adaptsize", "1 2 3\n@\n4 2 3\n", "2@1=3 2@4=3", 1},
    {"table", "url,x\nhttp://a.test/,1\nhttp://b.test/,@\n", "http://a.test/", 1},
    {"zeek", "#separator \\x09\n#fields\tts\turi\thost\n1\t/\ta.test\n2\t/\ta@.test\n",
     "http://a.test/@1", 1},
    {"urls", "http://a.test/\nhttp://b.test/@\n@@@@\nhttp://c.test/\n",
     "http://a.test/ http://c.test/", 2},
};

START_TEST(zero_bytes_spoil_a_line)
{
    size_t len = strlen(damaged[_i].text);
    char bytes[512];
    struct trace *t;

    ck_assert_uint_lt(len, sizeof(bytes));
    for (size_t i = 0; i < len; i++)
        bytes[i] = damaged[_i].text[i] == '@' ? '\0' : damaged[_i].text[i];
    t = loading_bytes(bytes, len, loading_all());
    ck_assert_str_eq(t->format, damaged[_i].format);
    ck_assert_str_eq(loading_picture(t), damaged[_i].requests);
    ck_assert_uint_eq(t->counts.skipped_bad, damaged[_i].bad);
    trace_free(t);
}
END_TEST

/* The format with the most requests is the one, even if most lines are none. */
START_TEST(few_good_lines_are_enough)
{
    static const char *const goods[][2] = {
        {"access", LOG_LINE},
        {"squid", "1 1 h A/200 1 GET http://b.test/ - - -\n"},
        {"adaptsize", "1 2 3\n"},
        {"urls", "http://b.test/\n"},
    };
    struct buf text;

    for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
        struct trace *t;

        buf_init(&text, 65536);
        ck_assert(buf_append_str(&text, "http://junk.test/\n9 9 9\n"));
        for (int k = 0; k < 118; k++)
            ck_assert(buf_append_str(&text, "a line of junk\n"));
        for (int k = 0; k < 20; k++)
            ck_assert(buf_append_str(&text, goods[i][1]));
        t = loading_bytes(text.data, text.len, loading_all());
        ck_assert_str_eq(t->format, goods[i][0]);
        ck_assert_uint_ge(t->request_count, 20);
        trace_free(t);
        buf_free(&text);
    }
}
END_TEST

/* Each text of one request, with and without a byte order mark. */
START_TEST(a_byte_order_mark_means_nothing)
{
    static const char *const ones[] = {
        LOG_LINE,
        "1 1 h A/200 1 GET http://b.test/ - - -\n",
        "1 2 3\n",
        "url\nhttp://a.test/\n",
        "#separator \\x09\n#fields\tts\turi\thost\n1\t/\ta.test\n",
        "http://a.test/\n",
        "{\"log\":{\"entries\":[{\"request\":{\"url\":\"http://a.test/\"}}]}}",
    };

    for (size_t i = 0; i < sizeof(ones) / sizeof(ones[0]); i++) {
        struct trace *t = loading_text(ones[i], loading_all());
        struct trace *marked;
        char bytes[512];

        snprintf(bytes, sizeof(bytes), "\xef\xbb\xbf%s", ones[i]);
        marked = loading_text(bytes, loading_all());
        ck_assert_str_eq(marked->format, t->format);
        ck_assert_str_eq(loading_picture(marked), loading_picture(t));
        ck_assert_uint_eq(marked->request_count, 1);
        ck_assert_uint_eq(marked->counts.skipped_bad, 0);
        trace_free(marked);
        trace_free(t);
    }
}
END_TEST

/* In a binary trace these bytes are as good as any. */
START_TEST(a_byte_order_mark_is_text)
{
    unsigned char bytes[24] = "\xef\xbb\xbf";
    struct trace *t;

    memset(bytes + 16, 0xff, 8);
    t = loading_bytes(bytes, sizeof(bytes), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(t->format, "oracle");
    ck_assert_uint_eq(t->request_count, 1);
    trace_free(t);
}
END_TEST

/* Of any length. */
START_TEST(zero_bytes_in_front_are_a_line)
{
    static const size_t lengths[] = {1, 262142, 262143, 262144, 1000000, 5000000};
    size_t capacity = 5000000 + 2 * strlen(LOG_LINE) + 1;
    char *bytes = malloc(capacity);

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct trace_options options = TRACE_OPTIONS_DEFAULT;

        memset(bytes, 0, capacity);
        snprintf(bytes + lengths[i], capacity - lengths[i], "%s%s", LOG_LINE, LOG_LINE);
        for (int named = 0; named < 2; named++) {
            size_t len = lengths[i] + 2 * strlen(LOG_LINE);
            struct trace *t = loading_bytes(bytes, len, options);

            ck_assert_str_eq(t->format, "access");
            ck_assert_uint_eq(t->request_count, 1);
            ck_assert_uint_eq(t->counts.skipped_bad, 1);
            ck_assert_uint_eq(t->counts.first_bad_line, 1);
            trace_free(t);
            options.format = "access";
        }
    }
    free(bytes);
}
END_TEST

START_TEST(zero_bytes_alone_are_nothing)
{
    static const char zeros[600000];

    for (size_t len = sizeof(zeros); len > 4; len /= 5) {
        scratch_write("zeros", zeros, len);
        ck_assert_int_eq(loading_refused(scratch_path("zeros"), TRACE_OPTIONS_DEFAULT),
                         TRACE_NOT_A_TRACE);
        ck_assert_ptr_nonnull(strstr(loading_why, "name the format, or give the format string of a log, with --format"));
    }
}
END_TEST

/* What looks like nothing, or only a little like something. */
static const char *const nothings[] = {
    "To whom it may concern\n", "1 2\n3 4\n",
    "time,size\n1,2\n",         "{\"entries\":[]}",
    "#separator \\x09\n",       "h - - [x] \"GET / HTTP/1.0\" 200 1\n",
    "1.5 TCP_MISS/200\n",       "{\"ts\":1,\"id.resp_p\":80}\n",
};

START_TEST(nothing)
{
    scratch_write("nothing", nothings[_i], strlen(nothings[_i]));
    ck_assert_int_eq(loading_refused(scratch_path("nothing"), TRACE_OPTIONS_DEFAULT),
                     _i == 4 ? TRACE_EMPTY : TRACE_NOT_A_TRACE);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("sniffing");
    TCase *tcase = tcase_create("sniffing");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_loop_test(tcase, zero_bytes_spoil_a_line, 0, COUNT(damaged));
    tcase_add_test(tcase, few_good_lines_are_enough);
    tcase_add_test(tcase, a_byte_order_mark_means_nothing);
    tcase_add_test(tcase, a_byte_order_mark_is_text);
    tcase_add_test(tcase, zero_bytes_in_front_are_a_line);
    tcase_add_test(tcase, zero_bytes_alone_are_nothing);
    tcase_add_loop_test(tcase, nothing, 0, COUNT(nothings));
    suite_add_tcase(suite, tcase);
    return suite;
}
