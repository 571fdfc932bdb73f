/*
 * What requests ask for over HTTP: methods, bodies, URLs of a reverse proxy, purges.
 * The origin is the test's.
 */
#include <netinet/in.h>
#include <poll.h>

#include "server/http_origins.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define URL "http://origin.test/page"
#define REQUEST(method, lines) method " " URL " HTTP/1.1\r\nHost: origin.test\r\n" lines "\r\n"

static const struct scene_options defaults = {.max_body = 4 * MIB};
static struct http_answer answer;

static void
begin(void)
{
    front_server_start(&defaults, VICTIMS_ALL);
}

/* ---- bodies of requests ---------------------------------------------------------------------- */

static size_t
receive_body(struct scene_fetch *fetch, char *bytes, size_t size)
{
    size_t total = 0, len;

    for (;;) {
        switch (scene_supply(fetch, bytes + total, size - total, &len)) {
        case FETCH_SUPPLIED:
            total += len;
            break;
        case FETCH_SUPPLY_LATER:
            usleep(1000);
            break;
        case FETCH_SUPPLY_END:
            return total;
        default:
            ck_abort_msg("the body failed");
        }
    }
}

static void
finish_post(struct scene_fetch *fetch)
{
    scene_hop(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 200, "", 4), FETCH_CONTINUE);
    (void)fetch->sink->body(fetch->context, "done", 4);
    scene_done(fetch, FETCH_OK, "");
}

START_TEST(bodies_are_passed_on)
{
    static char got[MIB];
    static char request[MIB];
    const char *bytes = plain_bytes(600000);
    struct scene_fetch *fetch;
    size_t len;
    int fd;

    begin();
    fd = http_connect();
    /* With a length, and the next request behind it. */
    ck_assert(http_send(fd, REQUEST("POST", "Content-Length: 5\r\n") "hello" REQUEST("GET", "")));
    fetch = await_fetch(URL);
    ck_assert_str_eq(fetch->method, "POST");
    ck_assert_int_eq(fetch->body.length, 5);
    ck_assert_uint_eq(receive_body(fetch, got, sizeof(got)), 5);
    ck_assert(memcmp(got, "hello", 5) == 0);
    finish_post(fetch);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "done");
    origin_responds(URL, "", BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "page");
    /* In chunks, and longer than what is held at once. */
    len = (size_t)sprintf(request, REQUEST("PUT", "Transfer-Encoding: chunked\r\n"));
    for (size_t at = 0; at < 600000; at += 60000) {
        len += (size_t)sprintf(request + len, "%x;ext=1\r\n", 60000);
        memcpy(request + len, bytes + at, 60000);
        len += 60000;
        memcpy(request + len, "\r\n", 2);
        len += 2;
    }
    len += (size_t)sprintf(request + len, "0\r\nTrailer: dropped\r\n\r\n");
    ck_assert(peer_write(fd, request, len));
    fetch = await_fetch(URL);
    ck_assert_int_eq(fetch->body.length, -1);
    ck_assert_uint_eq(receive_body(fetch, got, sizeof(got)), 600000);
    ck_assert(memcmp(got, bytes, 600000) == 0);
    finish_post(fetch);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "done");
    /* An empty one. */
    ck_assert(http_send(fd, REQUEST("POST", "Content-Length: 0\r\n")));
    fetch = await_fetch(URL);
    ck_assert_uint_eq(receive_body(fetch, got, sizeof(got)), 0);
    finish_post(fetch);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(continue_is_sent_before_a_body_that_waits_for_it)
{
    static char got[64];
    struct scene_fetch *fetch;
    int fd;

    begin();
    fd = http_connect();
    http_expect(fd, REQUEST("POST", "Content-Length: 5\r\nExpect: 100-continue\r\n"), &answer, 100);
    ck_assert(http_send(fd, "hello"));
    fetch = await_fetch(URL);
    ck_assert_uint_eq(receive_body(fetch, got, sizeof(got)), 5);
    finish_post(fetch);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    /* Not where the request is refused: then the connection ends. */
    http_expect(
        fd, "POST /page HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
        &answer, 400);
    ck_assert(http_has(&answer, "Connection: close"));
    ck_assert(peer_is_cut(fd));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(bodies_that_break)
{
    static const struct {
        const char *text;
        unsigned status; /* 0: the connection is cut without a response */
    } cases[] = {
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5\r\nhello\r\n5zz\r\n", 400},
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5\r\nhelloX", 400},
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5\nhello", 400},
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5 \t\r\nhello\r\n0\r\n\r\n", 400},
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5\r\nhello\r\n0 \r\n\r\n", 400},
        {REQUEST("POST", "Transfer-Encoding: chunked\r\n") "5\r\nhe", 0},
        {REQUEST("POST", "Content-Length: 5\r\n") "he", 0},
    };

    begin();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene_fetch *fetch;
        int fd = http_connect();

        ck_assert(http_send(fd, cases[i].text));
        fetch = await_fetch(URL);
        if (cases[i].status) {
            ck_assert(http_receive(fd, &answer, false));
            ck_assert_uint_eq(answer.status, cases[i].status);
        } else {
            ck_assert_int_eq(shutdown(fd, SHUT_WR), 0);
        }
        ck_assert(peer_is_cut(fd));
        /* The origin does not get the end of a body that has none. */
        for (;;) {
            char bytes[64];
            size_t len;
            enum fetch_supply supply = scene_supply(fetch, bytes, sizeof(bytes), &len);

            ck_assert_int_ne(supply, FETCH_SUPPLY_END);
            if (supply == FETCH_SUPPLY_FAILED)
                break;
            usleep(1000);
        }
        scene_done(fetch, FETCH_BODY_FAILED, "it broke");
        close(fd);
    }
    front_server_stop();
}
END_TEST

