/* Requests over HTTP: what is fetched, which of them share it, and what is stored. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "http/request_head.h"
#include "proxy/control.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "Cache-Control: max-age=10\r\n"

static const struct scene_options defaults;

/* Must hit, and have the body of `len` bytes. */
/* ---- fetching -------------------------------------------------------------------------------- */

START_TEST(a_request_is_fetched_with_its_fields_shared_and_stored)
{
    struct visit first, second;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, "Accept: text/html\r\n"));
    ck_assert(!visit_http(&second, URL, "Accept: */*\r\n"));
    ck_assert_uint_eq(scene_fetches(), 1);
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->fields, "Accept: text/html\r\n");
    ck_assert_uint_eq(fetch->flags, REQUEST_STREAMS);
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&first, OUTCOME_MISS, 20);
    expect_body(&second, OUTCOME_COALESCED, 20);
    ck_assert(first.stored && second.stored && !first.as_is);
    expect_http_hit(URL, "", 20);
    scene_end();
}
END_TEST

/* Visits as one that is known to lack these fields; returns how often its fields were made. */
static unsigned
times_made(const char *url, const char *fields, uint32_t lacks, enum outcome outcome)
{
    struct visit v = {.url = url, .fields = fields, .lacks = lacks, .http = true, .streams = true};

    if (!visit(&v)) {
        ck_assert_str_eq(scene_fetch(url)->fields, fields);
        scene_answer(url, 200, FRESH "Vary: Accept\r\n", 20);
    }
    expect_body(&v, outcome, 20);
    return v.makes;
}

START_TEST(fields_are_made_once_and_only_where_they_are_needed)
{
    static const char fields[] = "Accept: text/html\r\n";

    scene_begin(&defaults);
    ck_assert(!visit_http(&(struct visit){0}, URL "1", fields));
    scene_answer(URL "1", 200, FRESH, 20);
    ck_assert_uint_eq(times_made(URL "1", fields, ~0u, OUTCOME_HIT), 0);
    ck_assert_uint_eq(times_made(URL "1", fields, ~(uint32_t)HTTP_HAS_COOKIE, OUTCOME_HIT), 0);
    ck_assert_uint_eq(times_made(URL "1", fields, 0, OUTCOME_HIT), 1);
    ck_assert_uint_eq(times_made(URL "1", fields, ~(uint32_t)HTTP_HAS_CACHE_CONTROL, OUTCOME_HIT),
                      1);
    ck_assert_uint_eq(times_made(URL "2", fields, ~0u, OUTCOME_MISS), 1);
    /* Now it is known that it varies. */
    ck_assert_uint_eq(times_made(URL "2", fields, ~0u, OUTCOME_HIT), 1);
    ck_assert_uint_eq(times_made(URL "2", "Accept: b\r\n", ~0u, OUTCOME_MISS), 1);
    scene_end();
}
END_TEST

START_TEST(ranges_of_the_client_are_not_sent_for_the_cache)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL,
                         "If-None-Match: \"a\"\r\nAccept: b\r\nif-modified-since: c\r\n"
                         "If-Range: \"a\"\r\n"));
    ck_assert_str_eq(scene_fetch(URL)->fields,
                     "Accept: b\r\nIf-None-Match: \"a\"\r\nif-modified-since: c\r\n");
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert_int_eq(v.evaluated, EVALUATED_CONDITIONS);
    ck_assert(v.stored);
    scene_end();
}
END_TEST

START_TEST(what_only_an_origin_can_evaluate_is_passed_on_as_it_is)
{
    static const char *const rows[] = {"If-Match: \"a\"\r\n",
                                       "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
                                       "Cache-Control: no-store\r\nIf-None-Match: \"b\"\r\n"};

    scene_begin(&defaults);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        ck_assert(!visit_http(&v, URL, rows[i]));
        ck_assert_str_eq(scene_fetch(URL)->fields, rows[i]);
        scene_answer(URL, 200, FRESH, 20);
        expect_body(&v, OUTCOME_BYPASS, 20);
        ck_assert(v.as_is && !v.stored);
    }
    ck_assert_uint_eq(scene_stats().pages, 0);
    scene_end();
}
END_TEST

START_TEST(interim_responses_go_to_the_request_that_is_fetched)
{
    struct visit first, second;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, ""));
    ck_assert(!visit_http(&second, URL, ""));
    fetch = scene_fetch(URL);
    fetch->sink->interim(fetch->context, 103, span_str("Link: </a>\r\n"));
    if (_i)
        scene_run();
    fetch->sink->interim(fetch->context, 103, span_str("Link: </a>\r\n"));
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&first, OUTCOME_MISS, 20);
    expect_body(&second, OUTCOME_COALESCED, 20);
    ck_assert_uint_eq(first.interims, 2);
    ck_assert_uint_eq(second.interims, 0);
    scene_end();
}
END_TEST

