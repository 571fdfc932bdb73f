/* The tags that rules give to objects. */
#define UNIT_STARTS_NO_THREAD

#include <stdio.h>

#include "proxy/control.h"
#include "tests/unit/proxy/writes.h"

START_TEST(objects_have_the_tags_of_their_paths)
{
    struct visit v;

    writes_scene();
    ck_assert(!visit_http(&v, HOST "/users/1", ""));
    scene_answer(HOST "/users/1", 200, FRESH "Surrogate-Key: one users two\r\n", 20);
    ck_assert_str_eq(v.tags, "one users two");
    ck_assert(!visit_http(&v, HOST "/users/2?q", ""));
    scene_answer(HOST "/users/2?q", 200, FRESH, 20);
    ck_assert_str_eq(v.tags, "users");
    /* They are those of the URL again after a 304. */
    scene.now_us += 1001 * SECOND;
    ck_assert(!visit_http(&v, HOST "/users/2?q", ""));
    scene_answer(HOST "/users/2?q", 304, FRESH, 0);
    ck_assert_str_eq(v.tags, "users");
    /* RPC's objects have them, too. */
    scene_store(HOST "/users/3", "", 10);
    ck_assert_uint_eq(control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str("users")), 3);
    scene_end();
}
END_TEST

/* And not those of where it leads. */
START_TEST(a_redirect_has_the_tags_of_its_own_path)
{
    struct visit v = {.url = HOST "/old"};

    writes_scene();
    ck_assert(!visit(&v));
    scene_answer(HOST "/old", 301, "Location: /users/1\r\n", 5);
    ck_assert_str_eq(v.tags, "old");
    ck_assert_str_eq(v.redirect, "/users/1");
    ck_assert(scene_has(HOST "/old"));
    write_to(HOST "/users/2", false, 204, "");
    ck_assert(scene_has(HOST "/old"));
    write_to(HOST "/old/1", false, 204, "");
    ck_assert(!scene_has(HOST "/old"));
    scene_end();
}
END_TEST

START_TEST(a_response_to_post_that_is_stored_has_tags)
{
    static const char lines[] =
        "Content-Location: /users/1\r\nSurrogate-Key: x\r\nCache-Control: max-age=10\r\n";

    for (unsigned i = 0; i < 2; i++) {
        struct visit v = {.url = HOST "/users/1", .http = true, .streams = true, .method = "POST"};

        writes_scene();
        ck_assert(!visit(&v));
        scene_answer(HOST "/users/1", 200, lines, 20);
        ck_assert(has_http(HOST "/users/1"));
        ck_assert_uint_eq(
            control_purge(&scene.proxy, CONTROL_PURGE_TAG, span_str(i ? "users" : "x")), 1);
        ck_assert(!has_http(HOST "/users/1"));
        scene_end();
    }
}
END_TEST

/* No write would find it for those that come later. */
START_TEST(what_cannot_have_its_tags_is_not_stored)
{
    char url[200] = HOST "/", text[600] = "/* ->";
    struct visit v;

    scene_begin(&(struct scene_options){0});
    memset(url + strlen(url), 'x', 150);
    for (unsigned i = 0; i < 60; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), " %u$1", i);
    scene_add_rule(&scene.tag_rules, text);
    for (unsigned http = 0; http < 2; http++) {
        struct visit joined, late;
        struct scene_fetch *fetch;

        url[sizeof(HOST)] = http ? 'h' : 'r';
        v = joined = late = (struct visit){.url = url, .http = http, .streams = true};
        ck_assert(!visit(&v));
        ck_assert(!visit(&joined));
        fetch = scene_fetch(url);
        scene_response(fetch, FRESH, false);
        ck_assert_int_eq(scene_head(fetch, 200, FRESH, 20), FETCH_CONTINUE);
        scene_run();
        ck_assert(!visit(&late));
        ck_assert_uint_eq(scene_fetches(), 3);
        scene_body(fetch, 20);
        scene_done(fetch, FETCH_OK, "");
        scene_answer(url, 200, FRESH, 20);
        scene_answer(url, 200, FRESH, 20);
        expect_body(&v, OUTCOME_MISS, 20);
        expect_body(&joined, OUTCOME_MISS, 20);
        expect_body(&late, OUTCOME_MISS, 20);
        ck_assert(!v.stored && !joined.stored && !late.stored);
    }
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: tags of objects");
    TCase *tests = tcase_create("writes");

    tcase_add_test(tests, objects_have_the_tags_of_their_paths);
    tcase_add_test(tests, a_redirect_has_the_tags_of_its_own_path);
    tcase_add_test(tests, a_response_to_post_that_is_stored_has_tags);
    tcase_add_test(tests, what_cannot_have_its_tags_is_not_stored);
    suite_add_tcase(suite, tests);
    return suite;
}
