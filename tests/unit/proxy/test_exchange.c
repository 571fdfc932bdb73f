/* The way of a request: lookup, answers and refusals. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"

static const struct scene_options defaults;

/* ---- from the cache -------------------------------------------------------------------------- */

START_TEST(a_hit_is_answered_at_once)
{
    struct visit v = {.url = URL};

    scene_begin(&defaults);
    scene_store(URL, "", 3000);
    ck_assert(visit(&v));
    expect_body(&v, OUTCOME_HIT, 3000);
    ck_assert_uint_eq(v.status, 200);
    ck_assert(v.stored);
    ck_assert_uint_eq(v.wakes, 0);
    ck_assert_uint_eq(v.evicted + v.victims, 0);
    ck_assert_uint_eq(scene.submitted, 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert_uint_eq(scene_metric("served_bytes{source=\"cache\"}"), 3000);
    ck_assert_uint_eq(scene_metric("served_bytes{source=\"origin\"}"), 3000);
    ck_assert_uint_eq(scene_metric("miss_duration_microseconds_count"), 1);
    ck_assert_uint_eq(scene_metric("origin_first_byte_microseconds_count"), 1);
    ck_assert_uint_eq(scene_metric("origin_fetches{result=\"ok\"}"), 1);
    scene_end();
}
END_TEST

START_TEST(an_expired_page_is_fetched_anew_once)
{
    struct visit first = {0}, second = {0};

    scene_begin(&defaults);
    scene_store(URL, "Cache-Control: max-age=10\r\n", 10);
    scene.now_us += 9 * SECOND;
    ck_assert(scene_has(URL));
    scene.now_us += 2 * SECOND;
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(URL, "Cache-Control: max-age=10\r\n", 20);
    expect_body(&first, OUTCOME_MISS, 20);
    expect_body(&second, OUTCOME_COALESCED, 20);
    ck_assert(first.stored && second.stored);
    ck_assert(scene_has(URL));
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

START_TEST(an_expired_page_survives_a_fetch_that_fails_and_no_response)
{
    struct visit v = {0};

    scene_begin(&defaults);
    scene_store(URL, "Cache-Control: max-age=10, must-revalidate\r\n", 10);
    scene.now_us += 11 * SECOND;
    visit_url(&v, URL, 1);
    scene_done(scene_fetch(URL), FETCH_TIMED_OUT, "origin.test: nothing came");
    scene_run();
    expect_failure(&v, FAILURE_TIMEOUT, "nothing came");
    ck_assert_uint_eq(scene_stats().pages, 1);
    /* What the origin responds now counts, even if it cannot be stored. */
    visit_url(&v, URL, 1);
    scene_respond(URL, "Cache-Control: no-store\r\n", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

/* ---- from the origin ------------------------------------------------------------------------- */

START_TEST(a_miss_is_fetched_for_its_client_and_stored)
{
    struct visit v = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&v, URL, 7);
    expect_waiting(&v);
    fetch = scene_fetch(URL);
    ck_assert_ptr_eq(fetch->client, v.client);
    ck_assert_str_eq(fetch->fields, SCENE_RPC_FIELDS);
    scene_respond(URL, "Content-Type: text/plain\r\n", 100);
    expect_body(&v, OUTCOME_MISS, 100);
    ck_assert(v.stored);
    ck_assert_uint_eq(v.wakes, 1);
    ck_assert_int_eq(scene.fetched.failure, 0);
    ck_assert_int_eq(scene.fetched.reason, HTTP_REASON_NONE);
    ck_assert(scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(evicted_pages_are_named_to_the_request_that_caused_it)
{
    struct visit first = {0}, second = {0};

    scene_begin(&(struct scene_options){.capacity_pages = 1});
    scene_store("http://origin.test/other", "", 10);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    scene_respond(URL, "", 10);
    expect_body(&first, OUTCOME_MISS, 10);
    expect_body(&second, OUTCOME_COALESCED, 10);
    ck_assert_uint_eq(first.evicted, 1);
    ck_assert_uint_eq(first.victims, 1);
    ck_assert_uint_eq(second.evicted + second.victims, 0);
    ck_assert(first.stored && second.stored);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"coalesced\"}"), 1);
    scene_end();
}
END_TEST

START_TEST(requests_beyond_the_bound_of_waiters_are_refused_at_once)
{
    struct visit waiting[3] = {0}, v = {.url = URL};

    scene_begin(&(struct scene_options){.max_waiters = 3});
    for (unsigned i = 0; i < 3; i++)
        visit_url(&waiting[i], URL, i);
    ck_assert(visit(&v));
    expect_failure(&v, FAILURE_OVERLOADED, "too many requests wait for this URL");
    /* Other URLs are not concerned. */
    visit_url(&v, "http://origin.test/other", 9);
    scene_respond("http://origin.test/other", "", 1);
    expect_body(&v, OUTCOME_MISS, 1);
    scene_respond(URL, "", 5);
    expect_body(&waiting[0], OUTCOME_MISS, 5);
    expect_body(&waiting[2], OUTCOME_COALESCED, 5);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 1);
    scene_end();
}
END_TEST

START_TEST(a_bypass_neither_looks_up_nor_stores_nor_joins)
{
    struct visit by_fields = {.url = URL, .fields = "X-A: b\r\n"};
    struct visit by_flag = {.url = URL, .no_store = true};
    struct visit waiting = {0};

    scene_begin(&defaults);
    visit_url(&waiting, URL, 1);
    ck_assert(!visit(&by_fields));
    ck_assert(!visit(&by_flag));
    ck_assert_uint_eq(scene_fetches(), 3);
    ck_assert_str_eq(TAILQ_NEXT(scene_fetch(URL), link)->fields, SCENE_RPC_FIELDS "X-A: b\r\n");
    /* The bypasses' responses: the one with fields is private, which proves nothing for others. */
    scene_respond(URL, "", 10);
    scene_respond(URL, "Set-Cookie: a=b\r\n", 20);
    scene_respond(URL, "", 30);
    expect_body(&waiting, OUTCOME_MISS, 10);
    expect_body(&by_fields, OUTCOME_BYPASS, 20);
    expect_body(&by_flag, OUTCOME_BYPASS, 30);
    ck_assert(!by_fields.stored && !by_flag.stored);
    ck_assert_uint_eq(scene_stats().passed, 0);
    waiting = (struct visit){.url = URL};
    ck_assert(visit(&waiting));
    expect_body(&waiting, OUTCOME_HIT, 10);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"bypass\"}"), 2);
    scene_end();
}
END_TEST

