/* Responses that vary: which requests share an object, and which fetch their own. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define LANGUAGE "Vary: Accept-Language\r\nCache-Control: max-age=10\r\nETag: \"a\"\r\n"
#define DE "Accept-Language: de\r\n"
#define EN "Accept-Language: en\r\n"

static const struct scene_options defaults;

START_TEST(each_variant_has_an_object)
{
    scene_begin(&defaults);
    expect_http_miss(URL, DE, LANGUAGE, 20);
    expect_http_miss(URL, EN, LANGUAGE, 30);
    expect_http_miss(URL, "", LANGUAGE, 40);
    for (unsigned i = 0; i < 2; i++) {
        expect_http_hit(URL, DE, 20);
        expect_http_hit(URL, "X-A: b\r\n" EN, 30);
        expect_http_hit(URL, "", 40);
    }
    ck_assert_uint_eq(scene_stats().pages, 3);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 3);
    expect_http_miss(URL, EN, LANGUAGE, 50);
    scene_end();
}
END_TEST

START_TEST(those_that_wait_and_do_not_match_look_up_again)
{
    struct visit v[4];

    scene_begin(&defaults);
    ck_assert(!visit_http(&v[0], URL, DE));
    ck_assert(!visit_http(&v[1], URL, EN));
    ck_assert(!visit_http(&v[2], URL, DE));
    ck_assert(!visit_http(&v[3], URL, EN));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_response(scene_fetch(URL), LANGUAGE, false);
    scene_head(scene_fetch(URL), 200, LANGUAGE, 20);
    scene_run();
    /* One for each variant. */
    ck_assert_uint_eq(scene_fetches(), 2);
    ck_assert_str_eq(TAILQ_NEXT(scene_fetch(URL), link)->fields, EN);
    scene_body(scene_fetch(URL), 20);
    scene_done(scene_fetch(URL), FETCH_OK, "");
    scene_run();
    expect_body(&v[0], OUTCOME_MISS, 20);
    expect_body(&v[2], OUTCOME_COALESCED, 20);
    scene_answer(URL, 200, LANGUAGE, 30);
    expect_body(&v[1], OUTCOME_MISS, 30);
    expect_body(&v[3], OUTCOME_COALESCED, 30);
    expect_http_hit(URL, DE, 20);
    expect_http_hit(URL, EN, 30);
    scene_end();
}
END_TEST

START_TEST(after_a_purge_those_that_do_not_match_look_up_again_too)
{
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!visit_http(&v[0], URL, DE));
    ck_assert(!visit_http(&v[1], URL, EN));
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    scene_answer(URL, 200, LANGUAGE, 20);
    expect_body(&v[0], OUTCOME_MISS, 20);
    ck_assert(!v[0].stored);
    expect_waiting(&v[1]);
    ck_assert_str_eq(scene_fetch(URL)->fields, EN);
    scene_answer(URL, 200, LANGUAGE, 30);
    expect_body(&v[1], OUTCOME_MISS, 30);
    ck_assert(v[1].stored);
    scene_end();
}
END_TEST

START_TEST(after_a_purge_those_that_match_share_the_response)
{
    struct visit v[2];

    scene_begin(&defaults);
    expect_http_miss(URL, DE, LANGUAGE, 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v[0], URL, DE));
    ck_assert(!visit_http(&v[1], URL, DE));
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    scene_answer(URL, 200, LANGUAGE, 30);
    expect_body(&v[0], OUTCOME_MISS, 30);
    expect_body(&v[1], OUTCOME_COALESCED, 30);
    scene_end();
}
END_TEST

START_TEST(a_304_that_changes_what_selects_it_leads_to_a_fetch_without_conditions)
{
    static const char other[] = "Vary: X-Kind\r\nCache-Control: max-age=10\r\nETag: \"a\"\r\n";
    static const struct {
        const char *before, *after;
        bool repeats;
    } rows[] = {
        {"Cache-Control: max-age=10\r\nETag: \"a\"\r\n", LANGUAGE, true},
        {LANGUAGE, other, true},
        {LANGUAGE, "Vary: *\r\n", true},
        {LANGUAGE, "", false},
        {LANGUAGE, "Vary: accept-language\r\n", false},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v[2];

        scene_begin(&defaults);
        expect_http_miss(URL, DE, rows[i].before, 20);
        scene.now_us += 20 * SECOND;
        ck_assert(!visit_http(&v[0], URL, DE));
        ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, "If-None-Match"));
        scene_answer(URL, 304, rows[i].after, 0);
        ck_assert_msg(v[0].ended != rows[i].repeats, "row %zu", i);
        if (rows[i].repeats) {
            ck_assert_str_eq(scene_fetch(URL)->fields, DE);
            scene_answer(URL, 200, rows[i].after, 30);
            expect_body(&v[0], OUTCOME_MISS, 30);
        }
        /* No request with another language gets it. */
        ck_assert(!visit_http(&v[1], URL, EN "X-Kind: 1\r\n"));
        ck_assert_ptr_null(strstr(scene_fetch(URL)->fields, "If-None-Match"));
        scene_answer(URL, 200, LANGUAGE, 40);
        expect_body(&v[1], OUTCOME_MISS, 40);
        scene_end();
    }
}
END_TEST

