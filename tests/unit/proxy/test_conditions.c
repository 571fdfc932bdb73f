/*
 * Conditions of clients on a miss: they are the origin's to evaluate, and what it makes of them is
 * for their client alone.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=60\r\n"
#define CONDITION "If-None-Match: \"a\"\r\n"

static const struct scene_options defaults;

START_TEST(a_200_is_stored_and_shared)
{
    struct visit first, second, third;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, CONDITION));
    ck_assert(!visit_http(&second, URL, ""));
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->fields, CONDITION);
    scene_response(fetch, FRESH, false);
    scene_head(fetch, 200, FRESH, 30);
    scene_run();
    ck_assert(!visit_http(&third, URL, CONDITION));
    scene_body(fetch, 30);
    scene_done(fetch, FETCH_OK, "");
    scene_run();
    expect_body(&first, OUTCOME_MISS, 30);
    expect_body(&second, OUTCOME_COALESCED, 30);
    expect_body(&third, OUTCOME_COALESCED, 30);
    /* The others' conditions are evaluated on what is stored. */
    ck_assert_int_eq(first.evaluated, EVALUATED_CONDITIONS);
    ck_assert_int_eq(second.evaluated, EVALUATED_NOTHING);
    ck_assert_int_eq(third.evaluated, EVALUATED_NOTHING);
    ck_assert(first.stored);
    expect_http_hit(URL, "", 30);
    scene_end();
}
END_TEST

/* `_i`: its status, and whether it also says that it is for one client. */
START_TEST(what_answers_a_condition_is_for_its_client_alone)
{
    unsigned status = _i % 2 ? 412 : 304;
    const char *lines = _i / 2 ? "ETag: \"a\"\r\nSet-Cookie: a=b\r\n" : FRESH;
    struct visit first, other, conditional;
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit_http(&first, URL, CONDITION));
    ck_assert(!visit_http(&other, URL, ""));
    ck_assert(!visit_http(&conditional, URL, CONDITION));
    ck_assert_uint_eq(scene_fetches(), 1);
    scene_answer(URL, status, lines, 0);
    expect_body(&first, OUTCOME_MISS, 0);
    ck_assert_uint_eq(first.status, status);
    ck_assert_int_eq(first.evaluated, EVALUATED_CONDITIONS);
    ck_assert(!first.stored);
    ck_assert_uint_eq(scene_stats().passed, _i / 2 ? 1 : 0);
    /* The others do not wait for each other's. */
    ck_assert_uint_eq(scene_fetches(), 2);
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->fields, "");
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&other, OUTCOME_MISS, 30);
    ck_assert_str_eq(scene_fetch(URL)->fields, CONDITION);
    scene_answer(URL, 304, FRESH, 0);
    ck_assert(conditional.ended);
    ck_assert_uint_eq(conditional.status, 304);
    ck_assert_int_eq(conditional.evaluated, EVALUATED_ALL);
    expect_http_hit(URL, "", 30);
    scene_end();
}
END_TEST

/* RFC 9110 section 13.2.1: other statuses do not depend on the condition. */
START_TEST(other_statuses_are_stored_as_the_rules_say)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, CONDITION));
    scene_answer(URL, 404, "Cache-Control: max-age=60\r\n", 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert(v.stored);
    ck_assert(visit_http(&v, URL, ""));
    ck_assert_uint_eq(v.status, 404);
    scene_end();
}
END_TEST

/* What can be validated is, and then the stored response answers. */
START_TEST(a_stale_object_is_validated_by_its_own)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "ETag: \"old\"\r\nCache-Control: max-age=10\r\n", 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v, URL, CONDITION));
    ck_assert_str_eq(scene_fetch(URL)->fields, "If-None-Match: \"old\"\r\n");
    scene_answer(URL, 304, FRESH, 0);
    ck_assert_uint_eq(scene_fetches(), 1); /* it concerned another one */
    ck_assert_str_eq(scene_fetch(URL)->fields, "");
    scene_answer(URL, 200, FRESH, 30);
    expect_body(&v, OUTCOME_MISS, 30);
    ck_assert_int_eq(v.evaluated, EVALUATED_NOTHING);
    expect_http_hit(URL, "", 30);
    scene_end();
}
END_TEST

/* Where the stale object cannot be validated, its request's conditions are sent; a 304 to them
 * leaves it, and an error may be answered with it. */
START_TEST(a_stale_object_without_validators)
{
    struct visit v;

    scene_begin(&defaults);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, "Cache-Control: max-age=10\r\n", 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v, URL, CONDITION));
    ck_assert_str_eq(scene_fetch(URL)->fields, CONDITION);
    scene_answer(URL, 304, FRESH, 0);
    ck_assert_uint_eq(v.status, 304);
    ck_assert(!visit_http(&v, URL, CONDITION));
    scene_done(scene_fetch(URL), FETCH_CONNECT_FAILED, "refused");
    scene_run();
    expect_body(&v, OUTCOME_STALE, 20);
    ck_assert_int_eq(v.evaluated, EVALUATED_NOTHING);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: conditions of clients");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_200_is_stored_and_shared);
    tcase_add_loop_test(cases, what_answers_a_condition_is_for_its_client_alone, 0, 4);
    tcase_add_test(cases, other_statuses_are_stored_as_the_rules_say);
    tcase_add_test(cases, a_stale_object_is_validated_by_its_own);
    tcase_add_test(cases, a_stale_object_without_validators);
    suite_add_tcase(suite, cases);
    return suite;
}
