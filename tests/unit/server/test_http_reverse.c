/* A reverse proxy: hosts and paths that rows of --origin map, and their URLs. */
#include <netinet/in.h>

#include "server/http_origins.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http_scene.h"

static struct http_answer answer;

static void
begin_reverse(void)
{
    static char any[] = "/=http://any.test", api[] = "site.test/api=http://api.test/v2",
                two[] = "two.test/=http://first.test,http://second.test/base/";
    static char *items[] = {any, api, two, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 3};
    http_begin();
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
        {"http://Site.test:81/api/z", "other.test", "http://api.test/v2/z", "site.test"},
        {"/apis", "site.test", "http://any.test/apis", NULL},
        {"/api", "Site.Test", "http://api.test/v2", "site.test"},
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

/* The host is spelled as in the row. The port is kept if it is the proxy's own. */
START_TEST(the_host_that_is_forwarded)
{
    static const char url[] = "http://api.test/v2/x";
    static const char *const hosts[] = {"site.test", "SITE.test", "site.test.", "Site.Test."};
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    char request[128], field[128];
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert_int_eq(getpeername(fd, (struct sockaddr *)&address, &len), 0);
    for (unsigned i = 0; i < 2 * sizeof(hosts) / sizeof(hosts[0]); i++) {
        unsigned other = i % 2, port = ntohs(address.sin_port) ^ other;

        snprintf(request, sizeof(request), "GET /api/x HTTP/1.1\r\nHost: %s:%u\r\n\r\n",
                 hosts[i / 2], port);
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
    http_begin();
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

/* A reverse proxy is the server itself only for what it serves. */
START_TEST(options_of_the_whole_server)
{
    static char row[] = "site.test/=http://api.test/";
    static char *items[] = {row, NULL};
    int fd;

    front_options.origin = (struct option_list){.items = items, .count = 1};
    http_begin();
    fd = http_connect();
    http_expect(fd, "OPTIONS http://foreign.test HTTP/1.1\r\nHost: foreign.test\r\n\r\n", &answer,
                421);
    http_expect(fd, "OPTIONS http://site.test HTTP/1.1\r\nHost: foreign.test\r\n\r\n", &answer,
                204);
    http_expect(fd, "OPTIONS * HTTP/1.1\r\nHost: foreign.test\r\n\r\n", &answer, 204);
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
    /* A host that is down does not respond at all. */
    ck_assert(http_send(fd, "GET /w HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://first.test/w", FETCH_CONNECT_TIMED_OUT, "silent");
    origin_responds("http://second.test/base/w", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    /* It has got nothing of the request, whatever the method. */
    ck_assert(http_send(fd, "POST /v HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://second.test/base/v", FETCH_CONNECT_TIMED_OUT, "silent");
    origin_responds("http://first.test/v", "", BODY_INLINE, "done", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "done");
    ck_assert(http_send(fd, "GET /u HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://first.test/u", FETCH_CONNECT_TIMED_OUT, "silent");
    origin_fails("http://second.test/base/u", FETCH_CONNECT_TIMED_OUT, "silent, too");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 504);
    ck_assert_ptr_nonnull(strstr(answer.body, "silent, too"));
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 2);
    /* Another failure is final. */
    ck_assert(http_send(fd, "GET /z HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    AWAIT(scene_fetches() == 1);
    origin_fails(scene_fetch(NULL)->url, FETCH_TIMED_OUT, "silent");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 504);
    ck_assert_uint_eq(scene_fetches(), 0);
    close(fd);
    front_server_stop();
}
END_TEST

/* What the next URL's response is to the request counts from then on, not from its arrival. */
START_TEST(a_repeated_request_is_evaluated_when_it_is_repeated)
{
    static const char x[] = "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n",
                      y[] = "GET /y HTTP/1.1\r\nHost: two.test\r\n\r\n";
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, x));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "old", 3);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert(http_send(fd, y));
    origin_fails("http://second.test/base/y", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://first.test/y", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert(http_send(fd, x));
    (void)await_fetch("http://first.test/x");
    scene.now_us += 3601 * SECOND;
    origin_fails("http://first.test/x", FETCH_CONNECT_TIMED_OUT, "silent");
    origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "new", 3);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_str_eq(answer.body, "new");
    close(fd);
    front_server_stop();
}
END_TEST

#define EXPIRED "Cache-Control: max-age=0\r\nETag: \"1\"\r\n"

static void
expect_page(int fd, const char *body)
{
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 200);
    ck_assert_str_eq(answer.body, body);
}

START_TEST(the_next_url_is_preferred_to_a_stale_response)
{
    static const char request[] = "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n";
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, request));
    origin_responds("http://first.test/x", EXPIRED, BODY_INLINE, "old", 3);
    expect_page(fd, "old");
    /* Where there is no connection to any of them, it is the stale one that there is. */
    ck_assert(http_send(fd, request));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_fails("http://second.test/base/x", FETCH_TIMED_OUT, "silent");
    expect_page(fd, "old");
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 1);
    /* The second one is the first choice now. */
    ck_assert(http_send(fd, request));
    origin_fails("http://second.test/base/x", FETCH_CONNECT_FAILED, "refused");
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    expect_page(fd, "old");
    ck_assert(http_send(fd, request));
    origin_responds("http://first.test/x", EXPIRED, BODY_INLINE, "page", 4);
    expect_page(fd, "page");
    ck_assert(http_send(fd, request));
    origin_fails("http://first.test/x", FETCH_CONNECT_TIMED_OUT, "silent");
    origin_responds("http://second.test/base/x", EXPIRED, BODY_INLINE, "new", 3);
    expect_page(fd, "new");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 2);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 0);
    close(fd);
    front_server_stop();
}
END_TEST

