/* Validation of objects that are not fresh, and what follows from each response to it. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define TAGGED "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"
#define DATED "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=10\r\n"

static const struct scene_options defaults;

/* An object of 20 bytes that has expired. */
static void
store_expired(const char *lines)
{
    expect_http_miss(URL, "", lines, 20);
    scene.now_us += 11 * SECOND;
}

/* ---- the request ----------------------------------------------------------------------------- */

START_TEST(an_expired_object_is_validated_by_what_it_has)
{
    static const struct {
        const char *lines, *fields;
    } rows[] = {
        {TAGGED, "If-None-Match: \"a\"\r\n"},
        {DATED, "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n"},
        {"Cache-Control: max-age=10\r\n", "If-None-Match: \"mine\"\r\n"},
        {"ETag: \"a\"\r\nCache-Control: max-age=1000, no-cache\r\n", "If-None-Match: \"a\"\r\n"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;
        char expected[200];

        scene_begin(&defaults);
        store_expired(rows[i].lines);
        ck_assert(!visit_http(&v, URL,
                             "X-A: b\r\nIf-None-Match: \"mine\"\r\nRange: bytes=0-\r\n"
                             "If-Range: \"mine\"\r\n"));
        snprintf(expected, sizeof(expected), "X-A: b\r\n%s", rows[i].fields);
        ck_assert_str_eq(scene_fetch(URL)->fields, expected);
        scene_answer(URL, 200, TAGGED, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        expect_http_hit(URL, "", 30);
        scene_end();
    }
}
END_TEST

START_TEST(a_request_can_demand_a_validation)
{
    static const struct {
        const char *fields;
        bool validates;
    } rows[] = {
        {"Cache-Control: no-cache\r\n", true},     {"Pragma: no-cache\r\n", true},
        {"Cache-Control: max-age=3\r\n", true},    {"Cache-Control: max-age=6\r\n", false},
        {"Cache-Control: max-age=0\r\n", true},    {"Cache-Control: min-fresh=6\r\n", true},
        {"Cache-Control: min-fresh=3\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store_expired(TAGGED);
        scene.now_us -= 6 * SECOND; /* the age is 5 seconds */
        ck_assert_msg(visit_http(&v, URL, rows[i].fields) != rows[i].validates, "%s",
                      rows[i].fields);
        if (rows[i].validates) {
            ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n"));
            scene_answer(URL, 304, "", 0);
        }
        expect_body(&v, rows[i].validates ? OUTCOME_REVALIDATED : OUTCOME_HIT, 20);
        scene_end();
    }
}
END_TEST

/* ---- 304 ------------------------------------------------------------------------------------- */

START_TEST(a_304_makes_the_object_fresh_again_and_updates_its_fields)
{
    struct visit v[3];

    scene_begin(&defaults);
    store_expired(TAGGED "X-A: old\r\nX-B: old\r\n");
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!visit_http(&v[i], URL, ""));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 304, "X-A: new\r\nAge: 3\r\n", 0);
    expect_body(&v[0], OUTCOME_REVALIDATED, 20);
    expect_body(&v[1], OUTCOME_COALESCED, 20);
    expect_body(&v[2], OUTCOME_COALESCED, 20);
    for (size_t i = 0; i < 3; i++)
        ck_assert_uint_eq(v[i].origin_status, 304);
    ck_assert_uint_eq(v[0].status, 200);
    ck_assert_ptr_nonnull(strstr(v[0].lines, "X-A: new\r\n"));
    ck_assert_ptr_nonnull(strstr(v[0].lines, "X-B: old\r\n"));
    ck_assert_ptr_null(strstr(v[0].lines, "X-A: old\r\n"));
    ck_assert_ptr_null(strstr(v[0].lines, "Age: "));
    ck_assert(v[0].stored);
    ck_assert_int_ge(v[0].age_us, 3 * SECOND);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"revalidated\"}"), 1);
    ck_assert_uint_eq(scene_metric("served_bytes{source=\"cache\"}"), 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene.now_us += 6 * SECOND;
    expect_http_hit(URL, "", 20);
    scene.now_us += 2 * SECOND;
    ck_assert(!visit_http(&v[0], URL, ""));
    scene_answer(URL, 304, "", 0);
    expect_body(&v[0], OUTCOME_REVALIDATED, 20);
    scene_end();
}
END_TEST

