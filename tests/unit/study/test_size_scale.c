#define UNIT_STARTS_NO_THREAD

#include "study/size_scale.h"

#include "tests/unit/unit.h"

START_TEST(a_scale_rises_by_as_many_per_cent)
{
    struct size_scale scale;

    ck_assert(size_scale_make(&scale, 1000, 1000000, 31));
    ck_assert_uint_eq(scale.count, 31);
    ck_assert_uint_eq(scale.sizes[0], 1000);
    ck_assert_uint_eq(scale.sizes[30], 1000000);
    for (size_t i = 1; i < scale.count; i++)
        ck_assert_double_eq_tol((double)scale.sizes[i] / (double)scale.sizes[i - 1], 1.2589, 0.002);
    size_scale_free(&scale);
    size_scale_free(&scale);
}
END_TEST

START_TEST(what_is_small_has_every_size_once)
{
    struct size_scale scale;

    ck_assert(size_scale_make(&scale, 0.007, 7, 50));
    ck_assert_uint_eq(scale.count, 7);
    for (size_t i = 0; i < scale.count; i++)
        ck_assert_uint_eq(scale.sizes[i], i + 1);
    size_scale_free(&scale);
    /* Nearly as few: some points fall together. */
    ck_assert(size_scale_make(&scale, 0.06, 60, 50));
    ck_assert_uint_lt(scale.count, 50);
    ck_assert_uint_eq(scale.sizes[0], 1);
    ck_assert_uint_eq(scale.sizes[scale.count - 1], 60);
    for (size_t i = 1; i < scale.count; i++)
        ck_assert_uint_gt(scale.sizes[i], scale.sizes[i - 1]);
    size_scale_free(&scale);
}
END_TEST

START_TEST(one_point_is_all_and_nothing_counts_as_one)
{
    struct size_scale scale;

    ck_assert(size_scale_make(&scale, 1, 700, 1));
    ck_assert_uint_eq(scale.count, 1);
    ck_assert_uint_eq(scale.sizes[0], 700);
    size_scale_free(&scale);
    ck_assert(size_scale_make(&scale, 0, 0, 50));
    ck_assert_uint_eq(scale.count, 1);
    ck_assert_uint_eq(scale.sizes[0], 1);
    size_scale_free(&scale);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("study/size_scale");
    TCase *tcase = tcase_create("size_scale");

    tcase_add_test(tcase, a_scale_rises_by_as_many_per_cent);
    tcase_add_test(tcase, what_is_small_has_every_size_once);
    tcase_add_test(tcase, one_point_is_all_and_nothing_counts_as_one);
    suite_add_tcase(suite, tcase);
    return suite;
}
