/*
 * Writing: what is written gives the same requests when it is read, and what cannot be written
 * writes nothing.
 */
#include "trace/write/write.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

#include "tests/unit/trace/loading.h"

static const char source[] = "time,url,size,status\n1.5,http://a.test/,12,200\n"
                             "2,http://b.test/x y\tz,0,200\n-1.000001,http://a.test/,,304\n"
                             "3,http://c.test/,4294967294,200\n4,http://a.test/,7,304\n";

static struct trace *
load_source(bool as_read)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.sizes_as_read = as_read;
    return loading_text(source, options);
}

static void
write_to(const struct trace *t, const char *writer, const struct trace_write_options *how,
         const char *name)
{
    char why[256] = "";

    ck_assert_msg(
        trace_write(t, trace_writer_find(writer), how, scratch_path(name), why, sizeof(why)), "%s",
        why);
}

static const struct trace_write_options plain;

START_TEST(a_table)
{
    struct trace *t = load_source(true);
    struct trace *again;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    size_t len;
    char *text;

    write_to(t, "tsv", &plain, "out");
    text = scratch_read(scratch_path("out"), &len);
    ck_assert_str_eq(text, "time\turl\tsize\tstatus\n1.500000\thttp://a.test/\t12\t200\n"
                           "2.000000\thttp://b.test/x%20y%09z\t0\t200\n"
                           "-1.000001\thttp://a.test/\t\t304\n"
                           "3.000000\thttp://c.test/\t4294967294\t200\n"
                           "4.000000\thttp://a.test/\t7\t304\n");
    free(text);
    options.sizes_as_read = true;
    again = loading_file(scratch_path("out"), options);
    ck_assert_str_eq(again->format, "table");
    ck_assert_mem_eq(again->ids, t->ids, t->request_count * sizeof(*t->ids));
    ck_assert_mem_eq(again->times_us, t->times_us, t->request_count * sizeof(*t->times_us));
    ck_assert_mem_eq(again->sizes, t->sizes, t->request_count * sizeof(*t->sizes));
    ck_assert_mem_eq(again->statuses, t->statuses, t->request_count * sizeof(*t->statuses));
    trace_free(again);
    trace_free(t);
}
END_TEST

/* Whatever a log knows of a request, a table does, and reads back if that is asked for. */
START_TEST(methods_and_statuses)
{
    static const char log[] = "time,url,method,status\n1,http://a.test/,GET,200\n"
                              "2,http://a.test/,POST,\n3,http://a.test/,,302\n"
                              "4,http://a.test/,purge,-\n5,http://a.test/,G\\x00,404\n"
                              "6,a.test:443,CONNECT,200\n7,\"/\"\"\"\"x\",GET,200\n";
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t, *again;
    char *text;
    size_t len;

    options.methods = "all";
    options.statuses = "all";
    t = loading_text(log, options);
    write_to(t, "tsv", &plain, "out");
    text = scratch_read(scratch_path("out"), &len);
    ck_assert_str_eq(text, "time\turl\tstatus\tmethod\n"
                           "1.000000\thttp://a.test/\t200\tGET\n"
                           "2.000000\thttp://a.test/\t\tPOST\n"
                           "3.000000\thttp://a.test/\t302\t\n"
                           "4.000000\thttp://a.test/\t0\tpurge\n"
                           "5.000000\thttp://a.test/\t404\tOTHER\n"
                           "6.000000\thttps://a.test\t200\tCONNECT\n"
                           "7.000000\thttp://localhost/\"\"x\t200\tGET\n");
    free(text);
    again = loading_file(scratch_path("out"), options);
    ck_assert_uint_eq(again->request_count, t->request_count);
    ck_assert_mem_eq(again->statuses, t->statuses, t->request_count * sizeof(*t->statuses));
    ck_assert_uint_eq(again->url_count, 3);
    for (size_t id = 0; id < 3; id++)
        ck_assert_str_eq(again->urls[id].ptr, t->urls[id].ptr);
    for (size_t i = 0; i < t->request_count; i++)
        ck_assert_str_eq(trace_method(again, i), trace_method(t, i));
    trace_free(again);
    options.without_methods = true;
    again = loading_file(scratch_path("out"), options);
    ck_assert_ptr_null(again->methods);
    ck_assert_str_eq(trace_method(again, 0), "");
    trace_free(again);
    trace_free(t);
}
END_TEST

/* A trace holds a bounded number of names; later ones become "other". */
START_TEST(more_methods_than_there_are)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;
    struct buf text;
    char name[16];

    buf_init(&text, 65536);
    ck_assert(buf_append_str(&text, "method,id\n"));
    for (int i = 0; i < 600; i++)
        ck_assert(buf_printf(&text, "M%d,7\n", i % 300));
    options.methods = "all";
    t = loading_bytes(text.data, text.len, options);
    for (size_t i = 0; i < 600; i++) {
        snprintf(name, sizeof(name), "M%zu", i % 300);
        ck_assert_str_eq(trace_method(t, i), i % 300 < 254 ? name : "OTHER");
    }
    trace_free(t);
    buf_free(&text);
}
END_TEST

