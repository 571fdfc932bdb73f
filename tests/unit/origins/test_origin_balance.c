/* Balance among the members of an origin. */
#define UNIT_STARTS_NO_THREAD

#include "origins/origin_balance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define SECOND ((int64_t)1000000)

static struct origin_route route;
static struct origin_server servers[ORIGIN_ROUTE_MEMBERS];
static char urls[ORIGIN_ROUTE_MEMBERS][32];
static int64_t now_us;

/* Members with these weights; a negative one is a backup. */
static void
make(enum origin_balance balance, unsigned count, const int *weights)
{
    memset(&route, 0, sizeof(route));
    memset(servers, 0, sizeof(servers));
    now_us = 1000 * SECOND;
    route.balance = balance;
    route.count = count;
    for (unsigned i = 0; i < count; i++) {
        snprintf(urls[i], sizeof(urls[i]), "http://m%u.test", i);
        route.members[i].url = span_str(urls[i]);
        route.members[i].server = &servers[i];
        route.members[i].weight = (unsigned)(weights[i] < 0 ? -weights[i] : weights[i]);
        route.members[i].backup = weights[i] < 0;
    }
}

static struct origin_choice
choose_for(const char *url)
{
    struct origin_choice choice = {0};

    origin_route_set_key(&route, &choice, span_str(url));
    ck_assert(origin_route_next(&route, &choice, now_us));
    return choice;
}

static unsigned
next_member(void)
{
    return choose_for("http://h/").member;
}

/* How often each member is chosen in this number of requests for different URLs. */
static void
count(unsigned requests, unsigned counts[ORIGIN_ROUTE_MEMBERS])
{
    memset(counts, 0, ORIGIN_ROUTE_MEMBERS * sizeof(*counts));
    for (unsigned i = 0; i < requests; i++) {
        char url[32];

        snprintf(url, sizeof(url), "http://h/%u", i);
        counts[choose_for(url).member]++;
    }
}

static void
fail_member(unsigned member)
{
    struct origin_choice choice = {.member = member};

    origin_route_failed(&route, &choice, now_us, "");
}

