/* A reverse proxy: hosts and paths that rows of --origin map, and their URLs. */
#include <netinet/in.h>

#include "server/http/http_origins.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

static struct http_answer answer;

static void
begin_reverse(void)
{
    static char any[] = "/=http://any.test", api[] = "site.test/api=http://api.test/v2",
                two[] = "two.test/=http://first.test, http://second.test/base/",
                named[] = "named.test/ = http://named-origin.test  host=Other.Name:82",
                own[] = "own.test/=http://own-origin.test:8000 host=origin";
    static char *items[] = {any, api, two, named, own, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 5};
    http_begin();
}

/* The origin is told scheme, host and port of the client, as they are in the key. */
START_TEST(a_reverse_proxy_maps_hosts_and_paths)
{
    static const struct {
        const char *target, *host, *url, *told;
    } cases[] = {
        {"/", "other.test", "http://any.test/", "other.test"},
        {"/a/b?c", "other.test:8080", "http://any.test/a/b?c", "other.test:8080"},
        {"/", "[2001:DB8:0::1]:81", "http://any.test/", "[2001:db8::1]:81"},
        {"/", "Other.test.:80", "http://any.test/", "other.test"},
        {"/", "other.test:", "http://any.test/", "other.test"},
        {"http://Site.test:81/api/z", "other.test", "http://api.test/v2/z", "site.test:81"},
        {"/apis", "site.test", "http://any.test/apis", "site.test"},
        {"/api", "Site.Test", "http://api.test/v2", "site.test"},
        {"/api/x?y", "site.test", "http://api.test/v2/x?y", "site.test"},
        {"/api?y", "site.test", "http://api.test/v2?y", "site.test"},
        {"http://site.test/api/z", "other.test", "http://api.test/v2/z", "site.test"},
        /* A connection without TLS is none with TLS, whatever its client says. */
        {"https://site.test/api/z", "other.test", "http://api.test/v2/z", "site.test"},
        {"/%41//b?../c", "x", "http://any.test/%41//b?../c", "x"},
        {"/.../..a/./%2e/%2e%2e%2e/c.", "x", "http://any.test/.../..a/./%2e/%2e%2e%2e/c.", "x"},
        {"/a..;b/.;../..x;y/;../%2f..a/a%2f", "x",
         "http://any.test/a..;b/.;../..x;y/;../%2f..a/a%2f", "x"},
        {"/", "named.test:81", "http://named-origin.test/", "named.test:81"},
        {"/", "own.test", "http://own-origin.test:8000/", "own.test"},
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
        ck_assert_ptr_nonnull(strstr(fetch->fields, "X-Forwarded-Proto: http\r\n"));
        snprintf(request, sizeof(request), "X-Forwarded-Host: %s\r\n", cases[i].told);
        ck_assert_msg(strstr(fetch->fields, request) != NULL, "%s: %s", request, fetch->fields);
        if (strstr(cases[i].host, "named"))
            ck_assert_str_eq(fetch->host, "Other.Name:82");
        else if (strstr(cases[i].host, "own"))
            ck_assert_str_eq(fetch->host, "");
        else
            ck_assert_str_eq(fetch->host, cases[i].told);
        ck_assert_uint_ne(fetch->flags & REQUEST_CONFIGURED, 0);
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

/* They are those of the row, or of its first URL. */
START_TEST(host_and_port_of_a_request_without_host)
{
    static char named[] = "site.test/a/=http://first.test:81", any[] = "/=http://any.test:82";
    static char *items[] = {named, any, NULL};
    int fd;

    front_options.origin = (struct option_list){.items = items, .count = 2};
    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, "GET /x HTTP/1.0\r\n\r\n"));
    ck_assert_str_eq(await_fetch("http://any.test:82/x")->host, "any.test:82");
    origin_responds("http://any.test:82/x", MAX_AGE, BODY_INLINE, "page", 4);
    ck_assert(http_receive(fd, &answer, false));
    close(fd);
    fd = http_connect();
    http_expect(fd, "GET /x HTTP/1.1\r\nHost: any.test:82\r\n\r\n", &answer, 200);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    close(fd);
    front_server_stop();
}
END_TEST

/* What an origin is told may be in its response, and so that is for the same host and port alone.
 */
START_TEST(hosts_and_ports_share_no_page)
{
    static char a[] = "a.test/=http://origin.test", b[] = "b.test/=http://origin.test";
    static char any[] = "/=http://origin.test";
    static char *items[] = {a, b, any, NULL};
    static const char *const hosts[] = {"a.test", "b.test", "a.test:81", "c.test", "d.test"};
    char request[128];
    int fd;

    front_options.origin = (struct option_list){.items = items, .count = 3};
    http_begin();
    fd = http_connect();
    for (unsigned again = 0; again < 2; again++) {
        for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
            snprintf(request, sizeof(request), "GET /x HTTP/1.1\r\nHost: %s\r\n\r\n", hosts[i]);
            ck_assert(http_send(fd, request));
            if (!again)
                origin_responds("http://origin.test/x", MAX_AGE, BODY_INLINE, hosts[i],
                                strlen(hosts[i]));
            http_expect_page(fd, &answer, hosts[i]);
        }
    }
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: A.test.:80\r\n\r\n"));
    http_expect_page(fd, &answer, "a.test");
    ck_assert_uint_eq(scene_fetches(), 0);
    close(fd);
    front_server_stop();
}
END_TEST

