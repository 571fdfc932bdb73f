/* Methods other than GET, ranges, and what an unsafe request makes invalid. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "tests/unit/proxy/scene.h"

#define HOST "http://origin.test"
#define URL HOST "/page"
#define FRESH "Content-Length: 20\r\nCache-Control: max-age=1000\r\n"

static const struct scene_options defaults;

static bool
begin(struct visit *v, const char *method, const char *fields)
{
    *v = (struct visit){
        .url = URL, .http = true, .streams = true, .method = method, .fields = fields};
    return visit(v);
}

/* Is it in the cache? */
static bool
has(const char *url, const char *fields)
{
    struct visit v;
    char all[200];

    snprintf(all, sizeof(all), "%sCache-Control: only-if-cached\r\n", fields);
    ck_assert(visit_http(&v, url, all));
    return v.fails == 0;
}

/* ---- HEAD ------------------------------------------------------------------------------------ */

START_TEST(head_is_answered_from_the_object_of_get)
{
    struct visit v;

    scene_begin(&defaults);
    expect_http_miss(URL, "", FRESH, 20);
    ck_assert(begin(&v, "HEAD", ""));
    expect_body(&v, OUTCOME_HIT, 20);
    ck_assert_ptr_nonnull(strstr(v.lines, "Content-Length: 20\r\n"));
    ck_assert(!v.as_is);
    scene_end();
}
END_TEST

START_TEST(head_is_passed_on_where_there_is_no_fresh_object)
{
    static const char fields[] = "If-None-Match: \"mine\"\r\n";
    struct visit v, get;

    scene_begin(&defaults);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!begin(&v, "HEAD", fields));
        ck_assert_str_eq(scene_fetch(URL)->method, "HEAD");
        ck_assert_str_eq(scene_fetch(URL)->fields, fields);
        scene_answer(URL, 304, FRESH, 0);
        expect_body(&v, OUTCOME_BYPASS, 0);
        ck_assert(v.as_is && !v.stored && v.status == 304);
        if (i == 0) {
            expect_http_miss(URL, "", FRESH, 20);
            scene.now_us += 1001 * SECOND;
        }
    }
    ck_assert_uint_eq(scene_stats().pages, 1);
    /* Nor does it wait for an object, nor get one that another method led to. */
    ck_assert(!visit_http(&get, URL, ""));
    ck_assert(!begin(&v, "HEAD", ""));
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_answer(URL, 200, FRESH, 20);
    scene_answer(URL, 200, FRESH, 0);
    expect_body(&get, OUTCOME_MISS, 20);
    expect_body(&v, OUTCOME_BYPASS, 0);
    scene_end();
}
END_TEST

/* ---- unsafe methods -------------------------------------------------------------------------- */

static void
store_all(void)
{
    expect_http_miss(URL, "", FRESH "Vary: X-A\r\n", 20);
    expect_http_miss(URL, "X-A: 1\r\n", FRESH "Vary: X-A\r\n", 20);
    scene_store(URL "2", "", 10);
}

/* Is all there that is stored for the URL, or nothing? */
static void
expect_all(bool all)
{
    struct visit v = {.url = URL};

    ck_assert(has(URL, "") == all);
    ck_assert(has(URL, "X-A: 1\r\n") == all);
    if (all)
        ck_assert(visit(&v)); /* over RPC */
    else
        ck_assert(!scene_has(URL));
    ck_assert(scene_has(URL "2"));
}

START_TEST(methods_that_may_change_something_are_passed_on_and_invalidate)
{
    static const struct {
        const char *method;
        bool invalidates;
    } rows[] = {
        {"POST", true}, {"PUT", true},     {"DELETE", true},   {"PATCH", true},  {"M-SEARCH", true},
        {"post", true}, {"UNKNOWN", true}, {"OPTIONS", false}, {"TRACE", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store_all();
        ck_assert(!begin(&v, rows[i].method, "X-B: c\r\n"));
        ck_assert_str_eq(scene_fetch(URL)->method, rows[i].method);
        ck_assert_str_eq(scene_fetch(URL)->fields, "X-B: c\r\n");
        ck_assert(has(URL, ""));
        scene_answer(URL, 200, FRESH, 20);
        expect_body(&v, OUTCOME_BYPASS, 20);
        ck_assert(!v.stored && v.as_is);
        expect_all(!rows[i].invalidates);
        scene_end();
    }
}
END_TEST

/* The head is enough: the client may act on it. */
START_TEST(what_is_fetched_while_an_unsafe_request_is_under_way_is_not_stored)
{
    struct visit v, before, after;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!begin(&v, "PUT", ""));
    fetch = scene_fetch(URL);
    ck_assert(!visit_http(&before, URL, ""));
    scene_response(fetch, "", false);
    scene_head(fetch, 200, "", 5);
    ck_assert(!visit_http(&after, URL, ""));
    ck_assert_uint_eq(scene_fetches(), 3);
    scene_body(fetch, 5);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&v, OUTCOME_BYPASS, 5);
    scene_answer(URL, 200, FRESH, 20);
    expect_body(&before, OUTCOME_MISS, 20);
    ck_assert(!before.stored);
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&after, OUTCOME_MISS, 30);
    ck_assert(after.stored);
    scene_end();
}
END_TEST

