/* The fronts of both versions, over a real RPC server and a scripted origin. */
#include "tests/unit/server/front_server.h"

#include "tests/unit/net/stream.h"

#define URL "http://host/page"

enum {
    SMALL = 100,
    LARGE = 300 << 10
}; /* bytes of an inline body, and of a stored, segmented one */

/* Bytes of the line that is added where there is none. */
#define DATE_LINE (sizeof("Date: Thu, 28 May 2026 20:43:20 GMT\r\n") - 1)

static void
set_up(void)
{
    front_server_start(&(struct scene_options){.capacity_pages = 1000}, VICTIMS_NONE);
}

static void
tear_down(void)
{
    front_server_stop();
}

/* ---- what a reply has to be ------------------------------------------------------------------ */

static void
expect_body_2(int fd, uint32_t xid, proxy_source source, const char *bytes, size_t len)
{
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert_uint_eq(page->http_status, 200);
    ck_assert_int_eq(page->source, source);
    ck_assert_uint_eq(page->final_url.proxy_url_len, strlen(URL));
    ck_assert(memcmp(page->final_url.proxy_url_val, URL, strlen(URL)) == 0);
    /* Those of a stored response, whatever becomes of it. */
    ck_assert_uint_eq(page->headers.proxy_headers_len, strlen(MAX_AGE) + DATE_LINE);
    ck_assert(memcmp(page->headers.proxy_headers_val, MAX_AGE "Date: ", strlen(MAX_AGE) + 6) == 0);
    ck_assert_uint_eq(page->body.body_len, len);
    ck_assert(len == 0 || memcmp(page->body.body_val, bytes, len) == 0);
    free_page(&result);
}

/* Fetches a page late and then from the cache, in both versions, over a purge in between. */
static void
fetch_in_all_ways(enum body_form form, const char *bytes, size_t len)
{
    int fd = front_connect_tcp();

    send_fetch(fd, 1, URL, strlen(URL));
    origin_responds(URL, MAX_AGE, form, bytes, len);
    expect_text_1(fd, 1, bytes, len);
    send_fetch(fd, 2, URL, strlen(URL));
    expect_text_1(fd, 2, bytes, len);
    send_get(fd, 3, URL, 0);
    expect_body_2(fd, 3, PROXY_HIT, bytes, len);
    /* Past the cache, so that a segmented body stays in segments, however short. */
    send_get(fd, 4, URL, PROXY_FLAG_NO_STORE);
    origin_responds(URL, MAX_AGE, form, bytes, len);
    expect_body_2(fd, 4, PROXY_BYPASS, bytes, len);
    ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
    send_get(fd, 5, URL, 0);
    origin_responds(URL, MAX_AGE, form, bytes, len);
    expect_body_2(fd, 5, PROXY_MISS, bytes, len);
    ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
    close(fd);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static const size_t lengths[] = {
    0,         1,         2,         3,           4,           511,     512,           513,
    514,       515,       16383,     16384,       16385,       16386,   16387,         LARGE,
    LARGE + 1, LARGE + 2, LARGE + 3, LARGE + 509, LARGE + 512, 1 << 20, (1 << 20) - 1,
};

START_TEST(inline_bodies)
{
    fetch_in_all_ways(BODY_INLINE, plain_bytes(lengths[_i]), lengths[_i]);
}
END_TEST

START_TEST(segmented_bodies)
{
    fetch_in_all_ways(BODY_SEGMENTED, plain_bytes(lengths[_i]), lengths[_i]);
}
END_TEST

/* A last segment with each number of bytes below a reference, around the multiples of four. */
START_TEST(last_runs_that_are_copied)
{
    int fd = front_connect_tcp();
    uint32_t xid = 1;

    /* The first segment has nearly 16 KiB. */
    for (size_t len = 16384 - 80; len < 16384 + 520; len += 7) {
        send_get(fd, ++xid, URL, PROXY_FLAG_NO_STORE);
        origin_responds(URL, MAX_AGE, BODY_SEGMENTED, plain_bytes(len), len);
        expect_body_2(fd, xid, PROXY_BYPASS, plain_bytes(len), len);
    }
    close(fd);
}
END_TEST

/* Version 1 cannot carry a zero byte; version 2 can. */
START_TEST(a_zero_byte_in_the_body)
{
    static const struct {
        enum body_form form;
        size_t len, at;
    } rows[] = {
        {BODY_INLINE, SMALL, 0},
        {BODY_INLINE, SMALL, SMALL - 1},
        {BODY_SEGMENTED, LARGE, 0},
        {BODY_SEGMENTED, LARGE, LARGE / 2},
        {BODY_SEGMENTED, LARGE, LARGE - 1},
    };
    char *bytes = malloc(rows[_i].len);
    int fd = front_connect_tcp(), hit = front_connect_tcp();

    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, plain_bytes(rows[_i].len), rows[_i].len);
    bytes[rows[_i].at] = '\0';
    send_fetch(fd, 1, URL, strlen(URL));
    origin_responds(URL, MAX_AGE, rows[_i].form, bytes, rows[_i].len);
    ck_assert_int_eq(receive_status(fd, 1), SYSTEM_ERR);
    send_fetch(hit, 2, URL, strlen(URL));
    ck_assert_int_eq(receive_status(hit, 2), SYSTEM_ERR);
    close(fd);
    close(hit);
    fd = front_connect_tcp();
    send_get(fd, 3, URL, 0);
    expect_body_2(fd, 3, PROXY_HIT, bytes, rows[_i].len);
    close(fd);
    free(bytes);
}
END_TEST

