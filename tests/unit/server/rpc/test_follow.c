/* Redirects, which the fronts of both versions follow, over a real RPC server and a scripted
 * origin. */
#include "tests/unit/server/logs/request_db_fixture.h"
#include "tests/unit/server/rpc/follow.h"

/* ---- where they lead ------------------------------------------------------------------------- */

START_TEST(a_chain_is_followed_to_its_end)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, B, "");
    origin_redirects(B, 307, C, "");
    origin_answers(C, 200, MAX_AGE, "the page");
    expect_page_of(fd, 1, PROXY_MISS, C, "the page");
    /* What lies behind is a hit, but not to this client. */
    send_fetch(fd, 2, A, strlen(A));
    origin_redirects(A, 302, B, "");
    origin_redirects(B, 307, C, "");
    expect_page_1(fd, 2, "the page");
    ck_assert_uint_eq(scene.submitted, 5);
    close(fd);
}
END_TEST

/* To each client it is one request. */
START_TEST(a_redirect_is_counted_as_a_fetch_and_no_request)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_redirects(B, 302, C, "");
    origin_answers(C, 200, MAX_AGE, "the page");
    expect_page_of(fd, 1, PROXY_MISS, C, "the page");
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    scene_expect_metric("miss_duration_microseconds_count", 1);
    scene_expect_metric("origin_fetches{result=\"ok\"}", 3);
    scene_expect_metric("front_requests{front=\"rpc2\"}", 1);
    scene_expect_metric("front_body_bytes{front=\"rpc2\"}", 8);
    scene_expect_metric("served_bytes{source=\"origin\"}", 8);
    send_fetch(fd, 2, B, strlen(B));
    origin_redirects(B, 302, C, "");
    expect_page_1(fd, 2, "the page");
    scene_expect_metric("requests{outcome=\"miss\"}", 2);
    scene_expect_metric("requests{outcome=\"hit\"}", 0);
    scene_expect_metric("front_requests{front=\"rpc1\"}", 1);
    send_get(fd, 3, B, 0);
    origin_redirects(B, 302, "ftp://host/", "");
    expect_refused(fd, 3, PROXY_BAD_REDIRECT);
    scene_expect_metric("requests{outcome=\"failure\"}", 1);
    scene_expect_metric("requests{outcome=\"miss\"}", 2);
    scene_expect_metric("responses_cut", 0);
    scene_expect_metric("front_requests{front=\"rpc2\"}", 2);
    close(fd);
}
END_TEST

/* Of a URL with a query, as RFC 3986 section 5.4 resolves them. */
static const struct {
    const char *location, *fetched;
} references[] = {
    {"g", "http://host/b/c/g"},           {"./g", "http://host/b/c/g"},
    {"g/", "http://host/b/c/g/"},         {"/g", "http://host/g"},
    {"//other/g", "http://other/g"},      {"?y", "http://host/b/c/d?y"},
    {"g?y", "http://host/b/c/g?y"},       {"../g", "http://host/b/g"},
    {"../../../g", "http://host/g"},      {"g#part", "http://host/b/c/g"},
    {"http://other/g", "http://other/g"}, {"HTTP://Other:80/g", "http://other/g"},
    {"https://host/g", "https://host/g"}, {"http://other:81", "http://other:81/"},
    {"g h", "http://host/b/c/g%20h"},
};

START_TEST(references_are_absolute_or_relative)
{
    static const char url[] = "http://host/b/c/d?q";
    proxy_fetch_result result;
    int fd = front_connect();

    send_get(fd, 1, url, 0);
    origin_redirects(url, 302, references[_i].location, "");
    origin_answers(references[_i].fetched, 200, MAX_AGE, "the page");
    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, 8);
    free_page(&result);
    /* It is stored under its own URL. */
    send_get(fd, 2, references[_i].fetched, 0);
    expect_page_of(fd, 2, PROXY_HIT, references[_i].fetched, "the page");
    close(fd);
}
END_TEST

/* Others are pages, as is a redirect that leads nowhere. */
START_TEST(statuses_that_are_followed)
{
    static const struct {
        unsigned status;
        const char *lines;
        bool followed;
    } rows[] = {
        {301, "Location: /b\r\n", true},  {302, "Location: /b\r\n", true},
        {303, "Location: /b\r\n", true},  {307, "Location: /b\r\n", true},
        {308, "Location: /b\r\n", true},  {302, "X: y\r\nLOCATION: /b\r\nLocation: /x\r\n", true},
        {300, "Location: /b\r\n", false}, {305, "Location: /b\r\n", false},
        {201, "Location: /b\r\n", false}, {302, "", false},
        {302, "Location:\r\n", false},    {302, "X-Location: /b\r\n", false},
    };

    for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
        const size_t row = i / 2;
        int fd = front_connect_tcp();

        if (i % 2)
            send_fetch(fd, 1, A, strlen(A));
        else
            send_get(fd, 1, A, PROXY_FLAG_NO_STORE);
        origin_answers(A, rows[row].status, rows[row].lines, "moved");
        if (rows[row].followed)
            origin_answers(B, 200, "", "page");
        if (i % 2) {
            expect_page_1(fd, 1, rows[row].followed ? "page" : "moved");
        } else if (rows[row].followed) {
            /* The flag concerns all that it leads to. */
            expect_page_of(fd, 1, PROXY_BYPASS, B, "page");
        } else {
            proxy_fetch_result result;

            receive_page(fd, 1, PROXY_OK, &result);
            ck_assert_uint_eq(result.proxy_fetch_result_u.page.http_status, rows[row].status);
            free_page(&result);
        }
        cache_purge_all(scene.cache);
        close(fd);
    }
    scene_expect_metric("requests{outcome=\"failure\"}", 0);
}
END_TEST

