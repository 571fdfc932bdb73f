/* Routes: which member a request goes to, and the URLs on both sides. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "origins/origin_route.h"
#include "tests/unit/proxy/scene.h"

#define FRESH "Cache-Control: max-age=100\r\n"

static struct origin_route route;
static struct origin_server servers[3];

static void
make(unsigned count)
{
    static const char *const urls[] = {"http://first.test", "http://second.test:81/base",
                                       "https://third.test"};

    memset(&route, 0, sizeof(route));
    memset(servers, 0, sizeof(servers));
    route.prefix = span_str("");
    route.below = true;
    route.count = count;
    for (unsigned i = 0; i < count; i++) {
        route.members[i].url = span_str(urls[i]);
        route.members[i].server = &servers[i];
    }
}

static int64_t left_us; /* of the last change */

static void
take_change(const struct origin_change *change)
{
    left_us = change->left_us;
}

/* It fails: for how long is it left? 0: nothing has changed. */
static int64_t
fail_one(const struct origin_choice *choice, int64_t now_us)
{
    left_us = 0;
    route.changed = take_change;
    origin_route_failed(&route, choice, now_us, "it fails");
    return left_us;
}

/* Is it used again? */
static bool
succeed(const struct origin_choice *choice)
{
    left_us = -1;
    route.changed = take_change;
    origin_route_succeeded(&route, choice, 1);
    return left_us == 0;
}

/* The member that the next request begins with; it fails or succeeds. */
static unsigned
try_one(int64_t now_us, bool fails)
{
    struct origin_choice choice = {0};

    ck_assert(origin_route_next(&route, &choice, now_us));
    if (fails)
        (void)fail_one(&choice, now_us);
    else
        (void)succeed(&choice);
    return choice.member;
}

/* Fails the last member in use, until it is left. */
static void
fail_last(const struct origin_choice *choice, int64_t now_us)
{
    for (unsigned i = 1; i < ORIGIN_ROUTE_LAST_FAILURES; i++)
        ck_assert_int_eq(fail_one(choice, now_us), 0);
    ck_assert_int_eq(fail_one(choice, now_us), ORIGIN_ROUTE_LEFT_US);
}

START_TEST(each_member_is_tried_once)
{
    struct origin_choice choice = {0};

    make(3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(origin_route_next(&route, &choice, 1));
        ck_assert_uint_eq(choice.member, i);
        if (i == 2)
            break;
        ck_assert_int_eq(fail_one(&choice, 1 + i), ORIGIN_ROUTE_LEFT_US);
        /* Others that fail at the same time do not count. */
        ck_assert_int_eq(fail_one(&choice, 1 + i), 0);
    }
    ck_assert(!origin_route_next(&route, &choice, 1));
    /* One failure takes no row down, and a response ends the series. */
    ck_assert_int_eq(fail_one(&choice, 3), 0);
    ck_assert_uint_eq(try_one(3, false), 2);
    fail_last(&choice, 3);
}
END_TEST

/* One request tries a member now and then, and the others get none. */
START_TEST(all_members_are_left)
{
    struct origin_choice trial = {0}, none = {0};
    int64_t now_us = ORIGIN_ROUTE_TRIAL_US;

    make(2);
    (void)fail_one(&(struct origin_choice){.member = 1}, now_us);
    fail_last(&(struct origin_choice){.member = 0}, now_us + 1);
    for (unsigned i = 0; i < 2; i++) {
        trial = none;
        ck_assert(origin_route_next(&route, &trial, now_us + 2));
        ck_assert(trial.trial && trial.member == 1 - i);
        ck_assert(!origin_route_next(&route, &none, now_us + 2));
        ck_assert(!origin_route_next(&route, &none, now_us + 1 + ORIGIN_ROUTE_TRIAL_US));
        ck_assert_uint_eq(origin_route_retry_after_s(&route), 1);
        /* What was sent before says nothing more. */
        ck_assert_int_eq(fail_one(&(struct origin_choice){.member = 0}, now_us), 0);
        ck_assert_int_eq(fail_one(&trial, now_us + 2), 2 * ORIGIN_ROUTE_LEFT_US);
        now_us += ORIGIN_ROUTE_TRIAL_US;
    }
    trial = none;
    ck_assert(origin_route_next(&route, &trial, now_us + 2));
    ck_assert_uint_eq(trial.member, 1);
    ck_assert(succeed(&trial));
    ck_assert_uint_eq(try_one(now_us + 2, false), 1);
}
END_TEST

