/*
 * Requests with Cookie or Authorization say which user sends them. Responses to them are for others
 * only if the origin says so, and what is stored for others is not validated for them.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "http/storing.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/feed/"
/* As WordPress answers for its feeds, whose entity tag is the same for all users. */
#define NO_CACHE "Cache-Control: no-cache, must-revalidate, max-age=0\r\nETag: \"a\"\r\n"
#define TAGGED "ETag: \"a\"\r\n"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"
#define USER "Cookie: user=1\r\n"
#define OTHER "Cookie: user=2\r\n"
#define AUTHORIZED "Authorization: Basic YTpi\r\n"
#define STRANGER ""

static const struct scene_options defaults;

static bool
begin(struct visit *v, const char *fields, unsigned client)
{
    *v = (struct visit){
        .url = URL, .fields = fields, .http = true, .streams = true, .client = unit_client(client)};
    return visit(v);
}

/* A request that is fetched with exactly these fields, and gets this response. */
static void
fetch(const char *fields, const char *sent, const char *lines, size_t len, bool stored)
{
    struct visit v;

    ck_assert(!begin(&v, fields, 1));
    ck_assert_uint_eq(scene_fetches(), 1);
    ck_assert_str_eq(scene_fetch(URL)->fields, sent);
    scene_answer(URL, 200, lines, len);
    ck_assert(v.ended);
    ck_assert_uint_eq(v.fails, 0);
    ck_assert_uint_eq(v.got, len);
    ck_assert_int_eq(v.stored, stored);
}

/* A request that validates the stored response, which the origin confirms with these lines. */
static void
validate(const char *fields, const char *lines, size_t len)
{
    struct visit v;
    char sent[200];

    ck_assert(!begin(&v, fields, 1));
    snprintf(sent, sizeof(sent), "%sIf-None-Match: \"a\"\r\n", fields);
    ck_assert_str_eq(scene_fetch(URL)->fields, sent);
    scene_answer(URL, 304, lines, 0);
    expect_body(&v, OUTCOME_REVALIDATED, len);
}

static void
hit(const char *fields, size_t len)
{
    struct visit v;

    ck_assert(begin(&v, fields, 1));
    expect_body(&v, OUTCOME_HIT, len);
}

/* ---- no-cache -------------------------------------------------------------------------------- */

START_TEST(a_users_page_is_never_validated_for_a_stranger)
{
    scene_begin(&defaults);
    fetch(USER, USER, NO_CACHE, 20, false);
    ck_assert_uint_eq(scene_stats().pages, 0);
    fetch(STRANGER, "", NO_CACHE, 30, true);
    scene_end();
}
END_TEST

START_TEST(a_strangers_page_is_never_validated_for_a_user)
{
    static const char *const users[] = {USER, AUTHORIZED, USER AUTHORIZED};

    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        struct visit v;
        char own[200];

        scene_begin(&defaults);
        fetch(STRANGER, "", NO_CACHE, 30, true);
        fetch(users[i], users[i], NO_CACHE, 20, false);
        /* The user's own condition is the origin's to evaluate. */
        snprintf(own, sizeof(own), "%sIf-None-Match: \"mine\"\r\nRange: bytes=0-\r\n", users[i]);
        fetch(own, own, NO_CACHE, 25, false);
        ck_assert(!begin(&v, own, 1));
        scene_answer(URL, 304, "ETag: \"mine\"\r\n", 0);
        ck_assert_uint_eq(v.status, 304);
        /* What strangers get is stored still. */
        validate(STRANGER, "", 30);
        fetch(users[i], users[i], NO_CACHE, 20, false);
        scene_end();
    }
}
END_TEST

START_TEST(a_response_to_a_user_replaces_what_strangers_got_if_it_is_shared)
{
    scene_begin(&defaults);
    fetch(STRANGER, "", NO_CACHE, 30, true);
    fetch(USER, USER, FRESH, 20, true);
    hit(STRANGER, 20);
    hit(OTHER, 20);
    scene_end();
}
END_TEST

START_TEST(what_a_user_makes_private_is_not_validated_for_strangers)
{
    scene_begin(&defaults);
    fetch(STRANGER, "", NO_CACHE, 30, true);
    fetch(USER, USER, TAGGED "Cache-Control: private\r\n", 20, false);
    fetch(STRANGER, "", NO_CACHE, 30, true);
    scene_end();
}
END_TEST

/* `_i`: the user's response replaces a page that does not vary, or one of other names. */
START_TEST(a_users_response_that_varies_is_no_strangers)
{
    const char *const varies = "ETag: \"b\"\r\nCache-Control: max-age=10\r\nVary: Cookie\r\n";

    scene_begin(&defaults);
    if (_i)
        fetch(STRANGER, "", NO_CACHE "Vary: Accept-Language\r\n", 30, true);
    else
        fetch(STRANGER, "", NO_CACHE, 30, true);
    fetch(USER, USER, varies, 20, true);
    fetch(STRANGER, "", FRESH "Vary: Cookie\r\n", 31, true);
    hit(USER, 20);
    hit(STRANGER, 31);
    scene_end();
}
END_TEST