START_TEST(a_304_may_forbid_that_the_object_stays)
{
    struct visit v;

    scene_begin(&defaults);
    store_expired(TAGGED);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 304, "Cache-Control: no-store\r\n", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

START_TEST(an_object_that_is_evicted_meanwhile_is_confirmed_all_the_same)
{
    struct visit v;

    scene_begin(&defaults);
    store_expired(TAGGED);
    ck_assert(!visit_http(&v, URL, ""));
    control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    scene_answer(URL, 304, "", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

START_TEST(a_304_with_another_etag_leads_to_a_fetch_without_conditions)
{
    struct visit v;

    scene_begin(&defaults);
    store_expired(TAGGED);
    ck_assert(!visit_http(&v, URL, "X-A: b\r\n"));
    scene_answer(URL, 304, "ETag: \"other\"\r\n", 0);
    expect_waiting(&v);
    ck_assert_str_eq(scene_fetch(URL)->fields, "X-A: b\r\n");
    ck_assert_uint_eq(scene_fetch(URL)->flags, REQUEST_STREAMS);
    scene_answer(URL, 200, TAGGED, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    expect_http_hit(URL, "", 30);
    scene_end();
}
END_TEST

/* Each 304 adds a field; the object's head is full some day. */
START_TEST(a_304_that_fills_the_head_leads_to_a_fetch_without_conditions)
{
    enum { EACH = 60000 };
    char *lines = malloc(EACH + 100);
    struct visit v;

    ck_assert_ptr_nonnull(lines);
    scene_begin(&defaults);
    store_expired(TAGGED);
    for (unsigned i = 0; i < 3; i++) {
        int len = sprintf(lines, TAGGED "X-%u: ", i);

        memset(lines + len, 'x', EACH);
        strcpy(lines + len + EACH, "\r\n");
        ck_assert(!visit_http(&v, URL, ""));
        ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
        scene_answer(URL, 304, lines, 0);
        scene.now_us += 11 * SECOND;
    }
    expect_waiting(&v);
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 200, TAGGED, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    expect_http_hit(URL, "", 30);
    scene_end();
    free(lines);
}
END_TEST

START_TEST(a_fetch_without_conditions_can_fail_in_its_turn)
{
    struct visit v;

    scene_begin(&defaults);
    for (unsigned i = 0; i < 3; i++) {
        store_expired(TAGGED);
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, 304, "ETag: \"other\"\r\n", 0);
        if (i == 0) {
            scene_answer(URL, 304, "ETag: \"other\"\r\n", 0);
            expect_body(&v, OUTCOME_MISS, 0);
            ck_assert_uint_eq(v.status, 304);
        } else if (i == 1) {
            scene_done(scene_fetch(URL), FETCH_TIMED_OUT, "late");
            scene_run();
            expect_body(&v, OUTCOME_STALE, 20);
        } else {
            scene_done(scene_fetch(URL), FETCH_STOPPING, "shutting down");
            scene_run();
            expect_failure(&v, FAILURE_STOPPING, "shutting down");
        }
        control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
    }
    scene_end();
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

START_TEST(an_object_is_used_after_an_error_if_its_response_permits_that)
{
    static const unsigned errors[] = {0, 500, 502, 503, 504};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct visit v[2];

        scene_begin(&defaults);
        store_expired("ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=60\r\n");
        ck_assert(!visit_http(&v[0], URL, ""));
        ck_assert(!visit_http(&v[1], URL, ""));
        if (errors[i])
            scene_answer(URL, errors[i], "", 30);
        else
            scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        scene_run();
        for (unsigned k = 0; k < 2; k++) {
            expect_body(&v[k], OUTCOME_STALE, 20);
            ck_assert(v[k].stored);
            ck_assert_uint_eq(v[k].status, 200);
        }
        ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 2);
        /* It stays, until it is too old. */
        ck_assert_uint_eq(scene_stats().pages, 1);
        scene.now_us += 60 * SECOND;
        ck_assert(!visit_http(&v[0], URL, ""));
        scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        scene_run();
        expect_failure(&v[0], FAILURE_CONNECT, "refused");
        scene_end();
    }
}
END_TEST

/* RFC 9111 section 4.2.4: disconnected, and for a day. */
START_TEST(an_error_that_is_not_to_be_stored_leaves_the_old_object)
{
    struct visit v[2];

    scene_begin(&defaults);
    store_expired("ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=60\r\n");
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(!visit_http(&v[0], URL, ""));
        ck_assert(!visit_http(&v[1], URL, ""));
        scene_answer(URL, 503, "Cache-Control: no-store\r\n", 7);
        expect_body(&v[0], OUTCOME_STALE, 20);
        expect_body(&v[1], OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_stats().passed, 0);
        ck_assert_uint_eq(scene_stats().pages, 1);
    }
    /* Beyond the window the error goes to its request only. */
    scene.now_us += 60 * SECOND;
    ck_assert(!visit_http(&v[0], URL, ""));
    ck_assert(!visit_http(&v[1], URL, ""));
    scene_answer(URL, 503, "Cache-Control: no-store\r\n", 7);
    ck_assert_uint_eq(v[0].status, 503);
    ck_assert_uint_eq(scene_stats().passed, 1);
    expect_waiting(&v[1]);
    scene_answer(URL, 200, "", 5);
    scene_end();
}
END_TEST

/* Otherwise the first one would be sent, and all requests be forwarded, until its window ends. */
START_TEST(a_stored_error_is_replaced_by_a_later_one)
{
    static const char lines[] = "Cache-Control: max-age=10, stale-if-error=600\r\n";
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!visit_http(&v[0], URL, ""));
    scene_answer(URL, 503, lines, 7);
    ck_assert(v[0].stored);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v[0], URL, ""));
    ck_assert(!visit_http(&v[1], URL, ""));
    scene_answer(URL, 503, lines, 8);
    expect_body(&v[0], OUTCOME_MISS, 8);
    expect_body(&v[1], OUTCOME_COALESCED, 8);
    ck_assert_uint_eq(v[0].status, 503);
    expect_http_hit(URL, "", 8);
    /* Without a response it is used. */
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v[0], URL, ""));
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
    scene_run();
    expect_body(&v[0], OUTCOME_STALE, 8);
    scene_end();
}
END_TEST

