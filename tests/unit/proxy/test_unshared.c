/* Responses that may not be shared, and fetches that concern their client only: other requests look
 * up again. */

#define UNIT_STARTS_NO_THREAD

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define PRIVATE "Set-Cookie: a=b\r\n"

static const struct scene_options defaults;

START_TEST(a_private_response_goes_to_its_client_and_the_others_fetch_at_once)
{
    struct visit v[4] = {{0}};
    struct scene_fetch *first;

    scene_begin(&defaults);
    for (unsigned i = 0; i < 4; i++)
        visit_url(&v[i], URL, i);
    ck_assert_uint_eq(scene_fetches(), 1);
    first = scene_fetch(URL);
    scene_response(first, PRIVATE, false);
    scene_run();
    /* All in parallel, each for its own client, before the first response has a body. */
    ck_assert_uint_eq(scene_fetches(), 4);
    for (unsigned i = 1; i < 4; i++) {
        first = TAILQ_NEXT(first, link);
        ck_assert_ptr_eq(first->client, v[i].client);
    }
    first = scene_fetch(URL);
    scene_head(first, 200, PRIVATE, -1);
    scene_body(first, 7);
    scene_done(first, FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 7);
    ck_assert_int_eq(scene.fetched.reason, HTTP_REASON_SET_COOKIE);
    for (unsigned i = 1; i < 4; i++) {
        expect_waiting(&v[i]);
        scene_respond(URL, PRIVATE, 10 + i);
        expect_body(&v[i], OUTCOME_MISS, 10 + i);
        ck_assert(!v[i].stored);
    }
    ck_assert_uint_eq(scene_stats().pages, 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 4);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"coalesced\"}"), 0);
    scene_end();
}
END_TEST

/* It says that the first client's response was private, perhaps by quoting it. */
START_TEST(a_failure_after_a_private_head_is_for_its_client_only)
{
    struct visit first = {0}, second = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    fetch = scene_fetch(URL);
    scene_response(fetch, PRIVATE, false);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "a secret is no chunk");
    scene_run();
    expect_failure(&first, FAILURE_ORIGIN, "secret");
    expect_waiting(&second);
    scene_respond(URL, "", 5);
    expect_body(&second, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

START_TEST(a_mark_keeps_later_requests_from_waiting_until_it_ends)
{
    struct visit first = {0}, second = {0};

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    scene_respond(URL, PRIVATE, 5);
    ck_assert_uint_eq(scene_stats().passed, 1);
    scene.now_us += ORIGIN_FILL_PASS_US - SECOND;
    for (unsigned round = 0; round < 2; round++) {
        visit_url(&first, URL, 1);
        visit_url(&second, URL, 2);
        ck_assert_uint_eq(scene_fetches(), round == 0 ? 2 : 1);
        while (scene_fetches()) {
            scene_done(scene_fetch(URL), FETCH_TIMED_OUT, "late");
            scene_run();
        }
        expect_failure(&first, FAILURE_TIMEOUT, "late");
        expect_failure(&second, FAILURE_TIMEOUT, "late");
        scene.now_us += 2 * SECOND;
    }
    scene_end();
}
END_TEST

/* Although it is not stored: later requests wait for each other again. */
START_TEST(a_response_that_may_be_shared_ends_the_mark)
{
    struct visit first = {0}, second = {0};

    scene_begin(&(struct scene_options){.max_page = 4});
    visit_url(&first, URL, 1);
    scene_respond(URL, PRIVATE, 5);
    visit_url(&first, URL, 1);
    scene_respond(URL, "Cache-Control: public\r\n", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    ck_assert(!first.stored);
    ck_assert_uint_eq(scene_stats().passed, 0);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_respond(URL, "", 5);
    expect_body(&second, OUTCOME_COALESCED, 5);
    scene_end();
}
END_TEST

START_TEST(a_shared_response_ends_the_mark_and_is_stored)
{
    struct visit first = {0}, second = {0};

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    scene_respond(URL, PRIVATE, 5);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_respond(URL, "", 5);
    expect_body(&first, OUTCOME_MISS, 5);
    ck_assert(first.stored);
    ck_assert_uint_eq(scene_stats().passed, 0);
    ck_assert(scene_has(URL));
    expect_waiting(&second);
    scene_respond(URL, "", 6);
    expect_body(&second, OUTCOME_MISS, 6);
    scene_end();
}
END_TEST

/* It was fresh when it began. */
START_TEST(a_response_that_expires_while_it_arrives_is_for_all_that_wait)
{
    struct visit first = {.streams = true}, second = {0}, later = {0}, stream = {.streams = true};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&first, URL, 1);
    visit_url(&second, URL, 2);
    visit_url(&stream, URL, 3);
    fetch = scene_fetch(URL);
    scene_response(fetch, "Cache-Control: max-age=5\r\n", false);
    scene_head(fetch, 200, "Cache-Control: max-age=5\r\n", -1);
    scene_body(fetch, 5);
    scene_run();
    ck_assert_uint_eq(stream.got, 5);
    scene.now_us += 5 * SECOND;
    scene_body(fetch, 5);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&first, OUTCOME_MISS, 10);
    expect_body(&stream, OUTCOME_COALESCED, 10);
    expect_body(&second, OUTCOME_COALESCED, 10);
    visit_url(&later, URL, 1);
    scene_respond(URL, "Cache-Control: max-age=5\r\n", 6);
    expect_body(&later, OUTCOME_MISS, 6);
    ck_assert(later.stored);
    scene_end();
}
END_TEST

