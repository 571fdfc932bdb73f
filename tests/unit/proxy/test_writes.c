/* What a write invalidates by rules, before and after it, and what is fetched meanwhile. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>
#include <stdio.h>

#include "tests/unit/proxy/writes.h"

static const char *const urls[] = {HOST "/users/1", HOST "/users/2", HOST "/paths/1", HOST "/x"};

/* All that have the tag. */
static void
store_users(void)
{
    store_http(urls[0], FRESH);
    store_http(urls[1], FRESH);
    scene_store(HOST "/users/3", "", 10);
}

static void
store_all(void)
{
    store_users();
    store_http(urls[2], FRESH);
    store_http(urls[3], FRESH);
}

static void
expect(bool users, bool paths)
{
    ck_assert(has_http(urls[0]) == users && has_http(urls[1]) == users);
    ck_assert(scene_has(HOST "/users/3") == users);
    ck_assert(has_http(urls[2]) == paths);
    ck_assert(has_http(urls[3]));
}

START_TEST(a_write_invalidates_by_the_rules_before_and_after)
{
    static const unsigned statuses[] = {200, 302, 404, 500};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        struct visit v;

        writes_scene();
        store_all();
        begin_write(&v, HOST "/users/9", false);
        expect(false, true);
        /* What comes meanwhile may be older than the write: it goes with its response. */
        store_users();
        store_beside(HOST "/users/9", FRESH);
        expect(true, true);
        scene_answer(HOST "/users/9", statuses[i], "", 5);
        expect_body(&v, OUTCOME_BYPASS, 5);
        expect(false, true);
        ck_assert(!has_http(HOST "/users/9"));
        store_users();
        expect(true, true);
        scene_end();
    }
}
END_TEST

START_TEST(a_write_invalidates_the_tags_that_rules_name)
{
    struct visit v;

    writes_scene();
    store_all();
    begin_write(&v, HOST "/paths", false);
    expect(false, false);
    store_users();
    store_http(urls[2], FRESH);
    expect(true, true);
    scene_done(scene_fetch(HOST "/paths"), FETCH_ORIGIN_BROKE, "broken");
    scene_run();
    expect_failure(&v, FAILURE_ORIGIN, "broken");
    expect(false, false);
    scene_end();
}
END_TEST

START_TEST(requests_that_are_safe_or_no_writes_of_rules_leave_tags)
{
    struct visit v = {.url = HOST "/users/9", .http = true, .streams = true, .method = "OPTIONS"};

    writes_scene();
    store_all();
    ck_assert(!visit(&v));
    scene_answer(HOST "/users/9", 200, "", 5);
    expect(true, true);
    write_to(HOST "/", false, 200, "");
    write_to(HOST "/y", false, 200, "");
    expect(true, true);
    scene_end();
}
END_TEST

/* A fetch that began before the write's response and ends after it, reached by its tag alone. */
START_TEST(what_is_fetched_during_a_write_is_not_stored)
{
    /* The head comes before the write, before its response, or after it. */
    for (unsigned moment = 0; moment < 3; moment++) {
        struct visit write, before, during, joined, after;
        struct scene_fetch *fetch;

        writes_scene();
        ck_assert(!visit_http(&before, urls[0], ""));
        fetch = scene_fetch(urls[0]);
        for (unsigned m = 0; m < 3; m++) {
            if (moment == m) {
                scene_response(fetch, FRESH, false);
                ck_assert_int_eq(scene_head(fetch, 200, FRESH, 20), FETCH_CONTINUE);
            }
            if (m == 0) {
                begin_write(&write, urls[2], false);
                ck_assert(!visit_http(&during, urls[1], ""));
                ck_assert(!visit_http(&joined, urls[1], ""));
            } else if (m == 1) {
                scene_answer(urls[2], 204, "", 0);
            }
        }
        scene_body(fetch, 20);
        scene_done(fetch, FETCH_OK, "");
        scene_run();
        expect_body(&before, OUTCOME_MISS, 20);
        ck_assert(!before.stored && !has_http(urls[0]));
        scene_answer(urls[1], 200, FRESH, 20);
        expect_body(&during, OUTCOME_MISS, 20);
        ck_assert(!during.stored && !has_http(urls[1]));
        /* The request that has joined looks up again. */
        expect_waiting(&joined);
        scene_answer(urls[1], 200, FRESH, 20);
        expect_body(&joined, OUTCOME_MISS, 20);
        ck_assert(joined.stored && has_http(urls[1]));
        ck_assert(!visit_http(&after, urls[0], ""));
        scene_answer(urls[0], 200, FRESH, 20);
        ck_assert(after.stored);
        scene_end();
    }
}
END_TEST

/* It may have been sent, as far as the client knows. */
START_TEST(a_write_that_cannot_be_forwarded_has_invalidated)
{
    struct visit v = {.url = HOST "/users/9", .http = true, .streams = true, .method = "PUT"};

    writes_scene();
    store_all();
    scene.refuses = ENOMEM;
    ck_assert(visit(&v));
    expect_failure(&v, FAILURE_INTERNAL, "");
    scene.refuses = 0;
    expect(false, true);
    store_users();
    expect(true, true);
    scene_end();
}
END_TEST

/* What comes meanwhile is removed by the next response. */
START_TEST(many_writes_at_a_time)
{
    enum { WRITES = 300 };
    static struct visit writes[WRITES];
    static char targets[WRITES][64];

    writes_scene();
    for (unsigned i = 0; i < WRITES; i++) {
        snprintf(targets[i], sizeof(targets[i]), HOST "/users/w%u", i);
        begin_write(&writes[i], targets[i], false);
    }
    for (unsigned i = 0; i < WRITES; i++) {
        store_http(urls[0], FRESH);
        scene_answer(targets[i], 204, "", 0);
        expect_body(&writes[i], OUTCOME_BYPASS, 0);
        ck_assert(!has_http(urls[0]));
    }
    store_http(urls[0], FRESH);
    ck_assert(has_http(urls[0]));
    scene_end();
}
END_TEST

START_TEST(what_is_fetched_after_a_write_that_was_not_forwarded_is_stored)
{
    struct visit v = {.url = HOST "/users/9", .http = true, .streams = true, .method = "PUT"};

    writes_scene();
    scene.refuses = ENOMEM;
    ck_assert(visit(&v));
    scene.refuses = 0;
    store_http(urls[0], FRESH);
    store_http(HOST "/users/9", FRESH);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: writes and rules");
    TCase *tests = tcase_create("writes");

    tcase_add_test(tests, a_write_invalidates_by_the_rules_before_and_after);
    tcase_add_test(tests, a_write_invalidates_the_tags_that_rules_name);
    tcase_add_test(tests, requests_that_are_safe_or_no_writes_of_rules_leave_tags);
    tcase_add_test(tests, what_is_fetched_during_a_write_is_not_stored);
    tcase_add_test(tests, a_write_that_cannot_be_forwarded_has_invalidated);
    tcase_add_test(tests, many_writes_at_a_time);
    tcase_add_test(tests, what_is_fetched_after_a_write_that_was_not_forwarded_is_stored);
    suite_add_tcase(suite, tests);
    return suite;
}
