/*
 * Objects that requests over RPC and over HTTP share: what is stored for one protocol is used for
 * the other.
 */
#define UNIT_STARTS_NO_THREAD

#include "proxy/control.h"
#include "tests/unit/proxy/protocols.h"

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

/* Version 1 takes no body over a bound, and a fetch for it ends there: no other request joins it.
 */
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
    tcase_add_loop_test(cases, requests_of_both_pass_by_one_mark, 0, 2);
    tcase_add_loop_test(cases, rpc_reads_the_variant_without_a_coding, 0, 2);
    tcase_add_test(cases, requests_for_several_variants_share_no_fetch);
    tcase_add_test(cases, rpc_is_the_variant_of_no_field);
    tcase_add_test(cases, a_fetch_for_a_bounded_body_is_joined_by_its_like_alone);
    suite_add_tcase(suite, cases);
    return suite;
}