START_TEST(without_its_origin_an_object_is_used_unless_its_response_forbids_that)
{
    static const struct {
        const char *lines;
        enum fetch_error error;
        int64_t age_s;
        bool used;
    } rows[] = {
        {TAGGED, FETCH_CONNECT_FAILED, 11, true},
        {TAGGED, FETCH_RESOLVE_FAILED, 11, true},
        {TAGGED, FETCH_TIMED_OUT, 11, true},
        {TAGGED, FETCH_CONNECT_TIMED_OUT, 11, true},
        {TAGGED, FETCH_TLS_FAILED, 11, true},
        {TAGGED, FETCH_ORIGIN_BROKE, 86000, true},
        {TAGGED, FETCH_ORIGIN_BROKE, 86411, false},
        {TAGGED, FETCH_OVERLOADED, 11, false},
        {TAGGED, FETCH_DENIED, 11, false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, must-revalidate\r\n", FETCH_CONNECT_FAILED, 11,
         false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, no-cache\r\n", FETCH_CONNECT_FAILED, 11, false},
        {"ETag: \"a\"\r\nCache-Control: s-maxage=10\r\n", FETCH_CONNECT_FAILED, 11, false},
        {"ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=60\r\n", FETCH_CONNECT_FAILED,
         71, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store_expired(rows[i].lines);
        scene.now_us += (rows[i].age_s - 11) * SECOND;
        ck_assert(!visit_http(&v, URL, ""));
        scene_done(scene_fetch(URL), rows[i].error, "no way");
        scene_run();
        ck_assert_msg((v.fails == 0) == rows[i].used, "row %zu", i);
        if (rows[i].used)
            expect_body(&v, OUTCOME_STALE, 20);
        scene_end();
    }
}
END_TEST

START_TEST(without_permission_the_error_is_the_response)
{
    static const char *const rows[] = {
        TAGGED, "ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=60, must-revalidate\r\n"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store_expired(rows[i]);
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, 503, "", 30);
        expect_body(&v, OUTCOME_MISS, 30);
        ck_assert_uint_eq(v.status, 503);
        scene_end();
    }
}
END_TEST

START_TEST(a_body_that_breaks_off_is_no_reason_to_use_the_old_object)
{
    struct visit v;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    store_expired("ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=60\r\n");
    ck_assert(!visit_http(&v, URL, ""));
    fetch = scene_fetch(URL);
    scene_response(fetch, TAGGED, false);
    scene_head(fetch, 200, TAGGED, 30);
    scene_body(fetch, 10);
    scene_run();
    scene_done(fetch, FETCH_ORIGIN_BROKE, "20 bytes are missing");
    scene_run();
    expect_failure(&v, FAILURE_ORIGIN, "20 bytes");
    ck_assert_uint_eq(v.heads, 1);
    scene_end();
}
END_TEST

START_TEST(a_new_status_replaces_the_object)
{
    struct visit v;

    scene_begin(&defaults);
    store_expired(TAGGED);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 404, "Cache-Control: max-age=10\r\n", 30);
    expect_body(&v, OUTCOME_MISS, 30);
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_HIT, 30);
    ck_assert_uint_eq(v.status, 404);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: validation");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, an_expired_object_is_validated_by_what_it_has);
    tcase_add_test(cases, a_request_can_demand_a_validation);
    tcase_add_test(cases, a_304_makes_the_object_fresh_again_and_updates_its_fields);
    tcase_add_test(cases, a_304_may_forbid_that_the_object_stays);
    tcase_add_test(cases, an_object_that_is_evicted_meanwhile_is_confirmed_all_the_same);
    tcase_add_test(cases, a_304_with_another_etag_leads_to_a_fetch_without_conditions);
    tcase_add_test(cases, a_304_that_fills_the_head_leads_to_a_fetch_without_conditions);
    tcase_add_test(cases, a_fetch_without_conditions_can_fail_in_its_turn);
    tcase_add_test(cases, an_object_is_used_after_an_error_if_its_response_permits_that);
    tcase_add_test(cases, an_error_that_is_not_to_be_stored_leaves_the_old_object);
    tcase_add_test(cases, a_stored_error_is_replaced_by_a_later_one);
    tcase_add_test(cases, without_its_origin_an_object_is_used_unless_its_response_forbids_that);
    tcase_add_test(cases, without_permission_the_error_is_the_response);
    tcase_add_test(cases, a_body_that_breaks_off_is_no_reason_to_use_the_old_object);
    tcase_add_test(cases, a_new_status_replaces_the_object);
    suite_add_tcase(suite, cases);
    return suite;
}
