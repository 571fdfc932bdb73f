/* Redirects, which the front of RPC follows and clients of HTTP get as they are. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/proxy/protocols.h"

/* The body of a redirect may break off before the request has had its head. */
START_TEST(a_redirect_counts_whatever_its_body)
{
    for (unsigned streams = 0; streams < 2; streams++) {
        struct visit v = {.url = URL, .streams = streams, .cancels_in_head = true};
        struct scene_fetch *fetch;

        scene_begin(&defaults);
        ck_assert(!visit(&v));
        fetch = scene_fetch(URL);
        scene_response_of(fetch, 302, "Location: /next\r\n");
        scene_head(fetch, 302, "Location: /next\r\n", 100);
        scene_done(fetch, FETCH_ORIGIN_BROKE, "100 bytes are missing");
        scene_run();
        ck_assert_uint_eq(v.fails, 0);
        ck_assert_str_eq(v.redirect, "/next");
        scene_end();
    }
}
END_TEST

/* A redirect that its front follows is no response to the client, and is not counted. */
START_TEST(a_redirect_is_counted_where_it_is_the_response)
{
    static const struct {
        enum protocol protocol;
        unsigned status;
        const char *lines, *redirect;
        bool counted;
    } rows[] = {
        {RPC, 302, "Location: /next\r\n", "/next", false},
        {RPC, 308, "X: y\r\nlocation:  /next \r\n", "/next", false},
        {RPC, 301, "", "", true},
        {RPC, 303, "Location:\r\n", "", true},
        {RPC, 300, "Location: /next\r\n", "", true},
        {RPC, 201, "Location: /next\r\n", "", true},
        /* Nor is what the client has not asked for, which its front refuses. */
        {RPC, 304, "Location: /next\r\n", "", false},
        {RPC, 206, "Content-Range: bytes 0-4/10\r\n", "", false},
        {HTTP, 206, "Content-Range: bytes 0-4/10\r\n", "", true},
        {HTTP, 302, "Location: /next\r\n", "", true},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        ck_assert(!begin(&v, rows[i].protocol, ""));
        scene_answer(URL, rows[i].status, rows[i].lines, rows[i].status == 304 ? 0 : 5);
        ck_assert_uint_eq(v.status, rows[i].status);
        ck_assert_str_eq(v.redirect, rows[i].redirect);
        ck_assert_msg(scene_metric("requests{outcome=\"miss\"}") == rows[i].counted, "row %zu", i);
        ck_assert_uint_eq(scene_metric("miss_duration_microseconds_count"), rows[i].counted);
        ck_assert_uint_eq(scene_metric("origin_fetches{result=\"ok\"}"), 1);
        scene_end();
    }
}
END_TEST

/* One that is stored leads to where it did, and is HTTP's own response. */
START_TEST(a_stored_redirect_is_that_of_both)
{
    static const char lines[] = "Location: /next\r\nCache-Control: max-age=10\r\n";
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!begin(&v, (enum protocol)_i, ""));
    scene_answer(URL, 302, lines, 5);
    ck_assert(v.stored);
    ck_assert(begin(&v, RPC, ""));
    ck_assert_str_eq(v.redirect, "/next");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 0);
    ck_assert(begin(&v, HTTP, ""));
    expect_body(&v, OUTCOME_HIT, 5);
    ck_assert_uint_eq(v.status, 302);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    scene_end();
}
END_TEST

/* What was answered from the cache at the end was not, if the redirect before was not. */
START_TEST(a_hit_behind_a_redirect_is_what_that_was)
{
    static const enum outcome outcomes[] = {OUTCOME_HIT,         OUTCOME_MISS,  OUTCOME_COALESCED,
                                            OUTCOME_REVALIDATED, OUTCOME_STALE, OUTCOME_BYPASS};

    scene_begin(&defaults);
    miss(RPC, FRESH, 20, true);
    for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
        struct visit v = {.url = URL, .before = outcomes[i]};

        ck_assert(visit(&v));
        expect_body(&v, outcomes[i], 20);
        ck_assert(v.stored);
        v = (struct visit){.url = URL, .before = outcomes[i], .no_store = true};
        ck_assert(!visit(&v));
        scene_answer(URL, 200, FRESH, 30);
        expect_body(&v, OUTCOME_BYPASS, 30);
    }
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 2);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 1);
    scene_end();
}
END_TEST

/* With --freshness off what a URL leads to is its object. */
START_TEST(another_url_is_fetched_for_an_object)
{
    struct visit v = {.url = URL, .target = "http://next.test/"}, joined = {.url = URL};

    scene_begin(&(struct scene_options){.freshness_off = true});
    ck_assert(!visit(&v));
    ck_assert_ptr_nonnull(scene_find("http://next.test/"));
    ck_assert(!visit(&joined));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer("http://next.test/", 200, "", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    expect_body(&joined, OUTCOME_COALESCED, 20);
    ck_assert(v.stored);
    hit(RPC, 20);
    ck_assert(!scene_has("http://next.test/"));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: redirects of both protocols");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_redirect_counts_whatever_its_body);
    tcase_add_test(cases, a_redirect_is_counted_where_it_is_the_response);
    tcase_add_loop_test(cases, a_stored_redirect_is_that_of_both, 0, 2);
    tcase_add_test(cases, a_hit_behind_a_redirect_is_what_that_was);
    tcase_add_test(cases, another_url_is_fetched_for_an_object);
    suite_add_tcase(suite, cases);
    return suite;
}