/* It is the request's once the first URL has failed, and is not fetched for again. */
START_TEST(a_stale_response_is_used_although_it_was_evicted_meanwhile)
{
    static const char request[] = "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n";
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, request));
    origin_responds("http://first.test/x", EXPIRED, BODY_INLINE, "old", 3);
    expect_page(fd, "old");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert(http_send(fd, request));
        origin_fails(i ? "http://second.test/base/x" : "http://first.test/x", FETCH_CONNECT_FAILED,
                     "refused");
        (void)await_fetch(i ? "http://first.test/x" : "http://second.test/base/x");
        ck_assert_uint_eq(cache_purge_all(scene.cache), i ? 0 : 1);
        origin_fails(i ? "http://first.test/x" : "http://second.test/base/x", FETCH_CONNECT_FAILED,
                     "refused");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, i ? 502 : 200);
        ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 1);
        ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), i);
    }
    /* It is released if it is not used. */
    ck_assert(http_send(fd, request));
    origin_responds("http://first.test/x", EXPIRED, BODY_INLINE, "new", 3);
    expect_page(fd, "new");
    ck_assert(http_send(fd, request));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/x", EXPIRED, BODY_INLINE, "page", 4);
    expect_page(fd, "page");
    close(fd);
    front_server_stop();
}
END_TEST

/* Its body may have been read in part. */
START_TEST(a_request_with_a_body_fails_and_the_next_one_begins_with_the_next_url)
{
    static const char request[] =
        "POST /x HTTP/1.1\r\nHost: two.test\r\nContent-Length: 1\r\n\r\na";
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, request));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    close(fd);
    fd = http_connect();
    ck_assert(http_send(fd, request));
    origin_responds("http://second.test/base/x", "", BODY_INLINE, "done", 4);
    expect_page(fd, "done");
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

/* What they fetch is in the cache under the spelling by which it is purged. */
START_TEST(rows_write_urls_in_the_spelling_of_the_cache)
{
    static const struct {
        const char *row, *host, *url;
    } rows[] = {
        {"/=HTTP://A.Test:80", "b", "http://a.test/x"},
        {"/=http://a.test./", "b", "http://a.test/x"},
        {"/=http://127.1:8080/Y/", "b", "http://127.0.0.1:8080/Y/x"},
        {"/=http:///a.test", "b", "http://a.test/x"},
        {"/=http://%61.test/%61/", "b", "http://a.test/%61/x"},
        {"B.Test./=http://a.test", "b.test", "http://a.test/x"},
    };
    struct http_origins origins;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *items[] = {(char *)(uintptr_t)rows[i].row, NULL};
        struct option_list list = {.items = items, .count = 1};
        struct http_origin *row;
        struct buf why;
        char url[128];
        size_t len;

        buf_init(&why, 1024);
        ck_assert_msg(http_origins_init(&origins, &list, &why), "%s", buf_str(&why));
        row = http_origins_find(&origins, span_str(rows[i].host), span_str("/x"));
        ck_assert_msg(row != NULL, "%s", rows[i].row);
        len = http_origin_write_url(row, 0, span_str("/x"), url, sizeof(url));
        ck_assert_msg(span_equal(span_of(url, len), span_str(rows[i].url)), "%s: %.*s", rows[i].row,
                      (int)len, url);
        http_origins_free(&origins);
        buf_free(&why);
    }
}
END_TEST

