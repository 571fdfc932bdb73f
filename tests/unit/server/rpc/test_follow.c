/* Redirects, which the fronts of both versions follow, over a real RPC server and a scripted
 * origin. */
#include <errno.h>

#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"
#include "tests/unit/server/logs/request_db_fixture.h"

#define A "http://host/a"
#define B "http://host/b"
#define C "http://other/c"
#define PART "Content-Range: bytes 0-3/10\r\n"

static void
set_up(void)
{
    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.capacity_pages = 100}, VICTIMS_NONE);
}

static void
set_up_without_freshness(void)
{
    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.capacity_pages = 100, .freshness_off = true},
                       VICTIMS_NONE);
}

static void
tear_down(void)
{
    front_server_stop();
}

/* ---- clients --------------------------------------------------------------------------------- */

static bool
is(const char *bytes, size_t len, const char *text)
{
    return span_equal(span_of(bytes, len), span_str(text));
}

/* Receives a page of version 2 from this URL. */
static void
expect_page(int fd, uint32_t xid, proxy_source source, const char *url, const char *body)
{
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert_uint_eq(page->http_status, 200);
    ck_assert_int_eq(page->source, source);
    ck_assert_msg(is(page->final_url.proxy_url_val, page->final_url.proxy_url_len, url), "%.*s",
                  (int)page->final_url.proxy_url_len, page->final_url.proxy_url_val);
    ck_assert(is(page->body.body_val, page->body.body_len, body));
    free_page(&result);
}

/* "page", from wherever. */
static void
expect_this_page(int fd, uint32_t xid)
{
    proxy_fetch_result result;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert(is(result.proxy_fetch_result_u.page.body.body_val,
                 result.proxy_fetch_result_u.page.body.body_len, "page"));
    free_page(&result);
}

static void
expect_page_1(int fd, uint32_t xid, const char *body)
{
    webpageResponse result = {.webPageContents = NULL};

    receive_result(fd, xid, (xdrproc_t)xdr_webpageResponse, &result);
    ck_assert_str_eq(result.webPageContents, body);
    xdr_free((xdrproc_t)xdr_webpageResponse, &result);
}

static void
expect_refused(int fd, uint32_t xid, proxy_status status)
{
    proxy_fetch_result result;

    receive_page(fd, xid, status, &result);
    ck_assert_str_ne(result.proxy_fetch_result_u.sentence, "");
    if (status == PROXY_BAD_REDIRECT)
        ck_assert_str_eq(result.proxy_fetch_result_u.sentence,
                         "the origin redirects to where the proxy does not follow");
    free_page(&result);
}

static void
expect_metric(const char *name, uint64_t value)
{
    ck_assert_msg(scene_metric(name) == value, "%s: %llu", name,
                  (unsigned long long)scene_metric(name));
}

/* ---- where they lead ------------------------------------------------------------------------- */

START_TEST(a_chain_is_followed_to_its_end)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 302, B, "");
    origin_redirects(B, 307, C, "");
    origin_answers(C, 200, MAX_AGE, "the page");
    expect_page(fd, 1, PROXY_MISS, C, "the page");
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
    expect_page(fd, 1, PROXY_MISS, C, "the page");
    expect_metric("requests{outcome=\"miss\"}", 1);
    expect_metric("miss_duration_microseconds_count", 1);
    expect_metric("origin_fetches{result=\"ok\"}", 3);
    expect_metric("front_requests{front=\"rpc2\"}", 1);
    expect_metric("front_body_bytes{front=\"rpc2\"}", 8);
    expect_metric("served_bytes{source=\"origin\"}", 8);
    send_fetch(fd, 2, B, strlen(B));
    origin_redirects(B, 302, C, "");
    expect_page_1(fd, 2, "the page");
    expect_metric("requests{outcome=\"miss\"}", 2);
    expect_metric("requests{outcome=\"hit\"}", 0);
    expect_metric("front_requests{front=\"rpc1\"}", 1);
    send_get(fd, 3, B, 0);
    origin_redirects(B, 302, "ftp://host/", "");
    expect_refused(fd, 3, PROXY_BAD_REDIRECT);
    expect_metric("requests{outcome=\"failure\"}", 1);
    expect_metric("requests{outcome=\"miss\"}", 2);
    expect_metric("responses_cut", 0);
    expect_metric("front_requests{front=\"rpc2\"}", 2);
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
    expect_page(fd, 2, PROXY_HIT, references[_i].fetched, "the page");
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
            expect_page(fd, 1, PROXY_BYPASS, B, "page");
        } else {
            proxy_fetch_result result;

            receive_page(fd, 1, PROXY_OK, &result);
            ck_assert_uint_eq(result.proxy_fetch_result_u.page.http_status, rows[row].status);
            free_page(&result);
        }
        cache_purge_all(scene.cache);
        close(fd);
    }
    expect_metric("requests{outcome=\"failure\"}", 0);
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
    ck_assert(is(page->final_url.proxy_url_val, page->final_url.proxy_url_len, B));
    ck_assert_uint_eq(page->body.body_len, PROXY_MAX_PIECE);
    ck_assert(memcmp(page->body.body_val, plain_bytes(len), PROXY_MAX_PIECE) == 0);
    ck_assert_ptr_nonnull(page->rest);
    free_page(&result);
    expect_metric("requests{outcome=\"miss\"}", 1);
    close(fd);
    front_server_stop();
}
END_TEST