START_TEST(users_and_strangers_at_once_each_get_their_own)
{
    static const char *const fields[] = {USER, STRANGER, OTHER, STRANGER, USER, STRANGER};
    enum { COUNT = sizeof(fields) / sizeof(fields[0]) };

    /* Whoever comes first. */
    for (unsigned first = 0; first < COUNT; first++) {
        struct visit v[COUNT];

        scene_begin(&defaults);
        for (unsigned i = 0; i < COUNT; i++)
            ck_assert(!begin(&v[i], fields[(first + i) % COUNT], i));
        ck_assert_uint_eq(scene_fetches(), 1);
        for (unsigned answers = 0; scene_fetches(); answers++) {
            const char *sent = scene_fetch(URL)->fields;
            size_t len = strstr(sent, "user=1") ? 21 : strstr(sent, "user=2") ? 22 : 30;

            ck_assert_uint_lt(answers, 2 * COUNT);
            if (strstr(sent, "Cookie"))
                ck_assert_ptr_null(strstr(sent, "If-None-Match"));
            if (strstr(sent, "If-None-Match"))
                scene_answer(URL, 304, "", 0);
            else
                scene_answer(URL, 200, NO_CACHE, len);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            const char *user = fields[(first + i) % COUNT];

            ck_assert(v[i].ended);
            ck_assert_uint_eq(v[i].fails, 0);
            ck_assert_uint_eq(v[i].got, strcmp(user, USER) == 0    ? 21
                                        : strcmp(user, OTHER) == 0 ? 22
                                                                   : 30);
        }
        scene_end();
    }
}
END_TEST

START_TEST(users_that_waited_do_not_wait_for_each_other)
{
    struct visit v[5];

    scene_begin(&defaults);
    for (unsigned i = 0; i < 5; i++)
        ck_assert(!begin(&v[i], i & 1 ? OTHER : USER, i));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 200, NO_CACHE, 20);
    expect_body(&v[0], OUTCOME_MISS, 20);
    ck_assert_uint_eq(scene_fetches(), 4);
    while (scene_fetches())
        scene_answer(URL, 200, NO_CACHE, 30);
    for (unsigned i = 1; i < 5; i++)
        expect_body(&v[i], OUTCOME_MISS, 30);
    scene_end();
}
END_TEST

/* ---- 304 ------------------------------------------------------------------------------------- */

/* Who the stored response was made for, and who refreshes it. */
static const struct {
    const char *made_for, *refresher;
} pairs[] = {
    {STRANGER, STRANGER},
    {STRANGER, USER},
    {USER, STRANGER},
    {USER, OTHER},
};

START_TEST(a_304_that_shares_the_object_still_refreshes_it)
{
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        scene_begin(&defaults);
        fetch(pairs[i].made_for, pairs[i].made_for, FRESH, 20, true);
        scene.now_us += 11 * SECOND;
        validate(pairs[i].refresher, "", 20);
        hit(STRANGER, 20);
        hit(USER, 20);
        hit(AUTHORIZED, 20);
        scene_end();
    }
}
END_TEST

START_TEST(a_304_with_no_cache_gives_no_users_object_to_another)
{
    /* The last pair: the next test. */
    for (size_t i = 0; i < 3; i++) {
        const char *refresher = pairs[i].refresher;
        bool is_user = *refresher != 0;
        struct visit v;

        scene_begin(&defaults);
        fetch(pairs[i].made_for, pairs[i].made_for, FRESH, 20, true);
        scene.now_us += 11 * SECOND;
        if (i == 0) {
            validate(STRANGER, "Cache-Control: no-cache\r\n", 20);
        } else {
            ck_assert(!begin(&v, refresher, 1));
            scene_answer(URL, 304, "Cache-Control: no-cache\r\n", 0);
            ck_assert(!v.ended);
            ck_assert_str_eq(scene_fetch(URL)->fields, refresher);
            scene_answer(URL, 200, NO_CACHE, 30);
            expect_body(&v, OUTCOME_MISS, 30);
            ck_assert_int_eq(v.stored, !is_user);
        }
        /* A stranger's object is validated for strangers; no user's is. */
        validate(STRANGER, "Cache-Control: no-cache\r\n", i == 2 ? 30 : 20);
        scene_end();
    }
}
END_TEST

