#define UNIT_STARTS_NO_THREAD

#include "study/capacity_list.h"

#include <sysexits.h>

#include "tests/unit/unit.h"

static const struct option_row row = {.name = "capacity"};

static struct trace trace = {.url_count = 1000};
static const struct simulate_subject sized = {.trace = &trace, .sized = true, .all_bytes = 50000};
static const struct simulate_subject unsized = {.trace = &trace};

START_TEST(a_list_has_the_units_of_its_parts)
{
    struct capacity_list list = {0};

    ck_assert(capacity_list_is_of_one_unit(&list));
    ck_assert(!capacity_list_has_bytes(&list));
    ck_assert_int_eq(capacity_list_take(&row, &list, "7,10%"), EX_OK);
    ck_assert_uint_eq(list.count, 2);
    ck_assert(capacity_list_is_of_one_unit(&list));
    ck_assert(!capacity_list_has_bytes(&list));
    ck_assert_int_eq(capacity_list_take(&row, &list, "5%B"), EX_OK);
    ck_assert(capacity_list_has_bytes(&list));
    ck_assert(!capacity_list_is_of_one_unit(&list));
    capacity_list_free(&list);
    capacity_list_free(&list);
    ck_assert_int_eq(capacity_list_take(&row, &list, "0"), EX_OK);
    ck_assert(!capacity_list_is_of_one_unit(&list));
    capacity_list_free(&list);
    ck_assert_int_eq(capacity_list_take(&row, &list, "64K,7x"), EX_USAGE);
    ck_assert_int_eq(capacity_list_take(&row, &list, ""), EX_USAGE);
    capacity_list_free(&list);
}
END_TEST

START_TEST(shares_are_resolved_and_each_size_is_there_once)
{
    struct capacity_list list = {0}, of;

    ck_assert_int_eq(capacity_list_take(&row, &list, "10%,7,100,0.01%,1%B"), EX_OK);
    ck_assert(capacity_list_resolve(&list, &sized, &of));
    ck_assert_uint_eq(of.count, 4);
    ck_assert_uint_eq(of.items[0].urls, 100);
    ck_assert_uint_eq(of.items[1].urls, 7);
    ck_assert_uint_eq(of.items[2].urls, 1);
    ck_assert_uint_eq(of.items[3].bytes, 500);
    capacity_list_sort(&of);
    ck_assert_uint_eq(of.items[0].urls, 1);
    ck_assert_uint_eq(of.items[2].urls, 100);
    ck_assert_uint_eq(of.items[3].bytes, 500);
    capacity_list_free(&of);
    capacity_list_free(&list);
}
END_TEST

START_TEST(without_a_list_shares_are_of_bytes_where_sizes_are_known)
{
    const struct capacity_list none = {0};
    struct capacity_list of;

    ck_assert(capacity_list_resolve(&none, &sized, &of));
    ck_assert_uint_eq(of.count, 6);
    ck_assert_uint_eq(of.items[0].bytes, 500);
    ck_assert_uint_eq(of.items[5].bytes, 25000);
    ck_assert_uint_eq(of.items[5].urls, 0);
    capacity_list_free(&of);
    ck_assert(capacity_list_resolve(&none, &unsized, &of));
    ck_assert_uint_eq(of.count, 6);
    ck_assert_uint_eq(of.items[0].urls, 10);
    ck_assert_uint_eq(of.items[5].urls, 500);
    ck_assert_uint_eq(of.items[5].bytes, 0);
    capacity_list_free(&of);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("study/capacity_list");
    TCase *tcase = tcase_create("capacity_list");

    tcase_add_test(tcase, a_list_has_the_units_of_its_parts);
    tcase_add_test(tcase, shares_are_resolved_and_each_size_is_there_once);
    tcase_add_test(tcase, without_a_list_shares_are_of_bytes_where_sizes_are_known);
    suite_add_tcase(suite, tcase);
    return suite;
}