START_TEST(an_unsafe_request_without_a_response_invalidates)
{
    struct visit v;

    scene_begin(&defaults);
    store_all();
    ck_assert(!begin(&v, "PUT", ""));
    scene_done(scene_fetch(URL), FETCH_ORIGIN_BROKE, "broken");
    scene_run();
    expect_failure(&v, FAILURE_ORIGIN, "broken");
    expect_all(false);
    scene_end();
}
END_TEST

START_TEST(an_unsafe_request_can_invalidate_before_it_is_forwarded)
{
    struct visit v;

    scene_begin(&defaults);
    scene.proxy_rules.invalidates_early = true;
    store_all();
    ck_assert(!begin(&v, "PUT", ""));
    ck_assert(!has(URL, ""));
    scene_answer(URL, 500, "", 5);
    expect_body(&v, OUTCOME_BYPASS, 5);
    expect_all(false);
    scene_end();
}
END_TEST

START_TEST(location_and_content_location_of_the_same_origin_are_invalidated)
{
    static const char *const urls[] = {HOST "/new", HOST "/text", "http://other.test/new",
                                       HOST "/else"};
    struct visit v;

    scene_begin(&defaults);
    for (unsigned i = 0; i < 4; i++)
        expect_http_miss(urls[i], "", FRESH, 20);
    ck_assert(!begin(&v, "POST", ""));
    ck_assert(has(urls[0], "") && has(urls[1], ""));
    scene_answer(URL, 201,
                 "Location: /new\r\nContent-Location: http://ORIGIN.test:80/text\r\n"
                 "Content-Location: http://other.test/new\r\n",
                 5);
    expect_body(&v, OUTCOME_BYPASS, 5);
    ck_assert(!has(urls[0], "") && !has(urls[1], ""));
    ck_assert(has(urls[2], "") && has(urls[3], ""));
    scene_end();
}
END_TEST

START_TEST(an_error_invalidates_nothing)
{
    static const unsigned errors[] = {400, 404, 500, 503};

    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        store_all();
        expect_http_miss(HOST "/new", "", FRESH, 20);
        ck_assert(!begin(&v, "POST", ""));
        scene_answer(URL, errors[i], "Location: /new\r\n", 5);
        expect_body(&v, OUTCOME_BYPASS, 5);
        ck_assert(has(HOST "/new", ""));
        expect_all(true);
        scene_end();
    }
}
END_TEST

/* ---- POST ------------------------------------------------------------------------------------ */

#define OWN "Content-Location: /page\r\n" FRESH