START_TEST(a_list)
{
    struct trace *t = load_source(false);
    struct trace *again;

    write_to(t, "urls", &plain, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again),
                     "http://a.test/=12 http://b.test/x%20y%09z=0 http://a.test/=12 "
                     "http://c.test/=4294967294 http://a.test/=12");
    trace_free(again);
    trace_free(t);
}
END_TEST

START_TEST(oracle)
{
    struct trace *t = load_source(false);
    struct trace *again;
    unsigned char *bytes;
    size_t len;

    write_to(t, "oracle", &plain, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(again->format, "oracle");
    ck_assert_str_eq(loading_picture(again), "1@1=12 2@2=0 1@0=12 3@3=4294967294 1@4=12");
    trace_free(again);
    trace_free(t);
    bytes = (unsigned char *)scratch_read(scratch_path("out"), &len);
    ck_assert_uint_eq(len, 5U * 24U);
    ck_assert_int_eq(bytes[16], 3);        /* the third is the next for URL 1 */
    ck_assert_int_eq(bytes[24 + 16], 255); /* none */
    ck_assert_int_eq(bytes[48 + 16], 5);
    ck_assert_int_eq(bytes[96 + 23], 255);
    free(bytes);
    /* What is not known is 1: libCacheSim passes over what has no bytes. */
    t = loading_text("http://a.test/\nhttp://b.test/\t0\n", TRACE_OPTIONS_DEFAULT);
    write_to(t, "oracle", &plain, "out");
    trace_free(t);
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "1@0=1 2@0=0");
    trace_free(again);
}
END_TEST