/* All that wait have it, stored or not. */
START_TEST(a_response_without_a_lifetime_is_kept_by_its_status)
{
    static const struct {
        unsigned status;
        bool stored;
    } rows[] = {{200, true},  {301, true},  {308, true},  {203, false}, {204, false},
                {302, false}, {307, false}, {404, false}, {410, false}, {500, false}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t len = rows[i].status == 204 ? 0 : 4;
        struct visit first = {0}, second = {0};

        scene_begin(&defaults);
        visit_url(&first, URL, 1);
        visit_url(&second, URL, 2);
        scene_answer(URL, rows[i].status, "", len);
        expect_body(&first, OUTCOME_MISS, len);
        ck_assert_msg(first.stored == rows[i].stored, "row %zu", i);
        ck_assert_uint_eq(scene_stats().pages, rows[i].stored);
        expect_body(&second, OUTCOME_COALESCED, len);
        ck_assert_uint_eq(second.status, rows[i].status);
        scene.now_us += 100000 * SECOND;
        ck_assert_msg(scene_has(URL) == rows[i].stored, "row %zu", i);
        scene_end();
    }
}
END_TEST

/* As HTTP has them. */
START_TEST(other_responses_with_a_lifetime_are_stored)
{
    static const unsigned statuses[] = {203, 302, 404, 410, 500};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct visit v = {0};

        scene_begin(&defaults);
        visit_url(&v, URL, 1);
        scene_answer(URL, statuses[i], "Cache-Control: max-age=10\r\n", 4);
        expect_body(&v, OUTCOME_MISS, 4);
        ck_assert(v.stored);
        ck_assert(scene_has(URL));
        scene.now_us += 11 * SECOND;
        ck_assert(!scene_has(URL));
        scene_end();
    }
}
END_TEST

