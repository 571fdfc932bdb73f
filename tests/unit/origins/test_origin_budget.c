/* The budget of retries. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_budget.h"

#include "tests/unit/unit.h"

static struct origin_budget budget;
static int64_t now_us;

static void
set_up(void)
{
    budget = (struct origin_budget){.percent = 20};
    now_us = 1000 * ORIGIN_BUDGET_SLOT_US;
}

static void
add(unsigned requests)
{
    while (requests--)
        origin_budget_add(&budget, now_us);
}

/* How many retries there may be now. */
static unsigned
take_all(void)
{
    unsigned taken = 0;

    while (origin_budget_take(&budget, now_us))
        taken++;
    return taken;
}

START_TEST(a_share_and_a_few)
{
    ck_assert_uint_eq(take_all(), ORIGIN_BUDGET_LEAST);
    add(1000);
    ck_assert_uint_eq(take_all(), 200);
    add(10);
    ck_assert_uint_eq(take_all(), 2);
}
END_TEST

START_TEST(counts_end)
{
    add(1000);
    ck_assert_uint_eq(take_all(), 200 + ORIGIN_BUDGET_LEAST);
    /* The last slot still counts, with its requests and its retries. */
    now_us += ORIGIN_BUDGET_SLOT_US;
    ck_assert_uint_eq(take_all(), 0);
    add(50);
    ck_assert_uint_eq(take_all(), 10);
    now_us += ORIGIN_BUDGET_SLOT_US;
    ck_assert_uint_eq(take_all(), ORIGIN_BUDGET_LEAST);
    now_us += 2 * ORIGIN_BUDGET_SLOT_US;
    ck_assert_uint_eq(take_all(), ORIGIN_BUDGET_LEAST);
}
END_TEST

START_TEST(without_a_share)
{
    budget.percent = 0;
    add(1000);
    ck_assert_uint_eq(take_all(), ORIGIN_BUDGET_LEAST);
}
END_TEST

START_TEST(counts_are_inherited)
{
    struct origin_budget next = {.percent = 10};

    add(1000);
    ck_assert_uint_eq(take_all(), 200 + ORIGIN_BUDGET_LEAST);
    origin_budget_inherit(&next, &budget);
    budget = next;
    ck_assert_uint_eq(take_all(), 0);
    add(2000);
    ck_assert_uint_eq(take_all(), 100);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origins/origin_budget");
    TCase *tests = tcase_create("budget");

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_share_and_a_few);
    tcase_add_test(tests, counts_end);
    tcase_add_test(tests, without_a_share);
    tcase_add_test(tests, counts_are_inherited);
    suite_add_tcase(suite, tests);
    return suite;
}