START_TEST(a_variant_is_validated_for_itself)
{
    struct visit v;

    scene_begin(&defaults);
    expect_http_miss(URL, DE, LANGUAGE, 20);
    expect_http_miss(URL, EN, LANGUAGE, 30);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v, URL, EN));
    ck_assert_str_eq(scene_fetch(URL)->fields, EN "If-None-Match: \"a\"\r\n");
    scene_answer(URL, 304, "", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 30);
    expect_http_hit(URL, EN, 30);
    ck_assert(!visit_http(&v, URL, DE));
    scene_answer(URL, 200, LANGUAGE, 40);
    expect_body(&v, OUTCOME_MISS, 40);
    scene_end();
}
END_TEST

START_TEST(a_response_without_vary_is_that_of_all_requests)
{
    scene_begin(&defaults);
    expect_http_miss(URL, DE, LANGUAGE, 20);
    expect_http_miss(URL, EN, "Cache-Control: max-age=10\r\n", 30);
    expect_http_hit(URL, EN, 30);
    expect_http_hit(URL, "Accept-Language: fr\r\n", 30);
    scene_end();
}
END_TEST

START_TEST(other_names_lead_to_another_selection)
{
    scene_begin(&defaults);
    expect_http_miss(URL, DE, LANGUAGE, 20);
    expect_http_miss(URL, EN, "Vary: X-Kind, Accept-Language\r\nCache-Control: max-age=10\r\n", 30);
    expect_http_hit(URL, EN, 30);
    expect_http_miss(URL, "X-Kind: 1\r\n" EN,
                     "Vary: X-Kind, Accept-Language\r\nCache-Control: max-age=10\r\n", 40);
    expect_http_hit(URL, "X-Kind: 1\r\n" EN, 40);
    expect_http_hit(URL, EN, 30);
    scene_end();
}
END_TEST