/* One byte more than version 1 can carry. */
START_TEST(a_body_too_long_for_version_1)
{
    int fd;

    front_server_start(&(struct scene_options){.max_body = 2 * PROXY_MAX_PAGE}, VICTIMS_NONE);
    for (size_t len = PROXY_MAX_PAGE; len <= PROXY_MAX_PAGE + 1; len++) {
        char *bytes = malloc(len);

        ck_assert_ptr_nonnull(bytes);
        memset(bytes, 'x', len);
        fd = front_connect();
        send_fetch(fd, 1, URL, strlen(URL));
        origin_responds(URL, MAX_AGE, BODY_INLINE, bytes, len);
        if (len > PROXY_MAX_PAGE)
            ck_assert_int_eq(receive_status(fd, 1), SYSTEM_ERR);
        else
            expect_text_1(fd, 1, bytes, len);
        ck_assert_uint_eq(cache_purge_all(scene.cache), 1);
        close(fd);
        free(bytes);
    }
    front_server_stop();
}
END_TEST

/* ---- requests -------------------------------------------------------------------------------- */

START_TEST(urls_of_version_1)
{
    static const struct {
        const char *sent, *fetched;
    } rows[] = {
        {"http://host/a\n", "http://host/a"},
        {" \thttp://host/b \r\n", "http://host/b"},
        {"host/c", "http://host/c"},
        {"https://host/d", "https://host/d"},
    };
    int fd = front_connect_tcp();

    send_fetch(fd, 1, rows[_i].sent, strlen(rows[_i].sent));
    origin_responds(rows[_i].fetched, MAX_AGE, BODY_INLINE, "x", 1);
    expect_text_1(fd, 1, "x", 1);
    close(fd);
}
END_TEST

/* Refused without a fetch, by all bytes that were counted on the wire. */
START_TEST(a_zero_byte_in_the_url_of_version_1)
{
    static const char url[] = "http://host/\0secret";
    int fd = front_connect_tcp();

    send_fetch(fd, 1, url, sizeof(url) - 1);
    ck_assert_int_eq(receive_status(fd, 1), GARBAGE_ARGS);
    ck_assert_uint_eq(scene.submitted, 0);
    close(fd);
}
END_TEST

