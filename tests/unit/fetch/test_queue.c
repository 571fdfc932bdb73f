/* Turns and deadlines. */
#include "fetch/queue.h"
#include "fetch/timers.h"
#include "tests/unit/unit.h"

START_TEST(bounds_in_all_and_per_origin)
{
    struct queue *queue = queue_create(3, 2);
    struct queue_entry a[3] = {0}, b[2] = {0};

    for (unsigned i = 0; i < 3; i++)
        ck_assert(queue_enter(queue, &a[i], "http://a:80"));
    ck_assert_ptr_eq(queue_next(queue), &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[1]);
    ck_assert_ptr_null(queue_next(queue));
    /* The full origin holds up nobody else. */
    ck_assert(queue_enter(queue, &b[0], "http://b:80"));
    ck_assert(queue_enter(queue, &b[1], "http://b:80"));
    ck_assert(queue_could_start(queue));
    ck_assert_ptr_eq(queue_next(queue), &b[0]);
    ck_assert_ptr_null(queue_next(queue));
    ck_assert(!queue_could_start(queue));
    ck_assert_uint_eq(queue_active(queue), 3);
    ck_assert_uint_eq(queue_waiting(queue), 2);
    /* Total bound: one leaves, one follows. */
    queue_leave(queue, &a[0]);
    ck_assert_ptr_eq(queue_next(queue), &b[1]);
    ck_assert_ptr_null(queue_next(queue));
    queue_leave(queue, &b[0]);
    ck_assert_ptr_eq(queue_next(queue), &a[2]);
    queue_leave(queue, &a[1]);
    queue_leave(queue, &a[2]);
    queue_leave(queue, &b[1]);
    queue_leave(queue, &b[1]);
    ck_assert_uint_eq(queue_active(queue), 0);
    ck_assert_uint_eq(queue_waiting(queue), 0);
    queue_destroy(queue);
}
END_TEST

START_TEST(origins_take_turns)
{
    struct queue *queue = queue_create(1, 1);
    struct queue_entry a[4] = {0}, b = {0}, *next;

    for (unsigned i = 0; i < 4; i++)
        queue_enter(queue, &a[i], "a");
    queue_enter(queue, &b, "b");
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[0]);
    queue_leave(queue, next);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &b);
    queue_leave(queue, next);
    /* Who waits no longer is passed over. */
    queue_leave(queue, &a[1]);
    next = queue_next(queue);
    ck_assert_ptr_eq(next, &a[2]);
    queue_leave(queue, &a[3]);
    queue_leave(queue, next);
    ck_assert_ptr_null(queue_next(queue));
    queue_destroy(queue);
    queue_destroy(NULL);
}
END_TEST

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
    Suite *suite = suite_create("fetch/queue");
    TCase *tc = tcase_create("queue");

    tcase_add_test(tc, bounds_in_all_and_per_origin);
    tcase_add_test(tc, origins_take_turns);
    tcase_add_test(tc, deadlines_in_order);
    suite_add_tcase(suite, tc);
    return suite;
}