/* The key of a variant is bounded: such a request is answered, and leaves nothing behind. */
START_TEST(what_selects_by_too_much_is_for_one_request)
{
    static const char lines[] = "Vary: X-Kind\r\nCache-Control: max-age=10\r\n";
    static char fields[5000];
    struct visit v, waiting;

    scene_begin(&defaults);
    snprintf(fields, sizeof(fields), "X-Kind: %04500d\r\n", 7);
    ck_assert(!visit_http(&v, URL, fields));
    ck_assert(!visit_http(&waiting, URL, "X-Kind: a\r\n"));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(!v.stored);
    scene_answer(URL, 200, lines, 30);
    expect_body(&waiting, OUTCOME_MISS, 30);
    /* And where the record of the names is known already. */
    expect_http_hit(URL, "X-Kind: a\r\n", 30);
    ck_assert(!visit_http(&v, URL, fields));
    scene_answer(URL, 200, lines, 40);
    ck_assert(!v.stored && v.as_is);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

START_TEST(with_freshness_off_vary_does_not_count)
{
    scene_begin(&(struct scene_options){.freshness_off = true});
    expect_http_miss(URL, DE, LANGUAGE, 20);
    expect_http_hit(URL, EN, 20);
    scene_end();
}
END_TEST

/* ---- content codings --------------------------------------------------------------------------
 */

#define CODING "Vary: Accept-Encoding\r\nCache-Control: max-age=10\r\n"
#define GZIP CODING "Content-Encoding: gzip\r\nETag: \"g\"\r\n"
#define BR CODING "Content-Encoding: br\r\nETag: \"b\"\r\n"
#define PLAIN CODING "ETag: \"p\"\r\n"
#define TAKES(list) "Accept-Encoding: " list "\r\n"
#define TAKES_1 TAKES("gzip")
#define TAKES_2 TAKES("gzip, br")
#define TAKES_4 TAKES("gzip, deflate, br, zstd")

START_TEST(clients_share_what_an_origin_that_gzips_sends)
{
    scene_begin(&defaults);
    expect_http_miss(URL, TAKES_4, GZIP, 20);
    expect_http_hit(URL, TAKES_1, 20);
    expect_http_hit(URL, TAKES_2, 20);
    expect_http_hit(URL, TAKES_4, 20);
    expect_http_hit(URL, TAKES("br;q=0.5, gzip;q=0.1"), 20);
    expect_http_hit(URL, TAKES("gzip, br;q=0"), 20);
    ck_assert_uint_eq(scene_stats().pages, 1);
    /* No other client gets it. */
    expect_http_miss(URL, TAKES("identity"), PLAIN, 30);
    expect_http_hit(URL, TAKES("br"), 30);
    expect_http_hit(URL, TAKES("gzip;q=0, br"), 30);
    expect_http_hit(URL, TAKES(""), 30);
    expect_http_miss(URL, "", PLAIN, 40);
    expect_http_miss(URL, TAKES("*, gzip;q=0"), PLAIN, 50);
    expect_http_miss(URL, TAKES("gzip, identity;q=0"), GZIP, 60);
    expect_http_hit(URL, TAKES_1, 20);
    ck_assert_uint_eq(scene_stats().pages, 5);
    scene_end();
}
END_TEST

/* A coding is not left out before a client has offered it in vain, so that one is found. */
START_TEST(a_coding_is_asked_for_once_before_it_is_left_out)
{
    scene_begin(&defaults);
    expect_http_miss(URL, TAKES_1, GZIP, 20);
    expect_http_miss(URL, TAKES_2, GZIP, 30);
    ck_assert_uint_eq(scene_stats().pages, 1);
    expect_http_hit(URL, TAKES_1, 30);
    expect_http_miss(URL, TAKES_4, GZIP, 40);
    ck_assert_uint_eq(scene_stats().pages, 1);
    expect_http_hit(URL, TAKES_1, 40);
    expect_http_hit(URL, TAKES_2, 40);
    expect_http_hit(URL, TAKES("deflate, gzip"), 40);
    /* From then on once in a lifetime. */
    scene.now_us += 11 * SECOND;
    expect_http_miss(URL, TAKES_1, GZIP, 50);
    expect_http_hit(URL, TAKES_2, 50);
    expect_http_hit(URL, TAKES_4, 50);
    scene_end();
}
END_TEST

START_TEST(clients_share_what_an_origin_without_codings_sends)
{
    scene_begin(&defaults);
    expect_http_miss(URL, TAKES("identity"), PLAIN, 20);
    expect_http_miss(URL, TAKES_4, PLAIN, 30);
    expect_http_hit(URL, TAKES_1, 30);
    expect_http_hit(URL, TAKES_2, 30);
    expect_http_hit(URL, TAKES("identity"), 30);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

START_TEST(an_uncompressed_error_leaves_no_coding_out)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, TAKES_2));
    scene_answer(URL, 404, PLAIN, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(!visit_http(&v, URL, TAKES("identity")));
    scene_answer(URL, 200, PLAIN, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    ck_assert(!visit_http(&v, URL, TAKES_1));
    scene_answer(URL, 200, GZIP, 40);
    expect_body(&v, OUTCOME_MISS, 40);
    expect_http_hit(URL, TAKES("identity"), 30);
    scene_end();
}
END_TEST

START_TEST(an_origin_that_begins_to_use_a_coding_is_followed)
{
    struct visit v;

    scene_begin(&defaults);
    expect_http_miss(URL, TAKES_4, GZIP, 20);
    expect_http_hit(URL, TAKES_1, 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v, URL, TAKES_2));
    ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, TAKES_2));
    scene_answer(URL, 200, BR, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    expect_http_hit(URL, TAKES_4, 30);
    expect_http_hit(URL, TAKES_2, 30);
    /* What there was stays for those who do not accept the new one, and is validated for them. */
    ck_assert(!visit_http(&v, URL, TAKES_1));
    ck_assert_str_eq(scene_fetch(URL)->fields, TAKES_1 "If-None-Match: \"g\"\r\n");
    scene_answer(URL, 304, "", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 20);
    expect_http_hit(URL, TAKES_1, 20);
    expect_http_hit(URL, TAKES_4, 30);
    ck_assert_uint_eq(scene_stats().pages, 2);
    /* It is known to be used now, although an answer is not compressed. */
    scene.now_us += 11 * SECOND;
    expect_http_miss(URL, TAKES_4, GZIP, 40);
    expect_http_hit(URL, TAKES_2, 40);
    expect_http_miss(URL, TAKES_1, GZIP, 50);
    expect_http_hit(URL, TAKES_4, 40);
    scene_end();
}
END_TEST

