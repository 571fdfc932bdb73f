/* Redirects and what is behind them in the cache, as origins allow and with --freshness off. */
#include "tests/unit/cache/purge.h"
#include "tests/unit/server/rpc/follow.h"

/* ---- what is stored -------------------------------------------------------------------------- */

START_TEST(a_stored_redirect_and_its_page_are_a_hit)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_redirects(B, 302, C, MAX_AGE);
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, C, "page");
    ck_assert_uint_eq(scene_stats().pages, 3);
    send_get(fd, 2, A, 0);
    expect_page_of(fd, 2, PROXY_HIT, C, "page");
    send_fetch(fd, 3, A, strlen(A));
    expect_page_1(fd, 3, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    scene_expect_metric("requests{outcome=\"hit\"}", 2);
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    scene_expect_metric("hit_duration_microseconds_count", 1);
    close(fd);
}
END_TEST

/* `_i`: which of them has to be fetched. */
START_TEST(one_of_both_is_a_miss)
{
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_answers(B, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, B, "page");
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str(_i ? B : A)), 1);
    send_get(fd, 2, A, 0);
    if (_i)
        origin_answers(B, 200, MAX_AGE, "page");
    else
        origin_redirects(A, 301, B, "");
    expect_page_of(fd, 2, PROXY_MISS, B, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    send_get(fd, 3, A, 0);
    expect_page_of(fd, 3, PROXY_HIT, B, "page");
    close(fd);
}
END_TEST

/* Also that of HTTP, whose clients get it as it is. */
START_TEST(a_redirect_is_one_object_for_both_protocols)
{
    static struct http_answer answer;
    int fd = front_connect(), http = http_connect();

    ck_assert(http_send(http, "GET " A " HTTP/1.1\r\nHost: host\r\n\r\n"));
    origin_redirects(A, 302, B, MAX_AGE);
    ck_assert(http_receive(http, &answer, false));
    ck_assert_uint_eq(answer.status, 302);
    send_get(fd, 1, A, 0);
    origin_answers(B, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, B, "page");
    ck_assert_uint_eq(scene.submitted, 2);
    http_expect(http, "GET " A " HTTP/1.1\r\nHost: host\r\n\r\n", &answer, 302);
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    ck_assert(http_has(&answer, "Location: " B));
    http_expect_hit(http, B, "page", 4);
    close(fd);
    close(http);
}
END_TEST

/* Requests that wait for a redirect follow it each. */
START_TEST(requests_that_wait_share_all_fetches)
{
    int first = front_connect(), second = front_connect_tcp();
    const struct cache_fill *fill;

    send_get(first, 1, A, 0);
    await_fetch(A);
    AWAIT_ONE_MORE(send_get(second, 2, A, 0));
    origin_redirects(A, 302, B, "");
    fill = await_fetch(B)->given_context;
    AWAIT(atomic_load(&fill->waiter_count) == 2);
    origin_answers(B, 200, MAX_AGE, "page");
    expect_this_page(second, 2);
    expect_this_page(first, 1);
    ck_assert_uint_eq(scene.submitted, 2);
    close(first);
    close(second);
}
END_TEST

/* ---- --freshness off ------------------------------------------------------------------------- */

static void
set_up_without_freshness(void)
{
    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.capacity_pages = 100, .freshness_off = true},
                       VICTIMS_NONE);
}

START_TEST(without_freshness_a_page_is_stored_where_the_client_asked_for_it)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, MAX_AGE);
    origin_redirects(B, 302, "../c?d", "");
    origin_answers("http://host/c?d", 200, "Cache-Control: no-store\r\n", "page");
    expect_page_of(fd, 1, PROXY_MISS, "http://host/c?d", "page");
    ck_assert_uint_eq(scene_stats().pages, 1);
    send_get(fd, 2, A, 0);
    expect_page_of(fd, 2, PROXY_HIT, A, "page");
    send_fetch(fd, 3, A, strlen(A));
    expect_page_1(fd, 3, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    scene_expect_metric("requests{outcome=\"hit\"}", 2);
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str(A)), 1);
    /* What is behind has no object of its own. */
    send_get(fd, 4, "http://host/c?d", 0);
    origin_answers("http://host/c?d", 200, "", "page");
    expect_page_of(fd, 4, PROXY_MISS, "http://host/c?d", "page");
    close(fd);
}
END_TEST

START_TEST(without_freshness_a_circle_is_found)
{
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, B, "");
    origin_redirects(B, 302, A, "");
    expect_refused(fd, 1, PROXY_BAD_REDIRECT);
    close(fd);
}
END_TEST

/* Answers what is fetched on the way of URLs, each of which leads to the next one by the reference
 * beside it, until this number of calls of version 2 has been answered. */
struct step {
    const char *url, *reference; /* NULL: it is the page */
};

static void
answer_way(const struct step *way, size_t steps, uint64_t calls)
{
    while (scene_metric("front_requests{front=\"rpc2\"}") < calls) {
        struct scene_fetch *fetch = scene_find(NULL);
        size_t i = 0;

        if (!fetch) {
            usleep(1000);
            continue;
        }
        while (i < steps && strcmp(fetch->url, way[i].url) != 0)
            i++;
        ck_assert_msg(i < steps, "%s is fetched", fetch->url);
        if (way[i].reference)
            origin_redirects(way[i].url, 302, way[i].reference, "");
        else
            origin_answers(way[i].url, 200, "", "page");
    }
}

/* They may be at different places of the way, which one object is for. */
static const struct step ways[][3] = {
    {{A, "http://other/dir/b"}, {"http://other/dir/b", "http://other/c"}, {"http://other/c", NULL}},
    {{A, "http://other/dir/b"}, {"http://other/dir/b", "c"}, {"http://other/dir/c", NULL}},
    {{A, "x/b"}, {"http://host/x/b", "y/c"}, {"http://host/x/y/c", NULL}},
};

/* `_i`: the way, and how many redirects the second request comes after. */
START_TEST(without_freshness_requests_share_a_way)
{
    enum { MANY = 6 };
    const struct step *way = ways[_i / 3];
    int fd[MANY];

    for (int i = 0; i < MANY; i++)
        fd[i] = front_connect();
    send_get(fd[0], 0, A, 0);
    for (int i = 0; i < _i % 3; i++)
        origin_redirects(way[i].url, 302, way[i].reference, "");
    await_fetch(way[_i % 3].url);
    for (uint32_t i = 1; i < MANY; i++)
        AWAIT_ONE_MORE(send_get(fd[i], i, A, 0));
    answer_way(way, 3, MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        expect_this_page(fd[i], i);
        close(fd[i]);
    }
    ck_assert_uint_eq(scene_stats().pages, 1);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str(A)), 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rpc: stored redirects");
    TCase *tests = tcase_create("redirects");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, follow_set_up, follow_tear_down);
    tcase_add_test(tests, a_stored_redirect_and_its_page_are_a_hit);
    tcase_add_loop_test(tests, one_of_both_is_a_miss, 0, 2);
    tcase_add_test(tests, a_redirect_is_one_object_for_both_protocols);
    tcase_add_test(tests, requests_that_wait_share_all_fetches);
    suite_add_tcase(suite, tests);
    tests = tcase_create("freshness off");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_without_freshness, follow_tear_down);
    tcase_add_test(tests, without_freshness_a_page_is_stored_where_the_client_asked_for_it);
    tcase_add_test(tests, without_freshness_a_circle_is_found);
    tcase_add_loop_test(tests, without_freshness_requests_share_a_way, 0, 9);
    suite_add_tcase(suite, tests);
    return suite;
}