START_TEST(a_response_with_two_framings_is_shared_and_not_stored)
{
    struct visit first = {0}, second = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    fetch->sink->head(fetch->context, &(struct fetch_head){.status = 200,
                                                           .headers = span_str("A: b\r\n"),
                                                           .content_length = -1,
                                                           .no_store = true});
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&first, OUTCOME_MISS, 0);
    expect_body(&second, OUTCOME_COALESCED, 0);
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(without_a_policy_requests_are_coalesced_and_nothing_is_stored)
{
    struct visit first = {0}, second = {0};

    scene_begin(&(struct scene_options){.policy = "none"});
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(URL, "", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    expect_body(&second, OUTCOME_COALESCED, 5);
    ck_assert(!first.stored && !second.stored);
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(a_failure_before_the_head_fails_all_that_wait)
{
    static const struct {
        enum fetch_error error;
        enum failure failure;
    } rows[] = {
        {FETCH_BAD_URL, FAILURE_BAD_URL},
        {FETCH_BAD_HEADERS, FAILURE_BAD_FIELDS},
        {FETCH_BAD_METHOD, FAILURE_BAD_FIELDS},
        {FETCH_DENIED, FAILURE_DENIED},
        {FETCH_RESOLVE_FAILED, FAILURE_RESOLVE},
        {FETCH_CONNECT_FAILED, FAILURE_CONNECT},
        {FETCH_TLS_FAILED, FAILURE_TLS},
        {FETCH_TIMED_OUT, FAILURE_TIMEOUT},
        {FETCH_CONNECT_TIMED_OUT, FAILURE_CONNECT_TIMEOUT},
        {FETCH_ORIGIN_BROKE, FAILURE_ORIGIN},
        {FETCH_TOO_LARGE, FAILURE_TOO_LARGE},
        {FETCH_OVERLOADED, FAILURE_OVERLOADED},
        {FETCH_STOPPING, FAILURE_STOPPING},
        {FETCH_INTERNAL, FAILURE_INTERNAL},
        {FETCH_DOWN, FAILURE_DOWN},
        {FETCH_CANCELLED, FAILURE_INTERNAL},
        {FETCH_BODY_FAILED, FAILURE_INTERNAL},
    };

    scene_begin(&defaults);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit first = {0}, second = {0};
        char metric[METRICS_MAX_NAME];
        uint64_t before;

        snprintf(metric, sizeof(metric), "origin_fetches{result=\"%s\"}",
                 failure_word(rows[i].failure));
        before = scene_metric(metric);
        visit_url(&first, URL, 1);
        visit_url(&second, URL, 2);
        scene_done(scene_fetch(URL), rows[i].error, "it names the host");
        scene_run();
        ck_assert_uint_eq(scene_metric(metric), before + 1);
        expect_failure(&first, rows[i].failure, "it names the host");
        expect_failure(&second, rows[i].failure, "it names the host");
        ck_assert_int_eq(scene.fetched.failure, rows[i].failure);
        ck_assert_uint_eq(scene_fetches(), 0);
    }
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"),
                      2 * sizeof(rows) / sizeof(rows[0]));
    scene_end();
}
END_TEST

START_TEST(each_failure_of_a_fetch_has_the_row_of_its_word)
{
    char name[METRICS_MAX_NAME];

    scene_begin(&defaults);
    for (unsigned why = FAILURE_BAD_URL; why <= FAILURE_CANCELLED; why++) {
        snprintf(name, sizeof(name), "origin_fetches{result=\"%s\"}",
                 failure_word((enum failure)why));
        metrics_add(scene.metrics, 0, (enum metric)((unsigned)METRIC_FETCHES_OK + why), why);
        scene_expect_metric(name, why);
    }
    scene_expect_metric("origin_fetches{result=\"ok\"}", 0);
    scene_end();
}
END_TEST