/* ---- storing --------------------------------------------------------------------------------- */

START_TEST(statuses_are_stored_as_the_rules_say)
{
    static const struct {
        unsigned status;
        const char *lines;
        bool stored;
    } rows[] = {
        {200, FRESH, true},
        {200, "", false}, /* no lifetime, and nothing to validate it by */
        {200, "ETag: \"a\"\r\n", true},
        {203, FRESH, true},
        {204, FRESH, true},
        {301, FRESH, true},
        {302, FRESH, true},
        {302, "ETag: \"a\"\r\n", false},
        {404, FRESH, true},
        {410, FRESH, true},
        {500, FRESH, true},
        {500, "", false},
        {200, "Cache-Control: no-store\r\n", false},
        {200, "Cache-Control: private, max-age=10\r\n", false},
        {200, "Set-Cookie: a=b\r\nCache-Control: max-age=10\r\n", false},
        {200, "Vary: *\r\nCache-Control: max-age=10\r\n", false},
        {200, "Cache-Control: max-age=10\r\nAge: 11\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, rows[i].status, rows[i].lines, rows[i].status == 204 ? 0 : 20);
        ck_assert_uint_eq(v.status, rows[i].status);
        ck_assert_msg(v.stored == rows[i].stored, "row %zu", i);
        ck_assert_uint_eq(scene_stats().pages, rows[i].stored);
        scene_end();
    }
}
END_TEST

START_TEST(a_response_to_authorization_is_for_its_client_unless_it_says_otherwise)
{
    struct visit first, second;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, "Authorization: Basic YTpi\r\n"));
    ck_assert(!visit_http(&second, URL, ""));
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&first, OUTCOME_MISS, 20);
    ck_assert(!first.stored);
    expect_waiting(&second);
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&second, OUTCOME_MISS, 30);
    ck_assert(second.stored);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&first, URL, "Authorization: Basic YTpi\r\n"));
    scene_answer(URL, 200, "Cache-Control: public, max-age=10\r\n", 40);
    ck_assert(first.stored);
    scene_end();
}
END_TEST

START_TEST(the_age_counts_from_the_origin_and_the_fields_are_those_of_a_stored_response)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "Age: 4\r\nCache-Control: max-age=10\r\nX-Other: 2\r\n", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
    scene.now_us += 5 * SECOND;
    ck_assert(visit_http(&v, URL, ""));
    expect_body(&v, OUTCOME_HIT, 20);
    ck_assert_int_eq(v.age_us, 9 * SECOND + 1000);
    ck_assert_str_eq(v.lines, "Cache-Control: max-age=10\r\nX-Other: 2\r\n"
                              "Date: Thu, 28 May 2026 20:43:20 GMT\r\n");
    scene.now_us += SECOND;
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "", 20);
    scene_end();
}
END_TEST

START_TEST(limits_of_the_lifetime_apply_to_redirects_and_failures)
{
    struct visit v;

    scene_begin(&defaults);
    scene.rules.redirect_max_us = 5 * SECOND;
    scene.rules.negative_max_us = 3 * SECOND;
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, i ? 404 : 301, FRESH, 20);
        ck_assert(v.stored);
        scene.now_us += 2 * SECOND;
        expect_http_hit(URL, "", 20);
        scene.now_us += 4 * SECOND;
    }
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, FRESH, 20);
    scene.now_us += 9 * SECOND;
    expect_http_hit(URL, "", 20);
    scene_end();
}
END_TEST

START_TEST(cdn_cache_control_counts_only_where_the_origins_owner_runs_the_proxy)
{
    static const char lines[] = "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=10\r\n";

    for (unsigned owned = 0; owned < 2; owned++) {
        struct visit v = {.url = URL, .http = true, .owned = owned};

        scene_begin(&defaults);
        ck_assert(!visit(&v));
        scene_answer(URL, 200, lines, 20);
        ck_assert(v.stored == (owned != 0));
        scene_end();
    }
}
END_TEST