/* Under the spelling that the HTTP front makes. */
START_TEST(spellings_of_a_url_are_one_page)
{
    static const char *const spellings[] = {"HTTP://Host:80/page", "http://host./page#part",
                                            "http:///host/page", "http://%68ost/page"};
    int fd = front_connect_tcp(), http = http_connect();

    send_get(fd, 1, spellings[0], 0);
    origin_responds(URL, MAX_AGE, BODY_INLINE, plain_bytes(SMALL), SMALL);
    expect_body_2(fd, 1, PROXY_MISS, plain_bytes(SMALL), SMALL);
    for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
        send_get(fd, 2, spellings[i], 0);
        expect_body_2(fd, 2, PROXY_HIT, plain_bytes(SMALL), SMALL);
        send_fetch(fd, 3, spellings[i], strlen(spellings[i]));
        expect_text_1(fd, 3, plain_bytes(SMALL), SMALL);
    }
    http_expect_hit(http, URL, plain_bytes(SMALL), SMALL);
    close(fd);
    close(http);
}
END_TEST

START_TEST(requests_for_one_url_share_its_fetch)
{
    int first = front_connect_tcp(), second = front_connect();

    send_get(second, 2, URL, 0);
    await_fetch(URL);
    AWAIT_ONE_MORE(send_fetch(first, 1, URL, strlen(URL)));
    origin_responds(URL, MAX_AGE, BODY_INLINE, plain_bytes(SMALL), SMALL);
    expect_text_1(first, 1, plain_bytes(SMALL), SMALL);
    expect_body_2(second, 2, PROXY_MISS, plain_bytes(SMALL), SMALL);
    ck_assert_uint_eq(scene.submitted, 1);
    close(first);
    close(second);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

static const struct {
    enum fetch_error error;
    proxy_status status;
} failures[] = {
    {FETCH_BAD_URL, PROXY_BAD_URL},
    {FETCH_BAD_HEADERS, PROXY_BAD_HEADERS},
    {FETCH_DENIED, PROXY_DENIED},
    {FETCH_RESOLVE_FAILED, PROXY_RESOLVE_FAILED},
    {FETCH_CONNECT_FAILED, PROXY_CONNECT_FAILED},
    {FETCH_TLS_FAILED, PROXY_TLS_FAILED},
    {FETCH_TIMED_OUT, PROXY_TIMED_OUT},
    {FETCH_CONNECT_TIMED_OUT, PROXY_TIMED_OUT},
    {FETCH_ORIGIN_BROKE, PROXY_ORIGIN_BROKE},
    {FETCH_TOO_LARGE, PROXY_TOO_LARGE},
    {FETCH_OVERLOADED, PROXY_OVERLOADED},
    {FETCH_DISPLACED, PROXY_OVERLOADED},
    {FETCH_STOPPING, PROXY_STOPPING},
    {FETCH_INTERNAL, PROXY_INTERNAL},
};

START_TEST(failures_of_fetches)
{
    proxy_fetch_result result;
    int fd = front_connect_tcp();

    send_get(fd, 1, URL, 0);
    origin_fails(URL, failures[_i].error, "host: it went wrong");
    receive_page(fd, 1, failures[_i].status, &result);
    /* What the fetcher says of an origin is for the operator. */
    if (failure_for_client(failure_of_fetch(failures[_i].error), span_of(NULL, 0)).len)
        ck_assert_ptr_null(strstr(result.proxy_fetch_result_u.sentence, "host"));
    else
        ck_assert_str_eq(result.proxy_fetch_result_u.sentence, "host: it went wrong");
    free_page(&result);
    send_fetch(fd, 2, URL, strlen(URL));
    origin_fails(URL, failures[_i].error, "host: it went wrong");
    ck_assert_int_eq(receive_status(fd, 2),
                     failures[_i].status == PROXY_BAD_URL ? GARBAGE_ARGS : SYSTEM_ERR);
    close(fd);
}
END_TEST

/* Refused before a fetch, within the procedure. */
START_TEST(failures_at_once)
{
    proxy_fetch_result result;
    int fd = front_connect_tcp();

    scene.refuses = true;
    send_get(fd, 1, URL, 0);
    receive_page(fd, 1, PROXY_INTERNAL, &result);
    ck_assert_uint_ne(strlen(result.proxy_fetch_result_u.sentence), 0);
    free_page(&result);
    send_fetch(fd, 2, URL, strlen(URL));
    ck_assert_int_eq(receive_status(fd, 2), SYSTEM_ERR);
    close(fd);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

/* Waiting requests have used up their share: pages of the cache are sent, whatever their form. */
START_TEST(hits_while_the_share_of_waiting_requests_is_used_up)
{
    static const struct {
        enum body_form form;
        size_t len;
    } rows[] = {
        {BODY_INLINE, 400}, {BODY_INLINE, 1 << 20}, {BODY_SEGMENTED, LARGE}, {BODY_SEGMENTED, MIB}};
    const char *bytes = plain_bytes(rows[_i].len);
    proxy_fetch_result result;
    int fd = front_connect_tcp();

    front_store(URL, MAX_AGE, rows[_i].form, bytes, rows[_i].len);
    memory_charge_anyway(&scene.account, MEMORY_REQUESTS, UINT64_MAX / 32);
    ck_assert(memory_is_full(&scene.account, MEMORY_REPLIES));
    send_get(fd, 1, URL, 0);
    expect_body_2(fd, 1, PROXY_HIT, bytes, rows[_i].len);
    send_fetch(fd, 2, URL, strlen(URL));
    expect_text_1(fd, 2, bytes, rows[_i].len);
    send_get(fd, 3, "http://host/other", 0);
    receive_page(fd, 3, PROXY_OVERLOADED, &result);
    free_page(&result);
    memory_uncharge(&scene.account, MEMORY_REQUESTS, UINT64_MAX / 32);
    close(fd);
}
END_TEST

/* Parts that are copied, and that the reply's buffer alone cannot hold. */
START_TEST(a_hit_with_many_short_parts_while_the_share_is_used_up)
{
    static const char at[] = "http://host/";
    char url[256], lines[512];
    proxy_fetch_result result;
    int fd = front_connect_tcp();

    memset(url, 'u', sizeof(url));
    memcpy(url, at, sizeof(at) - 1);
    url[sizeof(url) - 2] = '\0';
    snprintf(lines, sizeof(lines), MAX_AGE "A: %0400d\r\n", 1);
    front_store(url, lines, BODY_INLINE, plain_bytes(500), 500);
    memory_charge_anyway(&scene.account, MEMORY_REQUESTS, UINT64_MAX / 32);
    send_get(fd, 1, url, 0);
    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_int_eq(result.proxy_fetch_result_u.page.source, PROXY_HIT);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.headers.proxy_headers_len,
                      strlen(lines) + DATE_LINE);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, 500);
    free_page(&result);
    memory_uncharge(&scene.account, MEMORY_REQUESTS, UINT64_MAX / 32);
    close(fd);
}
END_TEST

