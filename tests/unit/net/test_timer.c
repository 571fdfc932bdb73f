/* Timers of a worker, whose loop runs on the test's thread. */
#define UNIT_STARTS_NO_THREAD

#include "net/timer.h"

#include "tests/unit/unit.h"

static struct net_worker *worker;
static struct net_timer timer;
static unsigned runs, settled;
static int64_t again_us; /* it is set once more when it runs; 0: not */

static void
settle(void *context)
{
    ck_assert_ptr_eq(context, &worker);
    settled++;
}

static void
run(struct net_timer *of)
{
    ck_assert_ptr_eq(of, &timer);
    ck_assert_int_gt(worker->now_us, 0);
    runs++;
    if (again_us)
        ck_assert(net_timer_set(&timer, again_us));
    again_us = 0;
}

static void
set_up(void)
{
    worker = net_worker_create(0, settle, &worker);
    ck_assert_ptr_nonnull(worker);
    net_timer_init(&timer, worker, run);
    runs = settled = 0;
    again_us = 0;
}

static void
tear_down(void)
{
    net_timer_cancel(&timer);
    net_worker_destroy(worker);
}

static void
turn_until(unsigned expected)
{
    while (runs < expected)
        event_base_loop(worker->base, EVLOOP_ONCE);
}

START_TEST(it_runs_once_for_each_time_that_it_is_set)
{
    ck_assert(net_timer_set(&timer, 1000));
    again_us = 1000;
    turn_until(2);
    ck_assert_uint_eq(settled, 2);
    event_base_loop(worker->base, EVLOOP_NONBLOCK);
    ck_assert_uint_eq(runs, 2);
}
END_TEST

START_TEST(the_last_time_counts)
{
    ck_assert(net_timer_set(&timer, (int64_t)3600 * 1000000));
    ck_assert(net_timer_set(&timer, 0));
    turn_until(1);
    ck_assert_uint_eq(runs, 1);
}
END_TEST

START_TEST(a_cancelled_one_does_not_run)
{
    ck_assert(net_timer_set(&timer, 0));
    net_timer_cancel(&timer);
    net_timer_cancel(&timer);
    event_base_loop(worker->base, EVLOOP_NONBLOCK);
    ck_assert_uint_eq(runs, 0);
    ck_assert(net_timer_set(&timer, 0));
    turn_until(1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net/timer");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_runs_once_for_each_time_that_it_is_set);
    tcase_add_test(tests, the_last_time_counts);
    tcase_add_test(tests, a_cancelled_one_does_not_run);
    suite_add_tcase(suite, tests);
    return suite;
}
