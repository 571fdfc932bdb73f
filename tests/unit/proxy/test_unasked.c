/*
 * A 304 to a request without a condition, and a 206 to one without a range: they are passed on to
 * the client whose request has led to them, and change nothing else.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>
#include <string.h>

#include "proxy/origin_fill.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=60\r\n"
#define PART "Content-Range: bytes 5-9/10\r\n"

static const struct scene_options defaults;

static void
store(const char *lines, int64_t age_s)
{
    expect_http_miss(URL, "", lines, 20);
    scene.now_us += age_s * SECOND;
}

/* The origin sends what was not asked for: its client gets it as it is. */
static void
answer_unasked(struct visit *v, bool part, const char *lines)
{
    char all[200];

    snprintf(all, sizeof(all), "%s%s", part ? PART : "", lines);
    scene_answer(URL, part ? 206 : 304, all, part ? 5 : 0);
    expect_body(v, v->outcome, part ? 5 : 0);
    ck_assert_uint_eq(v->status, part ? 206 : 304);
    ck_assert_int_eq(strncmp(v->lines, all, strlen(all)), 0);
    ck_assert(!v->stored);
    ck_assert_int_eq(v->origin_status, 0);
}

/* Two requests without conditions share a fetch, or each has its own. */
static void
expect_shared(bool shared)
{
    struct visit v[2];

    for (unsigned i = 0; i < 2; i++)
        ck_assert(!visit_http(&v[i], URL, ""));
    ck_assert_uint_eq(scene_fetches(), shared ? 1 : 2);
    for (unsigned i = 0; i < 2; i++)
        if (scene_find(URL))
            scene_answer(URL, 200, FRESH, 30);
    for (unsigned i = 0; i < 2; i++)
        expect_body(&v[i], i && shared ? OUTCOME_COALESCED : OUTCOME_MISS, 30);
}

static const char *const heads[] = {"", FRESH, "Cache-Control: private\r\nSet-Cookie: a=b\r\n"};

#define HEADS (sizeof(heads) / sizeof(heads[0]))

/* `_i`: which of both, and its head. */
START_TEST(its_client_alone_has_it)
{
    static const char *const fields[] = {"", "If-None-Match: \"a\"\r\n", "Range: bytes=5-9\r\n"};
    bool part = _i % 2;
    struct visit first, others[3];

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, ""));
    for (unsigned i = 0; i < 3; i++)
        ck_assert(!visit_http(&others[i], URL, fields[i]));
    ck_assert_uint_eq(scene_fetches(), 1);
    answer_unasked(&first, part, heads[_i / 2]);
    ck_assert_int_eq(scene.fetched.failure, 0);
    ck_assert_int_eq(scene.fetched.reason, part ? HTTP_REASON_PARTIAL : HTTP_REASON_STATUS);
    ck_assert_uint_eq(scene_stats().pages, 0);
    /* None waits for another one's, and each is the origin's to answer. */
    ck_assert_uint_eq(scene_fetches(), 3);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_str_eq(scene_fetch(URL)->fields, fields[i]);
        scene_answer(URL, 200, FRESH, 20 + i);
        expect_body(&others[i], OUTCOME_MISS, 20 + i);
    }
    ck_assert(others[0].stored);
    scene_end();
}
END_TEST

START_TEST(later_requests_pass_for_a_second)
{
    struct visit v;

    for (unsigned i = 0; i < 2; i++) {
        scene_begin(&defaults);
        ck_assert(!visit_http(&v, URL, ""));
        answer_unasked(&v, _i, "Cache-Control: private\r\n");
        if (i == 1)
            scene.now_us += ORIGIN_FILL_BRIEF_US + 1000;
        expect_shared(i == 1);
        scene_end();
    }
}
END_TEST

/* Also with --freshness off, where all have what comes for one. */
START_TEST(it_is_not_shared_whatever_is)
{
    const struct scene_options options = {.freshness_off = true};
    struct visit first, second;

    scene_begin(&options);
    ck_assert(!visit_http(&first, URL, ""));
    ck_assert(!visit_http(&second, URL, ""));
    answer_unasked(&first, _i, FRESH);
    expect_waiting(&second);
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&second, OUTCOME_MISS, 30);
    scene_end();
}
END_TEST

