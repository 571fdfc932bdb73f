/* Objects that are used although they are not fresh, and what a request says about that. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "proxy/proxy.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"
#define SWR "ETag: \"a\"\r\nCache-Control: max-age=10, stale-while-revalidate=60\r\n"

static const struct scene_options defaults;

/* An object of 20 bytes that is `age_s` old. */
static void
store(const char *lines, int64_t age_s)
{
    expect_http_miss(URL, "", lines, 20);
    scene.now_us += age_s * SECOND;
}

/* ---- directives of requests ------------------------------------------------------------------ */

START_TEST(a_request_that_may_not_be_fetched_is_answered_from_the_cache_or_fails)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(visit_http(&v, URL, "Cache-Control: only-if-cached\r\n"));
    expect_failure(&v, FAILURE_NOT_CACHED, "not in the cache");
    store(FRESH, 5);
    ck_assert(visit_http(&v, URL, "Cache-Control: only-if-cached\r\n"));
    expect_body(&v, OUTCOME_HIT, 20);
    ck_assert(visit_http(&v, URL, "Cache-Control: only-if-cached, max-age=3\r\n"));
    expect_failure(&v, FAILURE_NOT_CACHED, "not in the cache");
    scene.now_us += 6 * SECOND;
    ck_assert(visit_http(&v, URL, "Cache-Control: only-if-cached\r\n"));
    expect_failure(&v, FAILURE_NOT_CACHED, "not in the cache");
    ck_assert(visit_http(&v, URL, "Cache-Control: only-if-cached, max-stale\r\n"));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene.submitted, 1);
    scene_end();
}
END_TEST

/* What is stored may not answer it, and it begins no fetch. */
START_TEST(a_request_that_passes_and_may_not_be_fetched_fails)
{
    static const struct {
        const char *method, *fields;
        bool has_body;
    } rows[] = {
        {"GET", "Cache-Control: no-store, only-if-cached\r\n", false},
        {"GET", "Cache-Control: no-store, only-if-cached, max-stale=1\r\n", false},
        {"GET", "Cache-Control: only-if-cached\r\nIf-Match: \"a\"\r\n", false},
        {"POST", "Cache-Control: only-if-cached\r\n", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v = {
            .url = URL,
            .http = true,
            .streams = true,
            .method = rows[i].method,
            .fields = rows[i].fields,
            .has_body = rows[i].has_body,
            .body_length = 5,
        };

        scene_begin(&defaults);
        store(FRESH, 5);
        ck_assert(visit(&v));
        expect_failure(&v, FAILURE_NOT_CACHED, "not in the cache");
        ck_assert_uint_eq(scene_fetches(), 0);
        scene_end();
    }
}
END_TEST

START_TEST(a_request_that_passes_is_fetched_though_it_accepts_a_stale_response)
{
    struct visit v;

    scene_begin(&defaults);
    store(FRESH, 11);
    ck_assert(!visit_http(&v, URL, "Cache-Control: no-store, max-stale=100\r\n"));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&v, OUTCOME_BYPASS, 30);
    scene_end();
}
END_TEST

START_TEST(a_request_that_may_not_be_fetched_does_not_wait_either)
{
    struct visit first, second;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, ""));
    ck_assert(visit_http(&second, URL, "Cache-Control: only-if-cached\r\n"));
    expect_failure(&second, FAILURE_NOT_CACHED, "not in the cache");
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&first, OUTCOME_MISS, 20);
    scene_end();
}
END_TEST

START_TEST(a_request_accepts_what_it_says)
{
    static const struct {
        const char *lines, *fields;
        bool stale;
    } rows[] = {
        {FRESH, "", false},
        {FRESH, "Cache-Control: max-stale\r\n", true},
        {FRESH, "Cache-Control: max-stale=6\r\n", true},
        {FRESH, "Cache-Control: max-stale=4\r\n", false},
        {FRESH, "Cache-Control: max-stale=6, no-cache\r\n", false},
        {FRESH, "Cache-Control: max-stale=6, max-age=12\r\n", false},
        {FRESH, "Cache-Control: max-stale=6, max-age=16\r\n", true},
        {FRESH, "Cache-Control: max-stale, min-fresh=1\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, must-revalidate\r\n",
         "Cache-Control: max-stale\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, proxy-revalidate\r\n",
         "Cache-Control: max-stale\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: s-maxage=10\r\n", "Cache-Control: max-stale\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, no-cache\r\n", "Cache-Control: max-stale\r\n",
         false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store(rows[i].lines, 15);
        ck_assert_msg(visit_http(&v, URL, rows[i].fields) == rows[i].stale, "row %zu", i);
        if (!rows[i].stale)
            scene_answer(URL, 304, "", 0);
        expect_body(&v, rows[i].stale ? OUTCOME_STALE : OUTCOME_REVALIDATED, 20);
        ck_assert(v.stored);
        scene_end();
    }
}
END_TEST

START_TEST(a_request_with_no_store_leaves_nothing_behind)
{
    struct visit v;

    scene_begin(&defaults);
    store(FRESH, 5);
    ck_assert(!visit_http(&v, URL, "Cache-Control: no-store\r\n"));
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&v, OUTCOME_BYPASS, 30);
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_HIT, 20);
    scene_end();
}
END_TEST