START_TEST(a_length_of_zero_is_no_body)
{
    struct scene_fetch *fetch;
    int fd;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("HEAD", "Content-Length: 0\r\n")));
    fetch = await_fetch(URL);
    ck_assert_int_eq(fetch->body.kind, FETCH_BODY_NONE);
    scene_hop(fetch, "", false);
    ck_assert_int_eq(scene_head(fetch, 204, "", -1), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(http_receive(fd, &answer, true));
    ck_assert_uint_eq(answer.status, 204);
    close(fd);
    http_store(URL, MAX_AGE, "page");
    fd = http_connect();
    /* It is a hit like any other. */
    http_expect(fd, REQUEST("GET", "Content-Length: 0\r\n"), &answer, 200);
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    /* A real one is refused. */
    http_expect(fd, REQUEST("HEAD", "Content-Length: 1\r\n") "x", &answer, 400);
    close(fd);
    front_server_stop();
}
END_TEST

/* The response comes before the body has been read: it is sent, and the connection ends. */
START_TEST(an_early_response)
{
    struct scene_fetch *fetch;
    int fd;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("POST", "Content-Length: 500\r\n") "begun"));
    fetch = await_fetch(URL);
    finish_post(fetch);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "done");
    ck_assert(http_has(&answer, "Connection: close"));
    ck_assert(peer_is_cut(fd));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(options_of_the_proxy_itself)
{
    int fd;

    begin();
    fd = http_connect();
    http_expect(fd, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 204);
    http_expect(fd, REQUEST("OPTIONS", "Max-Forwards: 0\r\n"), &answer, 204);
    ck_assert(http_send(fd, REQUEST("OPTIONS", "Max-Forwards: 7\r\n")));
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, "Max-Forwards: 6\r\n"));
    origin_responds(URL, "", BODY_INLINE, "", 0);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(purging)
{
    static char loopback[] = "127.0.0.0/8";
    static char other[] = "192.0.2.0/24";
    static char *items[] = {loopback, NULL}, *others[] = {other, NULL};
    int fd;

    begin();
    http_store(URL, MAX_AGE, "page");
    fd = http_connect();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 403);
    http_expect_hit(fd, URL, "page", 4);
    close(fd);
    /* An administrator, over the AF_UNIX socket. */
    fd = http_connect_local();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 200);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
    front_options.purge_net = (struct option_list){.items = items, .count = 1};
    begin();
    http_store(URL, MAX_AGE, "page");
    fd = http_connect();
    http_expect(fd, REQUEST("PURGE", ""), &answer, 200);
    close(fd);
    front_server_stop();
    /* Purging takes no permission to use the proxy. */
    front_options.purge_net = (struct option_list){.items = items, .count = 1};
    front_options.client_net = (struct option_list){.items = others, .count = 1};
    begin();
    fd = http_connect();
    http_expect(fd, REQUEST("GET", ""), &answer, 403);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(purging_more_than_one_url_and_softly)
{
    static char any[] = "/=http://origin.test,http://second.test";
    static char *items[] = {any, NULL};
    int fd;

    begin();
    fd = http_connect_local();
    http_store(URL, MAX_AGE "ETag: \"one\"\r\n", "page");
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 404);
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\nPurge: other\r\n\r\n",
                &answer, 400);
    /* Softly: it is validated before it is used. */
    http_expect(fd, "PURGE http://origin.test/ HTTP/1.1\r\nHost: x\r\nPurge: prefix, soft\r\n\r\n",
                &answer, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "1 stored response expired"));
    ck_assert(http_send(fd, REQUEST("GET", "")));
    ck_assert_ptr_nonnull(strstr(await_fetch(URL)->fields, "If-None-Match: \"one\"\r\n"));
    origin_responds(URL, MAX_AGE "Surrogate-Key: red green\r\n", BODY_INLINE, "next", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "next");
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: blue\r\n"), &answer, 404);
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: blue, green\r\n"), &answer, 200);
    http_expect(fd, REQUEST("PURGE", ""), &answer, 404);
    close(fd);
    front_server_stop();
    /* Of a reverse proxy, whichever URL it came from. */
    front_options.origin = (struct option_list){.items = items, .count = 1};
    begin();
    fd = http_connect_local();
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_fails("http://origin.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/x", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 200);
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 404);
    close(fd);
    front_server_stop();
}
END_TEST

