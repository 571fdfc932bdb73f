/* Redirects that clients of RPC cannot be led by: circles, too many, and those that fail. */
#include <errno.h>

#include "tests/unit/server/rpc/follow.h"

#define PART "Content-Range: bytes 0-3/10\r\n"

START_TEST(a_circle)
{
    static const char *const ways[][4] = {
        {A, A}, {A, "http://host/./a"}, {A, B, A}, {A, B, C, B}, {A, B, C, A},
    };
    const char *const *way = ways[_i];
    int fd = front_connect();
    unsigned i;

    send_get(fd, 1, A, 0);
    for (i = 0; i < 3 && way[i + 1]; i++)
        origin_redirects(way[i], 302, way[i + 1], "");
    expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    ck_assert_uint_eq(scene.submitted, i);
    scene_expect_metric("requests{outcome=\"failure\"}", 1);
    scene_expect_metric("requests{outcome=\"miss\"}", 0);
    close(fd);
}
END_TEST

/* Also of redirects that are stored. */
START_TEST(a_circle_of_hits)
{
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_redirects(B, 301, A, "");
    expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    send_get(fd, 2, A, 0);
    expect_refused(fd, 2, PROXY_BAD_REDIRECT);
    send_fetch(fd, 3, B, strlen(B));
    ck_assert_int_eq(receive_status(fd, 3), SYSTEM_ERR);
    ck_assert_uint_eq(scene.submitted, 2);
    close(fd);
}
END_TEST

/* `_i` redirects, of which two are followed. */
START_TEST(too_many)
{
    char from[32], to[32];
    int fd;

    front_options.max_redirects = 2;
    front_server_start(&(struct scene_options){0}, VICTIMS_NONE);
    fd = front_connect();
    send_get(fd, 1, "http://host/0", 0);
    for (int i = 0; i < _i; i++) {
        snprintf(from, sizeof(from), "http://host/%d", i);
        snprintf(to, sizeof(to), "http://host/%d", i + 1);
        origin_redirects(from, 302, to, "");
    }
    if (_i > 2) {
        expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    } else {
        origin_answers(to, 200, MAX_AGE, "page");
        expect_page_of(fd, 1, PROXY_MISS, to, "page");
    }
    close(fd);
    front_server_stop();
}
END_TEST

/* --max-redirects 0 */
START_TEST(none_is_followed)
{
    int fd;

    front_server_start(&(struct scene_options){0}, VICTIMS_NONE);
    fd = front_connect();
    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, B, "");
    expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    send_fetch(fd, 2, A, strlen(A));
    origin_redirects(A, 302, B, "");
    ck_assert_int_eq(receive_status(fd, 2), SYSTEM_ERR);
    close(fd);
    front_server_stop();
}
END_TEST

/* As many as --max-redirects may permit, all of which are stored: behind a miss, and then hits. */
START_TEST(a_hundred)
{
    enum { MANY = 100 };
    char from[32], to[32] = "http://host/1";
    int fd;

    front_options.max_redirects = MANY;
    front_server_start(&(struct scene_options){.capacity_pages = 1000}, VICTIMS_NONE);
    fd = front_connect();
    send_get(fd, 1, to, 0);
    for (int i = 1; i < MANY; i++) {
        snprintf(from, sizeof(from), "http://host/%d", i);
        snprintf(to, sizeof(to), "http://host/%d", i + 1);
        origin_redirects(from, 301, to, "");
    }
    origin_answers(to, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, to, "page");
    send_get(fd, 2, "http://host/0", 0);
    origin_redirects("http://host/0", 301, "/1", "");
    expect_page_of(fd, 2, PROXY_MISS, to, "page");
    send_get(fd, 3, "http://host/0", 0);
    expect_page_of(fd, 3, PROXY_HIT, to, "page");
    ck_assert_uint_eq(scene.submitted, MANY + 1);
    close(fd);
    front_server_stop();
}
END_TEST

/* None is fetched. */
START_TEST(references_that_cannot_be_followed)
{
    static const char *const locations[] = {
        "ftp://host/",   "javascript:alert(1)", "mailto:a@host",      "http://",
        "http://ho st/", "http://[::1",         "http://host:99999/", "file:///etc/passwd",
    };
    int fd = front_connect_tcp();

    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        send_get(fd, 1, A, 0);
        origin_redirects(A, 302, locations[i], "");
        expect_refused(fd, 1, PROXY_BAD_REDIRECT);
        /* It is not the client's URL that is bad. */
        send_fetch(fd, 2, A, strlen(A));
        origin_redirects(A, 302, locations[i], "");
        ck_assert_int_eq(receive_status(fd, 2), SYSTEM_ERR);
    }
    ck_assert_uint_eq(scene.submitted, 2 * sizeof(locations) / sizeof(locations[0]));
    close(fd);
}
END_TEST