/* ---- stale-while-revalidate ------------------------------------------------------------------ */

START_TEST(a_stale_object_is_used_at_once_and_refreshed_by_one_fetch)
{
    struct visit v[3];

    scene_begin(&defaults);
    store(SWR, 15);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(visit_http(&v[i], URL, "X-A: b\r\n"));
        expect_body(&v[i], OUTCOME_STALE, 20);
        ck_assert(v[i].stored);
        ck_assert_int_ge(v[i].age_us, 15 * SECOND);
    }
    ck_assert_uint_eq(scene_fetches(), 1);
    ck_assert_str_eq(scene_fetch(URL)->fields, "X-A: b\r\nIf-None-Match: \"a\"\r\n");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 3);
    if (_i) {
        scene_answer(URL, 304, "", 0);
        ck_assert(visit_http(&v[0], URL, ""));
        expect_body(&v[0], OUTCOME_HIT, 20);
    } else {
        scene_answer(URL, 200, SWR, 30);
        ck_assert(visit_http(&v[0], URL, ""));
        expect_body(&v[0], OUTCOME_HIT, 30);
    }
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

START_TEST(when_the_successor_has_begun_to_come_requests_join_it)
{
    struct visit first, second;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    store(SWR, 15);
    ck_assert(visit_http(&first, URL, ""));
    fetch = scene_fetch(URL);
    scene_response(fetch, SWR, false);
    scene_head(fetch, 200, SWR, 30);
    ck_assert(!visit_http(&second, URL, ""));
    scene_body(fetch, 30);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&second, OUTCOME_COALESCED, 30);
    scene_end();
}
END_TEST

START_TEST(a_stale_object_is_not_used_beyond_its_window_nor_against_the_request)
{
    static const struct {
        int64_t age_s;
        const char *fields;
    } rows[] = {
        {71, ""}, {15, "Cache-Control: no-cache\r\n"}, {15, "Cache-Control: max-age=12\r\n"}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store(SWR, rows[i].age_s);
        ck_assert(!visit_http(&v, URL, rows[i].fields));
        scene_answer(URL, 304, "", 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
        scene_end();
    }
}
END_TEST

START_TEST(after_a_failure_the_next_refresh_waits_longer_each_time)
{
    struct visit v;
    int64_t delay_us = BACKOFF_FIRST_US;

    scene_begin(&defaults);
    store(SWR, 11);
    for (unsigned i = 0; i < 4; i++, delay_us *= 2) {
        ck_assert(visit_http(&v, URL, ""));
        expect_body(&v, OUTCOME_STALE, 20);
        if (i % 2)
            scene_answer(URL, 503, "", 5);
        else
            scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        scene.now_us += delay_us - 1;
        ck_assert(visit_http(&v, URL, ""));
        expect_body(&v, OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_fetches(), 0);
        scene.now_us += 1;
    }
    ck_assert(visit_http(&v, URL, ""));
    scene_answer(URL, 304, "", 0);
    scene.now_us += 15 * SECOND;
    /* After a success as at first. */
    ck_assert(visit_http(&v, URL, ""));
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
    scene.now_us += BACKOFF_FIRST_US;
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 304, "", 0);
    scene_end();
}
END_TEST

START_TEST(what_is_no_failure_of_the_origin_delays_no_refresh)
{
    static const enum fetch_error errors[] = {FETCH_CANCELLED, FETCH_DISPLACED, FETCH_OVERLOADED,
                                              FETCH_STOPPING, FETCH_INTERNAL};
    struct visit v;

    scene_begin(&defaults);
    store(SWR, 15);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        ck_assert(!visit_http(&v, URL, "Cache-Control: no-cache\r\n"));
        if (errors[i] == FETCH_CANCELLED)
            visit_cancel(&v);
        scene_done(scene_fetch(URL), errors[i], "");
        scene_run();
        ck_assert(v.ended);
        ck_assert(visit_http(&v, URL, ""));
        expect_body(&v, OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_fetches(), 1);
        /* The refresh fails likewise. */
        scene_done(scene_fetch(URL), errors[i], "");
        scene_run();
    }
    ck_assert(visit_http(&v, URL, ""));
    scene_answer(URL, 304, "", 0);
    scene_end();
}
END_TEST