/* They have joined as if the coding were not used, and it is. */
START_TEST(those_that_wait_do_not_get_a_coding_that_comes_unexpectedly)
{
    struct visit v[4];

    for (unsigned purged = 0; purged < 2; purged++) {
        scene_begin(&defaults);
        expect_http_miss(URL, TAKES_4, PLAIN, 20);
        scene.now_us += 11 * SECOND;
        ck_assert(!visit_http(&v[0], URL, TAKES_2));
        ck_assert(!visit_http(&v[1], URL, TAKES("identity")));
        ck_assert(!visit_http(&v[2], URL, TAKES_1));
        ck_assert(!visit_http(&v[3], URL, TAKES_4));
        ck_assert_uint_eq(scene_fetches(), 1);
        if (purged)
            control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
        scene_answer(URL, 200, BR, 30);
        expect_body(&v[0], OUTCOME_MISS, 30);
        expect_waiting(&v[1]);
        expect_waiting(&v[2]);
        while (scene_fetches()) {
            const char *fields = scene_fetch(URL)->fields;
            bool br = strstr(fields, "br") != NULL;

            scene_answer(URL, 200, br ? BR : PLAIN, br ? 30 : 40);
        }
        ck_assert_uint_eq(v[1].got, 40);
        ck_assert_uint_eq(v[2].got, 40);
        ck_assert_uint_eq(v[3].got, 30);
        expect_http_hit(URL, TAKES("identity"), 40);
        scene_end();
    }
}
END_TEST

START_TEST(a_purge_forgets_which_codings_are_used)
{
    scene_begin(&defaults);
    expect_http_miss(URL, TAKES_4, GZIP, 20);
    expect_http_hit(URL, TAKES_2, 20);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 1);
    expect_http_miss(URL, TAKES_1, GZIP, 30);
    expect_http_miss(URL, TAKES_2, BR, 40);
    expect_http_hit(URL, TAKES_1, 30);
    expect_http_hit(URL, TAKES_2, 40);
    scene_end();
}
END_TEST

START_TEST(other_fields_select_besides_the_coding)
{
    static const char both[] = "Vary: Accept-Encoding, Accept-Language\r\n"
                               "Cache-Control: max-age=10\r\nContent-Encoding: gzip\r\n";
    static const char other[] = "Vary: X-Kind, Accept-Encoding\r\nCache-Control: max-age=10\r\n"
                                "Content-Encoding: gzip\r\n";

    scene_begin(&defaults);
    expect_http_miss(URL, TAKES_4 DE, both, 20);
    expect_http_hit(URL, TAKES_1 DE, 20);
    expect_http_miss(URL, TAKES_2 EN, both, 30);
    expect_http_hit(URL, TAKES_1 EN, 30);
    expect_http_hit(URL, TAKES_4 EN, 30);
    expect_http_hit(URL, TAKES_2 DE, 20);
    /* What is known of the codings stays when the names change. */
    expect_http_miss(URL, TAKES_1 "X-Kind: 1\r\nAccept-Language: fr\r\n", other, 40);
    expect_http_hit(URL, TAKES_2 "X-Kind: 1\r\n", 40);
    expect_http_hit(URL, TAKES_4 "X-Kind: 1\r\n", 40);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: variants");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, each_variant_has_an_object);
    tcase_add_test(cases, those_that_wait_and_do_not_match_look_up_again);
    tcase_add_test(cases, after_a_purge_those_that_do_not_match_look_up_again_too);
    tcase_add_test(cases, after_a_purge_those_that_match_share_the_response);
    tcase_add_test(cases, a_304_that_changes_what_selects_it_leads_to_a_fetch_without_conditions);
    tcase_add_test(cases, a_variant_is_validated_for_itself);
    tcase_add_test(cases, a_response_without_vary_is_that_of_all_requests);
    tcase_add_test(cases, other_names_lead_to_another_selection);
    tcase_add_test(cases, what_selects_by_too_much_is_for_one_request);
    tcase_add_test(cases, with_freshness_off_vary_does_not_count);
    tcase_add_test(cases, clients_share_what_an_origin_that_gzips_sends);
    tcase_add_test(cases, a_coding_is_asked_for_once_before_it_is_left_out);
    tcase_add_test(cases, clients_share_what_an_origin_without_codings_sends);
    tcase_add_test(cases, an_uncompressed_error_leaves_no_coding_out);
    tcase_add_test(cases, an_origin_that_begins_to_use_a_coding_is_followed);
    tcase_add_test(cases, those_that_wait_do_not_get_a_coding_that_comes_unexpectedly);
    tcase_add_test(cases, a_purge_forgets_which_codings_are_used);
    tcase_add_test(cases, other_fields_select_besides_the_coding);
    suite_add_tcase(suite, cases);
    return suite;
}