/* ---- where they end -------------------------------------------------------------------------- */

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
    expect_metric("requests{outcome=\"failure\"}", 1);
    expect_metric("requests{outcome=\"miss\"}", 0);
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
        expect_page(fd, 1, PROXY_MISS, to, "page");
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
    expect_page(fd, 1, PROXY_MISS, to, "page");
    send_get(fd, 2, "http://host/0", 0);
    origin_redirects("http://host/0", 301, "/1", "");
    expect_page(fd, 2, PROXY_MISS, to, "page");
    send_get(fd, 3, "http://host/0", 0);
    expect_page(fd, 3, PROXY_HIT, to, "page");
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
    expect_metric("requests{outcome=\"failure\"}", 2 * sizeof(rows) / sizeof(rows[0]));
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
    expect_metric("requests{outcome=\"failure\"}", 4);
    expect_metric("requests{outcome=\"miss\"}", 0);
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
    expect_metric("requests{outcome=\"bypass\"}", 2);
    close(fd);
}
END_TEST

/* ---- bodies of redirects --------------------------------------------------------------------- */

/* The head of a redirect whose body does not end. */
static struct scene_fetch *
begin_redirect(const char *url, unsigned status, const char *lines)
{
    struct scene_fetch *fetch = await_fetch(url);

    fetch->sink->begin(fetch->context);
    scene_response_of(fetch, status, lines);
    ck_assert_int_eq(scene_head(fetch, status, lines, -1), FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(fetch, 10), FETCH_CONTINUE);
    return fetch;
}

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
        expect_page(fd, 1, PROXY_MISS, B, "page");
    expect_metric("requests{outcome=\"miss\"}", 1);
    expect_metric("requests{outcome=\"failure\"}", 0);
    expect_metric("responses_cut", 0);
    if (stored) {
        /* Nor by one that comes later. */
        if (first_version)
            send_fetch(late, 2, A, strlen(A));
        else
            send_get(late, 2, A, 0);
        if (first_version)
            expect_page_1(late, 2, "page");
        else
            expect_page(late, 2, PROXY_COALESCED, B, "page");
        ck_assert_uint_eq(scene.submitted, 2);
        ck_assert(!scene_is_cancelled(fetch));
        scene_done(fetch, FETCH_OK, "");
        send_get(late, 3, A, 0);
        expect_page(late, 3, PROXY_HIT, B, "page");
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
    expect_page(fd, 2, PROXY_HIT, B, "page");
    close(fd);
}
END_TEST

/* ---- what is sent ---------------------------------------------------------------------------- */

#define DEFAULTS "User-Agent: agent/1\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"

static char agent[] = "agent/1";

static void
set_up_agent(void)
{
    front_options.user_agent = agent;
    set_up();
}

/* Without fields of its own each request of a client is sent the same. */
START_TEST(fields_of_the_proxy)
{
    int fd = front_connect();

    send_get(fd, 1, A, 0);
    ck_assert_str_eq(await_fetch(A)->fields, DEFAULTS);
    origin_redirects(A, 302, C, "");
    ck_assert_str_eq(await_fetch(C)->fields, DEFAULTS);
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page(fd, 1, PROXY_MISS, C, "page");
    close(fd);
}
END_TEST

#define SECRETS "authorization: Basic YTpi\r\nCookie: a=b\r\n"