START_TEST(rows_that_are_refused)
{
    static const char *const same[][2] = {{"/=http://a/", "/=http://b/"},
                                          {"A.test/x/=http://a/", "a.test./x/=http://b/"}};
    static const char *const rows[] = {"",
                                       "x",
                                       "/",
                                       "/=",
                                       "/=ftp://a/",
                                       "/=http://a/?q",
                                       "x:80/=http://a/",
                                       "/=http://u@a/",
                                       "/=http://a/,,http://b/",
                                       "a,b/=http://a/",
                                       "127.1/=http://a/",
                                       "=http://a/",
                                       "/a b=http://a/",
                                       "/a?b=http://a/",
                                       "/a#b=http://a/",
                                       "/\xc3\xbc=http://a/",
                                       "/a/..=http://a/",
                                       "/%2e%2E/a=http://a/"};
    struct http_origins origins;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *items[] = {(char *)(uintptr_t)rows[i], NULL};
        struct option_list list = {.items = items, .count = 1};
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!http_origins_init(&origins, &list, &why), "%s", rows[i]);
        ck_assert_msg(strncmp(buf_str(&why), "--origin: ", 10) == 0, "%s", buf_str(&why));
        buf_free(&why);
    }
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        struct option_list list = {.items = (char **)(uintptr_t)same[i], .count = 2};
        struct buf why;

        buf_init(&why, 1024);
        ck_assert_msg(!http_origins_init(&origins, &list, &why), "%s", same[i][0]);
        ck_assert_ptr_nonnull(strstr(buf_str(&why), "an earlier row has that host and prefix"));
        buf_free(&why);
    }
}
END_TEST

START_TEST(the_longest_prefix_counts)
{
    static const char *const rows[] = {"/x=http://a", "/x/=http://b", "/=http://c", "/x/y=http://d",
                                       "h.test/=http://e"};
    static const struct {
        const char *host, *path, *url;
    } cases[] = {
        {"g.test", "/x", "http://a/"},      {"g.test", "/x?/y", "http://a/?/y"},
        {"g.test", "/x/", "http://b/"},     {"g.test", "/x/z", "http://b/z"},
        {"g.test", "/x/y", "http://d/"},    {"g.test", "/x/yy", "http://b/yy"},
        {"g.test", "/xx", "http://c/xx"},   {"g.test", "?x", "http://c/?x"},
        {"H.test", "/x/y", "http://e/x/y"},
    };
    struct option_list list = {.items = (char **)(uintptr_t)rows, .count = 5};
    struct http_origins origins;
    struct buf why;

    buf_init(&why, 1024);
    ck_assert_msg(http_origins_init(&origins, &list, &why), "%s", buf_str(&why));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct span path = span_str(cases[i].path);
        const struct http_origin *row = http_origins_find(&origins, span_str(cases[i].host), path);
        char url[64];

        ck_assert_ptr_nonnull(row);
        ck_assert_msg(
            span_equal(span_of(url, http_origin_write_url(row, 0, path, url, sizeof(url))),
                       span_str(cases[i].url)),
            "%s", cases[i].path);
    }
    http_origins_free(&origins);
    buf_free(&why);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: HTTP reverse proxy");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, a_reverse_proxy_maps_hosts_and_paths);
    tcase_add_test(tcase, the_host_that_is_forwarded);
    tcase_add_test(tcase, paths_do_not_leave_the_row);
    tcase_add_test(tcase, what_no_row_matches_is_misdirected);
    tcase_add_test(tcase, options_of_the_whole_server);
    tcase_add_test(tcase, the_next_url_is_tried_if_no_connection_can_be_made);
    tcase_add_test(tcase, a_repeated_request_is_evaluated_when_it_is_repeated);
    tcase_add_test(tcase, the_next_url_is_preferred_to_a_stale_response);
    tcase_add_test(tcase, a_stale_response_is_used_although_it_was_evicted_meanwhile);
    tcase_add_test(tcase, a_request_with_a_body_fails_and_the_next_one_begins_with_the_next_url);
    tcase_add_test(tcase, a_write_invalidates_what_is_stored_under_the_other_urls);
    tcase_add_test(tcase, rows_write_urls_in_the_spelling_of_the_cache);
    tcase_add_test(tcase, rows_that_are_refused);
    tcase_add_test(tcase, the_longest_prefix_counts);
    suite_add_tcase(suite, tcase);
    return suite;
}