START_TEST(a_failure_after_the_head_breaks_off_what_streams)
{
    struct visit whole = {0}, stream = {.streams = true};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&stream, URL, 2);
    visit_url(&whole, URL, 1);
    fetch = scene_fetch(URL);
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", 100);
    scene_body(fetch, 40);
    scene_run();
    ck_assert_uint_eq(stream.heads, 1);
    ck_assert_uint_eq(stream.got, 40);
    expect_waiting(&whole);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "60 bytes are missing");
    scene_run();
    expect_failure(&whole, FAILURE_ORIGIN, "60 bytes are missing");
    expect_failure(&stream, FAILURE_ORIGIN, "60 bytes are missing");
    ck_assert_uint_eq(stream.heads, 1);
    ck_assert_uint_eq(whole.heads, 0);
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(a_body_that_is_too_large_fails_and_its_fetch_ends)
{
    for (unsigned known = 0; known < 2; known++) {
        struct visit v = {0};
        struct scene_fetch *fetch;

        scene_begin(&(struct scene_options){.max_body = 1000});
        visit_url(&v, URL, 1);
        fetch = scene_fetch(URL);
        scene_response(fetch, "", false);
        ck_assert_int_eq(scene_head(fetch, 200, "", known ? 1000 : -1), FETCH_CONTINUE);
        ck_assert_int_eq(scene_body(fetch, 1000), FETCH_CONTINUE);
        ck_assert_int_eq(scene_body(fetch, 1), FETCH_ABORT);
        /* At once, and not with the fetch's end. */
        scene_run();
        expect_failure(&v, FAILURE_TOO_LARGE, "larger than the proxy takes");
        scene_done(fetch, FETCH_INTERNAL, "aborted");
        ck_assert_int_eq(scene.fetched.failure, FAILURE_TOO_LARGE);
        ck_assert(strstr(scene.fetched_sentence, "larger") != NULL);
        ck_assert(!scene_has(URL));
        scene_end();
    }
}
END_TEST

START_TEST(a_body_that_is_too_large_to_be_stored_is_passed_on)
{
    struct visit first = {0}, second = {0};

    scene_begin(&(struct scene_options){.max_body = 1000, .max_page = 999});
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    scene_respond(URL, "", 1000);
    expect_body(&first, OUTCOME_MISS, 1000);
    expect_body(&second, OUTCOME_COALESCED, 1000);
    ck_assert(!first.stored && !scene_has(URL));
    visit_url(&first, URL, 1);
    scene_respond(URL, "", 999);
    expect_body(&first, OUTCOME_MISS, 999);
    ck_assert(first.stored && scene_has(URL));
    scene_end();
}
END_TEST

START_TEST(a_head_that_is_too_large_fails)
{
    struct visit v = {0};
    struct scene_fetch *fetch;
    char *lines = calloc(1, OBJECT_MAX_META + 2);

    ck_assert_ptr_nonnull(lines);
    memset(lines, 'a', OBJECT_MAX_META + 1);
    memcpy(lines, "A: ", 3);
    memcpy(lines + OBJECT_MAX_META - 1, "\r\n", 2);
    scene_begin(&defaults);
    visit_url(&v, URL, 1);
    fetch = scene_fetch(URL);
    ck_assert_int_eq(scene_head(fetch, 200, lines, 5), FETCH_ABORT);
    scene_done(fetch, FETCH_INTERNAL, "aborted");
    scene_run();
    expect_failure(&v, FAILURE_INTERNAL, "");
    free(lines);
    scene_end();
}
END_TEST