/* Until this many requests wait for the fetch's object. */
static void
await_waiters(const struct scene_fetch *fetch, unsigned count)
{
    const struct cache_fill *fill = fetch->context;

    while (atomic_load(&fill->waiter_count) < count)
        poll(NULL, 0, 1);
}

/* RFC 9211 section 2.3: the status of the origin is stated where it is not that of the response. */
START_TEST(a_validated_response_states_the_status_of_the_origin)
{
    static const char lines[] = MAX_AGE "ETag: \"one\"\r\n";
    struct scene_fetch *fetch;
    int fd, joined;

    begin();
    fd = http_connect_local();
    joined = http_connect_local();
    http_store(URL, lines, "page");
    http_expect(fd, REQUEST("PURGE", "Purge: soft\r\n"), &answer, 200);
    ck_assert(http_send(fd, REQUEST("GET", "")));
    fetch = await_fetch(URL);
    ck_assert(http_send(joined, REQUEST("GET", "")));
    await_waiters(fetch, 2);
    fetch->sink->begin(fetch->context);
    scene_hop(fetch, lines, false);
    ck_assert_int_eq(scene_head(fetch, 304, lines, 0), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored"));
    ck_assert(http_receive(joined, &answer, false));
    ck_assert_str_eq(answer.body, "page");
    ck_assert(http_has_start(
        &answer, "Cache-Status: sunproxy; fwd=stale; fwd-status=304; stored; collapsed"));
    close(fd);
    close(joined);
    front_server_stop();
}
END_TEST

/* What is refused has removed nothing. */
START_TEST(purges_that_are_refused)
{
    static char row[128 + 200] = "/=http://origin.test,http://second.test/";
    static char *items[] = {row, NULL};
    static char request[16384];
    size_t len;
    int fd;

    begin();
    http_store(URL, MAX_AGE "Surrogate-Key: t0\r\n", "page");
    fd = http_connect_local();
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key:\r\nPurge: prefix\r\n"), &answer, 400);
    http_expect(fd, REQUEST("PURGE", "Surrogate-Key: t0\r\nSurrogate-Key: ,\r\n"), &answer, 400);
    len = (size_t)sprintf(request, "PURGE " URL " HTTP/1.1\r\nHost: x\r\nSurrogate-Key:");
    for (int i = 0; i < 65; i++)
        len += (size_t)sprintf(request + len, " t%d", i);
    memcpy(request + len, "\r\n\r\n", 5);
    http_expect(fd, request, &answer, 400);
    http_expect_hit(fd, URL, "page", 4);
    memcpy(request + len - 4, "\r\n\r\n", 5);
    http_expect(fd, request, &answer, 200);
    close(fd);
    front_server_stop();
    /* The URL fits for the first origin, and does not for the second. */
    memset(row + strlen(row), 'p', 200);
    front_options.origin = (struct option_list){.items = items, .count = 1};
    begin();
    fd = http_connect_local();
    ck_assert(http_send(fd, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n"));
    origin_responds("http://origin.test/keep", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    len = (size_t)sprintf(request, "PURGE /");
    memset(request + len, 'q', 8100);
    strcpy(request + len + 8100, " HTTP/1.1\r\nHost: x\r\nPurge: prefix\r\n\r\n");
    http_expect(fd, request, &answer, 414);
    http_expect(fd, "PURGE /keep HTTP/1.1\r\nHost: x\r\n\r\n", &answer, 200);
    close(fd);
    front_server_stop();
}
END_TEST

/* ---- reverse --------------------------------------------------------------------------------- */

static void
begin_reverse(void)
{
    static char any[] = "/=http://any.test", api[] = "site.test/api=http://api.test/v2",
                two[] = "two.test/=http://first.test,http://second.test/base/";
    static char *items[] = {any, api, two, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 3};
    begin();
}

START_TEST(a_reverse_proxy_maps_hosts_and_paths)
{
    static const struct {
        const char *target, *host, *url;
        const char *forwarded; /* X-Forwarded-Host; NULL: none, since the row is for any host */
    } cases[] = {
        {"/", "other.test", "http://any.test/", NULL},
        {"/a/b?c", "other.test:8080", "http://any.test/a/b?c", NULL},
        {"/", "[2001:db8::1]:81", "http://any.test/", NULL},
        {"/", "other.test:", "http://any.test/", NULL},
        {"http://Site.test:81/api/z", "other.test", "http://api.test/v2/z", "Site.test"},
        {"/apis", "site.test", "http://any.test/apis", NULL},
        {"/api", "Site.Test", "http://api.test/v2", "Site.Test"},
        {"/api/x?y", "site.test", "http://api.test/v2/x?y", "site.test"},
        {"/api?y", "site.test", "http://api.test/v2?y", "site.test"},
        {"http://site.test/api/z", "other.test", "http://api.test/v2/z", "site.test"},
        {"/%41//b?../c", "x", "http://any.test/%41//b?../c", NULL},
        {"/.../..a/./%2e/%2e%2e%2e/c.", "x", "http://any.test/.../..a/./%2e/%2e%2e%2e/c.", NULL},
        {"/a..;b/.;../..x;y/;../%2f..a/a%2f", "x",
         "http://any.test/a..;b/.;../..x;y/;../%2f..a/a%2f", NULL},
    };
    char request[256];
    int fd;

    begin_reverse();
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene_fetch *fetch;

        snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: %s\r\nX-Forwarded-For: liar\r\n\r\n", cases[i].target,
                 cases[i].host);
        ck_assert(http_send(fd, request));
        fetch = await_fetch(cases[i].url);
        ck_assert_ptr_nonnull(strstr(fetch->fields, "X-Forwarded-For: 127.0.0.1\r\n"));
        snprintf(request, sizeof(request), "X-Forwarded-Host: %s%s",
                 cases[i].forwarded ? cases[i].forwarded : "", cases[i].forwarded ? "\r\n" : "");
        ck_assert_int_eq(strstr(fetch->fields, request) != NULL, cases[i].forwarded != NULL);
        ck_assert_ptr_null(strstr(fetch->fields, "liar"));
        ck_assert_ptr_nonnull(strstr(fetch->fields, "Via: 1.1 sunproxy-"));
        origin_responds(cases[i].url, "", BODY_INLINE, "page", 4);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, 200);
    }
    close(fd);
    front_server_stop();
}
END_TEST

/* The port is kept if it is the proxy's own. */
START_TEST(the_port_of_the_host_that_is_forwarded)
{
    static const char url[] = "http://api.test/v2/x";
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    char request[128], field[128];
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert_int_eq(getpeername(fd, (struct sockaddr *)&address, &len), 0);
    for (unsigned other = 0; other < 2; other++) {
        unsigned port = ntohs(address.sin_port) ^ other;

        snprintf(request, sizeof(request), "GET /api/x HTTP/1.1\r\nHost: site.test:%u\r\n\r\n",
                 port);
        if (other)
            snprintf(field, sizeof(field), "X-Forwarded-Host: site.test\r\n");
        else
            snprintf(field, sizeof(field), "X-Forwarded-Host: site.test:%u\r\n", port);
        ck_assert(http_send(fd, request));
        ck_assert_ptr_nonnull(strstr(await_fetch(url)->fields, field));
        origin_responds(url, "", BODY_INLINE, "page", 4);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, 200);
    }
    close(fd);
    front_server_stop();
}
END_TEST

