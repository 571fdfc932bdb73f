/* What the responses to requests that passed a marker leave in the cache. */
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=100\r\n"
#define PRIVATE "Cache-Control: private\r\n"

static const struct scene_options defaults;

/* A marker stands in the cache. */
static void
set_marker(void)
{
    struct visit v;

    ck_assert(!visit_raw(&v, URL, ""));
    scene_answer(URL, 200, PRIVATE, 20);
    expect_body(&v, OUTCOME_MISS, 20);
    ck_assert_uint_eq(scene_stats().markers, 1);
}

START_TEST(what_the_origin_made_of_a_range_or_a_condition_is_not_stored)
{
    static const struct {
        const char *fields;
        unsigned status;
    } rows[] = {{"Range: bytes=500000-\r\n", 416},
                {"Range: bytes=500000-\r\n", 404},
                {"If-None-Match: \"b\"\r\n", 404}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct visit v;

        scene_begin(&defaults);
        set_marker();
        ck_assert(!visit_raw(&v, URL, rows[i].fields));
        ck_assert_str_eq(scene_fetch(URL)->fields, rows[i].fields);
        scene_answer(URL, rows[i].status, "Cache-Control: max-age=60\r\n", 5);
        ck_assert_uint_eq(v.status, rows[i].status);
        ck_assert(!visit_raw(&v, URL, ""));
        scene_answer(URL, 200, FRESH, 30);
        ck_assert_uint_eq(v.status, 200);
        ck_assert_uint_eq(v.got, 30);
        scene_end();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: passed requests");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, what_the_origin_made_of_a_range_or_a_condition_is_not_stored);
    suite_add_tcase(suite, cases);
    return suite;
}