START_TEST(a_large_body_behind_a_redirect_is_read_piece_by_piece)
{
    const size_t len = 2 * MIB;
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;
    int fd;

    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.max_body = 4 * MIB}, VICTIMS_NONE);
    fd = front_connect();
    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, B, "");
    origin_responds(B, MAX_AGE, BODY_SEGMENTED, plain_bytes(len), len);
    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_int_eq(page->source, PROXY_MISS);
    ck_assert(span_equal(
        span_of(page->final_url.proxy_url_val, page->final_url.proxy_url_len), span_str(B)));
    ck_assert_uint_eq(page->body.body_len, PROXY_MAX_PIECE);
    ck_assert(memcmp(page->body.body_val, plain_bytes(len), PROXY_MAX_PIECE) == 0);
    ck_assert_ptr_nonnull(page->rest);
    free_page(&result);
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    close(fd);
    front_server_stop();
}
END_TEST

/* ---- bodies of redirects --------------------------------------------------------------------- */

/* `_i`: by which version, and whether the redirect is stored. */
START_TEST(a_body_that_never_ends_is_not_waited_for)
{
    bool first_version = _i & 1, stored = _i & 2;
    int fd = front_connect_tcp(), late = front_connect_tcp();
    struct scene_fetch *fetch;

    if (first_version)
        send_fetch(fd, 1, A, strlen(A));
    else
        send_get(fd, 1, A, 0);
    fetch = begin_redirect(A, stored ? 301 : 302, "Location: /b\r\n");
    origin_answers(B, 200, MAX_AGE, "page");
    if (first_version)
        expect_page_1(fd, 1, "page");
    else
        expect_page_of(fd, 1, PROXY_MISS, B, "page");
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    scene_expect_metric("requests{outcome=\"failure\"}", 0);
    scene_expect_metric("responses_cut", 0);
    if (stored) {
        /* Nor by one that comes later. */
        if (first_version)
            send_fetch(late, 2, A, strlen(A));
        else
            send_get(late, 2, A, 0);
        if (first_version)
            expect_page_1(late, 2, "page");
        else
            expect_page_of(late, 2, PROXY_COALESCED, B, "page");
        ck_assert_uint_eq(scene.submitted, 2);
        ck_assert(!scene_is_cancelled(fetch));
        scene_done(fetch, FETCH_OK, "");
        send_get(late, 3, A, 0);
        expect_page_of(late, 3, PROXY_HIT, B, "page");
    } else {
        /* What is short leaves its connection. */
        ck_assert_int_eq(scene_body(fetch, ORIGIN_FILL_SHORT - 10), FETCH_CONTINUE);
        AWAIT(scene_body(fetch, 1) == FETCH_ABORT);
        scene_done(fetch, FETCH_INTERNAL, "aborted");
    }
    close(fd);
    close(late);
}
END_TEST

/* It is of no interest, be it broken or as long as it likes. */
START_TEST(a_body_that_breaks_off_does_not_matter)
{
    int fd = front_connect_tcp();
    struct scene_fetch *fetch;

    send_fetch(fd, 1, A, strlen(A));
    fetch = begin_redirect(A, 301, "Location: /b\r\n");
    await_fetch(B);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "it is broken");
    origin_answers(B, 200, MAX_AGE, "page");
    expect_page_1(fd, 1, "page");
    close(fd);
}
END_TEST

/* As a reload does. */
static void
replace_options(const struct options *options)
{
    struct config *last = service_config(&front_service);

    front_service.config = front_make_config(options);
    net_server_await_turn(rpc_server_net(front_service.rpc));
    config_release(last);
}

/* `_i`: a reload lengthens the time, instead of setting it. */
START_TEST(a_reload_changes_the_time_for_redirects)
{
    static struct options reloaded;
    int fd = front_connect();

    front_options.fetch_timeout = _i ? 1 * SECOND : 0;
    reloaded = front_options;
    reloaded.fetch_timeout = _i ? 9000 * SECOND : 1 * SECOND;
    send_get(fd, 1, A, 0);
    await_fetch(A);
    replace_options(&reloaded);
    scene.now_us += 1000 * SECOND; /* later than the system's clock: all of the time counts */
    origin_redirects(A, 302, B, "");
    if (_i) {
        origin_answers(B, 200, MAX_AGE, "page");
        expect_page_of(fd, 1, PROXY_MISS, B, "page");
    } else {
        expect_refused(fd, 1, PROXY_TIMED_OUT);
    }
    close(fd);
}
END_TEST