START_TEST(a_304_for_one_client_gives_no_users_object_to_another)
{
    static const char *const lines[] = {"Cache-Control: private\r\n", "Cache-Control: no-store\r\n",
                                        "Set-Cookie: a=b\r\n"};

    for (size_t i = 0; i < 9; i++) {
        const char *refresher = pairs[1 + i / 3].refresher;
        struct visit v;

        scene_begin(&defaults);
        fetch(pairs[1 + i / 3].made_for, pairs[1 + i / 3].made_for, FRESH, 20, true);
        scene.now_us += 11 * SECOND;
        ck_assert(!begin(&v, refresher, 1));
        scene_answer(URL, 304, lines[i % 3], 0);
        ck_assert(!v.ended);
        ck_assert_str_eq(scene_fetch(URL)->fields, refresher);
        scene_answer(URL, 200, lines[i % 3], 30);
        expect_body(&v, OUTCOME_MISS, 30);
        ck_assert(!v.stored);
        ck_assert_uint_eq(scene_stats().pages, 0);
        scene_end();
    }
}
END_TEST

START_TEST(a_users_object_that_is_not_shared_any_more_is_given_to_nobody)
{
    struct visit v;

    scene_begin(&defaults);
    fetch(USER, USER, FRESH, 20, true);
    scene.now_us += 11 * SECOND;
    /* Another user's 304, and a stranger's. */
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!begin(&v, i ? STRANGER : OTHER, 1));
        scene_answer(URL, 304, "Cache-Control: max-age=0\r\n", 0);
        ck_assert(!v.ended);
        ck_assert_str_eq(scene_fetch(URL)->fields, i ? "" : OTHER);
        scene_answer(URL, 200, NO_CACHE, 30);
        expect_body(&v, OUTCOME_MISS, 30);
    }
    validate(STRANGER, "", 30);
    scene_end();
}
END_TEST

START_TEST(what_a_stranger_refreshes_remains_a_users)
{
    struct visit v;

    scene_begin(&defaults);
    fetch(USER, USER, FRESH, 20, true);
    for (unsigned i = 0; i < 2; i++) {
        scene.now_us += 11 * SECOND;
        validate(STRANGER, "", 20);
    }
    scene.now_us += 11 * SECOND;
    ck_assert(!begin(&v, STRANGER, 1));
    scene_answer(URL, 304, "Cache-Control: no-cache\r\n", 0);
    ck_assert(!v.ended);
    scene_answer(URL, 200, NO_CACHE, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    scene_end();
}
END_TEST

/* ---- stale objects --------------------------------------------------------------------------- */

START_TEST(a_refresh_in_the_background_stores_no_users_response)
{
    struct visit v;

    scene_begin(&defaults);
    fetch(STRANGER, "", FRESH "Cache-Control: stale-while-revalidate=60\r\n", 20, true);
    scene.now_us += 11 * SECOND;
    ck_assert(begin(&v, USER, 1));
    expect_body(&v, OUTCOME_STALE, 20);
    scene_answer(URL, 304, "Cache-Control: no-cache\r\n", 0);
    while (scene_fetches())
        scene_answer(URL, 200, NO_CACHE, 30);
    scene.now_us += 60 * SECOND;
    validate(STRANGER, "", 20);
    scene_end();
}
END_TEST

START_TEST(a_user_gets_no_strangers_page_in_place_of_a_failure)
{
    for (unsigned i = 0; i < 2; i++) {
        struct visit v;

        scene_begin(&defaults);
        fetch(STRANGER, "", TAGGED, 20, true);
        ck_assert(!begin(&v, i ? USER : STRANGER, 1));
        scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        scene_run();
        if (i)
            expect_failure(&v, FAILURE_CONNECT, "refused");
        else
            expect_body(&v, OUTCOME_STALE, 20);
        scene_end();
    }
}
END_TEST

/* ---- heuristics ------------------------------------------------------------------------------ */

#define DATED "Last-Modified: Thu, 01 Jan 1970 00:00:01 GMT\r\n"

static void
begin_with_heuristic(void)
{
    scene_begin(&defaults);
    scene.rules.heuristic_percent = 10;
    fetch(STRANGER, "", DATED, 20, true);
    hit(STRANGER, 20);
}

START_TEST(a_heuristic_lifetime_is_for_strangers)
{
    static const char *const users[] = {USER, AUTHORIZED};

    for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
        struct visit v = {.url = URL, .http = true, .streams = true};
        char fields[200];

        begin_with_heuristic();
        fetch(users[i], users[i], DATED, 25, false);
        hit(STRANGER, 20);
        snprintf(fields, sizeof(fields), "%sCache-Control: only-if-cached\r\n", users[i]);
        v.fields = fields;
        ck_assert(visit(&v));
        expect_failure(&v, FAILURE_NOT_CACHED, "not in the cache");
        snprintf(fields, sizeof(fields), "%sCache-Control: max-stale\r\n", users[i]);
        fetch(fields, fields, DATED, 25, false);
        snprintf(fields, sizeof(fields), "%sRange: bytes=2000000-\r\n", users[i]);
        fetch(fields, fields, DATED, 25, false);
        v = (struct visit){.url = URL, .method = "HEAD", .http = true, .streams = true};
        v.fields = users[i];
        ck_assert(!visit(&v));
        scene_answer(URL, 200, DATED, 0);
        hit(STRANGER, 20);
        scene_end();
    }
}
END_TEST