/* Of any method, and an upgrade, too: the origin would remove it, and serve what is elsewhere. */
START_TEST(paths_do_not_leave_the_row)
{
    static const char *const paths[] = {
        "/api/../secret",
        "/api/..",
        "/api/../?q",
        "/api/..?q",
        "/api/%2e%2E/x",
        "/api/.%2e/x",
        "/api/%2E./a/b",
        "/api/a/../../../x",
        "/..",
        "/./api/%2e%2e",
        "http://site.test/api/../x",
        /* As some origins read them. */
        "/api/..;/secret",
        "/api/..;a=b/secret",
        "/api/..;",
        "/api/%2e.%3B/secret",
        "/api/x;y/..;z?q",
        "/api/..%2fsecret",
        "/api/x%2F..",
        "/api/x%2f%2e%2E%2fsecret",
        "/api/..%5csecret",
        "/..%2f",
    };
    static const char *const methods[] = {"GET", "POST", "PURGE"};
    char request[256];

    begin_reverse();
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        int fd = http_connect_local();

        for (size_t k = 0; k < sizeof(methods) / sizeof(methods[0]); k++) {
            snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: site.test\r\n\r\n",
                     methods[k], paths[i]);
            http_expect(fd, request, &answer, 400);
        }
        snprintf(request, sizeof(request),
                 "GET %s HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\n"
                 "Upgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                 "Sec-WebSocket-Version: 13\r\n\r\n",
                 paths[i]);
        http_expect(fd, request, &answer, 400);
        close(fd);
    }
    ck_assert_uint_eq(scene_fetches(), 0);
    front_server_stop();
}
END_TEST

