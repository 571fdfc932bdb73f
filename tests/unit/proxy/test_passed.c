/* What the responses to requests that passed a mark leave in the cache. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=100\r\n"
#define PRIVATE "Cache-Control: private\r\n"

static const struct scene_options defaults;

/* A mark stands in the cache. */
static void
set_mark(void)
{
    struct visit v;

    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, PRIVATE, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert_uint_eq(scene_stats().passed, 1);
}

START_TEST(what_the_origin_made_of_a_range_or_a_condition_is_not_stored)
{
    static const struct {
        const char *fields;
        unsigned status;
    } rows[] = {{"Range: bytes=500000-\r\n", 416},
                {"Range: bytes=500000-\r\n", 404},
                {"If-None-Match: \"b\"\r\n", 404}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        set_mark();
        ck_assert(!visit_http(&v, URL, rows[i].fields));
        ck_assert_str_eq(scene_fetch(URL)->fields, rows[i].fields);
        scene_answer(URL, rows[i].status, "Cache-Control: max-age=60\r\n", 5);
        ck_assert_uint_eq(v.status, rows[i].status);
        ck_assert(!visit_http(&v, URL, ""));
        scene_answer(URL, 200, FRESH, 30);
        ck_assert_uint_eq(v.status, 200);
        ck_assert_uint_eq(v.got, 30);
        scene_end();
    }
}
END_TEST

/* The fetch that was submitted after this one. */
static struct scene_fetch *
next_fetch(struct scene_fetch *fetch)
{
    struct scene_fetch *next = TAILQ_NEXT(fetch, link);

    ck_assert_ptr_nonnull(next);
    return next;
}

START_TEST(an_older_response_does_not_replace_a_newer_one)
{
    struct scene_fetch *older, *newer;
    struct visit v[3];

    scene_begin(&defaults);
    set_mark();
    ck_assert(!visit_http(&v[0], URL, ""));
    older = scene_fetch(URL);
    scene_response(older, FRESH, false);
    scene_head(older, 200, FRESH, 20);
    scene.now_us += 30 * SECOND;
    ck_assert(!visit_http(&v[1], URL, ""));
    newer = next_fetch(older);
    scene_response(newer, FRESH, false);
    scene_head(newer, 200, FRESH, 30);
    scene_body(newer, 30);
    scene_done(newer, FETCH_OK, "");
    scene_run();
    expect_body(&v[1], OUTCOME_MISS, 30);
    scene_body(older, 20);
    scene_done(older, FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 20);
    ck_assert(visit_http(&v[2], URL, ""));
    expect_body(&v[2], OUTCOME_HIT, 30);
    ck_assert_int_lt(v[2].age_us, SECOND);
    scene_end();
}
END_TEST

START_TEST(what_a_request_forbids_leaves_no_mark_and_the_page_as_it_is)
{
    static const char stale[] = "ETag: \"a\"\r\nCache-Control: max-age=10, stale-if-error=100\r\n";
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!visit_http(&v[0], URL, ""));
    scene_answer(URL, 200, stale, 20);
    scene.now_us += 20 * SECOND;
    ck_assert(!visit_http(&v[0], URL, "Authorization: x\r\n"));
    ck_assert(!visit_http(&v[1], URL, ""));
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&v[0], OUTCOME_MISS, 30);
    ck_assert_uint_eq(scene_stats().passed, 0);
    ck_assert_uint_eq(scene_stats().pages, 1);
    /* The other one has looked up again, and uses the page. */
    scene_answer(URL, 503, "", 5);
    expect_body(&v[1], OUTCOME_STALE, 20);
    /* Without a page there is no mark either. */
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    ck_assert(!visit_http(&v[0], URL, "Authorization: x\r\n"));
    scene_answer(URL, 200, FRESH, 30);
    ck_assert_uint_eq(scene_stats().passed, 0);
    scene_end();
}
END_TEST

