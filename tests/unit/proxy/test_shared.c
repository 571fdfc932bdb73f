/* Which responses go to the requests that wait for them, and which to their own request only. */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"

static const struct scene_options defaults;

static bool
begin(struct visit *v, const char *fields, unsigned client)
{
    *v = (struct visit){.url = URL,
                        .fields = fields,
                        .http = true,
                        .streams = true,
                        .client = unit_client(client)};
    return visit(v);
}

/* ---- responses ------------------------------------------------------------------------------- */

START_TEST(what_waits_has_a_response_that_the_cache_could_give_it)
{
    static const struct {
        unsigned status;
        const char *lines, *first, *second;
        bool shared, stored;
    } rows[] = {
        {200, FRESH, "Cookie: s=1\r\n", "Cookie: s=2\r\n", true, true},
        {404, "Cache-Control: max-age=10\r\n", "", "", true, true},
        {301, "Cache-Control: max-age=10\r\n", "", "", true, true},
        /* It has to be validated before each use. */
        {200, "Cache-Control: no-cache\r\nETag: \"a\"\r\n", "", "", false, true},
        {200, "Cache-Control: no-cache, max-age=10\r\nETag: \"a\"\r\n", "", "", false, true},
        {200, "Cache-Control: max-age=0, must-revalidate\r\nETag: \"a\"\r\n", "", "", false, true},
        {200, "Cache-Control: max-age=10\r\nAge: 11\r\nETag: \"a\"\r\n", "", "", false, true},
        {200, "ETag: \"a\"\r\n", "", "Cookie: s=2\r\n", false, true},
        /* It is not stored. */
        {200, "ETag: \"a\"\r\n", "Cookie: s=1\r\n", "Cookie: s=2\r\n", false, false},
        {200, "Content-Type: text/html\r\n", "Cookie: s=1\r\n", "", false, false},
        {200, "Cache-Control: max-age=10\r\nAge: 11\r\n", "", "", false, false},
        {400, "", "X-Evil: 1\r\n", "", false, false},
        {431, "Cache-Control: max-age=10\r\n", "X-Evil: 1\r\n", "", false, false},
        {401, "WWW-Authenticate: Basic\r\n", "", "Authorization: Basic eA==\r\n", false, false},
        {429, "Retry-After: 10\r\n", "", "", false, false},
        {428, FRESH, "", "", false, false},
        {429, FRESH, "", "", false, false},
        {511, FRESH, "", "", false, false},
        {503, "", "", "", false, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[3];

        scene_begin(&defaults);
        ck_assert(!begin(&v[0], rows[i].first, 1));
        ck_assert(!begin(&v[1], rows[i].second, 2));
        ck_assert(!begin(&v[2], rows[i].second, 3));
        ck_assert_uint_eq(scene_fetches(), 1);
        scene_answer(URL, rows[i].status, rows[i].lines, 20);
        expect_body(&v[0], OUTCOME_MISS, 20);
        ck_assert_msg(v[0].stored == rows[i].stored, "row %zu", i);
        ck_assert_msg(v[1].ended == rows[i].shared, "row %zu", i);
        if (rows[i].shared)
            expect_body(&v[1], OUTCOME_COALESCED, 20);
        while (scene_fetches())
            scene_answer(URL, 200, FRESH, 30);
        if (!rows[i].shared) {
            ck_assert_uint_eq(v[1].got, 30);
            ck_assert_uint_eq(v[2].got, 30);
        }
        scene_end();
    }
}
END_TEST

START_TEST(with_freshness_off_every_response_is_shared)
{
    struct visit v[2];

    scene_begin(&(struct scene_options){.freshness_off = true});
    ck_assert(!begin(&v[0], "", 1));
    ck_assert(!begin(&v[1], "", 2));
    scene_answer(URL, 503, "Cache-Control: no-cache\r\n", 20);
    expect_body(&v[0], OUTCOME_MISS, 20);
    expect_body(&v[1], OUTCOME_COALESCED, 20);
    scene_end();
}
END_TEST

/* Requests that were sent back, and later ones, do not wait for each other. */
START_TEST(what_may_not_be_shared_is_fetched_by_all_at_once)
{
    static const char *const rows[] = {"Content-Type: text/event-stream\r\n",
                                       "Cache-Control: no-cache\r\nETag: \"a\"\r\n"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[5];

        scene_begin(&defaults);
        for (unsigned k = 0; k < 4; k++)
            ck_assert(!begin(&v[k], "", k));
        scene_response(scene_fetch(URL), rows[i], false);
        scene_head(scene_fetch(URL), 200, rows[i], -1);
        scene_body(scene_fetch(URL), 20);
        scene_run();
        ck_assert(!begin(&v[4], "", 4));
        ck_assert_uint_eq(scene_fetches(), 5);
        ck_assert_uint_eq(v[0].heads, 1);
        for (unsigned k = 1; k < 5; k++)
            expect_waiting(&v[k]);
        scene_done(scene_fetch(URL), FETCH_OK, "");
        scene_run();
        expect_body(&v[0], OUTCOME_MISS, 20);
        for (unsigned k = 1; k < 5; k++) {
            scene_answer(URL, 200, rows[i], 20 + k);
            expect_body(&v[k], OUTCOME_MISS, 20 + k);
        }
        scene_end();
    }
}
END_TEST

/* A stream that began long ago is not that of a later request. */
START_TEST(a_response_that_is_not_fresh_cannot_be_joined)
{
    static const char lines[] = "Content-Type: text/event-stream\r\nCache-Control: no-cache\r\n";
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!begin(&v[0], "Cookie: s=1\r\n", 1));
    scene_response(scene_fetch(URL), lines, false);
    scene_head(scene_fetch(URL), 200, lines, -1);
    scene_body(scene_fetch(URL), 2000);
    scene_run();
    scene.now_us += 600 * SECOND;
    ck_assert(!begin(&v[1], "Cookie: s=2\r\n", 2));
    scene_run();
    expect_waiting(&v[1]);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_done(scene_fetch(URL), FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 2000);
    scene_answer(URL, 200, lines, 30);
    expect_body(&v[1], OUTCOME_MISS, 30);
    scene_end();
}
END_TEST