/* As the fetcher does (fetch_check_request()): the URL is checked there, and nowhere else. */
START_TEST(bad_urls_and_bad_fields_fail_as_the_check_says)
{
    static const struct {
        const char *url, *fields;
        enum failure failure;
    } rows[] = {
        {"no URL", NULL, FAILURE_BAD_URL},
        {"", NULL, FAILURE_BAD_URL},
        {"ftp://origin.test/", NULL, FAILURE_BAD_URL},
        {"http://", NULL, FAILURE_BAD_URL},
        {URL, "no field\r\n", FAILURE_BAD_FIELDS},
        {URL, "Host: other.test\r\n", FAILURE_BAD_FIELDS},
    };

    scene_begin(&defaults);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[2] = {{.url = rows[i].url, .fields = rows[i].fields}, {0}};

        v[1] = v[0];
        for (unsigned k = 0; k < 2; k++)
            ck_assert(visit(&v[k]));
        ck_assert_uint_eq(scene_fetches(), 0);
        for (unsigned k = 0; k < 2; k++)
            expect_failure(&v[k], rows[i].failure, "");
        ck_assert_str_ne(v[0].sentence, "");
        ck_assert_str_eq(v[0].sentence, v[1].sentence);
    }
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

START_TEST(an_origin_that_stops_fails_new_requests_and_those_that_wait)
{
    struct visit first = {0}, second = {0}, later = {0};

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    scene.refuses = ESHUTDOWN;
    scene_done(scene_fetch(URL), FETCH_STOPPING, "the proxy stops");
    scene_run();
    expect_failure(&first, FAILURE_STOPPING, "stops");
    expect_failure(&second, FAILURE_STOPPING, "stops");
    later.url = URL;
    ck_assert(visit(&later));
    expect_failure(&later, FAILURE_STOPPING, "shutting down");
    scene_end();
}
END_TEST

/* ---- --freshness off ------------------------------------------------------------------------- */

START_TEST(with_freshness_off_everything_is_shared_and_stays)
{
    struct visit first = {0}, second = {0};
    const char *url = "http://user:word@origin.test/";

    scene_begin(&(struct scene_options){.freshness_off = true});
    visit_url(&first, url, 1);
    visit_url(&second, url, 2);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(url, "Set-Cookie: a=b\r\nCache-Control: no-store, max-age=1\r\n", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    expect_body(&second, OUTCOME_COALESCED, 5);
    scene.now_us += 1000000 * SECOND;
    ck_assert(scene_has(url));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: exchanges");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_hit_is_answered_at_once);
    tcase_add_test(cases, an_expired_page_is_fetched_anew_once);
    tcase_add_test(cases, an_expired_page_survives_a_fetch_that_fails_and_no_response);
    tcase_add_test(cases, a_miss_is_fetched_for_its_client_and_stored);
    tcase_add_test(cases, evicted_pages_are_named_to_the_request_that_caused_it);
    tcase_add_test(cases, requests_beyond_the_bound_of_waiters_are_refused_at_once);
    tcase_add_test(cases, a_bypass_neither_looks_up_nor_stores_nor_joins);
    tcase_add_test(cases, a_response_without_a_lifetime_is_kept_by_its_status);
    tcase_add_test(cases, other_responses_with_a_lifetime_are_stored);
    tcase_add_test(cases, a_response_with_two_framings_is_shared_and_not_stored);
    tcase_add_test(cases, without_a_policy_requests_are_coalesced_and_nothing_is_stored);
    tcase_add_test(cases, a_failure_before_the_head_fails_all_that_wait);
    tcase_add_test(cases, each_failure_of_a_fetch_has_the_row_of_its_word);
    tcase_add_test(cases, a_failure_after_the_head_breaks_off_what_streams);
    tcase_add_test(cases, a_body_that_is_too_large_fails_and_its_fetch_ends);
    tcase_add_test(cases, a_body_that_is_too_large_to_be_stored_is_passed_on);
    tcase_add_test(cases, a_head_that_is_too_large_fails);
    tcase_add_test(cases, bad_urls_and_bad_fields_fail_as_the_check_says);
    tcase_add_test(cases, an_origin_that_stops_fails_new_requests_and_those_that_wait);
    tcase_add_test(cases, with_freshness_off_everything_is_shared_and_stays);
    suite_add_tcase(suite, cases);
    return suite;
}