/* With or without what it can be validated by; a 304 to its own validators is asked for. */
START_TEST(an_object_stays_as_it_is)
{
    bool part = _i % 2, validates = _i / 2;
    struct visit first, second;

    scene_begin(&defaults);
    store(validates ? FRESH : "Cache-Control: max-age=10, stale-if-error=1000\r\n", 70);
    ck_assert(!visit_http(&first, URL, ""));
    ck_assert(!visit_http(&second, URL, ""));
    if (validates && !part) {
        /* It concerns another object. */
        scene_answer(URL, 304, "ETag: \"b\"\r\n", 0);
        ck_assert_str_eq(scene_fetch(URL)->fields, "");
    }
    answer_unasked(&first, part, FRESH);
    ck_assert_uint_eq(scene_stats().passed, 0);
    ck_assert_uint_eq(scene_stats().pages, 1);
    expect_waiting(&second);
    if (validates) {
        ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
        scene_answer(URL, 304, FRESH, 0);
        expect_body(&second, OUTCOME_REVALIDATED, 20);
    } else {
        scene_answer(URL, 503, "", 5);
        expect_body(&second, OUTCOME_STALE, 20);
    }
    scene_end();
}
END_TEST

/* It is no successor of the object, and like other failures of the origin it ends the refreshes for
 * a while. */
START_TEST(a_refresh_in_the_background_has_failed)
{
    struct visit v;

    scene_begin(&defaults);
    store("Cache-Control: max-age=10, stale-while-revalidate=1000\r\n", 15);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(visit_http(&v, URL, ""));
        expect_body(&v, OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_fetches(), i == 0);
        if (i == 0)
            scene_answer(URL, _i ? 206 : 304, _i ? PART : "", _i ? 5 : 0);
    }
    ck_assert_uint_eq(scene_stats().passed, 0);
    scene_end();
}
END_TEST

/* It becomes neither longer nor shorter. */
START_TEST(a_mark_stays_as_long_as_it_would)
{
    bool ends = _i / 2;
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "Cache-Control: private\r\n", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    scene.now_us += ORIGIN_FILL_PASS_US - 10 * SECOND;
    ck_assert(!visit_http(&v, URL, ""));
    answer_unasked(&v, _i % 2, "");
    ck_assert_uint_eq(scene_stats().passed, 1);
    scene.now_us += ends ? 11 * SECOND : 5 * SECOND;
    expect_shared(ends);
    scene_end();
}
END_TEST

/* The part that came need not be the one that its client wants. */
START_TEST(a_range_is_the_origins_then)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, "Range: bytes=0-4\r\n"));
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 206, PART, 5);
    expect_waiting(&v);
    ck_assert_str_eq(scene_fetch(URL)->fields, "Range: bytes=0-4\r\n");
    scene_answer(URL, 206, "Content-Range: bytes 0-4/10\r\n", 5);
    expect_body(&v, OUTCOME_MISS, 5);
    ck_assert_uint_eq(v.status, 206);
    scene.now_us += ORIGIN_FILL_BRIEF_US + 1000;
    expect_shared(true);
    scene_end();
}
END_TEST

/* Requests that pass the cache anyhow. */
START_TEST(methods_that_are_passed_on)
{
    static const char *const methods[] = {"HEAD", "POST", "OPTIONS"};

    for (unsigned i = 0; i < 3; i++) {
        struct visit v = {
            .url = URL, .method = methods[i], .fields = "", .http = true, .streams = true};

        scene_begin(&defaults);
        ck_assert(!visit(&v));
        answer_unasked(&v, _i, FRESH);
        ck_assert_uint_eq(scene_stats().pages + scene_stats().passed, 0);
        scene_end();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: 304 and 206 that were not asked for");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, its_client_alone_has_it, 0, 2 * (int)HEADS);
    tcase_add_loop_test(cases, later_requests_pass_for_a_second, 0, 2);
    tcase_add_loop_test(cases, it_is_not_shared_whatever_is, 0, 2);
    tcase_add_loop_test(cases, an_object_stays_as_it_is, 0, 4);
    tcase_add_loop_test(cases, a_refresh_in_the_background_has_failed, 0, 2);
    tcase_add_loop_test(cases, a_mark_stays_as_long_as_it_would, 0, 4);
    tcase_add_test(cases, a_range_is_the_origins_then);
    tcase_add_loop_test(cases, methods_that_are_passed_on, 0, 2);
    suite_add_tcase(suite, cases);
    return suite;
}