/* A response breaks off behind a part of its body. */
START_TEST(a_failure_after_a_part_of_the_body)
{
    proxy_fetch_result result;
    int first = front_connect_tcp(), second = front_connect();
    struct scene_fetch *fetch;

    send_get(first, 1, URL, 0);
    fetch = await_fetch(URL);
    AWAIT_ONE_MORE(send_fetch(second, 2, URL, strlen(URL)));
    fetch->sink->begin(fetch->context);
    scene_response(fetch, MAX_AGE, false);
    ck_assert_int_eq(scene_head(fetch, 200, MAX_AGE, 1000), FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(fetch, 500), FETCH_CONTINUE);
    scene_done(fetch, FETCH_ORIGIN_BROKE, "host: the body was cut short");
    receive_page(first, 1, PROXY_ORIGIN_BROKE, &result);
    ck_assert_str_eq(result.proxy_fetch_result_u.sentence,
                     "the origin has not sent a valid response");
    free_page(&result);
    ck_assert_int_eq(receive_status(second, 2), SYSTEM_ERR);
    close(first);
    close(second);
}
END_TEST

/* ---- connections and servers that end -------------------------------------------------------- */

/* Closes a TCP connection by a reset, which the server notices without writing. */
static void
reset_connection(int fd)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(fd);
}