/* What is for one origin is no other's business: not on the way back, either. */
START_TEST(secrets_are_sent_to_the_first_origin_alone)
{
    static const char *const others[] = {"http://other/x", "https://host/x", "http://host:81/x"};
    int fd = front_connect();

    send_get_with(fd, 1, A, SECRETS "X-A: b\r\n");
    ck_assert_str_eq(await_fetch(A)->fields, DEFAULTS SECRETS "X-A: b\r\n");
    origin_redirects(A, 302, "HTTP://HOST:80/b", "");
    ck_assert_str_eq(await_fetch(B)->fields, DEFAULTS SECRETS "X-A: b\r\n");
    origin_redirects(B, 302, others[_i], "");
    ck_assert_str_eq(await_fetch(others[_i])->fields, DEFAULTS "X-A: b\r\n");
    origin_redirects(others[_i], 302, "http://host/d", "");
    ck_assert_str_eq(await_fetch("http://host/d")->fields, DEFAULTS "X-A: b\r\n");
    origin_answers("http://host/d", 200, MAX_AGE, "page");
    expect_page(fd, 1, PROXY_BYPASS, "http://host/d", "page");
    ck_assert_uint_eq(scene_stats().pages, 0);
    close(fd);
}
END_TEST

/* The client's own field is sent instead. */
START_TEST(fields_of_the_client_come_before_ours)
{
    static const char own[] = "accept: text/html\r\nUser-agent: mine\r\n";
    int fd = front_connect();

    send_get_with(fd, 1, A, own);
    ck_assert_str_eq(await_fetch(A)->fields, "Accept-Encoding: identity\r\n"
                                             "accept: text/html\r\nUser-agent: mine\r\n");
    origin_redirects(A, 302, C, "");
    ck_assert_str_eq(await_fetch(C)->fields, "Accept-Encoding: identity\r\n"
                                             "accept: text/html\r\nUser-agent: mine\r\n");
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page(fd, 1, PROXY_BYPASS, C, "page");
    close(fd);
}
END_TEST

/* Even if nothing of them is left, they have led there. */
START_TEST(what_secrets_lead_to_is_the_clients_alone)
{
    int fd = front_connect();

    send_get_with(fd, 1, A, SECRETS);
    origin_redirects(A, 302, C, "");
    ck_assert_str_eq(await_fetch(C)->fields, DEFAULTS);
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page(fd, 1, PROXY_BYPASS, C, "page");
    ck_assert_uint_eq(scene_stats().pages, 0);
    close(fd);
}
END_TEST

/* ---- what is stored -------------------------------------------------------------------------- */