START_TEST(the_time_doubles_up_to_a_bound)
{
    int64_t now_us = 1, bound_us = ORIGIN_ROUTE_LEFT_US;

    make(2);
    ck_assert_uint_eq(try_one(now_us, true), 0);
    for (unsigned i = 0; i < 8; i++) {
        struct origin_choice trial = {0};

        ck_assert_uint_eq(try_one(now_us + bound_us - 1, false), 1);
        now_us += bound_us;
        ck_assert(origin_route_next(&route, &trial, now_us));
        ck_assert(trial.trial && trial.member == 0);
        ck_assert_uint_eq(try_one(now_us, false), 1);
        bound_us = 2 * bound_us < ORIGIN_ROUTE_LONGEST_US ? 2 * bound_us : ORIGIN_ROUTE_LONGEST_US;
        ck_assert_int_eq(fail_one(&trial, now_us), bound_us);
    }
    /* A trial that comes to no end is followed by another one. */
    now_us += bound_us;
    ck_assert_uint_eq(try_one(now_us, false), 0);
    ck_assert_uint_eq(try_one(now_us, true), 0);
    ck_assert_uint_eq(try_one(now_us + ORIGIN_ROUTE_LEFT_US, true), 0);
    ck_assert_uint_eq(origin_route_first(&route), 1);
}
END_TEST

START_TEST(the_only_member_is_never_left)
{
    struct origin_choice choice = {0};

    make(1);
    ck_assert(origin_route_next(&route, &choice, 1));
    for (unsigned i = 0; i < 2 * ORIGIN_ROUTE_LAST_FAILURES; i++)
        ck_assert_int_eq(fail_one(&choice, 1), 0);
    ck_assert(origin_route_next(&route, &(struct origin_choice){0}, 1));
    ck_assert(!succeed(&choice));
}
END_TEST

START_TEST(references_of_members)
{
    static const struct {
        unsigned member;
        const char *reference, *url;
    } cases[] = {
        {0, "/x?y#z", "http://site.test:82/x?y"},
        {0, "http://first.test/x", "http://site.test:82/x"},
        {0, "http://second.test:81/base/x", "http://site.test:82/x"},
        {0, "https://third.test:443", "http://site.test:82/"},
        {1, "x", "http://site.test:82/a/x"},
        {1, "/base/x", "http://site.test:82/x"},
        {1, "/x", NULL},
        {1, "../../x", NULL},
        {0, "http://site.test/x", NULL},
        {0, "http://other.test/x", NULL},
    };
    struct buf out;

    make(3);
    buf_init(&out, 1000);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        bool found = origin_route_resolve(&route, cases[i].member,
                                          span_str("http://site.test:82/a/b?c"),
                                          span_str(cases[i].reference), &out);

        ck_assert_msg(found == (cases[i].url != NULL), "%s", cases[i].reference);
        ck_assert_str_eq(buf_str(&out), cases[i].url ? cases[i].url : "");
        buf_reset(&out);
    }
    buf_free(&out);
}
END_TEST

