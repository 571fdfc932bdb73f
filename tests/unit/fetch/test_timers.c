/* Deadlines. */
#define UNIT_STARTS_NO_THREAD

#include "fetch/timers.h"

#include "tests/unit/unit.h"

START_TEST(deadlines_in_order)
{
    struct timers timers;
    struct timer a = {0}, b = {0}, c = {0};

    timers_init(&timers);
    ck_assert_ptr_null(timers_first(&timers));
    timers_arm(&timers, &a, 20);
    timers_arm(&timers, &b, 10);
    timers_arm(&timers, &c, 10);
    ck_assert_ptr_eq(timers_first(&timers), &b);
    timers_arm(&timers, &b, 30);
    ck_assert_ptr_eq(timers_first(&timers), &c);
    timers_disarm(&timers, &c);
    timers_disarm(&timers, &c);
    ck_assert_ptr_eq(timers_first(&timers), &a);
    timers_disarm(&timers, &a);
    ck_assert_ptr_eq(timers_first(&timers), &b);
    timers_disarm(&timers, &b);
    ck_assert_ptr_null(timers_first(&timers));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/timers");
    TCase *tc = tcase_create("timers");

    tcase_add_test(tc, deadlines_in_order);
    suite_add_tcase(suite, tc);
    return suite;
}
