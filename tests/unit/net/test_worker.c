/* Tasks that are posted to a worker, whose loop runs on the test's thread but for one test. */
#include "net/worker.h"

#include <event2/event.h>

#include "tests/unit/unit.h"

#define TASKS 100u

static struct net_worker *worker;
static unsigned runs, settled;

struct posted {
    struct net_task task;
    unsigned number;
};

static struct posted posted[TASKS];

static void
settle(void *context)
{
    ck_assert_ptr_eq(context, &worker);
    settled++;
}

static void
run(struct net_task *task)
{
    ck_assert_uint_eq(((struct posted *)task)->number, runs);
    runs++;
}

static void
set_up(void)
{
    worker = net_worker_create(0, settle, &worker);
    ck_assert_ptr_nonnull(worker);
    runs = settled = 0;
}

static void
tear_down(void)
{
    net_worker_destroy(worker);
}

static void
post(unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        posted[i] = (struct posted){.task.run = run, .number = i};
        net_worker_post(worker, &posted[i].task);
    }
}

static void
turn(void)
{
    event_base_loop(worker->base, EVLOOP_NONBLOCK);
}

START_TEST(tasks_run_in_the_order_of_posting)
{
    post(0, 3);
    ck_assert_uint_eq(runs, 0);
    turn();
    ck_assert_uint_eq(runs, 3);
    turn();
    ck_assert_uint_eq(settled, 1);
}
END_TEST

START_TEST(wakes_that_are_held_come_at_once)
{
    net_worker_hold_wakes();
    post(0, 3);
    turn();
    ck_assert_uint_eq(runs, 0);
    net_worker_wake_held();
    turn();
    ck_assert_uint_eq(runs, 3);
    ck_assert_uint_eq(settled, 1);
    /* As before, from now on. */
    post(3, 4);
    turn();
    ck_assert_uint_eq(runs, 4);
}
END_TEST

/* It runs its tasks between the posts, for another cause, and needs a wake for each. */
START_TEST(no_wake_is_lost_however_many_are_held)
{
    net_worker_hold_wakes();
    for (unsigned i = 0; i < TASKS - 1; i++) {
        post(i, i + 1);
        net_worker_run_tasks(worker);
        ck_assert_uint_eq(runs, i + 1);
    }
    post(TASKS - 1, TASKS);
    net_worker_wake_held();
    turn();
    ck_assert_uint_eq(runs, TASKS);
}
END_TEST

static void
halt(void *context)
{
    net_worker_halt(context);
}

/* As by a task that is run there, outside of the loop. */
START_TEST(a_halt_after_a_turn_of_the_loop_ends_it)
{
    net_worker_set_turned(worker, halt, worker);
    ck_assert_int_eq(net_worker_start(worker), 0);
    post(0, 1);
    net_worker_join(worker);
    ck_assert_uint_eq(runs, 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("net/worker");
    TCase *cases = tcase_create("worker");

    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, tasks_run_in_the_order_of_posting);
    tcase_add_test(cases, wakes_that_are_held_come_at_once);
    tcase_add_test(cases, no_wake_is_lost_however_many_are_held);
    tcase_add_test(cases, a_halt_after_a_turn_of_the_loop_ends_it);
    suite_add_tcase(suite, cases);
    return suite;
}