START_TEST(what_no_row_matches_is_misdirected)
{
    static char row[] = "site.test/api/=http://api.test/";
    static char *items[] = {row, NULL};
    int fd;

    front_options.origin = (struct option_list){.items = items, .count = 1};
    begin();
    fd = http_connect();
    http_expect(fd, "GET http://foreign.test/api/ HTTP/1.1\r\nHost: site.test\r\n\r\n", &answer,
                421);
    http_expect(fd, "GET /api/ HTTP/1.1\r\nHost: foreign.test\r\n\r\n", &answer, 421);
    http_expect(fd, "GET /api HTTP/1.1\r\nHost: site.test\r\n\r\n", &answer, 421);
    ck_assert_uint_eq(scene_fetches(), 0);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(the_next_url_is_tried_if_no_connection_can_be_made)
{
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, "page");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 0);
    /* It is the first choice from now on, until it fails. */
    ck_assert(http_send(fd, "GET /y HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://second.test/base/y", FETCH_RESOLVE_FAILED, "unknown");
    origin_fails("http://first.test/y", FETCH_CONNECT_FAILED, "refused");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 1);
    /* Another failure is final. */
    ck_assert(http_send(fd, "GET /z HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    AWAIT(scene_fetches() == 1);
    origin_fails(scene_fetch(NULL)->url, FETCH_TIMED_OUT, "silent");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 504);
    close(fd);
    front_server_stop();
}
END_TEST