START_TEST(a_response_to_post_answers_later_requests_if_it_is_that_of_its_url)
{
    static const struct {
        const char *method, *lines;
        bool stored;
    } rows[] = {
        {"POST", OWN, true},
        {"PUT", OWN, false},
        {"POST", FRESH, false},
        {"POST", "Content-Location: /other\r\n" FRESH, false},
        {"POST", "Content-Location: /page\r\nETag: \"a\"\r\n", false},
        {"POST", OWN "Vary: X-A\r\n", false},
        {"POST", OWN "Set-Cookie: a=b\r\n", false},
        {"POST", "Content-Location: /page\r\nCache-Control: private, max-age=10\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        expect_http_miss(URL, "", FRESH, 20);
        ck_assert(!begin(&v, rows[i].method, ""));
        scene_answer(URL, 200, rows[i].lines, 30);
        expect_body(&v, OUTCOME_BYPASS, 30);
        ck_assert_msg(has(URL, "") == rows[i].stored, "row %zu", i);
        if (rows[i].stored) {
            ck_assert(visit_http(&v, URL, ""));
            expect_body(&v, OUTCOME_HIT, 30);
        }
        scene_end();
    }
}
END_TEST

START_TEST(a_response_to_head_leaves_what_is_stored)
{
    static const char *const rows[] = {
        "ETag: \"b\"\r\nX-A: new\r\n" FRESH,
        "ETag: \"a\"\r\nX-A: new\r\n" FRESH,
        "Cache-Control: private\r\n",
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        expect_http_miss(URL, "", "ETag: \"a\"\r\nX-A: old\r\n" FRESH, 20);
        ck_assert(!begin(&v, "HEAD", "Cache-Control: no-cache\r\n"));
        scene_answer(URL, 200, rows[i], 0);
        expect_body(&v, OUTCOME_BYPASS, 0);
        ck_assert(visit_http(&v, URL, ""));
        ck_assert_str_eq(outcome_word(v.outcome), "hit");
        ck_assert_ptr_nonnull(strstr(v.lines, "X-A: old\r\n"));
        scene_end();
    }
}
END_TEST

START_TEST(a_response_to_post_that_breaks_off_or_is_overtaken_is_not_stored)
{
    for (unsigned i = 0; i < 2; i++) {
        struct visit first, second, get;
        struct scene_fetch *fetch;

        scene_begin(&defaults);
        ck_assert(!begin(&first, "POST", ""));
        fetch = scene_fetch(URL);
        scene_response(fetch, OWN, false);
        scene_head(fetch, 200, OWN, 20);
        /* It can be joined meanwhile. */
        ck_assert(!visit_http(&get, URL, ""));
        ck_assert_uint_eq(scene_fetches(), 1);
        scene_body(fetch, 10);
        scene_run();
        ck_assert_uint_eq(get.got, 10);
        if (i == 0) {
            scene_done(fetch, FETCH_ORIGIN_BROKE, "broken");
        } else {
            ck_assert(!begin(&second, "PUT", ""));
            scene_response(TAILQ_NEXT(fetch, link), "", false);
            scene_head(TAILQ_NEXT(fetch, link), 204, "", 0);
            scene_body(fetch, 10);
            scene_done(fetch, FETCH_OK, "");
            scene_done(scene_fetch(URL), FETCH_OK, "");
        }
        scene_run();
        if (i == 0) {
            expect_failure(&first, FAILURE_ORIGIN, "broken");
            expect_failure(&get, FAILURE_ORIGIN, "broke off");
        } else {
            expect_body(&first, OUTCOME_BYPASS, 20);
            expect_body(&get, OUTCOME_COALESCED, 20);
        }
        ck_assert(!has(URL, ""));
        scene_end();
    }
}
END_TEST

/* The response to the first may be older than what the second has made. */
START_TEST(a_response_to_post_that_another_write_was_answered_before_is_not_stored)
{
    static const char *const urls[] = {URL, HOST "/users", HOST "/else"};

    /* Another write to the URL, to a URL with its tag, or neither. */
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned early = 0; early < 2; early++) {
            struct visit first, second = {.url = urls[i], .http = true, .method = "PUT"};
            struct scene_fetch *fetch;

            scene_begin(&defaults);
            scene_add_rule(&scene.tag_rules, "/page -> users");
            scene_add_rule(&scene.tag_rules, "/users -> users");
            scene.proxy_rules.invalidates_early = early;
            ck_assert(!begin(&first, "POST", ""));
            fetch = scene_fetch(URL);
            TAILQ_REMOVE(&scene.fetches, fetch, link);
            second.streams = true;
            ck_assert(!visit(&second));
            scene_answer(urls[i], 204, "", 0);
            expect_body(&second, OUTCOME_BYPASS, 0);
            TAILQ_INSERT_TAIL(&scene.fetches, fetch, link);
            scene_answer(URL, 200, OWN, 20);
            expect_body(&first, OUTCOME_BYPASS, 20);
            ck_assert(has(URL, "") == (i == 2));
            scene_end();
        }
    }
}
END_TEST

START_TEST(a_response_to_post_that_is_large_is_not_kept_twice)
{
    for (unsigned known = 0; known < 2; known++) {
        struct visit v, get;
        struct scene_fetch *fetch;

        scene_begin(&defaults);
        ck_assert(!begin(&v, "POST", ""));
        fetch = scene_fetch(URL);
        scene_response(fetch, OWN, false);
        scene_head(fetch, 200, OWN, known ? (int64_t)MIB + 1 : -1);
        ck_assert(!visit_http(&get, URL, ""));
        ck_assert_uint_eq(scene_fetches(), 2);
        scene_done(fetch, FETCH_ORIGIN_BROKE, "broken");
        scene_answer(URL, 200, FRESH, 20);
        expect_body(&get, OUTCOME_MISS, 20);
        scene_end();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: methods");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, head_is_answered_from_the_object_of_get);
    tcase_add_test(cases, head_is_passed_on_where_there_is_no_fresh_object);
    tcase_add_test(cases, methods_that_may_change_something_are_passed_on_and_invalidate);
    tcase_add_test(cases, location_and_content_location_of_the_same_origin_are_invalidated);
    tcase_add_test(cases, what_is_fetched_while_an_unsafe_request_is_under_way_is_not_stored);
    tcase_add_test(cases, an_unsafe_request_without_a_response_invalidates);
    tcase_add_test(cases, an_unsafe_request_can_invalidate_before_it_is_forwarded);
    tcase_add_test(cases, an_error_invalidates_nothing);
    tcase_add_test(cases, a_response_to_post_answers_later_requests_if_it_is_that_of_its_url);
    tcase_add_test(cases, a_response_to_head_leaves_what_is_stored);
    tcase_add_test(cases, a_response_to_post_that_breaks_off_or_is_overtaken_is_not_stored);
    tcase_add_test(cases, a_response_to_post_that_another_write_was_answered_before_is_not_stored);
    tcase_add_test(cases, a_response_to_post_that_is_large_is_not_kept_twice);
    suite_add_tcase(suite, cases);
    return suite;
}
