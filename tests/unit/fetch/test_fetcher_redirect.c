/* Redirects: followed hop by hop, each checked like a first request. */
#include <stdio.h>

#include "tests/unit/fetch/fixture.h"

#define TO(where) "HTTP/1.1 302 Found\r\nContent-Length: 5\r\nLocation: " where "\r\n\r\nmoved"
#define FINAL "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nhere"

static const struct line script[] = {
    {.path = "/absolute-path", .bytes = TO("/a/end?x=1")},
    {.path = "/a/relative", .bytes = TO("end?x=1")},
    {.path = "/a/end?x=1", .bytes = FINAL},
    {.path = "/301",
     .bytes = "HTTP/1.1 301 M\r\nContent-Length: 0\r\nLocation: /a/end?x=1\r\n\r\n"},
    {.path = "/303",
     .bytes = "HTTP/1.1 303 M\r\nContent-Length: 0\r\nLocation: /a/end?x=1\r\n\r\n"},
    {.path = "/307",
     .bytes = "HTTP/1.1 307 M\r\nContent-Length: 0\r\nLocation: /a/end?x=1\r\n\r\n"},
    {.path = "/308",
     .bytes = "HTTP/1.1 308 M\r\nContent-Length: 0\r\nLocation: /a/end?x=1\r\n\r\n"},
    {.path = "/spaces", .bytes = TO("  /a/end?x=1  ")},
    {.path = "/fragment", .bytes = TO("/a/end?x=1#part")},
    {.path = "/self", .bytes = TO("/self")},
    {.path = "/circle", .bytes = TO("/circle2")},
    {.path = "/circle2", .bytes = TO("/circle3")},
    {.path = "/circle3", .bytes = TO("/circle")},
    {.path = "/1", .bytes = TO("/2")},
    {.path = "/2", .bytes = TO("/3")},
    {.path = "/3", .bytes = TO("/4")},
    {.path = "/4", .bytes = FINAL},
    {.path = "/file", .bytes = TO("file:///etc/passwd")},
    {.path = "/ftp", .bytes = TO("ftp://127.0.0.1/")},
    {.path = "/empty", .bytes = TO("")},
    {.path = "/no-url", .bytes = TO("http://")},
    {.path = "/missing", .bytes = TO("http://missing.test/")},
    {.path = "/private", .bytes = TO("http://private.test/")},
    {.path = "/smtp", .bytes = TO("http://127.0.0.1:25/")},
    {.path = "/decimal", .bytes = TO("http://167772161/")},
    {.path = "/octal", .bytes = TO("http://012.0.0.1/")},
    {.path = "/hex", .bytes = TO("http://0x0a000001/")},
    {.path = "/short", .bytes = TO("http://10.1/")},
    {.path = "/dotted", .bytes = TO("http://10.0.0.1/")},
    {.path = "/mapped", .bytes = TO("http://[::ffff:10.0.0.1]/")},
    {.path = "/mapped-hex", .bytes = TO("http://[::ffff:a00:1]/")},
    {.path = "/loopback6", .bytes = TO("http://[::1]/")},
    {.path = "/nat64", .bytes = TO("http://[64:ff9b::10.0.0.1]/")},
    {.path = "/metadata", .bytes = TO("http://169.254.169.254/latest/")},
    {.path = "/escaped", .bytes = TO("http://%31%30.0.0.1/")},
    {.path = "/hanging-body",
     .bytes = "HTTP/1.1 302 Found\r\nContent-Length: 5\r\nLocation: /4\r\n\r\nmo",
     .then = HANG},
    {.path = "/short-body",
     .bytes = "HTTP/1.1 302 Found\r\nContent-Length: 5\r\nLocation: /4\r\n\r\nmo",
     .then = CLOSE},
    {.path = "/cookie",
     .bytes = "HTTP/1.1 103 Early Hints\r\nX: early\r\n\r\n"
              "HTTP/1.1 302 Found\r\nSet-Cookie: a=b\r\n"
              "Connection: Set-Cookie\r\nContent-Length: 0\r\nLocation: /folded\r\n\r\n"},
    {.path = "/folded", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX: a\r\n b\r\n\r\nhere"},
    {.path = NULL},
};

static const struct name_row names[] = {
    {"one.test", "127.0.0.1"},
    {"two.test", "127.0.0.1"},
    {"private.test", "10.0.0.1"},
    {NULL, NULL},
};

START_TEST(redirects_are_followed)
{
    static const char *const paths[] = {"/absolute-path", "/a/relative", "/301",   "/303",
                                        "/307",           "/308",        "/spaces"};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    char end[64];

    snprintf(end, sizeof(end), "http://127.0.0.1:%u/a/end?x=1", origin->port);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct outcome o;

        fetch_fine(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, paths[i]);
        ck_assert_str_eq(o.final_url, end);
        ck_assert_str_eq(o.body, "here");
        ck_assert_uint_eq(o.heads, 1);
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_redirects_body_is_of_no_interest)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;

    config.stall_timeout_us = 100000;
    fetcher = start_fetcher(&config);
    expect_page(fetcher, "here", "http://127.0.0.1:%u/short-body", origin->port);
    expect_page(fetcher, "here", "http://127.0.0.1:%u/hanging-body", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

static void
expect_bad(struct fetcher *fetcher, const struct origin *origin, const char *path, const char *word)
{
    struct outcome o;

    fetch_one(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, path);
    ck_assert_msg(o.error == FETCH_BAD_REDIRECT, "%s: %d %s", path, o.error, o.sentence);
    ck_assert_msg(strstr(o.sentence, word) != NULL, "%s: %s", path, o.sentence);
    ck_assert_uint_eq(o.heads, 0);
    ck_assert_uint_eq(o.body_len, 0);
    outcome_free(&o);
}

START_TEST(redirects_to_nowhere)
{
    static const char *const refused[] = {"/decimal", "/octal",    "/hex",        "/short",
                                          "/dotted",  "/mapped",   "/mapped-hex", "/loopback6",
                                          "/nat64",   "/metadata", "/escaped",    "/private"};
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;
    struct outcome o;

    names_use(&config, names);
    fetcher = start_fetcher(&config);
    expect_bad(fetcher, origin, "/self", "circle");
    expect_bad(fetcher, origin, "/circle", "circle");
    expect_bad(fetcher, origin, "/file", "scheme");
    expect_bad(fetcher, origin, "/ftp", "scheme");
    expect_bad(fetcher, origin, "/no-url", "redirects to");
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
        expect_bad(fetcher, origin, refused[i], "refused: ");
    expect_bad(fetcher, origin, "/smtp", "allow it with --allow-port 25");
    /* Without a target it is an answer. */
    fetch_fine(fetcher, &o, "http://127.0.0.1:%u/empty", origin->port);
    ck_assert_uint_eq(o.status, 302);
    ck_assert_str_eq(o.body, "moved");
    outcome_free(&o);
    expect_end(fetcher, FETCH_RESOLVE_FAILED, "http://127.0.0.1:%u/missing", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(redirects_are_bounded)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher;

    config.max_redirects = 3;
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/1", origin->port);
    fetcher_destroy(fetcher);
    config.max_redirects = 2;
    fetcher = start_fetcher(&config);
    expect_bad(fetcher, origin, "/1", "more than 2 times");
    fetcher_destroy(fetcher);
    config.max_redirects = 0;
    fetcher = start_fetcher(&config);
    expect_bad(fetcher, origin, "/3", "more than 0 times");
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_first_hop_to_nowhere)
{
    static const char *const urls[] = {"http://10.0.0.1/", "http://167772161/", "http://[::1]/",
                                       "http://private.test/", "http://[::ffff:10.0.0.1]/"};
    struct fetcher *fetcher;

    names_use(&config, names);
    fetcher = start_fetcher(&config);
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++)
        expect_end(fetcher, FETCH_DENIED, "%s", urls[i]);
    fetcher_destroy(fetcher);
}
END_TEST

/* Two names for one machine are two origins; what is meant for one must not reach the other. */
START_TEST(secrets_stay_with_their_origin)
{
    static const char headers[] = "Authorization: Basic eA==\r\nCookie: a=b\r\nX-Other: c\r\n";
    struct line near[3] = {{.path = NULL}}, far[2] = {{.path = NULL}};
    char bytes[256];
    struct origin *first, *second;
    struct fetcher *fetcher;
    struct outcome o;
    char url[64];

    names_use(&config, names);
    far[0] = (struct line){.path = "/far", .bytes = FINAL};
    second = origin_start(far);
    snprintf(bytes, sizeof(bytes),
             "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: http://two.test:%u/far\r\n\r\n",
             second->port);
    near[0] = (struct line){.path = "/stay", .bytes = TO("/leave")};
    near[1] = (struct line){.path = "/leave", .bytes = bytes};
    first = origin_start(near);
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://one.test:%u/stay", first->port);
    fetch_with(fetcher, url, headers, &o);
    ck_assert_msg(o.error == FETCH_OK, "%d %s", o.error, o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    ck_assert_uint_eq(first->requests, 2);
    ck_assert_ptr_nonnull(strstr(first->first_request, "Authorization: Basic eA==\r\n"));
    ck_assert_ptr_nonnull(strstr(first->last_request, "Authorization: Basic eA==\r\n"));
    ck_assert_ptr_nonnull(strstr(first->last_request, "Cookie: a=b\r\n"));
    ck_assert_uint_eq(second->requests, 1);
    ck_assert_ptr_null(strstr(second->last_request, "Authorization"));
    ck_assert_ptr_null(strstr(second->last_request, "Cookie"));
    ck_assert_ptr_nonnull(strstr(second->last_request, "X-Other: c\r\n"));
    origin_stop(first);
    origin_stop(second);
}
END_TEST

START_TEST(each_response_on_the_way_is_shown_as_it_came)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    fetch_fine(fetcher, &o, "http://user@127.0.0.1:%u/cookie", origin->port);
    ck_assert_uint_eq(o.hops, 2);
    ck_assert_uint_eq(o.hop[0].status, 302);
    ck_assert_str_eq(o.hop[0].lines, "Set-Cookie: a=b\r\nConnection: Set-Cookie\r\n"
                                     "Content-Length: 0\r\nLocation: /folded\r\n");
    ck_assert_uint_eq(o.hop[0].heads_before, 0);
    ck_assert(o.hop[0].has_user);
    ck_assert_uint_eq(o.hop[1].status, 200);
    ck_assert_str_eq(o.hop[1].lines, "Content-Length: 4\r\nX: a\r\n b\r\n");
    ck_assert_uint_eq(o.hop[1].heads_before, 0);
    for (unsigned i = 0; i < 2; i++)
        ck_assert(o.hop[i].waited_us >= 0 && o.hop[i].waited_us <= o.total_us);
    outcome_free(&o);

    fetch_fine(fetcher, &o, "http://127.0.0.1:%u/4", origin->port);
    ck_assert_uint_eq(o.hops, 1);
    ck_assert(!o.hop[0].has_user);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* That the URL is the operator's, and has another Host, holds for its origin, and ends with it. */
START_TEST(a_configured_url_and_what_it_redirects_to)
{
    struct line away[] = {{.path = "/here", .bytes = TO("/away")},
                          {.path = "/away", .bytes = NULL},
                          {.path = "/end", .bytes = FINAL},
                          {.path = NULL}};
    struct line other[] = {{.path = "/", .bytes = FINAL}, {.path = NULL}};
    struct origin *origin, *denied = origin_start(other);
    struct fetcher *fetcher;
    struct outcome o;
    char answer[128], url[64];
    struct origin_route route;
    struct request request = {.client = OUTCOME_CLIENT, .route = &route};

    snprintf(answer, sizeof(answer), TO("http://127.0.0.1:%u/"), denied->port);
    away[1].bytes = answer;
    origin = origin_start(away);
    forbid_loopback();
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_DENIED, "http://127.0.0.1:%u/end", origin->port);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", origin->port);
    route = route_to(url, "site.test:81");
    for (unsigned i = 0; i < 2; i++) {
        request.url = span_str(i ? "http://client.test/here" : "http://client.test/end");
        outcome_init(&o);
        ck_assert(submit_request(fetcher, &request, &outcome_sink, &o, NULL));
        outcome_wait(&o);
        ck_assert_msg(o.error == (i ? FETCH_BAD_REDIRECT : FETCH_OK), "%d %s", o.error, o.sentence);
        ck_assert_ptr_nonnull(strstr(origin->last_request, "Host: site.test:81\r\n"));
        ck_assert_ptr_null(strstr(origin->last_request, "Host: 127"));
        outcome_free(&o);
    }
    ck_assert_uint_eq(origin_requests(origin), 3);
    ck_assert_uint_eq(origin_requests(denied), 0);
    fetcher_destroy(fetcher);
    origin_stop(origin);
    origin_stop(denied);
}
END_TEST

/* Where a redirect leads to another origin that is permitted, Host is that of the new URL. */
START_TEST(the_host_of_a_request_is_not_sent_elsewhere)
{
    struct line away[] = {{.path = "/", .bytes = NULL}, {.path = NULL}};
    struct line other[] = {{.path = "/end", .bytes = FINAL}, {.path = NULL}};
    struct origin *origin, *target = origin_start(other);
    struct fetcher *fetcher;
    struct outcome o;
    char answer[128], url[64], field[64];
    struct origin_route route;

    snprintf(answer, sizeof(answer), TO("http://127.0.0.1:%u/end"), target->port);
    away[0].bytes = answer;
    origin = origin_start(away);
    fetcher = start_fetcher(&config);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", origin->port);
    route = route_to(url, "site.test");
    snprintf(field, sizeof(field), "Host: 127.0.0.1:%u\r\n", target->port);
    outcome_init(&o);
    ck_assert(submit_request(fetcher,
                             &(struct request){.client = OUTCOME_CLIENT,
                                               .url = span_str("http://client.test/"),
                                               .route = &route},
                             &outcome_sink, &o, NULL));
    outcome_wait(&o);
    ck_assert_msg(o.error == FETCH_OK, "%d %s", o.error, o.sentence);
    ck_assert_ptr_nonnull(strstr(origin->last_request, "Host: site.test\r\n"));
    ck_assert_ptr_nonnull(strstr(target->last_request, field));
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
    origin_stop(target);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/redirect", &tc);

    tcase_add_test(tc, redirects_are_followed);
    tcase_add_test(tc, a_redirects_body_is_of_no_interest);
    tcase_add_test(tc, redirects_to_nowhere);
    tcase_add_test(tc, redirects_are_bounded);
    tcase_add_test(tc, a_first_hop_to_nowhere);
    tcase_add_test(tc, each_response_on_the_way_is_shown_as_it_came);
    tcase_add_test(tc, secrets_stay_with_their_origin);
    tcase_add_test(tc, a_configured_url_and_what_it_redirects_to);
    tcase_add_test(tc, the_host_of_a_request_is_not_sent_elsewhere);
    return suite;
}
