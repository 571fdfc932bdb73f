/* Probes of the members of an origin. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_probe.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

static struct origin_route route;
static struct origin_server servers[2];
static int64_t now_us, left_us;
static unsigned changes;
static char reason[64];

static void
take_change(const struct origin_change *change)
{
    changes++;
    left_us = change->left_us;
    snprintf(reason, sizeof(reason), "%s", change->reason);
}

static void
set_up(void)
{
    memset(&route, 0, sizeof(route));
    memset(servers, 0, sizeof(servers));
    route.count = 2;
    route.members[0].url = span_str("http://a.test");
    route.members[1].url = span_str("http://b.test");
    for (unsigned i = 0; i < 2; i++)
        route.members[i].server = &servers[i];
    route.changed = take_change;
    route.probes = (struct origin_probes){.path = {.ptr = "/h", .len = 2},
                                          .interval_us = ORIGIN_PROBE_INTERVAL_US,
                                          .fall = 3,
                                          .rise = 2};
    now_us = 1000 * SECOND;
    changes = 0;
    left_us = -1;
}

/* A probe of the first member, when it is due, which passes or fails for a reason. */
static void
probe(const char *why)
{
    int64_t due_us;

    ck_assert(origin_probe_begin(&route, 0, now_us));
    ck_assert(!origin_probe_begin(&route, 0, now_us + 1000 * SECOND));
    now_us += SECOND;
    origin_probe_end(&route, 0, now_us, why ? ORIGIN_PROBE_FAILED : ORIGIN_PROBE_PASSED, why);
    due_us = atomic_load(&servers[0].probe_due_us);
    ck_assert(due_us > now_us && !origin_probe_begin(&route, 0, due_us - 1));
    now_us = due_us;
}

static struct origin_choice
choose(void)
{
    struct origin_choice choice = {0};

    ck_assert(origin_route_next(&route, &choice, now_us));
    return choice;
}

START_TEST(several_failures_and_successes_count)
{
    for (unsigned again = 0; again < 2; again++) {
        probe(NULL);
        changes = 0;
        probe("x");
        probe("x");
        ck_assert_uint_eq(changes, 0);
        probe(NULL);
        probe("x");
        probe("x");
        ck_assert_uint_eq(choose().member, 0);
        probe("the status is 500");
        ck_assert_uint_eq(changes, 1);
        ck_assert(left_us == ORIGIN_SERVER_DOWN);
        ck_assert_str_eq(reason, "the status is 500");
        ck_assert_uint_eq(choose().member, 1);
        probe("x");
        probe(NULL);
        probe("x");
        probe(NULL);
        ck_assert_uint_eq(changes, 1);
        ck_assert_uint_eq(choose().member, 1);
        probe(NULL);
        ck_assert_uint_eq(changes, 2);
        ck_assert_int_eq(left_us, 0);
        ck_assert_uint_eq(choose().member, 0);
    }
    for (unsigned i = 0; i < 5; i++)
        probe(NULL);
    ck_assert_uint_eq(changes, 2);
}
END_TEST

START_TEST(requests_and_probes_agree)
{
    struct origin_choice choice;

    for (unsigned i = 0; i < 3; i++)
        probe("x");
    /* Time alone does not bring it back, nor does a request that found no other. */
    now_us += 100 * ORIGIN_ROUTE_LONGEST_US;
    choice = choose();
    ck_assert_uint_eq(choice.member, 1);
    for (unsigned i = 0; i < ORIGIN_ROUTE_LAST_FAILURES; i++)
        origin_route_failed(&route, &choice, now_us, "refused");
    choice = choose();
    ck_assert_uint_eq(choice.member, 1); /* a trial: it is left, and no probe decides */
    ck_assert(!origin_route_next(&route, &(struct origin_choice){0}, now_us));
    /* Nor does the response to a request that was sent before. */
    origin_route_succeeded(&route, &(struct origin_choice){.member = 0}, now_us);
    ck_assert(atomic_load(&route.members[0].server->left_until_us) == ORIGIN_SERVER_DOWN);
    /* One that passes its probes and fails requests is left for its time. */
    probe(NULL);
    probe(NULL);
    origin_route_succeeded(&route, &choice, now_us);
    choice = choose();
    ck_assert_uint_eq(choice.member, 0);
    origin_route_failed(&route, &choice, now_us, "it hangs");
    probe(NULL);
    ck_assert_int_ne(atomic_load(&route.members[0].server->left_until_us), 0);
}
END_TEST

START_TEST(a_probe_that_does_not_reach_the_member_says_nothing)
{
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(origin_probe_begin(&route, 0, now_us));
        origin_probe_end(&route, 0, now_us, ORIGIN_PROBE_UNKNOWN, "");
        now_us += ORIGIN_PROBE_INTERVAL_US;
        ck_assert_uint_eq(choose().member, 0);
    }
    for (unsigned i = 0; i < 3; i++)
        probe("x");
    for (unsigned i = 0; i < 10; i++) {
        ck_assert(origin_probe_begin(&route, 0, now_us));
        origin_probe_end(&route, 0, now_us, ORIGIN_PROBE_UNKNOWN, "");
        now_us += ORIGIN_PROBE_INTERVAL_US;
        ck_assert_uint_eq(choose().member, 1);
    }
}
END_TEST

