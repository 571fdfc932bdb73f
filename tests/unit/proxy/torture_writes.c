/*
 * Writes and rules for tags with every allocation failing in turn: what a forwarded write makes
 * invalid does not stay, and what is stored has its tags.
 */
#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"
#include "tests/unit/torture.h"

#define HOST "http://origin.test"
#define FRESH "Cache-Control: max-age=1000\r\nSurrogate-Key: x\r\n"

static void
tear_down(void)
{
    torture_fail_at(0);
}

static void
begin(void)
{
    scene_begin(&(struct scene_options){0});
    scene_add_rule(&scene.tag_rules, "/* -> $1");
    scene_add_rule(&scene.write_rules, "/paths -> users");
}

/* False if it fails. */
static bool
get(const char *url, bool http)
{
    struct visit v = {.url = url, .http = http, .streams = http};

    if (!visit(&v))
        scene_answer(url, 200, FRESH, 20);
    scene_run();
    ck_assert(v.ended);
    return v.fails == 0;
}

static bool
has(const char *url)
{
    struct visit v;

    ck_assert(visit_http(&v, url, "Cache-Control: only-if-cached\r\n"));
    return v.fails == 0;
}

START_TEST(what_a_write_invalidates_does_not_stay)
{
    unsigned n = 0, forwarded = 0, refused = 0;

    do {
        struct visit v = {.url = HOST "/paths/1", .http = true, .streams = true, .method = "PUT"};

        begin();
        ck_assert(get(HOST "/users/1", true) && get(HOST "/paths/1", true) &&
                  get(HOST "/x/1", true));
        torture_fail_at(++n);
        visit(&v);
        if (!v.ended) {
            forwarded++;
            scene_answer(HOST "/paths/1", 204, "Location: /y/1\r\n", 0);
        }
        torture_fail_at(0);
        ck_assert(v.ended);
        ck_assert(torture_failed() || !v.fails);
        /* It has the tag that the URL's object had. */
        if (scene.submitted == 4)
            ck_assert(!has(HOST "/users/1") && !has(HOST "/paths/1") && !has(HOST "/x/1"));
        /* One that fails before it is forwarded keeps nothing from being stored later. */
        if (scene.submitted == 3) {
            refused++;
            ck_assert(v.fails);
            control_purge(&scene.proxy, CONTROL_PURGE_ALL, span_of(NULL, 0));
            ck_assert(get(HOST "/paths/1", true) && has(HOST "/paths/1"));
        }
        scene_end();
    } while (torture_failed());
    ck_assert_uint_ge(n, 8);
    ck_assert_uint_ge(forwarded, 4);
    ck_assert_uint_ge(refused, 1);
}
END_TEST

START_TEST(what_is_stored_has_its_tags)
{
    unsigned n = 0, kept = 0;

    do {
        begin();
        torture_fail_at(++n);
        get(HOST "/users/1", _i);
        torture_fail_at(0);
        kept += scene_stats().pages != 0;
        control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str("users"));
        ck_assert_uint_eq(scene_stats().pages, 0);
        scene_end();
    } while (torture_failed());
    ck_assert_uint_ge(n, 5);
    ck_assert_uint_ge(kept, 1);
}
END_TEST

START_TEST(a_rule_is_added_or_it_is_not)
{
    unsigned n = 0;

    do {
        struct tag_rules rules = {0};
        struct buf why;
        bool added;

        buf_init(&why, 100);
        torture_fail_at(++n);
        added = tag_rules_add(&rules, "/users -> users", &why);
        torture_fail_at(0);
        ck_assert(added == !torture_failed());
        ck_assert_uint_eq(rules.count, added);
        if (!added)
            ck_assert_ptr_nonnull(strstr(buf_str(&why), "Cannot allocate memory"));
        buf_free(&why);
        tag_rules_free(&rules);
    } while (torture_failed());
    ck_assert_uint_ge(n, 3);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("writes without memory");
    TCase *tests = tcase_create("writes");

    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, what_a_write_invalidates_does_not_stay);
    tcase_add_loop_test(tests, what_is_stored_has_its_tags, 0, 2);
    tcase_add_test(tests, a_rule_is_added_or_it_is_not);
    suite_add_tcase(suite, tests);
    return suite;
}