/* A member that is sent another Host knows itself by that. */
START_TEST(references_of_a_host_that_is_named)
{
    static const char *const references[] = {"https://named.test:82/base/x",
                                             "http://Named.test:82/base/x",
                                             "//named.test:82/base/x", "http://named.test:82/x"};
    struct span rest;

    make(2);
    route.host = ORIGIN_HOST_NAMED;
    route.name = span_str("named.test:82");
    for (unsigned named = 0; named < 2; named++) {
        route.host = named ? ORIGIN_HOST_NAMED : ORIGIN_HOST_CLIENT;
        for (size_t i = 0; i < sizeof(references) / sizeof(references[0]); i++)
            ck_assert_int_eq(origin_route_names_member(&route, span_str(references[i]), &rest),
                             named);
        ck_assert(!origin_route_names_member(&route, span_str("http://named.test/x"), &rest));
    }
}
END_TEST

/* A request by the route. The result of visit(). */
static bool
request(struct visit *v)
{
    *v = (struct visit){
        .http = true, .streams = true, .url = "http://site.test/x", .route = &route};
    return visit(v);
}

/* Also in the background; all go to the members. */
START_TEST(all_fetches_take_the_route)
{
    struct visit v;

    make(2);
    scene_begin(&(struct scene_options){0});
    ck_assert(!request(&v));
    ck_assert_str_eq(scene_fetch("http://first.test/x")->host, "site.test");
    scene_answer("http://first.test/x", 200,
                 "Cache-Control: max-age=10, stale-while-revalidate=100\r\nETag: \"a\"\r\n", 5);
    ck_assert(v.stored);
    ck_assert(request(&v));
    scene.now_us += 20 * SECOND;
    ck_assert(request(&v));
    scene_done(scene_fetch("http://first.test/x"), FETCH_CONNECT_FAILED, "refused");
    ck_assert_ptr_nonnull(strstr(scene_fetch("http://second.test:81/base/x")->fields, "\"a\""));
    ck_assert(!scene_is_cancelled(scene_fetch("http://second.test:81/base/x")));
    scene_answer("http://second.test:81/base/x", 304, FRESH "ETag: \"a\"\r\n", 0);
    ck_assert(request(&v));
    ck_assert_str_eq(outcome_word(v.outcome), "hit");
    scene_end();
}
END_TEST

/* What is stored is used while all members are down, within its bounds. */
START_TEST(all_members_down_leave_what_is_stored)
{
    struct visit v;

    make(2);
    scene_begin(&(struct scene_options){0});
    ck_assert(!request(&v));
    scene_answer("http://first.test/x", 200, "Cache-Control: max-age=10\r\n", 5);
    for (unsigned i = 0; i < 2; i++)
        atomic_store(&route.members[i].server->drained, true);
    ck_assert(request(&v));
    ck_assert_str_eq(outcome_word(v.outcome), "hit");
    scene.now_us += 20 * SECOND;
    ck_assert(!request(&v));
    scene_done(scene_fetch("down"), FETCH_DOWN, "down");
    scene_run();
    expect_body(&v, OUTCOME_STALE, 5);
    scene.now_us += 2 * (int64_t)86400 * SECOND; /* longer than an origin may be out of reach */
    ck_assert(!request(&v));
    scene_done(scene_fetch("down"), FETCH_DOWN, "it is down");
    scene_run();
    expect_failure(&v, FAILURE_DOWN, "it is down");
    for (unsigned i = 0; i < 2; i++)
        ck_assert_uint_eq(atomic_load(&route.members[i].server->failed), 0);
    scene_end();
}
END_TEST

/* A client that leaves while one member fails does not go on to the next one. */
START_TEST(a_request_that_is_cancelled_ends)
{
    struct visit v;

    make(2);
    scene_begin(&(struct scene_options){0});
    ck_assert(!request(&v));
    ck_assert(visit_cancel(&v));
    ck_assert(scene_is_cancelled(scene_fetch("http://first.test/x")));
    scene_done(scene_fetch("http://first.test/x"), FETCH_CANCELLED, "cancelled");
    ck_assert_uint_eq(scene_fetches(), 0);
    /* Where the failure comes first, the next fetch is cancelled as it begins. */
    ck_assert(!request(&v));
    ck_assert(visit_cancel(&v));
    scene_done(scene_fetch("http://first.test/x"), FETCH_CONNECT_FAILED, "refused");
    ck_assert(scene_is_cancelled(scene_fetch("http://second.test:81/base/x")));
    scene_done(scene_fetch("http://second.test:81/base/x"), FETCH_CANCELLED, "cancelled");
    scene_end();
}
END_TEST