START_TEST(a_trial_that_fails_does_not_end_what_probes_say)
{
    struct origin_choice trial, choice = {.member = 0};

    origin_route_failed(&route, &choice, now_us, "refused");
    now_us += ORIGIN_ROUTE_LEFT_US;
    trial = choose();
    ck_assert(trial.trial && trial.member == 0);
    for (unsigned i = 0; i < 3; i++)
        probe("x");
    origin_route_failed(&route, &trial, now_us, "refused");
    ck_assert(atomic_load(&route.members[0].server->left_until_us) == ORIGIN_SERVER_DOWN);
}
END_TEST

/* How long after the beginning of a probe the next one is due. */
static int64_t
probe_takes(const char *why)
{
    const int64_t begun_us = now_us;

    probe(why);
    return now_us - begun_us;
}

START_TEST(probes_that_contradict_the_state_are_sent_sooner)
{
    const int64_t interval_us = ORIGIN_PROBE_INTERVAL_US;
    const int64_t sooner_us = interval_us / ORIGIN_PROBE_HASTE;

    ck_assert_int_eq(probe_takes(NULL), interval_us);
    ck_assert_int_eq(probe_takes("x"), sooner_us);
    ck_assert_int_eq(probe_takes("x"), sooner_us);
    ck_assert_int_eq(probe_takes(NULL), interval_us);
    ck_assert_int_eq(probe_takes("x"), sooner_us);
    ck_assert_int_eq(probe_takes("x"), sooner_us);
    ck_assert_int_eq(probe_takes("x"), interval_us);
    ck_assert_int_eq(probe_takes("x"), interval_us);
    ck_assert_int_eq(probe_takes(NULL), sooner_us);
    ck_assert_int_eq(probe_takes(NULL), interval_us);
    /* One that took longer is followed by the next at once. */
    ck_assert(origin_probe_begin(&route, 0, now_us));
    now_us += 2 * interval_us;
    origin_probe_end(&route, 0, now_us, ORIGIN_PROBE_PASSED, "");
    ck_assert(origin_probe_begin(&route, 0, now_us));
}
END_TEST

/* It is not in use until it serves. */
START_TEST(the_first_probe_decides)
{
    probe("refused");
    ck_assert(changes == 1 && left_us == ORIGIN_SERVER_DOWN);
    ck_assert_uint_eq(choose().member, 1);
    probe(NULL);
    ck_assert_uint_eq(choose().member, 1);
    probe(NULL);
    ck_assert_uint_eq(choose().member, 0);
}
END_TEST

START_TEST(names_are_looked_up)
{
    static const struct {
        const char *authority;
        bool has_name;
    } rows[] = {
        {"http://a.test", true},       {"http://1.2.3.a", true},  {"https://[::1]:81", false},
        {"http://127.0.0.1", false},   {"http://10.0.0.1:81", false}, {"http://a:81", true},
        {"", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        servers[0] = (struct origin_server){.authority = span_str(rows[i].authority)};
        ck_assert_msg(origin_probe_look_up(&route, 0) == rows[i].has_name, "%s",
                      rows[i].authority);
        ck_assert(!origin_probe_look_up(&route, 0));
    }
    origin_probe_unresolved(&route, 0, now_us, "unknown");
    ck_assert(changes == 1 && left_us == ORIGIN_ROUTE_LEFT_US);
    ck_assert_str_eq(reason, "unknown");
    ck_assert_uint_eq(choose().member, 1);
    origin_probe_unresolved(&route, 0, now_us, "unknown");
    ck_assert_uint_eq(changes, 1);
    now_us += ORIGIN_ROUTE_LEFT_US;
    ck_assert(choose().trial);
}
END_TEST

START_TEST(statuses_that_pass)
{
    ck_assert(origin_probe_accepts(&route, 200) && origin_probe_accepts(&route, 204));
    ck_assert(!origin_probe_accepts(&route, 302) && !origin_probe_accepts(&route, 0));
    route.probes.status = 401;
    ck_assert(origin_probe_accepts(&route, 401) && !origin_probe_accepts(&route, 200));
    route.probes.path.len = 0;
    ck_assert(!origin_probe_begin(&route, 0, now_us));
}
END_TEST

START_TEST(the_only_member_is_down_by_its_probes)
{
    route.count = 1;
    for (unsigned i = 0; i < 2 * ORIGIN_ROUTE_LAST_FAILURES; i++)
        origin_route_failed(&route, &(struct origin_choice){.member = 0}, now_us, "refused");
    ck_assert_uint_eq(choose().member, 0);
    ck_assert_uint_eq(origin_route_retry_after_s(&route), 1);
    for (unsigned i = 0; i < 3; i++)
        probe("x");
    ck_assert(!origin_route_next(&route, &(struct origin_choice){0}, now_us));
    ck_assert_uint_eq(origin_route_retry_after_s(&route), 5);
    probe(NULL);
    probe(NULL);
    ck_assert_uint_eq(choose().member, 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origins/origin_probe");
    TCase *tests = tcase_create("probes");

    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, several_failures_and_successes_count);
    tcase_add_test(tests, requests_and_probes_agree);
    tcase_add_test(tests, a_probe_that_does_not_reach_the_member_says_nothing);
    tcase_add_test(tests, a_trial_that_fails_does_not_end_what_probes_say);
    tcase_add_test(tests, the_only_member_is_down_by_its_probes);
    tcase_add_test(tests, probes_that_contradict_the_state_are_sent_sooner);
    tcase_add_test(tests, the_first_probe_decides);
    tcase_add_test(tests, names_are_looked_up);
    tcase_add_test(tests, statuses_that_pass);
    suite_add_tcase(suite, tests);
    return suite;
}
