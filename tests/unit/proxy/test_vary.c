/* Responses that vary: which requests share an object, and which fetch their own. */
#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define LANGUAGE "Vary: Accept-Language\r\nCache-Control: max-age=10\r\nETag: \"a\"\r\n"
#define DE "Accept-Language: de\r\n"
#define EN "Accept-Language: en\r\n"

static const struct scene_options defaults;

static void
store(const char *fields, const char *lines, size_t len)
{
    struct visit v;

    ck_assert(!visit_raw(&v, URL, fields));
    scene_answer(URL, 200, lines, len);
    expect_body(&v, OUTCOME_MISS, len);
    ck_assert(v.stored);
}

static void
expect_hit(const char *fields, size_t len)
{
    struct visit v;

    ck_assert(visit_raw(&v, URL, fields));
    expect_body(&v, OUTCOME_HIT, len);
}

START_TEST(each_variant_has_an_object)
{
    scene_begin(&defaults);
    store(DE, LANGUAGE, 20);
    store(EN, LANGUAGE, 30);
    store("", LANGUAGE, 40);
    for (unsigned i = 0; i < 2; i++) {
        expect_hit(DE, 20);
        expect_hit("X-A: b\r\n" EN, 30);
        expect_hit("", 40);
    }
    ck_assert_uint_eq(scene_stats().pages, 3);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL)), 3);
    store(EN, LANGUAGE, 50);
    scene_end();
}
END_TEST

START_TEST(those_that_wait_and_do_not_match_look_up_again)
{
    struct visit v[4];

    scene_begin(&defaults);
    ck_assert(!visit_raw(&v[0], URL, DE));
    ck_assert(!visit_raw(&v[1], URL, EN));
    ck_assert(!visit_raw(&v[2], URL, DE));
    ck_assert(!visit_raw(&v[3], URL, EN));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_hop(scene_fetch(URL), LANGUAGE, false);
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
    expect_hit(DE, 20);
    expect_hit(EN, 30);
    scene_end();
}
END_TEST

START_TEST(after_a_purge_those_that_do_not_match_look_up_again_too)
{
    struct visit v[2];

    scene_begin(&defaults);
    ck_assert(!visit_raw(&v[0], URL, DE));
    ck_assert(!visit_raw(&v[1], URL, EN));
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
    store(DE, LANGUAGE, 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_raw(&v[0], URL, DE));
    ck_assert(!visit_raw(&v[1], URL, DE));
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
        store(DE, rows[i].before, 20);
        scene.now_us += 20 * SECOND;
        ck_assert(!visit_raw(&v[0], URL, DE));
        ck_assert_ptr_nonnull(strstr(scene_fetch(URL)->fields, "If-None-Match"));
        scene_answer(URL, 304, rows[i].after, 0);
        ck_assert_msg(v[0].ended != rows[i].repeats, "row %zu", i);
        if (rows[i].repeats) {
            ck_assert_str_eq(scene_fetch(URL)->fields, DE);
            scene_answer(URL, 200, rows[i].after, 30);
            expect_body(&v[0], OUTCOME_MISS, 30);
        }
        /* No request with another language gets it. */
        ck_assert(!visit_raw(&v[1], URL, EN "X-Kind: 1\r\n"));
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
    store(DE, LANGUAGE, 20);
    store(EN, LANGUAGE, 30);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_raw(&v, URL, EN));
    ck_assert_str_eq(scene_fetch(URL)->fields, EN "If-None-Match: \"a\"\r\n");
    scene_answer(URL, 304, "", 0);
    expect_body(&v, OUTCOME_REVALIDATED, 30);
    expect_hit(EN, 30);
    ck_assert(!visit_raw(&v, URL, DE));
    scene_answer(URL, 200, LANGUAGE, 40);
    expect_body(&v, OUTCOME_MISS, 40);
    scene_end();
}
END_TEST

START_TEST(a_response_without_vary_is_that_of_all_requests)
{
    scene_begin(&defaults);
    store(DE, LANGUAGE, 20);
    store(EN, "Cache-Control: max-age=10\r\n", 30);
    expect_hit(EN, 30);
    expect_hit("Accept-Language: fr\r\n", 30);
    scene_end();
}
END_TEST

START_TEST(other_names_lead_to_another_selection)
{
    scene_begin(&defaults);
    store(DE, LANGUAGE, 20);
    store(EN, "Vary: X-Kind, Accept-Language\r\nCache-Control: max-age=10\r\n", 30);
    expect_hit(EN, 30);
    store("X-Kind: 1\r\n" EN, "Vary: X-Kind, Accept-Language\r\nCache-Control: max-age=10\r\n", 40);
    expect_hit("X-Kind: 1\r\n" EN, 40);
    expect_hit(EN, 30);
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
    ck_assert(!visit_raw(&v, URL, fields));
    ck_assert(!visit_raw(&waiting, URL, "X-Kind: a\r\n"));
    scene_answer(URL, 200, lines, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(!v.stored);
    scene_answer(URL, 200, lines, 30);
    expect_body(&waiting, OUTCOME_MISS, 30);
    /* And where the record of the names is known already. */
    expect_hit("X-Kind: a\r\n", 30);
    ck_assert(!visit_raw(&v, URL, fields));
    scene_answer(URL, 200, lines, 40);
    ck_assert(!v.stored && v.as_is);
    ck_assert_uint_eq(scene_stats().pages, 1);
    scene_end();
}
END_TEST

START_TEST(with_freshness_off_vary_does_not_count)
{
    scene_begin(&(struct scene_options){.freshness_off = true});
    store(DE, LANGUAGE, 20);
    expect_hit(EN, 20);
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
    suite_add_tcase(suite, cases);
    return suite;
}
