/*
 * Requests that are added many at a time, against the same added one by one: a limit that is never
 * reached keeps the builder from the former.
 */
#include "tests/unit/trace/loading.h"
#include "trace/builder.h"
#include "trace/random.h"
#include "trace/write/write.h"

enum { LINES = 30000 };

static void
check_equal(const struct trace *a, const struct trace *b)
{
    ck_assert_uint_eq(a->request_count, b->request_count);
    ck_assert_uint_eq(a->url_count, b->url_count);
    ck_assert_mem_eq(a->ids, b->ids, a->request_count * sizeof(*a->ids));
    ck_assert_mem_eq(a->keys, b->keys, a->url_count * sizeof(*a->keys));
    ck_assert_int_eq(a->sizes != NULL, b->sizes != NULL);
    ck_assert_int_eq(a->times_us != NULL, b->times_us != NULL);
    if (a->sizes)
        ck_assert_mem_eq(a->sizes, b->sizes, a->request_count * sizeof(*a->sizes));
    if (a->times_us)
        ck_assert_mem_eq(a->times_us, b->times_us, a->request_count * sizeof(*a->times_us));
    for (size_t i = 0; a->urls && i < a->url_count; i++)
        ck_assert(span_equal(a->urls[i], b->urls[i]));
    if (a->numbers)
        ck_assert_mem_eq(a->numbers, b->numbers, a->url_count * sizeof(*a->numbers));
    ck_assert_mem_eq(&a->counts, &b->counts, sizeof(a->counts));
}

static void
compare(const char *path, struct trace_options options)
{
    struct trace *many = loading_file(path, options);
    struct trace *single;

    options.limit = UINT64_MAX;
    single = loading_file(path, options);
    check_equal(many, single);
    ck_assert_uint_gt(many->request_count, LINES / 2);
    trace_free(many);
    trace_free(single);
}

/* Mostly URLs of every length, with and without sizes; now and then something else. */
static const char *
write_lines(uint64_t seed)
{
    struct random_numbers r;
    struct buf text;
    const char *path;

    random_seed(&r, seed);
    buf_init(&text, 1U << 30U);
    for (int i = 0; i < LINES; i++) {
        uint64_t what = random_below(&r, 40);
        int page = (int)random_below(&r, 3000);

        if (what == 0)
            buf_append_str(&text, "# comment");
        else if (what == 1)
            buf_append_str(&text, random_below(&r, 2) ? "" : "no URL \x01");
        else if (what == 2)
            buf_printf(&text, "ftp://host/%d", page);
        else if (what == 3)
            buf_printf(&text, "http:///%d", page);
        else if (what == 4)
            buf_printf(&text, "http://host/%0*d", (int)random_below(&r, 100000), page);
        else
            buf_printf(&text, "%shttp://host%d/%0*d?%d", what == 5 ? " " : "", page % 10, page % 40,
                       page, page % 2);
        if (what >= 3 && page % 3 == 0)
            buf_printf(&text, "\t%d", what == 6 ? -1 : (int)random_below(&r, 100000));
        buf_append_str(&text, random_below(&r, 10) ? "\n" : "\r\n");
    }
    path = scratch_write("list", text.data, text.len);
    ck_assert(!buf_failed(&text));
    buf_free(&text);
    return path;
}

START_TEST(lists)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    const char *path = write_lines((uint64_t)_i);

    compare(path, options);
    options.cut_query = true;
    options.all_schemes = true;
    compare(path, options);
    options.base_urls = true;
    options.sizes_as_read = true;
    compare(path, options);
}
END_TEST

START_TEST(records)
{
    static const struct trace_write_options plain;
    struct random_numbers r;
    struct buf text;
    struct trace *t;
    char why[256];

    random_seed(&r, 9);
    buf_init(&text, 1U << 30U);
    for (int i = 0; i < LINES; i++)
        buf_printf(&text, "%d %u %u\n", i / 10, (unsigned)random_below(&r, 5000),
                   i % 100 == 0 ? UINT32_MAX : (unsigned)random_below(&r, 1000));
    t = loading_text(buf_str(&text), TRACE_OPTIONS_DEFAULT);
    ck_assert(
        trace_write(t, trace_writer_find("oracle"), &plain, scratch_path("bin"), why, sizeof(why)));
    compare(scratch_path("bin"), TRACE_OPTIONS_DEFAULT);
    trace_free(t);
    buf_free(&text);
}
END_TEST

START_TEST(numbers_in_batches)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace_builder *builder = trace_builder_create(&options);
    struct trace_numbered numbers[700];
    struct trace *t;

    for (size_t i = 0; i < 700; i++)
        numbers[i] = (struct trace_numbered){.number = i % 90, .time_us = (int64_t)i, .size = 5};
    for (int round = 0; round < 3; round++)
        ck_assert(trace_add_numbered(builder, numbers, 700));
    t = trace_builder_finish(builder, "made");
    ck_assert_uint_eq(t->request_count, 2100);
    ck_assert_uint_eq(t->url_count, 90);
    ck_assert_uint_eq(t->ids[2099], 699 % 90);
    ck_assert_int_eq(t->times_us[2099], 699);
    trace_free(t);
    trace_builder_destroy(builder);
}
END_TEST

START_TEST(limits_hold)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    const char *path = write_lines(77);

    for (uint64_t limit = 1; limit < 100; limit += 7) {
        struct trace *t;

        options.limit = limit;
        t = loading_file(path, options);
        ck_assert_uint_eq(t->request_count, limit);
        trace_free(t);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("bulk");
    TCase *tcase = tcase_create("bulk");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, lists, 0, 2);
    tcase_add_test(tcase, records);
    tcase_add_test(tcase, numbers_in_batches);
    tcase_add_test(tcase, limits_hold);
    suite_add_tcase(suite, tcase);
    return suite;
}