/* A page has one key, whatever member of the row has sent it. */
START_TEST(members_share_their_pages)
{
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_responds("http://first.test/x", MAX_AGE, BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    ck_assert(http_send(fd, "GET /y HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    origin_fails("http://first.test/y", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/y", MAX_AGE, BODY_INLINE, "other", 5);
    http_expect_page(fd, &answer, "other");
    ck_assert(http_send(fd, "GET /x HTTP/1.1\r\nHost: two.test\r\n\r\n"));
    http_expect_page(fd, &answer, "page");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    /* It is purged under the client's URL. */
    close(fd);
    fd = http_connect_local();
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: two.test:81\r\n\r\n", &answer, 404);
    http_expect(fd, "PURGE /x HTTP/1.1\r\nHost: two.test\r\n\r\n", &answer, 200);
    http_expect(fd, "PURGE / HTTP/1.1\r\nHost: two.test\r\nPurge: prefix\r\n\r\n", &answer, 200);
    ck_assert_ptr_nonnull(strstr(answer.body, "1 stored response removed"));
    close(fd);
    front_server_stop();
}
END_TEST

/* Dot segments are removed before a row is chosen, so that nothing leads out of it. */
START_TEST(dot_segments_are_removed)
{
    static const struct {
        const char *target, *url;
    } cases[] = {
        {"/api/../secret", "http://any.test/secret"},
        {"/api/..", "http://any.test/"},
        {"/api/../?q", "http://any.test/?q"},
        {"/api/..?q/../r", "http://any.test/?q/../r"},
        {"/api/%2e%2E/x", "http://any.test/x"},
        {"/api/.%2e/x/", "http://any.test/x/"},
        {"/api/%2E./api/a/b", "http://api.test/v2/a/b"},
        {"/api/a/../../../x", "http://any.test/x"},
        {"/..", "http://any.test/"},
        {"/./api/%2e%2e", "http://any.test/"},
        {"/x/../api/b/./c", "http://api.test/v2/b/c"},
        {"/api//../b", "http://api.test/v2/b"},
        {"http://site.test/a/../x", "http://any.test/x"},
    };
    char request[256];
    int fd;

    begin_reverse();
    fd = http_connect();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(request, sizeof(request), "GET %s HTTP/1.1\r\nHost: site.test\r\n\r\n",
                 cases[i].target);
        ck_assert(http_send(fd, request));
        origin_responds(cases[i].url, "", BODY_INLINE, "page", 4);
        http_expect_page(fd, &answer, "page");
    }
    /* What is fetched is what is keyed. */
    ck_assert(http_send(fd, "GET /a/../k HTTP/1.1\r\nHost: site.test\r\n\r\n"));
    origin_responds("http://any.test/k", MAX_AGE, BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    ck_assert(http_send(fd, "GET /k HTTP/1.1\r\nHost: site.test\r\n\r\n"));
    http_expect_page(fd, &answer, "page");
    close(fd);
    front_server_stop();
}
END_TEST

/* As some origins read them: of any method, and an upgrade, too. */
START_TEST(paths_do_not_leave_the_row)
{
    static const char *const paths[] = {
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
        "/a/../..;/b",
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
        len = origin_route_write_url(&row->route, 0, span_str("/x"), url, sizeof(url));
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
                                       "/%2e%2E/a=http://a/",
                                       "/ = ",
                                       "/=http://a/ http://b/",
                                       "/=http://a/ host",
                                       "/=http://a/ host=",
                                       "/=http://a/ host=a/b",
                                       "/=http://a/ port=1",
                                       "/=http://a/,",
                                       "/=http://a/ balance=most",
                                       "/=http://a/ balance=",
                                       "/=http://a/ probe=x",
                                       "/=http://a/ probe=",
                                       "/=http://a/ probe=/\x01",
                                       "/=http://a/ probe=/ probe-interval=999ms",
                                       "/=http://a/ probe=/ probe-status=99",
                                       "/=http://a/ probe=/ probe-fall=0",
                                       "/=http://a/ probe=/ probe-rise=x",
                                       "/=http://a/ queue=x",
                                       "/=http://a/ queue=2h",
                                       "/=http://a/ slow=-1",
                                       "/=http://a/ errors=0",
                                       "/=http://a/|max=0",
                                       "/=http://a/|max=65537",
                                       "/=http://a/|weight=0",
                                       "/=http://a/|weight=1001",
                                       "/=http://a/|weight=",
                                       "/=http://a/|weight=12345678",
                                       "/=http://a/|spare",
                                       "/=http://a/|",
                                       "/=http://a/||backup",
                                       "/=|backup"};
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
            span_equal(
                span_of(url, origin_route_write_url(&row->route, 0, path, url, sizeof(url))),
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
    tcase_add_test(tcase, host_and_port_of_a_request_without_host);
    tcase_add_test(tcase, hosts_and_ports_share_no_page);
    tcase_add_test(tcase, members_share_their_pages);
    tcase_add_test(tcase, dot_segments_are_removed);
    tcase_add_test(tcase, paths_do_not_leave_the_row);
    tcase_add_test(tcase, what_no_row_matches_is_misdirected);
    tcase_add_test(tcase, options_of_the_whole_server);
    tcase_add_test(tcase, rows_write_urls_in_the_spelling_of_the_cache);
    tcase_add_test(tcase, rows_that_are_refused);
    tcase_add_test(tcase, the_longest_prefix_counts);
    suite_add_tcase(suite, tcase);
    return suite;
}