/* ---- clients that leave ---------------------------------------------------------------------- */

static void
reset_connection(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    struct rpc_stats stats;

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
    AWAIT((rpc_server_get_stats(front_service.rpc, &stats), stats.net.connections == 0));
}

/* `_i`: by which version, before the redirect or behind it. The page is there for the next one. */
START_TEST(a_client_that_leaves)
{
    bool first_version = _i & 1, behind = _i & 2;
    int gone = front_connect_tcp(), fd;

    if (first_version)
        send_fetch(gone, 1, A, strlen(A));
    else
        send_get(gone, 1, A, 0);
    if (behind)
        origin_redirects(A, 301, B, "");
    await_fetch(behind ? B : A);
    reset_connection(gone);
    if (!behind)
        origin_redirects(A, 301, B, "");
    origin_answers(B, 200, MAX_AGE, "page");
    AWAIT(client_share_total(&front_service.proxy.waiting) == 0);
    fd = front_connect();
    send_get(fd, 2, A, 0);
    expect_page_of(fd, 2, PROXY_HIT, B, "page");
    close(fd);
}
END_TEST

/* ---- logs ------------------------------------------------------------------------------------ */

static void
set_up_log(void)
{
    db_setup();
    front_request_db = db_start(0, 2);
    follow_set_up();
}

static void
tear_down_log(void)
{
    follow_tear_down();
    request_db_close(front_request_db);
    front_request_db = NULL;
    db_teardown();
}

START_TEST(a_request_is_logged_once_with_the_times_of_all_its_fetches)
{
    int fd = front_connect();

    /* All of the time counts for a fetch that is left, and none for one behind it. */
    scene.now_us += 1000 * SECOND;
    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_redirects(B, 301, C, "");
    await_fetch(C);
    usleep(10000); /* more than the fetches are said to have taken */
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, C, "page");
    send_get(fd, 2, A, 0);
    expect_page_of(fd, 2, PROXY_HIT, C, "page");
    send_get(fd, 3, "http://host/d", 0);
    origin_redirects("http://host/d", 302, "ftp://host/", "");
    expect_refused(fd, 3, PROXY_BAD_REDIRECT);
    close(fd);
    db_wait_written(front_request_db, 3);
    ck_assert_str_eq(sql_ask(db_path,
                             "SELECT url || ' ' || outcome || ' ' || status || ' ' || bytes "
                             "FROM requests WHERE status ORDER BY time_us, id"),
                     A " miss 200 4\n" A " hit 200 4");
    ck_assert_str_eq(sql_ask(db_path, "SELECT fetch_us BETWEEN 4000 AND duration_us "
                                      "FROM requests WHERE outcome = 'miss'"),
                     "1");
    ck_assert_str_eq(sql_ask(db_path, "SELECT fetch_us FROM requests WHERE outcome = 'hit'"),
                     "NULL");
    ck_assert_str_eq(sql_ask(db_path, "SELECT url FROM requests WHERE outcome = 'bad_redirect'"),
                     "http://host/d");
    ck_assert_uint_eq(db_count_rows(db_path), 3);
}
END_TEST

/* The fetch of a redirect that is left has taken until then. */
START_TEST(the_time_of_a_fetch_that_goes_on_is_logged)
{
    struct scene_fetch *fetch;
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    fetch = await_fetch(A);
    scene.now_us += 1000 * SECOND; /* later than the system's clock: all of the time counts */
    (void)begin_redirect(A, 301, "Location: /b\r\n");
    origin_answers(B, 200, MAX_AGE, "page");
    expect_page_of(fd, 1, PROXY_MISS, B, "page");
    scene_done(fetch, FETCH_OK, "");
    close(fd);
    db_wait_written(front_request_db, 1);
    ck_assert_str_eq(sql_ask(db_path, "SELECT fetch_us = duration_us FROM requests"), "1");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rpc: redirects");
    TCase *tests = tcase_create("redirects");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, follow_set_up, follow_tear_down);
    tcase_add_test(tests, a_chain_is_followed_to_its_end);
    tcase_add_test(tests, a_redirect_is_counted_as_a_fetch_and_no_request);
    tcase_add_loop_test(tests, references_are_absolute_or_relative, 0,
                        sizeof(references) / sizeof(references[0]));
    tcase_add_test(tests, statuses_that_are_followed);
    tcase_add_loop_test(tests, a_body_that_never_ends_is_not_waited_for, 0, 4);
    tcase_add_test(tests, a_body_that_breaks_off_does_not_matter);
    tcase_add_loop_test(tests, a_reload_changes_the_time_for_redirects, 0, 2);
    tcase_add_loop_test(tests, a_client_that_leaves, 0, 4);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_large_body_behind_a_redirect_is_read_piece_by_piece);
    suite_add_tcase(suite, tests);
    tests = tcase_create("logs");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_log, tear_down_log);
    tcase_add_test(tests, a_request_is_logged_once_with_the_times_of_all_its_fetches);
    tcase_add_test(tests, the_time_of_a_fetch_that_goes_on_is_logged);
    suite_add_tcase(suite, tests);
    return suite;
}
