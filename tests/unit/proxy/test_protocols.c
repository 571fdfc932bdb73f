/*
 * Objects that requests over RPC and over HTTP share: what is stored for one protocol is used for
 * the other, and what states no lifetime is fresh to RPC alone.
 */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define TAGGED "ETag: \"a\"\r\n"
#define FRESH TAGGED "Cache-Control: max-age=10\r\n"
#define VALIDATES "If-None-Match: \"a\"\r\n"
#define PRIVATE "Set-Cookie: a=b\r\n"

enum protocol { RPC, HTTP };

static const struct scene_options defaults;

/* As visit() returns. */
static bool
begin(struct visit *v, enum protocol protocol, const char *fields)
{
    *v = (struct visit){.url = URL, .http = protocol == HTTP, .streams = true, .fields = fields};
    return visit(v);
}

/* The fields of a request that is fetched for the protocol, with these after its own. */
static void
expect_fields(enum protocol protocol, const char *fields)
{
    char expected[256];

    snprintf(expected, sizeof(expected), "%s%s", protocol == RPC ? SCENE_RPC_FIELDS : "", fields);
    ck_assert_str_eq(scene_fetch(URL)->fields, expected);
}

/* A request that is fetched without conditions, and gets this response. */
static void
miss(enum protocol protocol, const char *lines, size_t len, bool stored)
{
    struct visit v;

    ck_assert(!begin(&v, protocol, ""));
    expect_fields(protocol, "");
    scene_answer(URL, 200, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert_int_eq(v.stored, stored);
}

static void
hit(enum protocol protocol, size_t len)
{
    struct visit v;

    ck_assert(begin(&v, protocol, ""));
    expect_body(&v, OUTCOME_HIT, len);
    ck_assert(v.stored);
}

/* A request that validates what is stored, which the origin confirms with these lines. */
static void
revalidate(enum protocol protocol, const char *lines, size_t len)
{
    struct visit v;

    ck_assert(!begin(&v, protocol, ""));
    expect_fields(protocol, VALIDATES);
    scene_answer(URL, 304, lines, 0);
    expect_body(&v, OUTCOME_REVALIDATED, len);
    ck_assert_uint_eq(v.status, 200);
    ck_assert_uint_eq(v.origin_status, 304);
    ck_assert(v.stored);
}

/* ---- what has a lifetime --------------------------------------------------------------------- */

/* `_i` is the protocol of the first request. */
START_TEST(a_page_is_stored_once_for_both)
{
    enum protocol first = (enum protocol)_i, second = first == RPC ? HTTP : RPC;

    scene_begin(&defaults);
    miss(first, FRESH, 20, true);
    hit(second, 20);
    hit(first, 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    /* And has one lifetime. */
    scene.now_us += 11 * SECOND;
    revalidate(second, FRESH, 20);
    hit(first, 20);
    hit(second, 20);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 1);
    miss(second, FRESH, 30, true);
    scene_end();
}
END_TEST

START_TEST(requests_of_both_share_a_fetch)
{
    enum protocol first = (enum protocol)_i, second = first == RPC ? HTTP : RPC;
    struct visit v[3];

    scene_begin(&defaults);
    ck_assert(!begin(&v[0], first, ""));
    ck_assert(!begin(&v[1], second, ""));
    ck_assert_uint_eq(scene_fetches(), 1);
    expect_fields(first, "");
    scene_response(scene_fetch(URL), FRESH, false);
    scene_head(scene_fetch(URL), 200, FRESH, 20);
    scene_run();
    /* Also while the body comes. */
    ck_assert(!begin(&v[2], second, ""));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_body(scene_fetch(URL), 20);
    scene_done(scene_fetch(URL), FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 20);
    expect_body(&v[1], OUTCOME_COALESCED, 20);
    expect_body(&v[2], OUTCOME_COALESCED, 20);
    scene_end();
}
END_TEST

/* The entity tag is another: the page is replaced. */
START_TEST(an_expired_page_may_have_changed)
{
    struct visit v;

    scene_begin(&defaults);
    miss(RPC, FRESH, 20, true);
    scene.now_us += 11 * SECOND;
    ck_assert(!begin(&v, RPC, ""));
    expect_fields(RPC, VALIDATES);
    scene_answer(URL, 200, "ETag: \"b\"\r\nCache-Control: max-age=10\r\n", 30);
    expect_body(&v, OUTCOME_MISS, 30);
    hit(RPC, 30);
    hit(HTTP, 30);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

/* By a client that asks for the whole page: a condition of its own bypasses the cache. */
START_TEST(a_condition_of_a_client_over_rpc_is_the_origins)
{
    struct visit v;

    scene_begin(&defaults);
    miss(RPC, FRESH, 20, true);
    ck_assert(!begin(&v, RPC, "If-None-Match: \"x\"\r\n"));
    expect_fields(RPC, "If-None-Match: \"x\"\r\n");
    scene_answer(URL, 304, "", 0);
    expect_body(&v, OUTCOME_BYPASS, 0);
    ck_assert_uint_eq(v.status, 304);
    ck_assert(v.as_is && !v.stored);
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* What a client over RPC states has no effect on how it is served, but that it bypasses. */
START_TEST(directives_of_a_client_over_rpc_are_not_read)
{
    static const char *const fields[] = {"Cache-Control: only-if-cached\r\n",
                                         "Cache-Control: max-stale\r\n", "Pragma: no-cache\r\n"};

    scene_begin(&defaults);
    miss(RPC, FRESH, 20, true);
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct visit v;

        ck_assert(!begin(&v, RPC, fields[i]));
        expect_fields(RPC, fields[i]);
        scene_answer(URL, 200, FRESH, 30);
        expect_body(&v, OUTCOME_BYPASS, 30);
    }
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* ---- stale pages ----------------------------------------------------------------------------- */

START_TEST(a_stale_page_is_used_over_rpc_where_the_origin_fails)
{
    static const struct {
        const char *lines;
        unsigned status; /* 0: the origin cannot be reached */
        bool used;
    } rows[] = {
        {"Cache-Control: max-age=10\r\n", 0, true},
        {"Cache-Control: max-age=10, must-revalidate\r\n", 0, false},
        {"Cache-Control: max-age=10, stale-if-error=60\r\n", 0, true},
        {"Cache-Control: max-age=10, stale-if-error=60\r\n", 503, true},
        {"Cache-Control: max-age=10\r\n", 503, false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[2];

        scene_begin(&defaults);
        miss(RPC, rows[i].lines, 20, true);
        scene.now_us += 30 * SECOND;
        ck_assert(!begin(&v[0], RPC, ""));
        ck_assert(!begin(&v[1], RPC, ""));
        if (rows[i].status)
            scene_answer(URL, rows[i].status, "", 5);
        else
            scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        scene_run();
        for (unsigned k = 0; k < 2 && rows[i].used; k++)
            expect_body(&v[k], OUTCOME_STALE, 20);
        if (!rows[i].used && rows[i].status) {
            expect_body(&v[0], OUTCOME_MISS, 5);
            expect_body(&v[1], OUTCOME_COALESCED, 5);
        } else if (!rows[i].used) {
            expect_failure(&v[0], FAILURE_CONNECT, "refused");
            expect_failure(&v[1], FAILURE_CONNECT, "refused");
        }
        scene_end();
    }
}
END_TEST

START_TEST(a_page_is_refreshed_in_the_background_for_rpc)
{
    static const char lines[] = TAGGED "Cache-Control: max-age=10, stale-while-revalidate=60\r\n";
    struct visit v;

    scene_begin(&defaults);
    miss(HTTP, lines, 20, true);
    scene.now_us += 30 * SECOND;
    ck_assert(begin(&v, RPC, ""));
    expect_body(&v, OUTCOME_STALE, 20);
    expect_fields(RPC, VALIDATES);
    scene_answer(URL, 304, lines, 0);
    hit(RPC, 20);
    hit(HTTP, 20);
    scene_end();
}
END_TEST

/* ---- what states no lifetime ----------------------------------------------------------------- */

START_TEST(without_a_lifetime_a_page_is_fresh_to_rpc_and_validated_for_http)
{
    scene_begin(&defaults);
    miss(RPC, TAGGED, 20, true);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    revalidate(HTTP, "", 20);
    /* It is HTTP's now, until RPC has validated it. */
    revalidate(HTTP, "", 20);
    revalidate(RPC, "", 20);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

/* HTTP replaces it, and stores nothing. */
START_TEST(without_a_validator_it_is_fetched_anew_for_http)
{
    struct visit v;

    scene_begin(&defaults);
    miss(RPC, "", 20, true);
    scene.now_us += SECOND;
    ck_assert(!begin(&v, HTTP, ""));
    expect_fields(HTTP, "");
    scene_answer(URL, 200, "", 30);
    expect_body(&v, OUTCOME_MISS, 30);
    ck_assert(!v.stored);
    ck_assert_uint_eq(scene_stats().pages, 0);
    /* For RPC it is stored again, although requests pass. */
    miss(RPC, "", 40, true);
    ck_assert_uint_eq(scene_stats().passed, 0);
    hit(RPC, 40);
    scene_end();
}
END_TEST

START_TEST(what_http_stores_by_a_heuristic_is_a_hit_for_rpc_and_then_validated)
{
    /* The second 1780001000, and 1000 seconds before. */
    static const char lines[] = TAGGED "Date: Thu, 28 May 2026 20:43:20 GMT\r\n"
                                       "Last-Modified: Thu, 28 May 2026 20:26:40 GMT\r\n";
    struct visit v;

    scene_begin(&defaults);
    scene.rules.heuristic_percent = 10;
    scene.rules.heuristic_max_us = 3600 * SECOND;
    miss(HTTP, lines, 20, true);
    scene.now_us += 90 * SECOND;
    hit(HTTP, 20);
    hit(RPC, 20);
    scene.now_us += 20 * SECOND;
    ck_assert(!begin(&v, RPC, ""));
    scene_answer(URL, 304, TAGGED, 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
    scene.now_us += 100000 * SECOND;
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* A request over HTTP could not use it from the cache, so it does not get it from a fetch either.
 * `_i`: it waits before the head, or comes while the body does, and streams or not. */
START_TEST(http_does_not_get_it_from_a_fetch_of_rpc)
{
    bool late = _i & 1, streams = _i & 2;
    struct visit rpc, later,
        v = {.url = URL, .http = true, .streams = streams, .fields = "Accept: a\r\n"};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!begin(&rpc, RPC, ""));
    if (!late)
        ck_assert(!visit(&v));
    fetch = scene_fetch(URL);
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_response(fetch, TAGGED, false);
    scene_head(fetch, 200, TAGGED, 20);
    scene_run();
    if (late)
        ck_assert(!visit(&v));
    /* One of RPC does. */
    ck_assert(!begin(&later, RPC, ""));
    expect_waiting(&v);
    ck_assert_uint_eq(scene_fetches(), late || streams ? 2 : 1);
    scene_body(fetch, 20);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&rpc, OUTCOME_MISS, 20);
    expect_body(&later, OUTCOME_COALESCED, 20);
    ck_assert_uint_eq(scene_fetches(), 1);
    /* It begun a fetch of its own, or validates what is stored. */
    if (late || streams) {
        ck_assert_str_eq(scene_fetch(URL)->fields, "Accept: a\r\n");
        scene_answer(URL, 200, FRESH, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        hit(RPC, 30);
    } else {
        ck_assert_str_eq(scene_fetch(URL)->fields, "Accept: a\r\n" VALIDATES);
        scene_answer(URL, 304, TAGGED, 0);
        expect_body(&v, OUTCOME_REVALIDATED, 20);
    }
    scene_end();
}
END_TEST

/* Nor what is not stored at all, which all of RPC have that wait. */
START_TEST(http_does_not_get_what_is_not_stored)
{
    static const struct {
        unsigned status;
        const char *lines;
    } rows[] = {{404, ""}, {302, "Location: /login\r\n"}, {503, ""}, {429, FRESH}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit rpc[2], http;

        scene_begin(&defaults);
        ck_assert(!begin(&rpc[0], RPC, ""));
        ck_assert(!begin(&http, HTTP, "Cookie: user=1\r\n"));
        ck_assert(!begin(&rpc[1], RPC, ""));
        scene_answer(URL, rows[i].status, rows[i].lines, 20);
        expect_body(&rpc[0], OUTCOME_MISS, 20);
        expect_body(&rpc[1], OUTCOME_COALESCED, 20);
        ck_assert_uint_eq(rpc[1].status, rows[i].status);
        expect_waiting(&http);
        ck_assert_str_eq(scene_fetch(URL)->fields, "Cookie: user=1\r\n");
        scene_answer(URL, 200, "", 30);
        expect_body(&http, OUTCOME_MISS, 30);
        scene_end();
    }
}
END_TEST

/* What a request over HTTP may not have shared, RPC validates, and keeps. */
START_TEST(rpc_validates_what_a_fetch_of_http_has_brought)
{
    struct visit http, rpc;

    scene_begin(&defaults);
    ck_assert(!begin(&http, HTTP, ""));
    ck_assert(!begin(&rpc, RPC, ""));
    scene_answer(URL, 200, TAGGED, 20);
    expect_body(&http, OUTCOME_MISS, 20);
    expect_waiting(&rpc);
    expect_fields(RPC, VALIDATES);
    scene_answer(URL, 304, TAGGED, 0);
    expect_body(&rpc, OUTCOME_REVALIDATED, 20);
    scene.now_us += 100000 * SECOND;
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* To a user's request it would not be stored, and is not given. */
START_TEST(a_user_over_http_does_not_get_it)
{
    static const char *const users[] = {"Cookie: user=1\r\n", "Authorization: Basic YTpi\r\n"};
    struct visit v, waiting;

    for (size_t i = 0; i < 2; i++) {
        scene_begin(&defaults);
        ck_assert(!begin(&v, RPC, ""));
        ck_assert(!begin(&waiting, HTTP, users[i]));
        scene_answer(URL, 200, TAGGED, 20);
        expect_body(&v, OUTCOME_MISS, 20);
        expect_waiting(&waiting);
        /* Its tag may be that of all users. */
        ck_assert_str_eq(scene_fetch(URL)->fields, users[i]);
        scene_answer(URL, 200, TAGGED, 30);
        expect_body(&waiting, OUTCOME_MISS, 30);
        ck_assert(!waiting.stored);
        ck_assert(!begin(&v, HTTP, users[i]));
        ck_assert_str_eq(scene_fetch(URL)->fields, users[i]);
        scene_answer(URL, 200, TAGGED, 30);
        expect_body(&v, OUTCOME_MISS, 30);
        ck_assert(!v.stored);
        hit(RPC, 20);
        scene_end();
    }
}
END_TEST

/* As one that HTTP has stored, which has expired at once. */
START_TEST(it_is_a_stale_page_for_http)
{
    struct visit v, joined;

    scene_begin(&defaults);
    miss(RPC, "Cache-Control: stale-if-error=60\r\n", 20, true);
    scene.now_us += 30 * SECOND;
    ck_assert(begin(&v, HTTP, "Cache-Control: max-stale=60\r\n"));
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert(begin(&v, HTTP, "Cache-Control: only-if-cached, max-stale=10\r\n"));
    expect_failure(&v, FAILURE_NOT_CACHED, "");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(!begin(&v, HTTP, ""));
        ck_assert(!begin(&joined, HTTP, ""));
        if (i == 0)
            scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
        else
            scene_answer(URL, 503, "", 5);
        scene_run();
        expect_body(&v, OUTCOME_STALE, 20);
        expect_body(&joined, OUTCOME_STALE, 20);
        ck_assert_uint_eq(scene_fetches(), 0);
    }
    hit(RPC, 20);
    scene.now_us += 60 * SECOND;
    ck_assert(!begin(&v, HTTP, ""));
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
    scene_run();
    expect_failure(&v, FAILURE_CONNECT, "refused");
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* A soft purge ends it for RPC, too. */
START_TEST(a_soft_purge_has_it_validated)
{
    scene_begin(&defaults);
    miss(RPC, TAGGED, 20, true);
    ck_assert_uint_eq(control_expire(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 1);
    revalidate(RPC, TAGGED, 20);
    hit(RPC, 20);
    scene_end();
}
END_TEST

/* With --freshness off it is a hit for all, whatever it states. */
START_TEST(with_freshness_off_it_is_a_hit_for_both)
{
    scene_begin(&(struct scene_options){.freshness_off = true});
    miss((enum protocol)_i, "Cache-Control: no-store\r\n", 20, true);
    scene.now_us += 1000000 * SECOND;
    hit(RPC, 20);
    hit(HTTP, 20);
    scene_end();
}
END_TEST

/* ---- hit-for-miss ---------------------------------------------------------------------------- */

START_TEST(requests_of_both_pass_by_one_mark)
{
    enum protocol first = (enum protocol)_i, second = first == RPC ? HTTP : RPC;
    struct visit v[2];

    scene_begin(&defaults);
    miss(first, PRIVATE, 20, false);
    ck_assert_uint_eq(scene_stats().passed, 1);
    ck_assert(!begin(&v[0], second, ""));
    ck_assert(!begin(&v[1], second, ""));
    ck_assert_uint_eq(scene_fetches(), 2);
    for (unsigned i = 0; i < 2; i++) {
        scene_answer(URL, 200, PRIVATE, 30 + i);
        expect_body(&v[i], OUTCOME_MISS, 30 + i);
    }
    /* What may be shared is stored, and ends it for both. */
    miss(second, FRESH, 40, true);
    ck_assert_uint_eq(scene_stats().passed, 0);
    hit(first, 40);
    scene_end();
}
END_TEST

/* ---- variants -------------------------------------------------------------------------------- */

#define CODED "Vary: Accept-Encoding\r\nCache-Control: max-age=1000\r\n"

/* RPC has no use for coded content, and reads what HTTP has stored without a coding. */
START_TEST(rpc_reads_the_variant_without_a_coding)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!begin(&v, HTTP, "Accept-Encoding: gzip\r\n"));
    scene_answer(URL, 200, CODED "Content-Encoding: gzip\r\n", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    if (_i) {
        ck_assert(!begin(&v, HTTP, "Accept-Encoding: identity\r\n"));
        scene_answer(URL, 200, CODED, 30);
        expect_body(&v, OUTCOME_MISS, 30);
    } else {
        miss(RPC, CODED, 30, true);
    }
    hit(RPC, 30);
    ck_assert(begin(&v, HTTP, "Accept-Encoding: identity\r\n"));
    expect_body(&v, OUTCOME_HIT, 30);
    ck_assert(begin(&v, HTTP, "Accept-Encoding: gzip\r\n"));
    expect_body(&v, OUTCOME_HIT, 20);
    ck_assert_uint_eq(scene_stats().pages, 2);
    scene_end();
}
END_TEST

/* A request that waits for a variant of the other kind fetches its own. */
START_TEST(requests_for_several_variants_share_no_fetch)
{
    struct visit http, rpc;

    scene_begin(&defaults);
    ck_assert(!begin(&http, HTTP, "Accept-Encoding: br\r\n"));
    ck_assert(!begin(&rpc, RPC, ""));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, 200, CODED "Content-Encoding: br\r\n", 20);
    expect_body(&http, OUTCOME_MISS, 20);
    expect_waiting(&rpc);
    expect_fields(RPC, "");
    scene_answer(URL, 200, CODED, 30);
    expect_body(&rpc, OUTCOME_MISS, 30);
    ck_assert(rpc.stored);
    hit(RPC, 30);
    scene_end();
}
END_TEST

/* Of a request over RPC all fields but its coding are absent. */
START_TEST(rpc_is_the_variant_of_no_field)
{
    static const char lines[] = "Vary: Cookie, Accept-Language\r\nCache-Control: max-age=1000\r\n";
    struct visit v;

    scene_begin(&defaults);
    miss(RPC, lines, 20, true);
    ck_assert(!begin(&v, HTTP, "Accept-Language: de\r\n"));
    scene_answer(URL, 200, lines, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    hit(RPC, 20);
    ck_assert(begin(&v, HTTP, "X: y\r\n"));
    expect_body(&v, OUTCOME_HIT, 20);
    scene_end();
}
END_TEST

/* Version 1 takes no body over a bound, and a fetch for it ends there: no other request joins it. */
START_TEST(a_fetch_for_a_bounded_body_is_joined_by_its_like_alone)
{
    struct visit first = {.url = URL}, second = {.url = URL}, http;

    scene_begin(&defaults);
    ck_assert(!visit(&first));
    ck_assert(!begin(&http, HTTP, ""));
    ck_assert_uint_eq(scene.submitted, 2);
    ck_assert(!visit(&second));
    ck_assert_uint_eq(scene.submitted, 2);
    scene_answer(URL, 200, FRESH, 5);
    scene_answer(URL, 200, FRESH, 5);
    expect_body(&first, OUTCOME_MISS, 5);
    expect_body(&second, OUTCOME_COALESCED, 5);
    expect_body(&http, OUTCOME_MISS, 5);
    scene_end();
}
END_TEST

/* ---- redirects ------------------------------------------------------------------------------- */

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
    Suite *suite = suite_create("proxy: objects of both protocols");
    TCase *cases = tcase_create("all");

    tcase_add_loop_test(cases, a_page_is_stored_once_for_both, 0, 2);
    tcase_add_loop_test(cases, requests_of_both_share_a_fetch, 0, 2);
    tcase_add_test(cases, an_expired_page_may_have_changed);
    tcase_add_test(cases, a_condition_of_a_client_over_rpc_is_the_origins);
    tcase_add_test(cases, directives_of_a_client_over_rpc_are_not_read);
    tcase_add_test(cases, a_stale_page_is_used_over_rpc_where_the_origin_fails);
    tcase_add_test(cases, a_page_is_refreshed_in_the_background_for_rpc);
    tcase_add_test(cases, without_a_lifetime_a_page_is_fresh_to_rpc_and_validated_for_http);
    tcase_add_test(cases, without_a_validator_it_is_fetched_anew_for_http);
    tcase_add_test(cases, what_http_stores_by_a_heuristic_is_a_hit_for_rpc_and_then_validated);
    tcase_add_loop_test(cases, http_does_not_get_it_from_a_fetch_of_rpc, 0, 4);
    tcase_add_test(cases, http_does_not_get_what_is_not_stored);
    tcase_add_test(cases, rpc_validates_what_a_fetch_of_http_has_brought);
    tcase_add_test(cases, a_user_over_http_does_not_get_it);
    tcase_add_test(cases, it_is_a_stale_page_for_http);
    tcase_add_test(cases, a_soft_purge_has_it_validated);
    tcase_add_loop_test(cases, with_freshness_off_it_is_a_hit_for_both, 0, 2);
    tcase_add_loop_test(cases, requests_of_both_pass_by_one_mark, 0, 2);
    tcase_add_loop_test(cases, rpc_reads_the_variant_without_a_coding, 0, 2);
    tcase_add_test(cases, requests_for_several_variants_share_no_fetch);
    tcase_add_test(cases, rpc_is_the_variant_of_no_field);
    tcase_add_test(cases, a_fetch_for_a_bounded_body_is_joined_by_its_like_alone);
    tcase_add_test(cases, a_redirect_counts_whatever_its_body);
    tcase_add_test(cases, a_redirect_is_counted_where_it_is_the_response);
    tcase_add_loop_test(cases, a_stored_redirect_is_that_of_both, 0, 2);
    tcase_add_test(cases, a_hit_behind_a_redirect_is_what_that_was);
    tcase_add_test(cases, another_url_is_fetched_for_an_object);
    suite_add_tcase(suite, cases);
    return suite;
}