START_TEST(user_information_in_the_url_is_never_shared)
{
    static const struct {
        const char *url;
        bool shared;
    } rows[] = {
        {"http://user:word@origin.test/", false}, {"http://user@origin.test", false},
        {"http://@origin.test?a", false},         {"http://origin.test/@name", true},
        {"http://origin.test?a@b", true},         {"http://origin.test#a@b", true},
    };

    scene_begin(&defaults);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit first = {0}, second = {0};

        visit_url(&first, rows[i].url, 1);
        visit_url(&second, rows[i].url, 2);
        ck_assert_uint_eq(scene_fetches(), rows[i].shared ? 1 : 2);
        while (scene_fetches()) {
            struct scene_fetch *fetch = scene_fetch(NULL);

            scene_response(fetch, "Cache-Control: public\r\n", !rows[i].shared);
            scene_head(fetch, 200, "", 5);
            scene_body(fetch, 5);
            scene_done(fetch, FETCH_OK, "");
            scene_run();
        }
        expect_body(&first, OUTCOME_MISS, 5);
        expect_body(&second, rows[i].shared ? OUTCOME_COALESCED : OUTCOME_MISS, 5);
        ck_assert_int_eq(first.stored, rows[i].shared);
        ck_assert_int_eq(second.stored, rows[i].shared);
    }
    scene_end();
}
END_TEST

/* ---- displaced fetches ----------------------------------------------------------------------- */

START_TEST(a_displaced_fetch_concerns_its_client_only)
{
    struct visit leader = {0}, same = {0}, third = {0}, fourth = {0};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    visit_url(&leader, URL, 1);
    visit_url(&same, URL, 1);
    visit_url(&third, URL, 3);
    visit_url(&fourth, URL, 4);
    scene_done(scene_fetch(URL), FETCH_DISPLACED, "too many fetches are queued");
    scene_run();
    expect_failure(&leader, FAILURE_OVERLOADED, "too many fetches are queued");
    expect_failure(&same, FAILURE_OVERLOADED, "too many fetches are queued");
    /* One of the others fetches, and the last one waits for it. */
    ck_assert_uint_eq(scene_fetches(), 1);
    fetch = scene_fetch(URL);
    ck_assert_ptr_eq(fetch->client, third.client);
    scene_respond(URL, "", 5);
    expect_body(&third, OUTCOME_MISS, 5);
    expect_body(&fourth, OUTCOME_COALESCED, 5);
    scene_end();
}
END_TEST

START_TEST(a_request_is_not_sent_back_without_end)
{
    struct visit patient = {.url = URL, .client = unit_client(1000)};
    struct visit leaders[20] = {{0}};
    unsigned i;

    /* It always finds a fetch of another client, which is displaced in turn. */
    scene_begin(&defaults);
    visit_url(&leaders[0], URL, 0);
    ck_assert(!visit(&patient));
    for (i = 0; i < 19 && scene_fetches() == 1; i++) {
        scene_done(scene_fetch(URL), FETCH_DISPLACED, "displaced");
        /* The leader's wake came first; the next leader is there before the patient one. */
        TAILQ_REMOVE(&scene.woken, &leaders[i], link);
        leaders[i].listed = false;
        exchange_run(&leaders[i].exchange);
        expect_failure(&leaders[i], FAILURE_OVERLOADED, "displaced");
        visit_url(&leaders[i + 1], URL, i + 1);
        scene_run();
    }
    ck_assert_uint_lt(i, 19);
    /* At last it fetches for itself. */
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_respond(URL, "", 5);
    scene_respond(URL, "", 6);
    ck_assert_int_eq(scene.fetched.reason, HTTP_REASON_REQUEST_PASSES);
    expect_body(&leaders[i], OUTCOME_MISS, 5);
    expect_body(&patient, OUTCOME_MISS, 6);
    ck_assert(!patient.stored);
    scene_end();
}
END_TEST

START_TEST(what_is_refused_to_one_client_is_tried_for_the_next)
{
    struct visit first = {.url = URL, .waiting_bytes = MIB, .client = unit_client(1)};
    struct visit second = {0};

    /* Refused at once, so that the second never waits for it. */
    scene_begin(&(struct scene_options){.memory = 8 * MIB});
    ck_assert(visit(&first));
    visit_url(&second, URL, 2);
    ck_assert_uint_eq(scene_fetches(), 1);
    expect_failure(&first, FAILURE_OVERLOADED, "this client");
    scene_respond(URL, "", 5);
    expect_body(&second, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: responses for one client");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_private_response_goes_to_its_client_and_the_others_fetch_at_once);
    tcase_add_test(cases, a_failure_after_a_private_head_is_for_its_client_only);
    tcase_add_test(cases, a_mark_keeps_later_requests_from_waiting_until_it_ends);
    tcase_add_test(cases, a_response_that_may_be_shared_ends_the_mark);
    tcase_add_test(cases, a_shared_response_ends_the_mark_and_is_stored);
    tcase_add_test(cases, a_response_that_expires_while_it_arrives_is_for_all_that_wait);
    tcase_add_test(cases, user_information_in_the_url_is_never_shared);
    tcase_add_test(cases, a_displaced_fetch_concerns_its_client_only);
    tcase_add_test(cases, a_request_is_not_sent_back_without_end);
    tcase_add_test(cases, what_is_refused_to_one_client_is_tried_for_the_next);
    suite_add_tcase(suite, cases);
    return suite;
}