START_TEST(a_user_that_waits_gets_no_heuristic_response)
{
    for (unsigned streams = 0; streams < 2; streams++) {
        struct visit v[3];

        scene_begin(&defaults);
        scene.rules.heuristic_percent = 10;
        ck_assert(!begin(&v[0], STRANGER, 0));
        ck_assert(!begin(&v[1], STRANGER, 1));
        v[2] = (struct visit){.url = URL, .fields = USER, .http = true, .streams = streams};
        ck_assert(!visit(&v[2]));
        ck_assert_uint_eq(scene_fetches(), 1);
        scene_answer(URL, 200, DATED, 20);
        expect_body(&v[0], OUTCOME_MISS, 20);
        expect_body(&v[1], OUTCOME_COALESCED, 20);
        ck_assert_str_eq(scene_fetch(URL)->fields, USER);
        scene_answer(URL, 200, DATED, 25);
        expect_body(&v[2], OUTCOME_MISS, 25);
        hit(STRANGER, 20);
        scene_end();
    }
}
END_TEST

START_TEST(a_user_that_comes_while_a_heuristic_response_arrives_fetches)
{
    struct scene_fetch *first;
    struct visit v[2];

    scene_begin(&defaults);
    scene.rules.heuristic_percent = 10;
    ck_assert(!begin(&v[0], STRANGER, 0));
    first = scene_fetch(URL);
    scene_response(first, DATED, false);
    scene_head(first, 200, DATED, 20);
    scene_run();
    ck_assert(!begin(&v[1], USER, 1));
    scene_run();
    ck_assert_uint_eq(scene_fetches(), 2);
    scene_body(first, 20);
    scene_done(first, FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 20);
    scene_answer(URL, 200, DATED, 25);
    expect_body(&v[1], OUTCOME_MISS, 25);
    scene_end();
}
END_TEST

/* ---- RPC ------------------------------------------------------------------------------------- */

START_TEST(a_call_with_a_cookie_is_a_bypass)
{
    static const char *const users[] = {USER, OTHER};
    struct visit v[2];

    scene_begin(&defaults);
    for (unsigned i = 0; i < 2; i++) {
        v[i] = (struct visit){.url = URL, .fields = users[i]};
        ck_assert(!visit(&v[i]));
    }
    ck_assert_uint_eq(scene_fetches(), 2);
    for (unsigned i = 0; i < 2; i++) {
        scene_respond(URL, FRESH, 20 + i);
        expect_body(&v[i], OUTCOME_BYPASS, 20 + i);
        ck_assert(!v[i].stored);
    }
    ck_assert(!scene_has(URL));
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: users");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_users_page_is_never_validated_for_a_stranger);
    tcase_add_test(cases, a_strangers_page_is_never_validated_for_a_user);
    tcase_add_test(cases, a_response_to_a_user_replaces_what_strangers_got_if_it_is_shared);
    tcase_add_test(cases, what_a_user_makes_private_is_not_validated_for_strangers);
    tcase_add_loop_test(cases, a_users_response_that_varies_is_no_strangers, 0, 2);
    tcase_add_test(cases, users_and_strangers_at_once_each_get_their_own);
    tcase_add_test(cases, users_that_waited_do_not_wait_for_each_other);
    tcase_add_test(cases, a_304_that_shares_the_object_still_refreshes_it);
    tcase_add_test(cases, a_304_with_no_cache_gives_no_users_object_to_another);
    tcase_add_test(cases, a_304_for_one_client_gives_no_users_object_to_another);
    tcase_add_test(cases, a_users_object_that_is_not_shared_any_more_is_given_to_nobody);
    tcase_add_test(cases, what_a_stranger_refreshes_remains_a_users);
    tcase_add_test(cases, a_refresh_in_the_background_stores_no_users_response);
    tcase_add_test(cases, a_user_gets_no_strangers_page_in_place_of_a_failure);
    tcase_add_test(cases, a_heuristic_lifetime_is_for_strangers);
    tcase_add_test(cases, a_user_that_waits_gets_no_heuristic_response);
    tcase_add_test(cases, a_user_that_comes_while_a_heuristic_response_arrives_fetches);
    tcase_add_test(cases, a_call_with_a_cookie_is_a_bypass);
    suite_add_tcase(suite, cases);
    return suite;
}
