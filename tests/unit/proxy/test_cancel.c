/* Exchanges that are cancelled, and those that stream: the order of the front's calls. */

#define UNIT_STARTS_NO_THREAD

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"

static const struct scene_options defaults;

/* ---- streams --------------------------------------------------------------------------------- */

START_TEST(a_stream_gets_the_body_as_it_arrives_and_wakes_are_merged)
{
    struct visit early = {.streams = true}, late = {.streams = true};
    struct visit end = {.url = URL, .streams = true}, whole = {0};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_body = 10 * MIB});
    visit_url(&early, URL, 1);
    visit_url(&whole, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_run();
    ck_assert_uint_eq(early.wakes, 0);
    scene_head(fetch, 200, "A: b\r\n", -1);
    for (unsigned i = 0; i < 10; i++)
        scene_body(fetch, 1000);
    ck_assert_uint_eq(early.wakes, 1);
    scene_run();
    ck_assert_uint_eq(early.heads, 1);
    ck_assert_uint_eq(early.mores, 0);
    ck_assert_uint_eq(early.got, 10000);
    for (unsigned i = 0; i < 10; i++)
        scene_body(fetch, 100000);
    visit_url(&late, URL, 3);
    ck_assert_uint_eq(late.wakes, 1);
    scene_run();
    ck_assert_uint_eq(early.mores, 1);
    ck_assert_uint_eq(early.got, 1010000);
    ck_assert_uint_eq(late.got, 1010000);
    ck_assert(!early.ended && !late.ended);
    scene_body(fetch, 1);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&early, OUTCOME_MISS, 1010001);
    expect_body(&late, OUTCOME_COALESCED, 1010001);
    expect_body(&whole, OUTCOME_COALESCED, 1010001);
    ck_assert_uint_eq(early.mores, 2);
    ck_assert_uint_eq(late.mores, 1);
    ck_assert_uint_eq(whole.wakes, 1);
    /* And a hit is one call. */
    ck_assert(visit(&end));
    expect_body(&end, OUTCOME_HIT, 1010001);
    ck_assert_uint_eq(end.mores, 0);
    scene_end();
}
END_TEST

START_TEST(a_stream_whose_object_is_complete_before_it_runs_has_one_call)
{
    struct visit v = {.streams = true};

    scene_begin(&defaults);
    visit_url(&v, URL, 1);
    scene_respond(URL, "", 5000);
    expect_body(&v, OUTCOME_MISS, 5000);
    ck_assert_uint_eq(v.wakes, 1);
    ck_assert_uint_eq(v.mores, 0);
    scene_end();
}
END_TEST

/* ---- cancellation ---------------------------------------------------------------------------- */

/* Where in the life of the object it is cancelled. */
enum moment { BEFORE_HOP, AFTER_HOP, AFTER_HEAD, IN_BODY, AFTER_END, AFTER_FAILURE, MOMENTS };

static void
advance(struct scene_fetch *fetch, enum moment moment)
{
    switch (moment) {
    case AFTER_HOP:
        scene_response(fetch, "", false);
        break;
    case AFTER_HEAD:
        scene_head(fetch, 200, "", -1);
        break;
    case IN_BODY:
        scene_body(fetch, 10);
        break;
    case AFTER_END:
        scene_done(fetch, FETCH_OK, "");
        break;
    case AFTER_FAILURE:
        scene_done(fetch, FETCH_ORIGIN_BROKE, "broken");
        break;
    case BEFORE_HOP:
    case MOMENTS:
        break;
    }
}

/*
 * `_i` is the moment, whether the leader or one that has joined is cancelled, whether it streams,
 * and whether the wakes of the moment have been run before.
 */