START_TEST(what_was_not_shared_is_validated_later)
{
    static const char lines[] = "Cache-Control: no-cache\r\nETag: \"a\"\r\n";
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!begin(&v, "", 1));
    scene_answer(URL, 200, lines, 20);
    ck_assert(v.stored);
    for (unsigned i = 0; i < 3; i++) {
        ck_assert(!begin(&v, "", 1));
        ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
        scene_answer(URL, 304, "", 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
        ck_assert(v.stored);
        ck_assert_uint_eq(scene_stats().pages, 1);
        ck_assert_uint_eq(scene_stats().passed, 0);
    }
    scene_end();
}
END_TEST

/*
 * A request that joins while the first one's fetch waits to be sent arrives before the response is
 * made. It may not have that without a validation (RFC 9111 section 5.2.2.4).
 */
START_TEST(what_must_be_validated_is_so_for_a_request_from_before_it)
{
    static const char *const rows[] = {
        "Cache-Control: no-cache\r\nETag: \"a\"\r\n",
        "Cache-Control: max-age=0, must-revalidate\r\nETag: \"a\"\r\n",
        "Expires: 0\r\nETag: \"a\"\r\n",
    };
    struct visit v[2];

    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        scene_begin(&defaults);
        ck_assert(!begin(&v[0], "", 1));
        ck_assert(!begin(&v[1], "", 2));
        scene.now_us += 5 * SECOND;
        scene_answer(URL, 200, rows[row], 20);
        expect_body(&v[0], OUTCOME_MISS, 20);
        expect_waiting(&v[1]);
        ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
        scene_answer(URL, 304, "", 0);
        expect_body(&v[1], OUTCOME_REVALIDATED, 20);
        scene_end();
    }
}
END_TEST

/*
 * While a request waits for a response that turns out to be another client's, an object is stored
 * for its URL: by a request from after a purge.
 */
START_TEST(a_request_that_has_waited_is_evaluated_as_of_its_next_lookup)
{
    static const struct {
        const char *lines;
        bool hit;
    } rows[] = {
        {"Cache-Control: max-age=30\r\nETag: \"a\"\r\n", true},
        {"Cache-Control: max-age=5\r\nETag: \"a\"\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene_fetch *later;
        struct visit v[3];

        scene_begin(&defaults);
        ck_assert(!begin(&v[0], "", 1));
        ck_assert(!begin(&v[1], "", 2));
        control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
        scene.now_us += 5 * SECOND;
        ck_assert(!begin(&v[2], "", 3));
        later = TAILQ_NEXT(scene_fetch(URL), link);
        scene_response(later, rows[i].lines, false);
        scene_head(later, 200, rows[i].lines, 20);
        scene_body(later, 20);
        scene_done(later, FETCH_OK, "");
        scene_run();
        expect_body(&v[2], OUTCOME_MISS, 20);
        scene.now_us += 10 * SECOND;
        scene_answer(URL, 200, "Cache-Control: private\r\n", 40);
        expect_body(&v[0], OUTCOME_MISS, 40);
        if (rows[i].hit) {
            expect_body(&v[1], OUTCOME_HIT, 20);
            ck_assert_int_eq(v[1].as_of_us, scene.now_us);
        } else {
            expect_waiting(&v[1]);
            ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"a\"\r\n");
            scene_answer(URL, 304, "", 0);
            expect_body(&v[1], OUTCOME_REVALIDATED, 20);
        }
        scene_end();
    }
}
END_TEST

