/* Raw exchanges, those of HTTP: what is asked of the origin, and which requests share a fetch. */
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"

static const struct scene_options defaults;

START_TEST(a_raw_request_is_fetched_as_it_came_shared_and_stored)
{
    struct visit first = {.url = URL, .raw = true, .fields = "Accept: text/html\r\n"};
    struct visit second = {.url = URL, .raw = true, .fields = "Accept: */*\r\n"};
    struct scene_fetch *fetch;

    scene_begin(&defaults);
    ck_assert(!visit(&first));
    ck_assert(!visit(&second));
    ck_assert_uint_eq(scene_fetches(), 1);
    fetch = scene_fetch(URL);
    ck_assert_str_eq(fetch->fields, "Accept: text/html\r\n");
    ck_assert_uint_eq(fetch->flags, FETCH_UNDECODED | FETCH_NO_REDIRECTS);
    scene_respond(URL, "Cache-Control: max-age=10\r\n", 20);
    expect_body(&first, OUTCOME_MISS, 20);
    expect_body(&second, OUTCOME_COALESCED, 20);
    ck_assert(first.stored && second.stored);
    first = (struct visit){.url = URL, .raw = true};
    ck_assert(visit(&first));
    expect_body(&first, OUTCOME_HIT, 20);
    scene_end();
}
END_TEST

START_TEST(another_method_is_passed_on)
{
    struct visit stored = {.url = URL, .raw = true};
    struct visit passed = {.url = URL, .raw = true, .method = "HEAD"};

    scene_begin(&defaults);
    ck_assert(!visit(&stored));
    scene_respond(URL, "Cache-Control: max-age=10\r\n", 20);
    expect_body(&stored, OUTCOME_MISS, 20);
    ck_assert(!visit(&passed));
    ck_assert_str_eq(scene_fetch(URL)->method, "HEAD");
    scene_respond(URL, "", 0);
    expect_body(&passed, OUTCOME_BYPASS, 0);
    ck_assert(!passed.stored);
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: raw exchanges");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_raw_request_is_fetched_as_it_came_shared_and_stored);
    tcase_add_test(cases, another_method_is_passed_on);
    suite_add_tcase(suite, cases);
    return suite;
}
