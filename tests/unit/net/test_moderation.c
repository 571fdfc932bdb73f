/* When a worker asks not to be woken for every call, and how its thread is scheduled then. */
#define UNIT_STARTS_NO_THREAD

#include "net/moderation.h"

#include <sched.h>

#include "tests/unit/unit.h"

/* `turns` turns of the loop with `reads` reads each, `us` apart; what the last one answered. */
static bool
go_on(struct net_moderation *m, int64_t *now_us, uint64_t *total, unsigned turns, unsigned reads,
      int64_t us)
{
    bool on = m->on;

    for (unsigned i = 0; i < turns; i++) {
        *now_us += us;
        *total += reads;
        on = net_moderation_turn(m, *now_us, *total);
    }
    return on;
}

START_TEST(many_busy_clients_turn_it_on_and_fewer_off)
{
    struct net_moderation m;
    int64_t now_us = 5000;
    uint64_t total = 0;

    net_moderation_begin(&m, now_us);
    /* 50,000 reads a second, five a turn: on, but not before 10 ms have been seen. */
    ck_assert(!go_on(&m, &now_us, &total, 99, 5, 100));
    ck_assert(go_on(&m, &now_us, &total, 1, 5, 100));
    /* 6,000 a second, two a turn: not enough to begin, enough to stay. */
    ck_assert(go_on(&m, &now_us, &total, 40, 2, 333));
    /* A second without a call, and what comes then. */
    ck_assert(!go_on(&m, &now_us, &total, 1, 100, 1000000));
    ck_assert(!go_on(&m, &now_us, &total, 40, 2, 333));
}
END_TEST

START_TEST(one_busy_client_is_no_reason)
{
    struct net_moderation m;
    int64_t now_us = 0;
    uint64_t total = 0;

    net_moderation_begin(&m, now_us);
    /* 20,000 reads a second, each on a turn of its own. */
    ck_assert(!go_on(&m, &now_us, &total, 1000, 1, 50));
}
END_TEST

START_TEST(many_idle_clients_are_no_reason)
{
    struct net_moderation m;
    int64_t now_us = 0;
    uint64_t total = 0;

    net_moderation_begin(&m, now_us);
    /* Ten at a time, 9,000 a second. */
    ck_assert(!go_on(&m, &now_us, &total, 1000, 9, 1000));
}
END_TEST

static void
schedule_as(int policy)
{
    ck_assert_int_eq(sched_setscheduler(0, policy, &(struct sched_param){.sched_priority = 0}), 0);
}

/* Says whether wake-ups are moderated, and has the thread scheduled so. */
static int
apply(struct net_moderation *m, bool on)
{
    m->on = on;
    net_moderation_apply(m);
    return sched_getscheduler(0);
}

START_TEST(the_thread_is_scheduled_so)
{
    struct net_moderation m = {0};

    schedule_as(SCHED_OTHER);
    ck_assert_int_eq(apply(&m, true), SCHED_BATCH);
    ck_assert_int_eq(apply(&m, true), SCHED_BATCH);
    ck_assert_int_eq(apply(&m, false), SCHED_OTHER);
    ck_assert_int_eq(apply(&m, true), SCHED_BATCH);
    ck_assert_int_eq(apply(&m, false), SCHED_OTHER);
}
END_TEST

START_TEST(the_policy_that_was_set_from_outside_stays)
{
    static const int chosen[] = {SCHED_IDLE, SCHED_BATCH};

    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        struct net_moderation m = {0};

        schedule_as(chosen[i]);
        ck_assert_int_eq(apply(&m, true), chosen[i]);
        ck_assert_int_eq(apply(&m, false), chosen[i]);
        schedule_as(SCHED_OTHER);
    }
}
END_TEST

START_TEST(the_policy_that_is_set_from_outside_meanwhile_stays)
{
    struct net_moderation m = {0};

    schedule_as(SCHED_OTHER);
    ck_assert_int_eq(apply(&m, true), SCHED_BATCH);
    schedule_as(SCHED_IDLE);
    ck_assert_int_eq(apply(&m, false), SCHED_IDLE);
    schedule_as(SCHED_OTHER);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("moderation");
    TCase *tests = tcase_create("moderation");

    tcase_add_test(tests, many_busy_clients_turn_it_on_and_fewer_off);
    tcase_add_test(tests, one_busy_client_is_no_reason);
    tcase_add_test(tests, many_idle_clients_are_no_reason);
    tcase_add_test(tests, the_thread_is_scheduled_so);
    tcase_add_test(tests, the_policy_that_was_set_from_outside_stays);
    tcase_add_test(tests, the_policy_that_is_set_from_outside_meanwhile_stays);
    suite_add_tcase(suite, tests);
    return suite;
}