START_TEST(a_refresh_that_is_refused_leaves_the_object_as_it_is)
{
    struct visit v;

    scene_begin(&defaults);
    store(SWR, 15);
    scene.refuses = ESHUTDOWN;
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    scene.refuses = 0;
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 304, "", 0);
    scene_end();
}
END_TEST

/* No request waits for it, and it is stored nevertheless: more than is finished for others. */
START_TEST(a_refresh_of_a_large_object_is_finished)
{
    struct visit v;
    struct scene_fetch *fetch;

    scene_begin(&(struct scene_options){.max_body = 8 * MIB});
    store(SWR, 15);
    ck_assert(visit_http(&v, URL, ""));
    fetch = scene_fetch(URL);
    scene_response(fetch, SWR, false);
    ck_assert_int_eq(scene_head(fetch, 200, SWR, _i ? -1 : (int64_t)(5 * MIB)), FETCH_CONTINUE);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_int_eq(scene_body(fetch, MIB), FETCH_CONTINUE);
        scene.now_us += 50 * SECOND;
    }
    ck_assert(!fetch->cancelled);
    scene_done(fetch, FETCH_OK, "");
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

/* Bytes that come one by one are within the limit between two bytes, for ever. */
START_TEST(a_refresh_from_an_origin_that_trickles_ends)
{
    static const char lines[] =
        "ETag: \"a\"\r\nCache-Control: max-age=10, stale-while-revalidate=60000\r\n";
    enum fetch_flow flow = FETCH_CONTINUE;
    struct scene_fetch *fetch;
    struct visit v;
    int64_t began_us;

    scene_begin(&defaults);
    store(lines, 15);
    ck_assert(visit_http(&v, URL, ""));
    fetch = scene_fetch(URL);
    scene_response(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 200, lines, 1000), FETCH_CONTINUE);
    began_us = scene.now_us;
    for (unsigned i = 0; i < 1000 && flow == FETCH_CONTINUE; i++) {
        scene.now_us += 15 * SECOND;
        flow = scene_body(fetch, 1);
    }
    ck_assert_int_ne(flow, FETCH_CONTINUE);
    ck_assert_int_gt(scene.now_us - began_us, ORIGIN_FILL_REFRESH_US);
    ck_assert_int_le(scene.now_us - began_us, ORIGIN_FILL_REFRESH_US + 15 * SECOND);
    scene_done(fetch, FETCH_CANCELLED, "");
    /* As after other failures of the origin. */
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene_fetches(), 0);
    scene.now_us += BACKOFF_FIRST_US;
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 304, "", 0);
    scene_end();
}
END_TEST

/* A request that reads what a refresh fetches has no bound on the whole. */
START_TEST(a_refresh_that_a_request_reads_goes_on)
{
    static const char lines[] =
        "ETag: \"a\"\r\nCache-Control: max-age=10, stale-while-revalidate=60000\r\n";
    struct scene_fetch *fetch;
    struct visit v, reader;

    scene_begin(&defaults);
    store(lines, 15);
    ck_assert(visit_http(&v, URL, ""));
    fetch = scene_fetch(URL);
    scene_response(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 200, lines, 100), FETCH_CONTINUE);
    ck_assert(!visit_http(&reader, URL, ""));
    for (unsigned i = 0; i < 100; i++) {
        scene.now_us += 15 * SECOND;
        ck_assert_int_eq(scene_body(fetch, 1), FETCH_CONTINUE);
    }
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&reader, OUTCOME_COALESCED, 100);
    scene_end();
}
END_TEST

/* ---- the bound on the age -------------------------------------------------------------------- */