/* The fetcher stops: no further member is tried. */
START_TEST(a_fetcher_that_stops_tries_no_member)
{
    static const char second[] = "http://second.test:81/base/x";
    struct visit v;

    make(2);
    scene_begin(&(struct scene_options){0});
    ck_assert(!request(&v));
    scene_done(scene_fetch("http://first.test/x"), FETCH_CONNECT_FAILED, "refused");
    scene_response(scene_fetch(second), "", false);
    scene_done(scene_fetch(second), FETCH_STOPPING, "shutting down");
    scene_run();
    expect_failure(&v, FAILURE_STOPPING, "shutting down");
    scene_end();
}
END_TEST

/* A request that is refused, or ends in the queue, leaves the trial to the next one. */
START_TEST(a_trial_that_does_not_reach_the_member_is_given_back)
{
    static const char first[] = "http://first.test/x", second[] = "http://second.test:81/base/x";
    struct visit v;

    make(2);
    scene_begin(&(struct scene_options){0});
    ck_assert(!request(&v));
    scene_done(scene_fetch(first), FETCH_CONNECT_FAILED, "refused");
    scene_answer(second, 200, "Cache-Control: no-store\r\n", 5);
    scene.now_us += ORIGIN_ROUTE_LEFT_US;
    scene.refuses = ENOBUFS;
    ck_assert(request(&v));
    scene.refuses = 0;
    ck_assert(!request(&v));
    /* Its time is over before its turn has come. */
    scene_done(scene_fetch(first), FETCH_TIMED_OUT, "timed out");
    scene_run();
    expect_failure(&v, FAILURE_TIMEOUT, "timed out");
    ck_assert(!request(&v));
    ck_assert(visit_cancel(&v));
    scene_done(scene_fetch(first), FETCH_CANCELLED, "cancelled");
    /* That one may have waited for the member. */
    ck_assert(!request(&v));
    scene_answer(second, 200, "Cache-Control: no-store\r\n", 5);
    scene_end();
}
END_TEST

START_TEST(a_trial_is_not_given_back_after_a_response)
{
    struct origin_choice trial = {0};

    make(2);
    ck_assert_uint_eq(try_one(1, true), 0);
    ck_assert(origin_route_next(&route, &trial, 1 + ORIGIN_ROUTE_LEFT_US));
    ck_assert(trial.trial);
    ck_assert(!succeed(&(struct origin_choice){.member = 0}));
    ck_assert(succeed(&trial));
    origin_route_give_back(&route, &trial, 1 + ORIGIN_ROUTE_LEFT_US);
    ck_assert_int_eq(atomic_load(&route.members[0].server->left_until_us), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: routes");
    TCase *tcase = tcase_create("all");

    tcase_add_test(tcase, each_member_is_tried_once);
    tcase_add_test(tcase, all_members_are_left);
    tcase_add_test(tcase, all_members_down_leave_what_is_stored);
    tcase_add_test(tcase, the_time_doubles_up_to_a_bound);
    tcase_add_test(tcase, the_only_member_is_never_left);
    tcase_add_test(tcase, references_of_members);
    tcase_add_test(tcase, references_of_a_host_that_is_named);
    tcase_add_test(tcase, all_fetches_take_the_route);
    tcase_add_test(tcase, a_request_that_is_cancelled_ends);
    tcase_add_test(tcase, a_fetcher_that_stops_tries_no_member);
    tcase_add_test(tcase, a_trial_that_does_not_reach_the_member_is_given_back);
    tcase_add_test(tcase, a_trial_is_not_given_back_after_a_response);
    suite_add_tcase(suite, tcase);
    return suite;
}