START_TEST(a_cancelled_exchange_gets_no_more_calls_and_the_others_do)
{
    enum moment moment = (enum moment)(_i / 8);
    bool leader = _i & 1, streams = _i & 2, runs = _i & 4;
    struct visit v[2] = {{.streams = streams}, {.streams = streams}};
    struct visit *cancelled = &v[leader ? 0 : 1], *other = &v[leader ? 1 : 0];
    struct scene_fetch *fetch;
    unsigned heads;

    scene_begin(&defaults);
    visit_url(&v[0], URL, 1);
    visit_url(&v[1], URL, 2);
    fetch = scene_fetch(URL);
    for (unsigned m = 0; m <= moment; m++) {
        if (moment == AFTER_FAILURE && m == AFTER_END)
            continue;
        advance(fetch, (enum moment)m);
        if (runs && m < (unsigned)moment)
            scene_run();
    }
    if (runs && moment < AFTER_END)
        scene_run();
    heads = cancelled->heads;
    if (!cancelled->ended) {
        if (visit_cancel(cancelled)) {
            ck_assert_uint_eq(cancelled->fails, 0);
        } else {
            scene_run();
            expect_failure(cancelled, FAILURE_CANCELLED, "cancelled");
        }
        ck_assert_uint_eq(cancelled->heads, heads);
    }
    if (moment < AFTER_END) {
        for (unsigned m = moment + 1; m <= AFTER_END; m++) {
            advance(fetch, (enum moment)m);
            scene_run();
        }
    }
    scene_run();
    if (moment == AFTER_FAILURE) {
        expect_failure(other, FAILURE_ORIGIN, "broken");
    } else {
        expect_body(other, leader ? OUTCOME_COALESCED : OUTCOME_MISS, 10);
        /* The fetch went on, and was stored. */
        ck_assert(scene_has(URL));
    }
    ck_assert_uint_eq(cancelled->heads, heads);
    scene_end();
}
END_TEST

START_TEST(the_fetch_of_a_cancelled_request_goes_on_for_the_cache)
{
    struct visit v = {0};

    scene_begin(&defaults);
    visit_url(&v, URL, 1);
    ck_assert(visit_cancel(&v));
    ck_assert(!scene_fetch(URL)->cancelled);
    scene_respond(URL, "", 5);
    ck_assert(scene_has(URL));
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 0);
    scene_end();
}
END_TEST

/* `_i`: before the head, behind it, and in the body. Nothing would be stored. */
START_TEST(without_a_cache_no_fetch_outlasts_its_requests)
{
    struct visit first = {.streams = true}, second = {.streams = true};
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.policy = "none"});
    visit_http(&first, URL, "");
    visit_http(&second, URL, "");
    fetch = scene_fetch(URL);
    if (_i > 0) {
        scene_response(fetch, "Cache-Control: max-age=60\r\n", false);
        scene_head(fetch, 200, "Cache-Control: max-age=60\r\n", _i > 1 ? 1000 : -1);
    }
    if (_i > 1)
        scene_body(fetch, 990);
    scene_run();
    (void)visit_cancel(&first);
    ck_assert(!scene_is_cancelled(fetch));
    (void)visit_cancel(&second);
    ck_assert(scene_is_cancelled(fetch));
    scene_done(fetch, FETCH_CANCELLED, "cancelled");
    scene_run();
    scene_end();
}
END_TEST

START_TEST(a_request_that_is_to_look_up_again_can_be_cancelled)
{
    struct visit first = {0}, second = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, "Set-Cookie: a=b\r\n", false);
    ck_assert(!visit_cancel(&second));
    scene_run();
    expect_failure(&second, FAILURE_CANCELLED, "");
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_head(fetch, 200, "", 0);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&first, OUTCOME_MISS, 0);
    scene_end();
}
END_TEST

START_TEST(a_front_may_cancel_in_its_head)
{
    struct visit v = {.url = URL, .streams = true, .cancels_in_head = true};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", 5);
    scene_run();
    ck_assert(v.ended);
    ck_assert_uint_eq(v.heads, 1);
    /* It has been answered, as far as its front wanted. */
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert_uint_eq(scene_metric("miss_duration_microseconds_count"), 0);
    scene_body(fetch, 5);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    ck_assert_uint_eq(v.wakes, 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert(scene_has(URL));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: streams and cancellation");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_stream_gets_the_body_as_it_arrives_and_wakes_are_merged);
    tcase_add_test(cases, a_stream_whose_object_is_complete_before_it_runs_has_one_call);
    tcase_add_loop_test(cases, a_cancelled_exchange_gets_no_more_calls_and_the_others_do, 0,
                        8 * MOMENTS);
    tcase_add_test(cases, the_fetch_of_a_cancelled_request_goes_on_for_the_cache);
    tcase_add_loop_test(cases, without_a_cache_no_fetch_outlasts_its_requests, 0, 3);
    tcase_add_test(cases, a_request_that_is_to_look_up_again_can_be_cancelled);
    tcase_add_test(cases, a_front_may_cancel_in_its_head);
    suite_add_tcase(suite, cases);
    return suite;
}