START_TEST(history)
{
    struct trace *t =
        loading_text("http://a.test/\nhttp://b.test/\nhttp://a.test/\n", TRACE_OPTIONS_DEFAULT);
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *again;

    write_to(t, "chrome", &plain, "History");
    trace_free(t);
    options.redirects = TRACE_REDIRECTS_DROP; /* none is one */
    again = loading_file(scratch_path("History"), options);
    ck_assert_str_eq(again->format, "chrome");
    ck_assert_str_eq(loading_picture(again),
                     "http://a.test/@9.46685e+08 http://b.test/@9.46685e+08 "
                     "http://a.test/@9.46685e+08");
    ck_assert_int_eq(again->times_us[1] - again->times_us[0], 1000000);
    trace_free(again);
    /* Times are kept where there are some. */
    t = loading_text("time,url\n5,http://b.test/\n6.5,http://a.test/\n", TRACE_OPTIONS_DEFAULT);
    write_to(t, "chrome", &plain, "History"); /* in the place of the other */
    again = loading_file(scratch_path("History"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "http://b.test/@5 http://a.test/@6.5");
    trace_free(again);
    trace_free(t);
}
END_TEST

/* A History is read by time; what is written later must be read later. */
START_TEST(history_out_of_order)
{
    struct trace *t = loading_text("time,url\n5,http://b.test/\n3,http://a.test/\n"
                                   "4,http://b.test/\n6,http://c.test/\n-9,http://a.test/\n",
                                   TRACE_OPTIONS_DEFAULT);
    static const uint8_t writes[] = {1, 0, 0, 0, 0};
    struct trace_write_options how = {.writes = writes};
    struct trace *again;

    write_to(t, "chrome", &plain, "History");
    again = loading_file(scratch_path("History"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "http://b.test/@5 http://a.test/@5 http://b.test/@5 "
                                             "http://c.test/@6 http://a.test/@6");
    trace_free(again);
    ck_assert_uint_eq(trace_write_raised(t, trace_writer_find("chrome"), &plain), 3);
    ck_assert_uint_eq(trace_write_raised(t, trace_writer_find("chrome"), &how), 1);
    ck_assert_uint_eq(trace_write_raised(t, trace_writer_find("tsv"), &plain), 0);
    trace_free(t);
    /* The epoch of the format and times before it are times as any other. */
    t = loading_text("time,url\n-11644473605,http://b.test/\n-11644473600,http://a.test/\n"
                     "1,http://a.test/\n",
                     TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(trace_write_raised(t, trace_writer_find("chrome"), &plain), 0);
    write_to(t, "chrome", &plain, "History");
    again = loading_file(scratch_path("History"), TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(again->request_count, 3);
    ck_assert_mem_eq(again->times_us, t->times_us, 3 * sizeof(*t->times_us));
    trace_free(again);
    trace_free(t);
}
END_TEST

START_TEST(numbers)
{
    struct trace *t = loading_text("1 77 5\n2 78 6\n3 77 5\n", TRACE_OPTIONS_DEFAULT);
    static const uint8_t writes[] = {0, 0, 1};
    struct trace_write_options how = {.site = "http://s.test", .writes = writes};
    struct trace *again;

    write_to(t, "tsv", &plain, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "77@1=5 78@2=6 77@3=5");
    trace_free(again);
    write_to(t, "oracle", &plain, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "77@1=5 78@2=6 77@3=5");
    trace_free(again);
    write_to(t, "urls", &plain, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again),
                     "http://localhost/77=5 http://localhost/78=6 http://localhost/77=5");
    trace_free(again);
    /* One slash, however many the site has at its end. */
    for (size_t i = 0; trace_writers[i]; i++) {
        const struct trace_write_options slashed = {.site = "http://s.test//"};

        write_to(t, trace_writers[i]->name, &slashed, "out");
        again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
        ck_assert(!again->urls || span_equal(again->urls[0], span_str("http://s.test/77")));
        trace_free(again);
    }
    /* Writes: a table has methods, and a GET is what counts; the others leave them out. */
    write_to(t, "tsv", &how, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "http://s.test/77@1=5 http://s.test/78@2=6");
    ck_assert_uint_eq(again->counts.skipped_method, 1);
    trace_free(again);
    write_to(t, "oracle", &how, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "77@1=5 78@2=6");
    trace_free(again);
    write_to(t, "chrome", &how, "out");
    again = loading_file(scratch_path("out"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(loading_picture(again), "http://s.test/77@1 http://s.test/78@2");
    trace_free(again);
    trace_free(t);
}
END_TEST

START_TEST(what_cannot_be_written)
{
    struct trace *t = load_source(false);
    struct rlimit before_limit, none;
    struct buf before, after;
    char why[256] = "";

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before_limit), 0);
    none = before_limit;
    none.rlim_cur = 0;
    scratch_write("kept", "kept", 4);
    scratch_picture(&before);
    for (size_t i = 0; trace_writers[i]; i++) {
        bool written;

        ck_assert(
            !trace_write(t, trace_writers[i], &plain, scratch_path("none/out"), why, sizeof(why)));
        ck_assert_ptr_nonnull(strstr(why, "none/out: No such file"));
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
        written = trace_write(t, trace_writers[i], &plain, scratch_path("kept"), why, sizeof(why));
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before_limit), 0);
        ck_assert(!written);
        ck_assert_ptr_nonnull(strstr(why, "cannot write"));
    }
    ck_assert(!trace_write(t, trace_writer_find("chrome"), &plain, "-", why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "only be written to a file"));
    scratch_picture(&after);
    ck_assert_str_eq(buf_str(&before), buf_str(&after));
    buf_free(&before);
    buf_free(&after);
    trace_free(t);
}
END_TEST

/* A FIFO stands for all that is no regular file: it is written, or refused, and stays. */
START_TEST(what_is_no_file)
{
    struct trace *t = load_source(false);
    const char *fifo = scratch_path("fifo");
    char why[256] = "";
    struct stat st;
    int reader;

    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_ge(reader, 0);
    for (size_t i = 0; trace_writers[i]; i++) {
        bool written = trace_write(t, trace_writers[i], &plain, fifo, why, sizeof(why));
        char text[4096];
        ssize_t len = read(reader, text, sizeof(text));

        ck_assert_int_eq(written, !trace_writers[i]->files_only);
        ck_assert_int_eq(len > 0, written);
        ck_assert(written || strstr(why, "no regular file"));
        ck_assert(lstat(fifo, &st) == 0 && S_ISFIFO(st.st_mode));
    }
    close(reader);
    trace_free(t);
}
END_TEST

START_TEST(what_a_name_asks_for)
{
    ck_assert_str_eq(trace_writer_for("a/b.tsv")->name, "tsv");
    ck_assert_str_eq(trace_writer_for("x.oracleGeneral")->name, "oracle");
    ck_assert_str_eq(trace_writer_for("x/History")->name, "chrome");
    ck_assert_ptr_null(trace_writer_for("-"));
    ck_assert_ptr_null(trace_writer_for("tsv"));
    ck_assert_ptr_null(trace_writer_find("parchment"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("write");
    TCase *tcase = tcase_create("write");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, a_table);
    tcase_add_test(tcase, methods_and_statuses);
    tcase_add_test(tcase, more_methods_than_there_are);
    tcase_add_test(tcase, a_list);
    tcase_add_test(tcase, oracle);
    tcase_add_test(tcase, history);
    tcase_add_test(tcase, history_out_of_order);
    tcase_add_test(tcase, numbers);
    tcase_add_test(tcase, what_cannot_be_written);
    tcase_add_test(tcase, what_is_no_file);
    tcase_add_test(tcase, what_a_name_asks_for);
    suite_add_tcase(suite, tcase);
    return suite;
}
