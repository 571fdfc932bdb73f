/* Pages that state no lifetime, which are fresh to RPC alone. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"
#include "tests/unit/proxy/protocols.h"

START_TEST(without_a_lifetime_a_page_is_fresh_to_rpc_and_validated_for_http)
{
    scene_begin(&defaults);
    miss(RPC, TAGGED, 20, true);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    revalidate(HTTP, "", 20);
    /* It is HTTP's now, until RPC has validated it. */
    revalidate(HTTP, "", 20);
    revalidate(RPC, "", 20);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

/* HTTP replaces it, and stores nothing. */
START_TEST(without_a_validator_it_is_fetched_anew_for_http)
{
    struct visit v;

    scene_begin(&defaults);
    miss(RPC, "", 20, true);
    scene.now_us += SECOND;
    ck_assert(!begin(&v, HTTP, ""));
    expect_fields(HTTP, "");
    scene_answer(URL, 200, "", 30);
    expect_body(&v, OUTCOME_MISS, 30);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    /* For RPC it is stored again, although requests pass. */
    miss(RPC, "", 40, true);
    ck_assert_uint_eq(scene_stats().passed, 0);
    hit(RPC, 40);
    scene_end();
}
END_TEST

START_TEST(what_http_stores_by_a_heuristic_is_a_hit_for_rpc_and_then_validated)
{
    /* The second 1780001000, and 1000 seconds before. */
    static const char lines[] = TAGGED "Date: Thu, 28 May 2026 20:43:20 GMT\r\n"
                                       "Last-Modified: Thu, 28 May 2026 20:26:40 GMT\r\n";
    struct visit v;

    scene_begin(&defaults);
    scene.rules.heuristic_percent = 10;
    scene.rules.heuristic_max_us = 3600 * SECOND;
    miss(HTTP, lines, 20, true);
    scene.now_us += 90 * SECOND;
    hit(HTTP, 20);
    hit(RPC, 20);
    scene.now_us += 20 * SECOND;
    ck_assert(!begin(&v, RPC, ""));
    scene_answer(URL, 304, TAGGED, 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
    scene.now_us += 100000 * SECOND;
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* A request over HTTP could not use it from the cache, so it does not get it from a fetch either.
 * `_i`: it waits before the head, or comes while the body does, and streams or not. */
START_TEST(http_does_not_get_it_from_a_fetch_of_rpc)
{
    bool late = _i & 1, streams = _i & 2;
    struct visit rpc, later,
        v = {.url = URL, .http = true, .streams = streams, .fields = "Accept: a\r\n"};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!begin(&rpc, RPC, ""));
    if (!late)
        ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_response(fetch, TAGGED, false);
    scene_head(fetch, 200, TAGGED, 20);
    scene_run();
    if (late)
        ck_assert(!visit(&v));
    /* One of RPC does. */
    ck_assert(!begin(&later, RPC, ""));
    expect_waiting(&v);
    ck_assert_uint_eq(scene_fetches(), late || streams ? 2 : 1);
    scene_body(fetch, 20);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&rpc, OUTCOME_MISS, 20);
    expect_body(&later, OUTCOME_COALESCED, 20);
    ck_assert_uint_eq(scene_fetches(), 1);
    /* It begun a fetch of its own, or validates what is stored. */
    if (late || streams) {
        ck_assert_str_eq(scene_fetch(URL)->fields, "Accept: a\r\n");
        scene_answer(URL, 200, FRESH, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        hit(RPC, 30);
    } else {
        ck_assert_str_eq(scene_fetch(URL)->fields, "Accept: a\r\n" VALIDATES);
        scene_answer(URL, 304, TAGGED, 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
    }
    scene_end();
}
END_TEST

/* Nor what is not stored at all, which all of RPC have that wait. */
START_TEST(http_does_not_get_what_is_not_stored)
{
    static const struct {
        unsigned status;
        const char *lines;
    } rows[] = {{404, ""}, {302, "Location: /login\r\n"}, {503, ""}, {429, FRESH}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit rpc[2], http;

        scene_begin(&defaults);
        ck_assert(!begin(&rpc[0], RPC, ""));
        ck_assert(!begin(&http, HTTP, "Cookie: user=1\r\n"));
        ck_assert(!begin(&rpc[1], RPC, ""));
        scene_answer(URL, rows[i].status, rows[i].lines, 20);
        expect_body(&rpc[0], OUTCOME_MISS, 20);
        expect_body(&rpc[1], OUTCOME_COALESCED, 20);
        ck_assert_uint_eq(rpc[1].status, rows[i].status);
        expect_waiting(&http);
        ck_assert_str_eq(scene_fetch(URL)->fields, "Cookie: user=1\r\n");
        scene_answer(URL, 200, "", 30);
        expect_body(&http, OUTCOME_MISS, 30);
        scene_end();
    }
}
END_TEST

/* What a request over HTTP may not have shared, RPC validates, and keeps. */
START_TEST(rpc_validates_what_a_fetch_of_http_has_brought)
{
    struct visit http, rpc;

    scene_begin(&defaults);
    ck_assert(!begin(&http, HTTP, ""));
    ck_assert(!begin(&rpc, RPC, ""));
    scene_answer(URL, 200, TAGGED, 20);
    expect_body(&http, OUTCOME_MISS, 20);
    expect_waiting(&rpc);
    expect_fields(RPC, VALIDATES);
    scene_answer(URL, 304, TAGGED, 0);
    expect_body(&rpc, OUTCOME_REVALIDATED, 20);
    scene.now_us += 100000 * SECOND;
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* To a user's request it would not be stored, and is not given. */
START_TEST(a_user_over_http_does_not_get_it)
{
    static const char *const users[] = {"Cookie: user=1\r\n", "Authorization: Basic YTpi\r\n"};
    struct visit v, waiting;

    for (size_t i = 0; i < 2; i++) {
        scene_begin(&defaults);
        ck_assert(!begin(&v, RPC, ""));
        ck_assert(!begin(&waiting, HTTP, users[i]));
        scene_answer(URL, 200, TAGGED, 20);
        expect_body(&v, OUTCOME_MISS, 20);
        expect_waiting(&waiting);
        /* Its tag may be that of all users. */
        ck_assert_str_eq(scene_fetch(URL)->fields, users[i]);
        scene_answer(URL, 200, TAGGED, 30);
        expect_body(&waiting, OUTCOME_MISS, 30);
        ck_assert(!waiting.stored);
        ck_assert(!begin(&v, HTTP, users[i]));
        ck_assert_str_eq(scene_fetch(URL)->fields, users[i]);
        scene_answer(URL, 200, TAGGED, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        ck_assert(!v.stored);
        hit(RPC, 20);
        scene_end();
    }
}
END_TEST

/* As one that HTTP has stored, which has expired at once. */
START_TEST(it_is_a_stale_page_for_http)
{
    struct visit v, joined;

    scene_begin(&defaults);
    miss(RPC, "Cache-Control: stale-if-error=60\r\n", 20, true);
    scene.now_us += 30 * SECOND;
    ck_assert(begin(&v, HTTP, "Cache-Control: max-stale=60\r\n"));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert(begin(&v, HTTP, "Cache-Control: only-if-cached, max-stale=10\r\n"));
    expect_failure(&v, FAILURE_NOT_CACHED, "");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!begin(&v, HTTP, ""));
        ck_assert(!begin(&joined, HTTP, ""));
        if (i == 0)
            scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        else
            scene_answer(URL, 503, "", 5);
        scene_run();
        expect_body(&v, OUTCOME_STALE, 20);
        expect_body(&joined, OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_fetches(), 0);
    }
    hit(RPC, 20);
    scene.now_us += 60 * SECOND;
    ck_assert(!begin(&v, HTTP, ""));
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
    scene_run();
    expect_failure(&v, FAILURE_CONNECT, "refused");
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* A soft purge ends it for RPC, too. */
START_TEST(a_soft_purge_has_it_validated)
{
    scene_begin(&defaults);
    miss(RPC, TAGGED, 20, true);
    ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 1);
    revalidate(RPC, TAGGED, 20);
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* With --freshness off it is a hit for all, whatever it states. */
START_TEST(with_freshness_off_it_is_a_hit_for_both)
{
    scene_begin(&(struct scene_options){.freshness_off = true});
    miss((enum protocol)_i, "Cache-Control: no-store\r\n", 20, true);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    hit(HTTP, 20);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: lifetimes of both protocols");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, without_a_lifetime_a_page_is_fresh_to_rpc_and_validated_for_http);
    tcase_add_test(cases, without_a_validator_it_is_fetched_anew_for_http);
    tcase_add_test(cases, what_http_stores_by_a_heuristic_is_a_hit_for_rpc_and_then_validated);
    tcase_add_loop_test(cases, http_does_not_get_it_from_a_fetch_of_rpc, 0, 4);
    tcase_add_test(cases, http_does_not_get_what_is_not_stored);
    tcase_add_test(cases, rpc_validates_what_a_fetch_of_http_has_brought);
    tcase_add_test(cases, a_user_over_http_does_not_get_it);
    tcase_add_test(cases, it_is_a_stale_page_for_http);
    tcase_add_test(cases, a_soft_purge_has_it_validated);
    tcase_add_loop_test(cases, with_freshness_off_it_is_a_hit_for_both, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