/* Their response may be another origin's than the one that is in force. */
START_TEST(requests_whose_rules_were_replaced_pass_the_cache)
{
    struct visit v = {.url = URL, .http = true}, first = v;

    scene_begin(&defaults);
    ck_assert(!visit(&first));
    scene_answer(URL, 200, FRESH, 5);
    ck_assert(first.stored);
    atomic_store(&scene.proxy.generation, 1);
    ck_assert(!visit(&v));
    ck_assert_int_eq(v.exchange.outcome, OUTCOME_BYPASS);
    scene_answer(URL, 200, FRESH, 7);
    ck_assert(!v.stored);
    scene.proxy_rules.generation = 1;
    expect_http_hit(URL, "", 5);
    scene_end();
}
END_TEST

START_TEST(an_object_has_the_tags_that_its_response_gives)
{
    static const struct {
        const char *lines, *tags;
    } rows[] = {
        {"", ""},
        {"Surrogate-Key: a bc  d\r\n", "a bc d"},
        {"Cache-Tag: a,bc , d\r\nsurrogate-key: e a\r\n", "a bc d e"},
        {"Cache-Tag: ,\r\nSurrogate-Key:\r\n", ""},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;
        char lines[200];

        scene_begin(&defaults);
        snprintf(lines, sizeof(lines), FRESH "ETag: \"a\"\r\n%s", rows[i].lines);
        for (unsigned round = 0; round < 2; round++) {
            ck_assert(!visit_http(&v, URL, ""));
            scene_answer(URL, round ? 304 : 200, lines, round ? 0 : 20);
            ck_assert_str_eq(v.tags, rows[i].tags);
            scene.now_us += 11 * SECOND;
        }
        ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_TAG, span_str("bc")),
                          rows[i].tags[0] != 0);
        ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_TAG, span_str("c")), 0);
        scene_end();
    }
}
END_TEST

START_TEST(a_response_with_too_many_tags_is_not_stored)
{
    struct visit v;
    char lines[400] = FRESH "Surrogate-Key:";

    scene_begin(&defaults);
    for (unsigned i = 0; i <= OBJECT_MAX_TAGS; i++) {
        if (i == OBJECT_MAX_TAGS) {
            char ended[420];

            snprintf(ended, sizeof(ended), "%s\r\n", lines);
            ck_assert(!visit_http(&v, URL, ""));
            scene_answer(URL, 200, ended, 20);
            ck_assert(v.stored);
            control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
        }
        snprintf(lines + strlen(lines), sizeof(lines) - strlen(lines), " %u", i);
    }
    strcat(lines, "\r\n");
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(!v.stored);
    ck_assert_str_eq(v.tags, "");
    scene_end();
}
END_TEST

START_TEST(with_freshness_off_a_page_stays_until_it_is_evicted)
{
    struct visit v;

    scene_begin(&(struct scene_options){.freshness_off = true});
    ck_assert(!visit_http(&v, URL, "Cache-Control: no-store\r\n"));
    scene_answer(URL, 200, "Cache-Control: no-store\r\nVary: *\r\nSet-Cookie: a=b\r\n", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
    scene.now_us += 1000000 * SECOND;
    expect_http_hit(URL, "Cache-Control: no-cache\r\n", 20);
    ck_assert(!visit_http(&v, "http://origin.test/missing", ""));
    scene_answer("http://origin.test/missing", 404, FRESH, 20);
    ck_assert(!v.stored);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: requests over HTTP");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_request_is_fetched_with_its_fields_shared_and_stored);
    tcase_add_test(cases, fields_are_made_once_and_only_where_they_are_needed);
    tcase_add_test(cases, ranges_of_the_client_are_not_sent_for_the_cache);
    tcase_add_test(cases, what_only_an_origin_can_evaluate_is_passed_on_as_it_is);
    tcase_add_loop_test(cases, interim_responses_go_to_the_request_that_is_fetched, 0, 2);
    tcase_add_test(cases, statuses_are_stored_as_the_rules_say);
    tcase_add_test(cases, a_response_to_authorization_is_for_its_client_unless_it_says_otherwise);
    tcase_add_test(cases,
                   the_age_counts_from_the_origin_and_the_fields_are_those_of_a_stored_response);
    tcase_add_test(cases, limits_of_the_lifetime_apply_to_redirects_and_failures);
    tcase_add_test(cases, cdn_cache_control_counts_only_where_the_origins_owner_runs_the_proxy);
    tcase_add_test(cases, requests_whose_rules_were_replaced_pass_the_cache);
    tcase_add_test(cases, an_object_has_the_tags_that_its_response_gives);
    tcase_add_test(cases, a_response_with_too_many_tags_is_not_stored);
    tcase_add_test(cases, with_freshness_off_a_page_stays_until_it_is_evicted);
    suite_add_tcase(suite, cases);
    return suite;
}
