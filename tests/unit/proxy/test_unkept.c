/* Fetches whose responses will not be stored because of what the request or a purge did. */
#define UNIT_STARTS_NO_THREAD

#include <string.h>

#include "proxy/control.h"
#include "tests/unit/proxy/scene.h"

#define URL "http://origin.test/page"
#define FRESH "ETag: \"a\"\r\nCache-Control: max-age=10\r\n"
#define LANGUAGE "Vary: Accept-Language\r\nCache-Control: max-age=10\r\n"

static const struct scene_options large = {.capacity_bytes = 800 * MIB};

/* The head of a response of unknown length. */
static void
begin_response(const char *lines)
{
    scene_response(scene_fetch(URL), lines, false);
    ck_assert_int_eq(scene_head(scene_fetch(URL), 200, lines, -1), FETCH_CONTINUE);
}

/* Its body, which is not read, pauses when the window is full, and ends with its request. */
static void
expect_window(struct visit *v)
{
    unsigned sent = 0;

    while (scene_body(scene_fetch(URL), MIB / 4) != FETCH_PAUSE)
        ck_assert_uint_lt(sent++, 8);
    ck_assert_uint_lt(memory_used(&scene.account, MEMORY_PAGES), 4 * MIB);
    visit_cancel(v);
    ck_assert(scene_is_cancelled(scene_fetch(URL)));
    scene_done(scene_fetch(URL), FETCH_CANCELLED, "");
    scene_run();
    scene_end();
}

START_TEST(a_response_that_was_purged_before_its_head_has_a_window)
{
    struct visit v = {.url = URL, .http = true, .streams = true, .paces = true};

    scene_begin(&large);
    ck_assert(!visit(&v));
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    begin_response(FRESH);
    expect_window(&v);
}
END_TEST

START_TEST(a_response_that_is_purged_while_it_comes_gets_a_window)
{
    struct visit v = {.url = URL, .http = true, .streams = true, .paces = true};

    scene_begin(&large);
    ck_assert(!visit(&v));
    begin_response(FRESH);
    ck_assert_int_eq(scene_body(scene_fetch(URL), 100), FETCH_CONTINUE);
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    expect_window(&v);
}
END_TEST

START_TEST(a_response_whose_variant_cannot_be_told_has_a_window)
{
    static char fields[4600];
    struct visit v;

    scene_begin(&large);
    ck_assert(!visit_http(&v, URL, "Accept-Language: de\r\n"));
    scene_answer(URL, 200, LANGUAGE, 20);
    memset(fields, 'x', 4500);
    memcpy(fields, "Accept-Language: ", 17);
    strcpy(fields + 4500, "\"\r\n");
    v = (struct visit){.url = URL, .http = true, .streams = true, .paces = true, .fields = fields};
    ck_assert(!visit(&v));
    begin_response(LANGUAGE);
    expect_window(&v);
}
END_TEST

/* The first fetch was cancelled too late to end so, and the second one is not wanted. */
START_TEST(a_fetch_that_is_repeated_ends_when_its_request_has_left)
{
    struct visit v;

    scene_begin(&large);
    ck_assert(!visit_http(&v, URL, ""));
    scene_answer(URL, 200, FRESH, 20);
    scene.now_us += 11 * SECOND;
    ck_assert(!visit_http(&v, URL, ""));
    scene_response(scene_fetch(URL), "ETag: \"b\"\r\n", false);
    ck_assert_int_eq(scene_head(scene_fetch(URL), 304, "ETag: \"b\"\r\n", 0), FETCH_CONTINUE);
    control_purge(&scene.proxy, CONTROL_PURGE_URL, span_str(URL));
    visit_cancel(&v);
    ck_assert(scene_is_cancelled(scene_fetch(URL)));
    scene_done(scene_fetch(URL), FETCH_OK, "");
    ck_assert_uint_eq(scene_fetches(), 1);
    ck_assert(scene_is_cancelled(scene_fetch(URL)));
    scene_done(scene_fetch(URL), FETCH_CANCELLED, "");
    scene_run();
    scene_end();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("proxy: responses that are not kept");
    TCase *cases = tcase_create("all");

    tcase_add_test(cases, a_response_that_was_purged_before_its_head_has_a_window);
    tcase_add_test(cases, a_response_that_is_purged_while_it_comes_gets_a_window);
    tcase_add_test(cases, a_response_whose_variant_cannot_be_told_has_a_window);
    tcase_add_test(cases, a_fetch_that_is_repeated_ends_when_its_request_has_left);
    suite_add_tcase(suite, cases);
    return suite;
}