/* A response may be stored under the URL that was in use, and change while another one is. */
START_TEST(a_write_invalidates_what_is_stored_under_the_other_urls)
{
    static const char *const other[] = {
        "PUT /x HTTP/1.1\r\nHost: two.test\r\nContent-Length: 0\r\n\r\n",
        "http://second.test/base/x", ""};
    static const char *const moved[] = {
        "POST /p HTTP/1.1\r\nHost: two.test\r\nContent-Length: 0\r\n\r\n",
        "http://second.test/base/p", "Location: /base/x\r\n"};
    static const char *const *const writes[] = {other, moved};

    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        int fd;

        begin_reverse();
        fd = http_connect();
        ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n"));
        origin_responds("http://first.test/x", MAX_AGE, BODY_INLINE, "old", 3);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert(http_send(fd, "GET /y HTTP/1.1\r\nHost: two.test\r\n\r\n"));
        origin_fails("http://first.test/y", FETCH_CONNECT_FAILED, "refused");
        origin_responds("http://second.test/base/y", MAX_AGE, BODY_INLINE, "page", 4);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert(http_send(fd, writes[i][0]));
        origin_responds(writes[i][1], writes[i][2], BODY_INLINE, "done", 4);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, 200);
        /* Back to the first URL. */
        ck_assert(http_send(fd, "GET /z HTTP/1.1\r\nHost: two.test\r\n\r\n"));
        origin_fails("http://second.test/base/z", FETCH_CONNECT_FAILED, "refused");
        origin_responds("http://first.test/z", MAX_AGE, BODY_INLINE, "page", 4);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n"));
        origin_responds("http://first.test/x", MAX_AGE, BODY_INLINE, "new", 3);
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_str_eq(answer.body, "new");
        close(fd);
        front_server_stop();
    }
}
END_TEST

START_TEST(rows_that_are_refused)
{
    static const char *const rows[] = {"",
                                       "x",
                                       "/",
                                       "/=",
                                       "/=ftp://a/",
                                       "/=http://a/?q",
                                       "x:80/=http://a/",
                                       "/=http://u@a/",
                                       "/=http://a/,,http://b/",
                                       "=http://a/"};
    struct http_origins origins;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *items[] = {(char *)(uintptr_t)rows[i], NULL};
        struct option_list list = {.items = items, .count = 1};
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!http_origins_init(&origins, &list, &why), "%s", rows[i]);
        ck_assert_msg(strncmp(buf_str(&why), "origin: ", 8) == 0, "%s", buf_str(&why));
        buf_free(&why);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: HTTP requests");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bodies_are_passed_on);
    tcase_add_test(tcase, continue_is_sent_before_a_body_that_waits_for_it);
    tcase_add_test(tcase, bodies_that_break);
    tcase_add_test(tcase, a_length_of_zero_is_no_body);
    tcase_add_test(tcase, an_early_response);
    tcase_add_test(tcase, options_of_the_proxy_itself);
    tcase_add_test(tcase, purging);
    tcase_add_test(tcase, purging_more_than_one_url_and_softly);
    tcase_add_test(tcase, a_validated_response_states_the_status_of_the_origin);
    tcase_add_test(tcase, purges_that_are_refused);
    tcase_add_test(tcase, a_reverse_proxy_maps_hosts_and_paths);
    tcase_add_test(tcase, the_port_of_the_host_that_is_forwarded);
    tcase_add_test(tcase, paths_do_not_leave_the_row);
    tcase_add_test(tcase, what_no_row_matches_is_misdirected);
    tcase_add_test(tcase, the_next_url_is_tried_if_no_connection_can_be_made);
    tcase_add_test(tcase, a_write_invalidates_what_is_stored_under_the_other_urls);
    tcase_add_test(tcase, rows_that_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}