START_TEST(turns_follow_the_weights)
{
    static const int equal[] = {1, 1, 0}, weights[] = {5, 1, 1};
    unsigned counts[ORIGIN_ROUTE_MEMBERS], longest = 0, run = 0;

    make(ORIGIN_BALANCE_ROUND_ROBIN, 3, equal);
    for (unsigned i = 0; i < 9; i++)
        ck_assert_uint_eq(next_member(), i % 3);
    make(ORIGIN_BALANCE_ROUND_ROBIN, 3, weights);
    count(700, counts);
    ck_assert_uint_eq(counts[0], 500);
    ck_assert_uint_eq(counts[1], 100);
    ck_assert_uint_eq(counts[2], 100);
    /* The heavy one's turns are not all in a row. */
    for (unsigned i = 0; i < 70; i++) {
        run = next_member() == 0 ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    ck_assert_uint_le(longest, 4);
}
END_TEST

START_TEST(the_least_busy_member_is_next)
{
    static const int weights[] = {1, 1, 2};

    make(ORIGIN_BALANCE_LEAST, 3, weights);
    ck_assert_uint_eq(next_member(), 2); /* half of what the others would have */
    atomic_store(&route.members[2].server->in_flight, 3);
    ck_assert_uint_ne(next_member(), 2);
    ck_assert_uint_ne(next_member(), 2);
    atomic_store(&route.members[0].server->in_flight, 2);
    ck_assert_uint_eq(next_member(), 1);
    atomic_store(&route.members[1].server->in_flight, 7);
    ck_assert_uint_eq(next_member(), 2);
}
END_TEST

START_TEST(a_url_stays_with_its_member)
{
    enum { URLS = 6000 };
    static const int weights[] = {1, 1, 1, 3};
    static unsigned before[URLS];
    unsigned counts[ORIGIN_ROUTE_MEMBERS], moved = 0;
    char url[32];

    make(ORIGIN_BALANCE_HASH, 4, weights);
    count(URLS, counts);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_le((unsigned)abs((int)counts[i] - 1000 * weights[i]), 120);
    for (unsigned i = 0; i < URLS; i++) {
        snprintf(url, sizeof(url), "http://h/%u", i);
        before[i] = choose_for(url).member;
        ck_assert_uint_eq(choose_for(url).member, before[i]);
    }
    /* Only the URLs of a member that is left go to others, and come back. */
    fail_member(1);
    for (unsigned i = 0; i < URLS; i++) {
        snprintf(url, sizeof(url), "http://h/%u", i);
        if (before[i] != 1)
            ck_assert_uint_eq(choose_for(url).member, before[i]);
        else
            moved += choose_for(url).member != 1;
    }
    ck_assert_uint_eq(moved, counts[1]);
    /* So do those of one that comes. */
    route.count = 3;
    for (unsigned i = 0; i < URLS; i++) {
        snprintf(url, sizeof(url), "http://h/%u", i);
        if (before[i] != 3 && before[i] != 1)
            ck_assert_uint_eq(choose_for(url).member, before[i]);
    }
}
END_TEST

START_TEST(a_backup_serves_where_no_other_can)
{
    static const int weights[] = {-1, 1, 1, -1};
    static const enum origin_balance balances[] = {ORIGIN_BALANCE_FIRST, ORIGIN_BALANCE_ROUND_ROBIN,
                                                   ORIGIN_BALANCE_LEAST, ORIGIN_BALANCE_HASH};
    struct origin_choice choice;
    unsigned counts[ORIGIN_ROUTE_MEMBERS];

    make(balances[_i], 4, weights);
    count(100, counts);
    ck_assert_uint_eq(counts[0] + counts[3], 0);
    ck_assert_uint_eq(counts[1] + counts[2], 100);
    /* For a request that has tried the others. */
    choice = choose_for("http://h/");
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert_uint_eq(choice.tried, 6);
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert(choice.member == 0 || choice.member == 3);
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert(!origin_route_next(&route, &choice, now_us));
    fail_member(1);
    fail_member(2);
    count(100, counts);
    ck_assert_uint_eq(counts[0] + counts[3], 100);
    /* Where all are left, one request tries the one whose time ends first, be it a backup or not. */
    now_us++;
    fail_member(0);
    for (unsigned i = 0; i < ORIGIN_ROUTE_LAST_FAILURES; i++)
        fail_member(3);
    for (unsigned i = 0; i < 2; i++)
        ck_assert_msg(origin_route_serves(&route, now_us), "it would be tried, and is not");
    ck_assert_uint_eq(next_member(), 1);
    choice = (struct origin_choice){0};
    ck_assert(!origin_route_serves(&route, now_us));
    ck_assert(!origin_route_next(&route, &choice, now_us));
    origin_route_give_back(&route, &(struct origin_choice){.member = 1, .trial = true}, now_us);
    /* One request tries each of those that are not backups. */
    now_us += ORIGIN_ROUTE_LEFT_US;
    ck_assert(origin_route_serves(&route, now_us));
    for (unsigned i = 1; i < 3; i++) {
        choice = choose_for("http://h/");
        ck_assert(choice.trial && choice.member == i);
    }
    origin_route_succeeded(&route, &choice, now_us);
    ck_assert_uint_eq(next_member(), 2);
}
END_TEST

START_TEST(a_drained_member_gets_no_requests)
{
    static const int weights[] = {1, 1, -1};
    unsigned counts[ORIGIN_ROUTE_MEMBERS];
    struct origin_choice choice;
    char text[32];

    make(ORIGIN_BALANCE_ROUND_ROBIN, 3, weights);
    atomic_store(&route.members[0].server->drained, true);
    ck_assert_str_eq(origin_route_state(&route, 0, now_us, text, sizeof(text)), "drained");
    ck_assert_str_eq(origin_route_state(&route, 1, now_us, text, sizeof(text)), "");
    count(10, counts);
    ck_assert_uint_eq(counts[1], 10);
    fail_member(1);
    ck_assert_str_eq(origin_route_state(&route, 1, now_us + 1, text, sizeof(text)),
                     "left for 10 s");
    count(10, counts);
    ck_assert_uint_eq(counts[2], 10);
    choice = choose_for("http://h/");
    ck_assert(!origin_route_next(&route, &choice, now_us));
    /* Nor where no other could get them. */
    for (unsigned i = 0; i < 3; i++)
        atomic_store(&route.members[i].server->drained, true);
    ck_assert(!origin_route_serves(&route, now_us));
    ck_assert(!origin_route_next(&route, &(struct origin_choice){0}, now_us));
    ck_assert_uint_eq(origin_route_retry_after_s(&route), 10);
    atomic_store(&route.members[2].server->drained, false);
    ck_assert(origin_route_serves(&route, now_us));
    ck_assert_uint_eq(next_member(), 2);
    atomic_store(&route.members[0].server->drained, false);
    count(10, counts);
    ck_assert_uint_eq(counts[0], 10);
}
END_TEST

START_TEST(members_have_limits)
{
    static const int weights[] = {1, 1, -1};
    static const enum origin_balance balances[] = {ORIGIN_BALANCE_FIRST, ORIGIN_BALANCE_ROUND_ROBIN,
                                                   ORIGIN_BALANCE_LEAST, ORIGIN_BALANCE_HASH};
    struct origin_choice choice = {.urgent = true};

    make(balances[_i], 3, weights);
    atomic_store(&servers[0].limit, 2);
    atomic_store(&servers[1].limit, 1);
    origin_server_enter(&servers[0]);
    ck_assert(!origin_server_is_full(&servers[0]));
    origin_server_enter(&servers[0]);
    ck_assert(origin_server_is_full(&servers[0]));
    for (unsigned i = 0; i < 4; i++)
        ck_assert_uint_eq(next_member(), 1);
    /* Where all are full, it waits for one, and a backup is for failures only. */
    origin_server_enter(&servers[1]);
    ck_assert_uint_lt(next_member(), 2);
    /* Unless it cannot wait. */
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert_uint_eq(choice.member, 2);
    atomic_store(&servers[2].limit, 1);
    origin_server_enter(&servers[2]);
    choice = (struct origin_choice){.urgent = true};
    ck_assert(!origin_route_next(&route, &choice, now_us));
    origin_server_exit(&servers[0]);
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert_uint_eq(choice.member, 0);
    /* It was not sent. */
    while (origin_budget_take(&route.budget, now_us))
        continue;
    choice = (struct origin_choice){.tried = 2, .urgent = true, .unsent = true};
    ck_assert(origin_route_next(&route, &choice, now_us));
    ck_assert_uint_eq(choice.member, 0);
}
END_TEST

START_TEST(limits_of_fetches)
{
    struct origin_server server = {.limit = 0};

    ck_assert_uint_eq(origin_server_fetch_limit(&server), 0);
    atomic_store(&server.limit, 3);
    ck_assert_uint_eq(origin_server_fetch_limit(&server), 3);
    atomic_store(&server.tunnels, 2);
    ck_assert_uint_eq(origin_server_fetch_limit(&server), 1);
    atomic_store(&server.tunnels, 4);
    ck_assert_uint_eq(origin_server_fetch_limit(&server), 1);
}
END_TEST

/* A response of a member after this time. Is the member left then? */
static bool
respond_after(const struct origin_choice *choice, int64_t took_us)
{
    origin_route_responded(&route, choice, 200, took_us, now_us);
    return atomic_load(&servers[choice->member].left_until_us) != 0;
}

/* The same for a response with this status. */
static bool
respond_with(const struct origin_choice *choice, unsigned status)
{
    origin_route_responded(&route, choice, status, SECOND, now_us);
    return atomic_load(&servers[choice->member].left_until_us) != 0;
}

START_TEST(a_slow_member_is_left)
{
    static const int weights[] = {1, 1};
    const struct origin_choice first = {.member = 0}, second = {.member = 1};
    struct origin_choice trial;
    char text[96];

    make(ORIGIN_BALANCE_ROUND_ROBIN, 2, weights);
    /* Only where the row says what is slow. */
    for (unsigned i = 0; i < 2 * ORIGIN_ROUTE_SLOW; i++)
        ck_assert(!respond_after(&first, 100 * SECOND));
    route.slow_us = SECOND;
    for (unsigned i = 1; i < ORIGIN_ROUTE_SLOW; i++)
        ck_assert(!respond_after(&first, SECOND + 1));
    /* A fast one ends the series. */
    ck_assert(!respond_after(&first, SECOND));
    for (unsigned i = 1; i < ORIGIN_ROUTE_SLOW; i++)
        ck_assert(!respond_after(&first, SECOND + 1));
    ck_assert(respond_after(&first, SECOND + 1));
    origin_reason_get(&servers[0].reason, text, sizeof(text));
    ck_assert_str_eq(text, "its responses take more than 1000 ms");
    ck_assert_uint_eq(atomic_load(&servers[0].failed), 0);
    /* The last one in use is better than none. */
    for (unsigned i = 0; i < 2 * ORIGIN_ROUTE_SLOW; i++)
        ck_assert(!respond_after(&second, SECOND + 1));
    now_us += ORIGIN_ROUTE_LEFT_US;
    trial = choose_for("http://h/");
    ck_assert(trial.trial && respond_after(&trial, 2 * SECOND));
    now_us += 2 * ORIGIN_ROUTE_LEFT_US;
    trial = choose_for("http://h/");
    ck_assert(trial.trial && !respond_after(&trial, SECOND / 2));
}
END_TEST

/* Responses to requests that were sent before the member was left. */
START_TEST(late_responses_bring_no_member_back)
{
    static const int weights[] = {1, 1};
    const struct origin_choice first = {.member = 0};
    struct origin_choice trial;

    make(ORIGIN_BALANCE_ROUND_ROBIN, 2, weights);
    route.slow_us = SECOND;
    route.errors = 3;
    for (unsigned i = 0; i < ORIGIN_ROUTE_SLOW; i++)
        respond_after(&first, SECOND + 1);
    for (unsigned i = 0; i < 3 * ORIGIN_ROUTE_SLOW; i++) {
        ck_assert(respond_after(&first, SECOND + 1));
        ck_assert(respond_with(&first, 500));
        ck_assert(respond_with(&first, 200));
    }
    ck_assert_uint_eq(atomic_load(&servers[0].failures), 1);
    now_us += ORIGIN_ROUTE_LEFT_US;
    trial = choose_for("http://h/");
    ck_assert(trial.trial && !respond_with(&trial, 200));
}
END_TEST

START_TEST(a_member_with_errors_is_left)
{
    static const int weights[] = {1, 1};
    const struct origin_choice first = {.member = 0}, second = {.member = 1};
    struct origin_choice trial;
    char text[96];

    make(ORIGIN_BALANCE_ROUND_ROBIN, 2, weights);
    for (unsigned i = 0; i < 10; i++)
        ck_assert(!respond_with(&first, 500));
    route.errors = 3;
    ck_assert(!respond_with(&first, 404));
    ck_assert(!respond_with(&first, 500) && !respond_with(&first, 500));
    ck_assert(!respond_with(&first, 499));
    ck_assert(!respond_with(&first, 500) && !respond_with(&first, 501));
    ck_assert(respond_with(&first, 500));
    origin_reason_get(&servers[0].reason, text, sizeof(text));
    ck_assert_str_eq(text, "its status is 500 time after time");
    for (unsigned i = 0; i < 10; i++)
        ck_assert(!respond_with(&second, 500));
    now_us += ORIGIN_ROUTE_LEFT_US;
    trial = choose_for("http://h/");
    ck_assert(trial.trial && respond_with(&trial, 500));
    now_us += 2 * ORIGIN_ROUTE_LEFT_US;
    trial = choose_for("http://h/");
    ck_assert(trial.trial && !respond_with(&trial, 200));
}
END_TEST

START_TEST(retries_have_a_budget)
{
    static const int weights[] = {1, 1, 1};
    struct origin_choice choice;
    unsigned retried = 0;

    make(ORIGIN_BALANCE_ROUND_ROBIN, 3, weights);
    route.budget.percent = 50;
    do {
        choice = choose_for("http://h/");
        retried += origin_route_next(&route, &choice, now_us);
    } while (!choice.refused);
    ck_assert_uint_eq(retried, 2 * ORIGIN_BUDGET_LEAST);
    ck_assert_uint_eq((unsigned)__builtin_popcount(choice.tried), 1);
    /* A trial that the budget prevents is left to the next request. */
    fail_member(choice.member == 0);
    now_us += ORIGIN_ROUTE_LEFT_US;
    choice.refused = false;
    for (unsigned i = 0; i < 1000; i++)
        (void)origin_budget_take(&route.budget, now_us);
    ck_assert(!origin_route_next(&route, &choice, now_us) && choice.refused);
    choice = choose_for("http://h/");
    ck_assert(choice.trial);
}
END_TEST

START_TEST(reasons_are_kept)
{
    static const int weights[] = {1, 1};
    struct origin_choice choice = {.member = 1};
    char text[200], sentence[200];

    make(ORIGIN_BALANCE_FIRST, 2, weights);
    origin_reason_get(&route.members[1].server->reason, text, sizeof(text));
    ck_assert_str_eq(text, "");
    memset(sentence, 'x', sizeof(sentence) - 1);
    sentence[sizeof(sentence) - 1] = '\0';
    origin_route_failed(&route, &choice, now_us, sentence);
    origin_reason_get(&route.members[1].server->reason, text, sizeof(text));
    ck_assert_uint_eq(strlen(text), sizeof(route.members[1].server->reason.text) - 1);
    ck_assert_uint_eq(atomic_load(&route.members[1].server->failed), 1);
    origin_server_enter(&servers[1]);
    origin_server_enter(&servers[1]);
    origin_server_exit(&servers[1]);
    ck_assert_uint_eq(atomic_load(&route.members[1].server->in_flight), 1);
    ck_assert_uint_eq(atomic_load(&route.members[1].server->requests), 2);
}
END_TEST

START_TEST(a_member_that_is_used_again_begins_slowly)
{
    static const int weights[] = {1, 1};
    struct origin_choice choice;
    unsigned counts[ORIGIN_ROUTE_MEMBERS], last = 0;

    make(ORIGIN_BALANCE_ROUND_ROBIN, 2, weights);
    fail_member(1);
    count(100, counts);
    ck_assert_uint_eq(counts[0], 100);
    now_us += ORIGIN_ROUTE_LEFT_US;
    choice = choose_for("http://h/");
    ck_assert(choice.trial && choice.member == 1);
    origin_route_succeeded(&route, &choice, now_us);
    for (unsigned i = 0; i < 5; i++) {
        count(1600, counts);
        ck_assert_uint_gt(counts[1], last);
        last = counts[1];
        if (i == 0)
            ck_assert_uint_le(counts[1], 1600 / 16);
        now_us += ORIGIN_ROUTE_WARM_US / 4;
    }
    ck_assert_uint_le(800 - last, 2);
    count(1600, counts);
    ck_assert_uint_eq(counts[0], 800);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("origins/origin_balance");
    TCase *tests = tcase_create("balance");

    tcase_add_test(tests, turns_follow_the_weights);
    tcase_add_test(tests, the_least_busy_member_is_next);
    tcase_add_test(tests, a_url_stays_with_its_member);
    tcase_add_loop_test(tests, a_backup_serves_where_no_other_can, 0, 4);
    tcase_add_test(tests, a_drained_member_gets_no_requests);
    tcase_add_loop_test(tests, members_have_limits, 0, 4);
    tcase_add_test(tests, limits_of_fetches);
    tcase_add_test(tests, a_slow_member_is_left);
    tcase_add_test(tests, late_responses_bring_no_member_back);
    tcase_add_test(tests, a_member_with_errors_is_left);
    tcase_add_test(tests, retries_have_a_budget);
    tcase_add_test(tests, reasons_are_kept);
    tcase_add_test(tests, a_member_that_is_used_again_begins_slowly);
    suite_add_tcase(suite, tests);
    return suite;
}
