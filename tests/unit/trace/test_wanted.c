/*
 * Which methods and statuses count, and the numbers of binary traces.
 */
#include "trace/wanted.h"

#include "tests/unit/unit.h"
#include "trace/formats/number_table.h"

START_TEST(statuses)
{
    struct wanted_statuses w;

    ck_assert(wanted_parse_statuses("200,304,4xx,500-503", &w));
    ck_assert(wanted_status(&w, 200) && wanted_status(&w, 304) && wanted_status(&w, 400));
    ck_assert(wanted_status(&w, 499) && wanted_status(&w, 500) && wanted_status(&w, 503));
    ck_assert(!wanted_status(&w, 201) && !wanted_status(&w, 399) && !wanted_status(&w, 504));
    ck_assert(!wanted_status(&w, 0) && !wanted_status(&w, 1) && !wanted_status(&w, 70000));
    ck_assert(wanted_parse_statuses("all", &w));
    ck_assert(wanted_status(&w, 1) && wanted_status(&w, 70000));
}
END_TEST

static const char *const no_statuses[] = {"",    "20",      "2000",    "200,",    ",200",
                                          "0xx", "2XX",     "all,200", "300-200", "200-2",
                                          "099", "200 304", "-1",      "+20",     "2x0"};

START_TEST(no_status)
{
    struct wanted_statuses w;

    ck_assert_msg(!wanted_parse_statuses(no_statuses[_i], &w), "%s", no_statuses[_i]);
}
END_TEST

START_TEST(methods)
{
    ck_assert(wanted_methods_ok("GET") && wanted_methods_ok("GET,HEAD,M-SEARCH"));
    ck_assert(!wanted_methods_ok("") && !wanted_methods_ok("GET,") &&
              !wanted_methods_ok("GET PUT"));
    ck_assert(wanted_method("GET,HEAD", span_str("HEAD")));
    ck_assert(!wanted_method("GET,HEAD", span_str("HEA")));
    ck_assert(!wanted_method("GET,HEAD", span_str("get")));
    ck_assert(wanted_method("get,m-search", span_str("GET")));
    ck_assert(wanted_method("get,m-search", span_str("M-SEARCH")));
    ck_assert(wanted_method("get", span_str("get")));
    ck_assert(!wanted_method("get", span_str("Set")));
    ck_assert(wanted_method("all", span_str("FROB")));
}
END_TEST

START_TEST(numbers_keep_their_ids)
{
    enum { COUNT = 50000 };
    struct number_table t;
    uint32_t id;
    bool fresh;

    number_table_init(&t);
    for (uint64_t i = 0; i < COUNT; i++) {
        ck_assert(number_table_put(&t, i << 32U, &id, &fresh));
        ck_assert(fresh);
        ck_assert_uint_eq(id, i);
        ck_assert(number_table_put(&t, (i / 3) << 32U, &id, &fresh));
        ck_assert(!fresh);
        ck_assert_uint_eq(id, i / 3);
    }
    ck_assert(number_table_put(&t, UINT64_MAX, &id, &fresh));
    ck_assert(fresh);
    ck_assert_uint_eq(t.count, COUNT + 1);
    ck_assert_uint_eq(t.numbers[COUNT], UINT64_MAX);
    number_table_free(&t);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("wanted");
    TCase *tcase = tcase_create("wanted");

    tcase_add_test(tcase, statuses);
    tcase_add_loop_test(tcase, no_status, 0, (int)(sizeof(no_statuses) / sizeof(no_statuses[0])));
    tcase_add_test(tcase, methods);
    tcase_add_test(tcase, numbers_keep_their_ids);
    suite_add_tcase(suite, tcase);
    return suite;
}