START_TEST(a_connection_that_is_gone_before_the_answer)
{
    int gone = front_connect_tcp(), fd;
    struct rpc_stats stats;

    if (_i < 2)
        send_fetch(gone, 1, URL, strlen(URL));
    else
        send_get(gone, 1, URL, 0);
    await_fetch(URL);
    reset_connection(gone);
    AWAIT((rpc_server_get_stats(front_service.rpc, &stats), stats.net.connections == 0));
    if (_i % 2 == 0) {
        origin_responds(URL, MAX_AGE, BODY_SEGMENTED, plain_bytes(LARGE), LARGE);
        fd = front_connect();
        send_get(fd, 3, URL, 0);
        expect_body_2(fd, 3, PROXY_HIT, plain_bytes(LARGE), LARGE);
        close(fd);
    } else {
        origin_fails(URL, FETCH_TIMED_OUT, "too late");
    }
}
END_TEST

/* Pages of 1 MiB in segments that the peer does not read: they are held until the server ends. */
START_TEST(a_server_that_ends_with_replies_that_are_not_read)
{
    enum { REPLIES = 16 };
    const char *bytes = plain_bytes(MIB);
    int fd;

    set_up();
    fd = front_connect();
    front_store(URL, MAX_AGE, BODY_SEGMENTED, bytes, MIB);
    for (uint32_t i = 0; i < REPLIES; i++)
        send_get(fd, i, URL, 0);
    AWAIT(scene_metric("requests{outcome=\"hit\"}") >= 2);
    ck_assert_uint_eq(front_server_halt(0), 1);
    front_server_free();
    close(fd);
}
END_TEST

/* The order of the daemon: fetches end, and their requests are answered, before the workers do. */
START_TEST(a_server_that_stops_answers_what_waits)
{
    proxy_fetch_result result;
    int first, second;

    set_up();
    first = front_connect_tcp();
    second = front_connect();
    send_get(second, 2, URL, 0);
    await_fetch(URL);
    AWAIT_ONE_MORE(send_fetch(first, 1, URL, strlen(URL)));
    rpc_server_stop_accepting(front_service.rpc);
    origin_fails(URL, FETCH_STOPPING, "the server is stopping");
    ck_assert_int_eq(receive_status(first, 1), SYSTEM_ERR);
    receive_page(second, 2, PROXY_STOPPING, &result);
    free_page(&result);
    front_server_stop();
    close(first);
    close(second);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/fronts");
    TCase *tests = tcase_create("fronts");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, inline_bodies, 0, sizeof(lengths) / sizeof(lengths[0]));
    tcase_add_loop_test(tests, segmented_bodies, 0, sizeof(lengths) / sizeof(lengths[0]));
    tcase_add_test(tests, last_runs_that_are_copied);
    tcase_add_loop_test(tests, a_zero_byte_in_the_body, 0, 5);
    tcase_add_loop_test(tests, urls_of_version_1, 0, 4);
    tcase_add_test(tests, a_zero_byte_in_the_url_of_version_1);
    tcase_add_test(tests, spellings_of_a_url_are_one_page);
    tcase_add_test(tests, requests_for_one_url_share_its_fetch);
    tcase_add_loop_test(tests, failures_of_fetches, 0, sizeof(failures) / sizeof(failures[0]));
    tcase_add_test(tests, failures_at_once);
    tcase_add_test(tests, a_failure_after_a_part_of_the_body);
    tcase_add_loop_test(tests, hits_while_the_share_of_waiting_requests_is_used_up, 0, 4);
    tcase_add_test(tests, a_hit_with_many_short_parts_while_the_share_is_used_up);
    tcase_add_loop_test(tests, a_connection_that_is_gone_before_the_answer, 0, 4);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_body_too_long_for_version_1);
    tcase_add_test(tests, a_server_that_stops_answers_what_waits);
    tcase_add_test(tests, a_server_that_ends_with_replies_that_are_not_read);
    suite_add_tcase(suite, tests);
    return suite;
}
