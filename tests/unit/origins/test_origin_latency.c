/* Percentiles of the latency of a server. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_latency.h"

#include <string.h>

#include "tests/unit/unit.h"

static struct origin_latency latency;
static int64_t now_us;

static void
set_up(void)
{
    memset(&latency, 0, sizeof(latency));
    now_us = 1000 * ORIGIN_LATENCY_SLOT_US;
}

/* Is the percentile this time, or at most an eighth above it? */
static bool
is_about(double share, int64_t us)
{
    const int64_t found = (int64_t)origin_latency_percentile(&latency, share, now_us);

    return found >= us && found <= us + us / 8 + 1;
}

START_TEST(shares)
{
    ck_assert_uint_eq(origin_latency_percentile(&latency, 0.5, now_us), 0);
    for (int64_t i = 1; i <= 1000; i++)
        origin_latency_add(&latency, 1000 * i, now_us);
    ck_assert(is_about(0, 1000) && is_about(0.5, 501000) && is_about(0.9, 901000));
    ck_assert(is_about(0.99, 991000) && is_about(1, 1000000));
}
END_TEST

START_TEST(all_sizes)
{
    for (int64_t us = 16; us < (int64_t)500 * 1000000; us = us * 5 / 4 + 1) {
        set_up();
        origin_latency_add(&latency, us, now_us);
        ck_assert_msg(is_about(0.5, us), "%lld", (long long)us);
    }
    set_up();
    origin_latency_add(&latency, -5, now_us);
    ck_assert(is_about(1, 16));
    origin_latency_add(&latency, INT64_MAX, now_us);
    ck_assert_uint_gt(origin_latency_percentile(&latency, 1, now_us), 400000000);
}
END_TEST

START_TEST(only_the_last_minutes_count)
{
    origin_latency_add(&latency, 1000, now_us);
    now_us += ORIGIN_LATENCY_SLOT_US;
    ck_assert(is_about(1, 1000));
    origin_latency_add(&latency, 5000, now_us);
    ck_assert(is_about(0, 1000) && is_about(1, 5000));
    now_us += ORIGIN_LATENCY_SLOT_US;
    ck_assert(is_about(0, 5000));
    now_us += ORIGIN_LATENCY_SLOT_US;
    ck_assert_uint_eq(origin_latency_percentile(&latency, 1, now_us), 0);
    origin_latency_add(&latency, 7000, now_us);
    ck_assert(is_about(0, 7000));
    now_us += ORIGIN_LATENCY_SLOT_US;
    origin_latency_add(&latency, 9000, now_us);
    ck_assert(is_about(0, 7000) && is_about(1, 9000));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origins/origin_latency");
    TCase *tests = tcase_create("latency");

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, shares);
    tcase_add_test(tests, all_sizes);
    tcase_add_test(tests, only_the_last_minutes_count);
    suite_add_tcase(suite, tests);
    return suite;
}