START_TEST(the_mark_ends_when_a_response_proves_that_it_is_for_all)
{
    static const struct {
        const char *fields;
        unsigned status;
        const char *lines;
        bool stays;
    } rows[] = {{"If-None-Match: \"a\"\r\n", 304, "ETag: \"a\"\r\n", true},
                {"If-None-Match: \"a\"\r\n", 200, FRESH, false},
                {"Range: bytes=5-\r\n", 416, "", true},
                {"Range: bytes=5-\r\n", 206, "Content-Range: bytes 5-9/10\r\n", true},
                {"", 200, "", true},
                {"", 200, FRESH, false},
                {"Authorization: x\r\n", 200, FRESH, true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        set_mark();
        ck_assert(!visit_http(&v, URL, rows[i].fields));
        scene_answer(URL, rows[i].status, rows[i].lines, 5);
        ck_assert_uint_eq(v.status, rows[i].status);
        ck_assert_msg(scene_stats().passed == rows[i].stays, "row %zu", i);
        scene_end();
    }
}
END_TEST

START_TEST(a_demand_is_not_met_by_a_response_that_has_begun_before)
{
    static const struct {
        const char *fields;
        bool joins;
    } rows[] = {{"", true},
                {"Cache-Control: no-cache\r\n", false},
                {"Cache-Control: min-fresh=1\r\n", false},
                {"Cache-Control: max-age=30\r\n", false},
                {"Cache-Control: max-age=60\r\n", true}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene_fetch *first;
        struct visit v[4];

        scene_begin(&defaults);
        ck_assert(!visit_http(&v[0], URL, ""));
        first = scene_fetch(URL);
        /* Before the head has come its response will do. */
        ck_assert(!visit_http(&v[1], URL, rows[i].fields));
        ck_assert_uint_eq(scene_fetches(), 1);
        scene_response(first, FRESH, false);
        scene_head(first, 200, FRESH, 20);
        scene.now_us += 50 * SECOND;
        ck_assert(!visit_http(&v[2], URL, rows[i].fields));
        ck_assert_msg(scene_fetches() == (rows[i].joins ? 1 : 2), "row %zu", i);
        scene_body(first, 20);
        if (!rows[i].joins) {
            struct scene_fetch *second = next_fetch(first);

            scene_response(second, FRESH, false);
            scene_head(second, 200, FRESH, 30);
            scene_body(second, 30);
            scene_done(first, FETCH_OK, "");
            scene_done(second, FETCH_OK, "");
        } else {
            scene_done(first, FETCH_OK, "");
        }
        scene_run();
        expect_body(&v[0], OUTCOME_MISS, 20);
        expect_body(&v[1], OUTCOME_COALESCED, 20);
        expect_body(&v[2], rows[i].joins ? OUTCOME_COALESCED : OUTCOME_MISS,
                    rows[i].joins ? 20 : 30);
        /* The later response has replaced the earlier one. */
        ck_assert(visit_http(&v[3], URL, ""));
        expect_body(&v[3], OUTCOME_HIT, rows[i].joins ? 20 : 30);
        scene_end();
    }
}
END_TEST

#define MAX_AGE "Cache-Control: max-age=60\r\n"

/* What has expired may not be used for a later request: RFC 9111 section 4. */
START_TEST(a_response_that_has_expired_while_it_arrives_is_not_joined)
{
    static const struct {
        bool http;
        const char *lines, *fields;
        int64_t after_s;
        bool joins;
    } rows[] = {
        {true, "Cache-Control: max-age=10\r\n", "", 9, true},
        {true, "Cache-Control: max-age=10\r\n", "", 10, false},
        {true, "Cache-Control: max-age=10\r\nAge: 4\r\n", "", 6, false},
        {true, "Cache-Control: max-age=10, stale-while-revalidate=20\r\n", "", 29, true},
        {true, "Cache-Control: max-age=10, stale-while-revalidate=20\r\n", "", 30, false},
        {true, "Cache-Control: s-maxage=10, stale-while-revalidate=20\r\n", "", 10, false},
        /* RFC 9111 section 5.2.1.1: no stale response without max-stale. */
        {true, "Cache-Control: max-age=10, stale-while-revalidate=100\r\n", "", 50, true},
        {true, "Cache-Control: max-age=10, stale-while-revalidate=100\r\n", MAX_AGE, 9, true},
        {true, "Cache-Control: max-age=10, stale-while-revalidate=100\r\n", MAX_AGE, 10, false},
        {true, "Cache-Control: max-age=10, stale-while-revalidate=100\r\n", MAX_AGE, 50, false},
        {false, "Cache-Control: max-age=10\r\n", "", 9, true},
        {false, "Cache-Control: max-age=10\r\n", "", 10, false},
        {false, "", "", 100000, true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[2] = {{.url = URL, .http = rows[i].http, .fields = "", .streams = true}};
        struct scene_fetch *first;

        v[1] = v[0];
        v[1].fields = rows[i].fields;
        scene_begin(&defaults);
        ck_assert(!visit(&v[0]));
        first = scene_fetch(URL);
        scene_response(first, rows[i].lines, false);
        scene_head(first, 200, rows[i].lines, 20);
        scene.now_us += rows[i].after_s * SECOND;
        ck_assert(!visit(&v[1]));
        ck_assert_msg(scene_fetches() == (rows[i].joins ? 1 : 2), "row %zu", i);
        scene_body(first, 20);
        scene_done(first, FETCH_OK, "");
        scene_run();
        expect_body(&v[0], OUTCOME_MISS, 20);
        if (!rows[i].joins) {
            scene_answer(URL, 200, rows[i].lines, 30);
            expect_body(&v[1], OUTCOME_MISS, 30);
        } else {
            expect_body(&v[1], OUTCOME_COALESCED, 20);
        }
        scene_end();
    }
}
END_TEST

/* A slow body does not cost a fetch for each request after its lifetime. */
START_TEST(requests_after_an_expired_response_share_one_fetch)
{
    static const char lines[] = "Cache-Control: max-age=10\r\nETag: \"a\"\r\n";

    for (unsigned last = 0; last < 2; last++) {
        struct scene_fetch *first, *second;
        struct visit v[7];

        scene_begin(&defaults);
        ck_assert(!visit_http(&v[0], URL, ""));
        first = scene_fetch(URL);
        scene_response(first, lines, false);
        scene_head(first, 200, lines, 20);
        scene.now_us += 10 * SECOND;
        for (unsigned i = 1; i < 5; i++) {
            ck_assert(!visit_http(&v[i], URL, ""));
            ck_assert(!v[i].as_is);
        }
        ck_assert_uint_eq(scene_fetches(), 2);
        second = next_fetch(first);
        scene_response(second, lines, false);
        scene_head(second, 200, lines, 30);
        scene_body(first, 20);
        if (!last) {
            scene_done(first, FETCH_OK, "");
            scene_run();
        }
        /* Also where the first one is a page of the cache by now. */
        ck_assert(!visit_http(&v[5], URL, ""));
        ck_assert_uint_eq(scene_fetches(), last ? 2 : 1);
        scene_body(second, 30);
        scene_done(second, FETCH_OK, "");
        scene_run();
        if (last) {
            scene_done(first, FETCH_OK, "");
            scene_run();
        }
        expect_body(&v[0], OUTCOME_MISS, 20);
        expect_body(&v[1], OUTCOME_MISS, 30);
        for (unsigned i = 2; i < 6; i++)
            expect_body(&v[i], OUTCOME_COALESCED, 30);
        ck_assert_uint_eq(scene_stats().pages, 1);
        ck_assert(visit_http(&v[6], URL, ""));
        expect_body(&v[6], OUTCOME_HIT, 30);
        scene_end();
    }
}
END_TEST

/* With requests all the time, and a body that takes longer than its lifetime, too. */
START_TEST(a_slow_response_that_has_expired_is_validated_at_its_end)
{
    static const char lines[] = "Cache-Control: max-age=10\r\nETag: \"a\"\r\n";
    struct scene_fetch *fetches[2];
    struct visit v[4];

    scene_begin(&defaults);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!visit_http(&v[i], URL, ""));
        fetches[i] = i ? next_fetch(fetches[0]) : scene_fetch(URL);
        scene_response(fetches[i], lines, false);
        scene_head(fetches[i], 200, lines, 20);
        scene.now_us += 10 * SECOND;
    }
    scene_body(fetches[0], 20);
    scene_done(fetches[0], FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 20);
    ck_assert(!visit_http(&v[2], URL, ""));
    ck_assert_ptr_nonnull(strstr(next_fetch(fetches[1])->fields, "If-None-Match: \"a\""));
    scene_body(fetches[1], 20);
    scene_done(fetches[1], FETCH_OK, "");
    scene_answer(URL, 304, lines, 0);
    expect_body(&v[1], OUTCOME_MISS, 20);
    ck_assert_uint_eq(v[2].got, 20);
    ck_assert(visit_http(&v[3], URL, ""));
    expect_body(&v[3], OUTCOME_HIT, 20);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: passed requests");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, what_the_origin_made_of_a_range_or_a_condition_is_not_stored);
    tcase_add_test(cases, an_older_response_does_not_replace_a_newer_one);
    tcase_add_test(cases, what_a_request_forbids_leaves_no_mark_and_the_page_as_it_is);
    tcase_add_test(cases, the_mark_ends_when_a_response_proves_that_it_is_for_all);
    tcase_add_test(cases, a_demand_is_not_met_by_a_response_that_has_begun_before);
    tcase_add_test(cases, a_response_that_has_expired_while_it_arrives_is_not_joined);
    tcase_add_test(cases, requests_after_an_expired_response_share_one_fetch);
    tcase_add_test(cases, a_slow_response_that_has_expired_is_validated_at_its_end);
    suite_add_tcase(suite, cases);
    return suite;
}
