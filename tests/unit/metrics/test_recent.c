/* The latest misses of each worker, found by URL. */
#define UNIT_STARTS_NO_THREAD

#include "metrics/recent.h"

#include "tests/unit/unit.h"

static struct recent *recent;

static void
set_up(void)
{
    recent = recent_create(2);
    ck_assert_ptr_nonnull(recent);
}

static void
tear_down(void)
{
    recent_free(recent);
}

static void
add(unsigned worker, uint64_t url, int64_t wall_us)
{
    recent_add(recent, worker,
               &(struct recent_miss){.url = url, .wall_us = wall_us, .how = "miss"});
}

START_TEST(misses_of_a_url_come_latest_first_whoever_served_them)
{
    struct recent_miss found[4];

    ck_assert_uint_eq(recent_find(recent, 1, found, 4), 0);
    ck_assert_uint_eq(recent_find(recent, 0, found, 4), 0); /* places that are not used */
    add(0, 1, 10);
    add(1, 1, 30);
    add(0, 2, 35);
    add(0, 1, 20);
    ck_assert_uint_eq(recent_find(recent, 1, found, 4), 3);
    for (int64_t i = 0; i < 3; i++)
        ck_assert_int_eq(found[i].wall_us, 30 - 10 * i);
    ck_assert_uint_eq(recent_find(recent, 1, found, 2), 2);
    ck_assert_int_eq(found[0].wall_us, 30);
    ck_assert_int_eq(found[1].wall_us, 20);
}
END_TEST

START_TEST(a_worker_keeps_its_latest_ones)
{
    struct recent_miss found[1];

    add(0, 1, 1);
    for (int64_t i = 0; i < RECENT_MISSES; i++)
        add(1, 2, 2 + i);
    ck_assert_uint_eq(recent_find(recent, 1, found, 1), 1);
    for (int64_t i = 0; i < RECENT_MISSES; i++)
        add(0, 2, 2 + i);
    ck_assert_uint_eq(recent_find(recent, 1, found, 1), 0);
    ck_assert_uint_eq(recent_find(recent, 2, found, 1), 1);
    ck_assert_int_eq(found[0].wall_us, RECENT_MISSES + 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("metrics/recent");
    TCase *tc = tcase_create("recent");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, misses_of_a_url_come_latest_first_whoever_served_them);
    tcase_add_test(tc, a_worker_keeps_its_latest_ones);
    suite_add_tcase(suite, tc);
    return suite;
}