/* By one byte, as it is, or with what it is relative to. */
START_TEST(a_reference_that_is_too_long)
{
    static char url[PROXY_MAX_URL + 2];
    int fd = front_connect();

    memset(url, 'x', PROXY_MAX_URL + 1);
    if (_i)
        url[PROXY_MAX_URL + 1 - strlen("http://host/")] = '\0';
    else
        memcpy(url, "http://host/", 12);
    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, url, "");
    expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    ck_assert_uint_eq(scene.submitted, 1);
    close(fd);
}
END_TEST

/* What is wrong with where a redirect leads is no fault of the client's. */
START_TEST(failures_behind_a_redirect)
{
    static const struct {
        enum fetch_error error;
        proxy_status status;
    } rows[] = {
        {FETCH_DENIED, PROXY_BAD_REDIRECT},
        {FETCH_BAD_URL, PROXY_BAD_REDIRECT},
        {FETCH_RESOLVE_FAILED, PROXY_RESOLVE_FAILED},
        {FETCH_CONNECT_FAILED, PROXY_CONNECT_FAILED},
        {FETCH_TIMED_OUT, PROXY_TIMED_OUT},
        {FETCH_ORIGIN_BROKE, PROXY_ORIGIN_BROKE},
        {FETCH_STOPPING, PROXY_STOPPING},
    };
    int fd = front_connect_tcp();

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        send_get(fd, 1, A, 0);
        origin_redirects(A, 302, "http://inside/", "");
        origin_fails("http://inside/", rows[i].error, "inside: 10.0.0.1 is secret");
        expect_refused(fd, 1, rows[i].status);
        send_fetch(fd, 2, A, strlen(A));
        origin_redirects(A, 302, "http://inside/", "");
        origin_fails("http://inside/", rows[i].error, "inside: 10.0.0.1 is secret");
        ck_assert_int_eq(receive_status(fd, 2), SYSTEM_ERR);
    }
    scene_expect_metric("requests{outcome=\"failure\"}", 2 * sizeof(rows) / sizeof(rows[0]));
    close(fd);
}
END_TEST

START_TEST(no_fetch_begins_behind_a_redirect)
{
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    await_fetch(A);
    scene.refuses = ESHUTDOWN;
    origin_redirects(A, 302, B, "");
    expect_refused(fd, 1, PROXY_STOPPING);
    scene.refuses = 0;
    close(fd);
}
END_TEST

/* To no request of this client. */
START_TEST(what_was_not_asked_for_is_refused)
{
    proxy_fetch_result result;
    int fd = front_connect_tcp();

    for (unsigned i = 0; i < 4; i++) {
        send_get(fd, 1, A, 0);
        if (i / 2)
            origin_redirects(A, 302, B, "");
        origin_answers(i / 2 ? B : A, i % 2 ? 304 : 206, i % 2 ? "" : PART, i % 2 ? "" : "part");
        expect_refused(fd, 1, PROXY_ORIGIN_BROKE);
        scene.now_us += ORIGIN_FILL_BRIEF_US;
    }
    scene_expect_metric("requests{outcome=\"failure\"}", 4);
    scene_expect_metric("requests{outcome=\"miss\"}", 0);
    send_fetch(fd, 2, A, strlen(A));
    origin_answers(A, 206, PART, "part");
    ck_assert_int_eq(receive_status(fd, 2), SYSTEM_ERR);
    for (unsigned i = 0; i < 2; i++) {
        send_get_with(fd, 3, A, i ? "If-None-Match: \"a\"\r\n" : "Range: bytes=0-3\r\n");
        origin_answers(A, i ? 304 : 206, i ? "" : PART, i ? "" : "part");
        receive_page(fd, 3, PROXY_OK, &result);
        ck_assert_uint_eq(result.proxy_fetch_result_u.page.http_status, i ? 304 : 206);
        free_page(&result);
    }
    scene_expect_metric("requests{outcome=\"bypass\"}", 2);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rpc: redirects that are refused");
    TCase *tests = tcase_create("redirects");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, follow_set_up, follow_tear_down);
    tcase_add_loop_test(tests, a_circle, 0, 5);
    tcase_add_test(tests, a_circle_of_hits);
    tcase_add_test(tests, references_that_cannot_be_followed);
    tcase_add_loop_test(tests, a_reference_that_is_too_long, 0, 2);
    tcase_add_test(tests, failures_behind_a_redirect);
    tcase_add_test(tests, no_fetch_begins_behind_a_redirect);
    tcase_add_test(tests, what_was_not_asked_for_is_refused);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, too_many, 1, 4);
    tcase_add_test(tests, none_is_followed);
    tcase_add_test(tests, a_hundred);
    suite_add_tcase(suite, tests);
    return suite;
}