/* The response is stored as that of its variant, and nowhere else. */
START_TEST(a_variant_that_must_be_validated_is_kept_apart_at_its_place)
{
    static const char lines[] =
        "Vary: Accept-Language\r\nCache-Control: no-cache\r\nETag: \"a\"\r\n";
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!begin(&v[0], "Accept-Language: de\r\n", 1));
    ck_assert(!begin(&v[1], "Accept-Language: de\r\n", 2));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v[0], OUTCOME_MISS, 20);
    expect_waiting(&v[1]);
    scene_answer(URL, 304, "", 0);
    expect_body(&v[1], OUTCOME_REVALIDATED, 20);
    ck_assert(!begin(&v[0], "Accept-Language: en\r\n", 1));
    ck_assert_str_eq(scene_fetch(URL)->fields, "Accept-Language: en\r\n");
    scene_answer(URL, 200, lines, 30);
    expect_body(&v[0], OUTCOME_MISS, 30);
    ck_assert_uint_eq(scene_stats().pages, 2);
    scene_end();
}
END_TEST

/* ---- 304 ------------------------------------------------------------------------------------- */

START_TEST(what_waits_has_no_response_that_a_304_made_private)
{
    static const struct {
        const char *lines;
        bool shared;
    } rows[] = {
        {"ETag: \"a\"\r\n", true},
        {"ETag: \"a\"\r\nCache-Control: private\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: no-cache\r\n", false},
        {"ETag: \"a\"\r\nCache-Control: no-store\r\n", false},
        {"ETag: \"a\"\r\nSet-Cookie: session=A\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[2];

        scene_begin(&defaults);
        ck_assert(!begin(&v[0], "", 1));
        scene_answer(URL, 200, FRESH, 20);
        scene.now_us += 20 * SECOND;
        ck_assert(!begin(&v[0], "", 1));
        ck_assert(!begin(&v[1], "", 2));
        scene_answer(URL, 304, rows[i].lines, 0);
        expect_body(&v[0], OUTCOME_REVALIDATED, 20);
        ck_assert_msg(v[1].ended == rows[i].shared, "row %zu", i);
        while (scene_fetches())
            scene_answer(URL, 200, FRESH, 30);
        ck_assert_uint_eq(v[1].got, rows[i].shared ? 20 : 30);
        scene_end();
    }
}
END_TEST

START_TEST(a_304_that_makes_a_fresh_object_private_removes_it)
{
    static const char *const rows[] = {"Cache-Control: private\r\n", "Cache-Control: no-store\r\n",
                                       "Set-Cookie: a=b\r\n"};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        ck_assert(!begin(&v, "", 1));
        scene_answer(URL, 200, FRESH, 20);
        ck_assert(!begin(&v, "Cache-Control: no-cache\r\n", 1));
        scene_answer(URL, 304, rows[i], 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
        ck_assert(!v.stored);
        ck_assert_uint_eq(scene_stats().pages, 0);
        ck_assert(!begin(&v, "", 2));
        scene_answer(URL, 200, FRESH, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        scene_end();
    }
}
END_TEST

/* Each 304 is for one request; the others do not wait for all of them in turn. */
START_TEST(requests_for_what_must_be_validated_fetch_for_themselves_at_last)
{
    static const char lines[] = "Cache-Control: no-cache\r\nETag: \"a\"\r\n";
    struct visit v[12];
    unsigned rounds = 0;

    scene_begin(&defaults);
    ck_assert(!begin(&v[0], "", 1));
    scene_answer(URL, 200, lines, 20);
    for (unsigned i = 0; i < 12; i++)
        ck_assert(!begin(&v[i], "", i));
    for (size_t count; (count = scene_fetches()) != 0; rounds++) {
        for (size_t i = 0; i < count; i++) {
            bool validates = strstr(scene_fetch(URL)->fields, "If-None-Match") != NULL;

            scene_answer(URL, validates ? 304 : 200, lines, validates ? 0 : 20);
        }
    }
    ck_assert_uint_le(rounds, 5);
    for (unsigned i = 0; i < 12; i++)
        ck_assert_uint_eq(v[i].got, 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: responses for those that wait");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, what_waits_has_a_response_that_the_cache_could_give_it);
    tcase_add_test(cases, with_freshness_off_every_response_is_shared);
    tcase_add_test(cases, what_may_not_be_shared_is_fetched_by_all_at_once);
    tcase_add_test(cases, a_response_that_is_not_fresh_cannot_be_joined);
    tcase_add_test(cases, what_was_not_shared_is_validated_later);
    tcase_add_test(cases, what_must_be_validated_is_so_for_a_request_from_before_it);
    tcase_add_test(cases, a_request_that_has_waited_is_evaluated_as_of_its_next_lookup);
    tcase_add_test(cases, a_variant_that_must_be_validated_is_kept_apart_at_its_place);
    tcase_add_test(cases, what_waits_has_no_response_that_a_304_made_private);
    tcase_add_test(cases, requests_for_what_must_be_validated_fetch_for_themselves_at_last);
    tcase_add_test(cases, a_304_that_makes_a_fresh_object_private_removes_it);
    suite_add_tcase(suite, cases);
    return suite;
}