START_TEST(no_page_is_a_hit_beyond_the_bound_on_the_age)
{
    static const struct {
        const char *lines;
        bool freshness_off;
        int64_t hit_s, miss_s; /* after the fetch */
    } rows[] = {
        {"", true, 29, 30},
        {"Cache-Control: max-age=10\r\n", true, 29, 30},
        {"Cache-Control: max-age=600\r\n", false, 29, 30},
        {"Cache-Control: max-age=600\r\nAge: 100\r\n", false, 29, 30},
        {"Cache-Control: max-age=10\r\n", false, 9, 10},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t row = i / 2;
        struct visit v = {.url = URL, .http = i % 2};

        scene_begin(&(struct scene_options){.max_age_us = 30 * SECOND,
                                            .freshness_off = rows[row].freshness_off});
        for (unsigned fetch = 1; fetch <= 2; fetch++) {
            v = (struct visit){.url = URL, .http = i % 2};
            ck_assert_msg(!visit(&v), "row %zu, fetch %u", i, fetch);
            scene_respond(URL, rows[row].lines, 20);
            expect_body(&v, OUTCOME_MISS, 20);
            scene.now_us += rows[row].hit_s * SECOND;
            v = (struct visit){.url = URL, .http = i % 2};
            ck_assert_msg(visit(&v), "row %zu, fetch %u", i, fetch);
            expect_body(&v, OUTCOME_HIT, 20);
            scene.now_us += (rows[row].miss_s - rows[row].hit_s) * SECOND;
        }
        ck_assert_uint_eq(scene.submitted, 2);
        scene_end();
    }
}
END_TEST

/* Neither what the origin states nor what a request accepts makes it longer. */
START_TEST(no_stale_page_is_a_hit_beyond_the_bound_on_the_age)
{
    static const struct {
        const char *lines, *request;
    } rows[] = {
        {SWR, ""},
        {FRESH, "Cache-Control: max-stale=600\r\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&(struct scene_options){.max_age_us = 12 * SECOND});
        store(rows[i].lines, 11);
        v = (struct visit){.url = URL};
        ck_assert(visit_http(&v, URL, rows[i].request));
        expect_body(&v, OUTCOME_STALE, 20);
        if (scene_find(URL))
            scene_done(scene_find(URL), FETCH_ORIGIN_BROKE, "broken");
        scene.now_us += 2 * SECOND;
        ck_assert(!visit_http(&v, URL, rows[i].request));
        scene_respond(URL, rows[i].lines, 5);
        expect_body(&v, OUTCOME_MISS, 5);
        scene_end();
    }
}
END_TEST

START_TEST(a_page_that_its_origin_confirms_is_a_hit_for_the_bound_again)
{
    struct visit v;

    for (unsigned off = 0; off < 2; off++) {
        scene_begin(&(struct scene_options){.max_age_us = 5 * SECOND, .freshness_off = off});
        store("ETag: \"a\"\r\nCache-Control: max-age=600\r\n", 5);
        ck_assert(!visit_http(&v, URL, ""));
        ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, "If-None-Match: \"a\""));
        scene_answer(URL, 304, "ETag: \"a\"\r\nCache-Control: max-age=600\r\n", 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
        scene.now_us += 4 * SECOND;
        ck_assert(visit_http(&v, URL, ""));
        expect_body(&v, OUTCOME_HIT, 20);
        scene.now_us += SECOND;
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, 200, "", 30);
        expect_body(&v, OUTCOME_MISS, 30);
        scene_end();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: stale objects");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_request_that_may_not_be_fetched_is_answered_from_the_cache_or_fails);
    tcase_add_test(cases, a_request_that_passes_and_may_not_be_fetched_fails);
    tcase_add_test(cases, a_request_that_passes_is_fetched_though_it_accepts_a_stale_response);
    tcase_add_test(cases, a_request_that_may_not_be_fetched_does_not_wait_either);
    tcase_add_test(cases, a_request_accepts_what_it_says);
    tcase_add_test(cases, a_request_with_no_store_leaves_nothing_behind);
    tcase_add_loop_test(cases, a_stale_object_is_used_at_once_and_refreshed_by_one_fetch, 0, 2);
    tcase_add_test(cases, when_the_successor_has_begun_to_come_requests_join_it);
    tcase_add_test(cases, a_stale_object_is_not_used_beyond_its_window_nor_against_the_request);
    tcase_add_test(cases, after_a_failure_the_next_refresh_waits_longer_each_time);
    tcase_add_test(cases, what_is_no_failure_of_the_origin_delays_no_refresh);
    tcase_add_test(cases, a_refresh_that_is_refused_leaves_the_object_as_it_is);
    tcase_add_loop_test(cases, a_refresh_of_a_large_object_is_finished, 0, 2);
    tcase_add_test(cases, a_refresh_from_an_origin_that_trickles_ends);
    tcase_add_test(cases, a_refresh_that_a_request_reads_goes_on);
    tcase_add_test(cases, no_page_is_a_hit_beyond_the_bound_on_the_age);
    tcase_add_test(cases, no_stale_page_is_a_hit_beyond_the_bound_on_the_age);
    tcase_add_test(cases, a_page_that_its_origin_confirms_is_a_hit_for_the_bound_again);
    suite_add_tcase(suite, cases);
    return suite;
}