START_TEST(a_stored_redirect_and_its_page_are_a_hit)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, "");
    origin_redirects(B, 302, C, MAX_AGE);
    origin_answers(C, 200, MAX_AGE, "page");
    expect_page(fd, 1, PROXY_MISS, C, "page");
    ck_assert_uint_eq(scene_stats().pages, 3);
    send_get(fd, 2, A, 0);
    expect_page(fd, 2, PROXY_HIT, C, "page");
    send_fetch(fd, 3, A, strlen(A));
    expect_page_1(fd, 3, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    expect_metric("requests{outcome=\"hit\"}", 2);
    expect_metric("requests{outcome=\"miss\"}", 1);
    expect_metric("hit_duration_microseconds_count", 1);
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
    expect_page(fd, 1, PROXY_MISS, B, "page");
    ck_assert_uint_eq(cache_purge(scene.cache, span_str(_i ? B : A)), 1);
    send_get(fd, 2, A, 0);
    if (_i)
        origin_answers(B, 200, MAX_AGE, "page");
    else
        origin_redirects(A, 301, B, "");
    expect_page(fd, 2, PROXY_MISS, B, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    send_get(fd, 3, A, 0);
    expect_page(fd, 3, PROXY_HIT, B, "page");
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
    expect_page(fd, 1, PROXY_MISS, B, "page");
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

START_TEST(without_freshness_a_page_is_stored_where_the_client_asked_for_it)
{
    int fd = front_connect_tcp();

    send_get(fd, 1, A, 0);
    origin_redirects(A, 301, B, MAX_AGE);
    origin_redirects(B, 302, "../c?d", "");
    origin_answers("http://host/c?d", 200, "Cache-Control: no-store\r\n", "page");
    expect_page(fd, 1, PROXY_MISS, "http://host/c?d", "page");
    ck_assert_uint_eq(scene_stats().pages, 1);
    send_get(fd, 2, A, 0);
    expect_page(fd, 2, PROXY_HIT, A, "page");
    send_fetch(fd, 3, A, strlen(A));
    expect_page_1(fd, 3, "page");
    ck_assert_uint_eq(scene.submitted, 3);
    expect_metric("requests{outcome=\"hit\"}", 2);
    expect_metric("requests{outcome=\"miss\"}", 1);
    ck_assert_uint_eq(cache_purge(scene.cache, span_str(A)), 1);
    /* What is behind has no object of its own. */
    send_get(fd, 4, "http://host/c?d", 0);
    origin_answers("http://host/c?d", 200, "", "page");
    expect_page(fd, 4, PROXY_MISS, "http://host/c?d", "page");
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
    ck_assert_uint_eq(cache_purge(scene.cache, span_str(A)), 1);
}
END_TEST

/* ---- logs ------------------------------------------------------------------------------------ */

static void
set_up_log(void)
{
    db_setup();
    front_request_db = db_start(0, 2);
    set_up();
}

static void
tear_down_log(void)
{
    tear_down();
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
    expect_page(fd, 1, PROXY_MISS, C, "page");
    send_get(fd, 2, A, 0);
    expect_page(fd, 2, PROXY_HIT, C, "page");
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
    expect_page(fd, 1, PROXY_MISS, B, "page");
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
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_chain_is_followed_to_its_end);
    tcase_add_test(tests, a_redirect_is_counted_as_a_fetch_and_no_request);
    tcase_add_loop_test(tests, references_are_absolute_or_relative, 0,
                        sizeof(references) / sizeof(references[0]));
    tcase_add_test(tests, statuses_that_are_followed);
    tcase_add_loop_test(tests, a_circle, 0, 5);
    tcase_add_test(tests, a_circle_of_hits);
    tcase_add_test(tests, references_that_cannot_be_followed);
    tcase_add_loop_test(tests, a_reference_that_is_too_long, 0, 2);
    tcase_add_test(tests, failures_behind_a_redirect);
    tcase_add_test(tests, no_fetch_begins_behind_a_redirect);
    tcase_add_test(tests, what_was_not_asked_for_is_refused);
    tcase_add_loop_test(tests, a_body_that_never_ends_is_not_waited_for, 0, 4);
    tcase_add_test(tests, a_body_that_breaks_off_does_not_matter);
    tcase_add_loop_test(tests, a_client_that_leaves, 0, 4);
    tcase_add_test(tests, a_stored_redirect_and_its_page_are_a_hit);
    tcase_add_loop_test(tests, one_of_both_is_a_miss, 0, 2);
    tcase_add_test(tests, a_redirect_is_one_object_for_both_protocols);
    tcase_add_test(tests, requests_that_wait_share_all_fetches);
    suite_add_tcase(suite, tests);
    tests = tcase_create("fields");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_agent, tear_down);
    tcase_add_test(tests, fields_of_the_proxy);
    tcase_add_loop_test(tests, secrets_are_sent_to_the_first_origin_alone, 0, 3);
    tcase_add_test(tests, fields_of_the_client_come_before_ours);
    tcase_add_test(tests, what_secrets_lead_to_is_the_clients_alone);
    suite_add_tcase(suite, tests);
    tests = tcase_create("freshness off");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_without_freshness, tear_down);
    tcase_add_test(tests, without_freshness_a_page_is_stored_where_the_client_asked_for_it);
    tcase_add_test(tests, without_freshness_a_circle_is_found);
    tcase_add_loop_test(tests, without_freshness_requests_share_a_way, 0, 9);
    suite_add_tcase(suite, tests);
    tests = tcase_create("servers of their own");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, too_many, 1, 4);
    tcase_add_test(tests, none_is_followed);
    tcase_add_test(tests, a_large_body_behind_a_redirect_is_read_piece_by_piece);
    tcase_add_test(tests, a_hundred);
    suite_add_tcase(suite, tests);
    tests = tcase_create("logs");
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_log, tear_down_log);
    tcase_add_test(tests, a_request_is_logged_once_with_the_times_of_all_its_fetches);
    tcase_add_test(tests, the_time_of_a_fetch_that_goes_on_is_logged);
    suite_add_tcase(suite, tests);
    return suite;
}
