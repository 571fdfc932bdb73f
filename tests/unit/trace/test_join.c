/* Several traces as one: order, sizes, counts, limits. */
#include "trace/join.h"

#include "tests/unit/trace/loading.h"

#define HEAD "time\turl\tsize\tstatus\n"

static struct trace *parts[3];
static size_t part_count;

static void
add_part(const char *text)
{
    struct trace_options options = loading_all();

    options.sizes_as_read = true;
    parts[part_count++] = loading_text(text, options);
}

static void
set_up(void)
{
    scratch_make();
    part_count = 0;
}

static void
tear_down(void)
{
    for (size_t i = 0; i < part_count; i++)
        trace_free(parts[i]);
    scratch_remove();
}

static struct trace *
join(struct trace_options options, bool by_time)
{
    struct trace *whole = NULL;
    bool sorted = !by_time;

    ck_assert_int_eq(trace_join(parts, part_count, &options, &whole, &sorted), TRACE_OK);
    ck_assert_int_eq(sorted, by_time);
    ck_assert_uint_eq(whole->counts.requests, whole->request_count);
    return whole;
}

/* Rotated logs come newest first, and each is in order. */
START_TEST(parts_are_ordered_by_time)
{
    struct trace *whole;

    add_part(HEAD "50\thttp://h/c\t3\t200\n70\thttp://h/a\t1\t200\n");
    add_part(HEAD "10\thttp://h/a\t1\t200\n30\thttp://h/b\t2\t200\n60\thttp://h/b\t2\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, true);
    ck_assert_str_eq(loading_picture(whole), "http://h/a@10=1/200 http://h/b@30=2/200 "
                                             "http://h/c@50=3/200 http://h/b@60=2/200 "
                                             "http://h/a@70=1/200");
    ck_assert_uint_eq(whole->url_count, 3);
    trace_free(whole);
}
END_TEST

START_TEST(a_part_keeps_its_own_order)
{
    struct trace *whole;

    add_part(HEAD "20\thttp://h/a\t4\t200\n10\thttp://h/b\t4\t200\n30\thttp://h/c\t4\t200\n");
    add_part(HEAD "15\thttp://h/d\t4\t200\n20\thttp://h/e\t4\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, true);
    ck_assert_str_eq(loading_picture(whole),
                     "http://h/d@15=4/200 http://h/a@20=4/200 http://h/b@10=4/200 "
                     "http://h/e@20=4/200 http://h/c@30=4/200");
    trace_free(whole);
}
END_TEST

START_TEST(without_times_the_order_is_the_one_given)
{
    struct trace *whole;

    add_part("http://h/b\nhttp://h/a\n");
    add_part(HEAD "1\thttp://h/a\t4\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, false);
    ck_assert_uint_eq(whole->request_count, 3);
    ck_assert_uint_eq(whole->ids[1], whole->ids[2]);
    trace_free(whole);
}
END_TEST

START_TEST(sizes_of_1_are_known_by_those_of_another_part)
{
    struct trace *whole;

    add_part(HEAD "10\thttp://h/a\t1\t200\n30\thttp://h/b\t1\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, true);
    ck_assert_ptr_null(whole->sizes);
    ck_assert_uint_eq(whole->counts.remark_count, 1);
    trace_free(whole);
    add_part(HEAD "20\thttp://h/c\t2\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, true);
    ck_assert_str_eq(loading_picture(whole),
                     "http://h/a@10=1/200 http://h/c@20=2/200 http://h/b@30=1/200");
    trace_free(whole);
}
END_TEST

START_TEST(a_size_comes_from_another_part)
{
    struct trace_options as_read = TRACE_OPTIONS_DEFAULT;
    struct trace *whole;

    as_read.sizes_as_read = true;
    add_part(HEAD "50\thttp://h/a\t0\t304\n");
    add_part(HEAD "10\thttp://h/a\t77\t200\n");
    whole = join(TRACE_OPTIONS_DEFAULT, true);
    ck_assert_uint_eq(whole->sizes[1], 77);
    ck_assert_uint_eq(whole->counts.inferred_sizes, 1);
    trace_free(whole);
    whole = join(as_read, true);
    ck_assert_uint_eq(whole->sizes[1], 0);
    trace_free(whole);
}
END_TEST

START_TEST(counts_limits_and_repetitions_are_of_the_whole)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *whole;

    add_part(HEAD "1\thttp://h/a\t4\t200\n5\tno url\t4\t200\n");
    add_part(HEAD "2\thttp://h/a\t4\t200\n3\thttp://h/b\t4\t200\nnonsense\n");
    options.unique = true;
    whole = join(options, true);
    ck_assert_uint_eq(whole->request_count, 2);
    ck_assert_uint_eq(whole->counts.skipped_unique, 1);
    ck_assert_uint_eq(whole->counts.skipped_bad,
                      parts[0]->counts.skipped_bad + parts[1]->counts.skipped_bad);
    ck_assert_uint_ge(whole->counts.skipped_bad, 1);
    trace_free(whole);
    options.unique = false;
    options.limit = 2;
    whole = join(options, true);
    ck_assert_str_eq(loading_picture(whole), "http://h/a@1=4/200 http://h/a@2=4/200");
    trace_free(whole);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("join");
    TCase *tests = tcase_create("join");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, parts_are_ordered_by_time);
    tcase_add_test(tests, a_part_keeps_its_own_order);
    tcase_add_test(tests, without_times_the_order_is_the_one_given);
    tcase_add_test(tests, sizes_of_1_are_known_by_those_of_another_part);
    tcase_add_test(tests, a_size_comes_from_another_part);
    tcase_add_test(tests, counts_limits_and_repetitions_are_of_the_whole);
    suite_add_tcase(suite, tests);
    return suite;
}
