/* URLs over RPC of a server that is a reverse proxy: they are matched by its rows. */
#include "proxy.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

static void
set_up(void)
{
    static char api[] = "site.test/api=http://api.test:81/v2", root[] = "site.test/=http://a.test",
                two[] = "two.test/=http://first.test,http://second.test/base/ host=origin";
    static char *items[] = {api, root, two, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 3};
    front_options.max_redirects = 10;
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_NONE);
}

static void
tear_down(void)
{
    front_server_stop();
}

/* Receives a page. */
static void
expect_result(int fd, const char *body)
{
    proxy_fetch_result result;

    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, strlen(body));
    ck_assert(memcmp(result.proxy_fetch_result_u.page.body.body_val, body, strlen(body)) == 0);
    free_page(&result);
}

/* The same from this URL. */
static void
expect_final_url(int fd, const char *url)
{
    proxy_fetch_result result;
    const proxy_url *final_url = &result.proxy_fetch_result_u.page.final_url;

    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_msg(
        span_equal(span_of(final_url->proxy_url_val, final_url->proxy_url_len), span_str(url)),
        "%.*s", (int)final_url->proxy_url_len, final_url->proxy_url_val);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, 4);
    free_page(&result);
}

START_TEST(urls_are_matched_by_the_rows)
{
    static const struct {
        const char *url, *fetched, *host;
    } cases[] = {
        {"http://site.test/api/x?y", "http://api.test:81/v2/x?y", "site.test"},
        {"HTTP://Site.Test.:80/x", "http://a.test/x", "site.test"},
        {"https://site.test:444/x", "http://a.test/x", "site.test:444"},
        {"http://site.test", "http://a.test/", "site.test"},
        {"http://site.test?q#f", "http://a.test/?q", "site.test"},
        {"http://site.test/api/%2e%2e/x", "http://a.test/x", "site.test"},
        {"http://two.test/x", "http://first.test/x", ""},
    };
    int fd = front_connect();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene_fetch *fetch;

        send_get(fd, 1, cases[i].url, PROXY_FLAG_NO_STORE);
        fetch = await_fetch(cases[i].fetched);
        ck_assert_str_eq(fetch->host, cases[i].host);
        ck_assert_uint_ne(fetch->flags & REQUEST_CONFIGURED, 0);
        origin_responds(cases[i].fetched, "", BODY_INLINE, "page", 4);
        expect_result(fd, "page");
    }
    close(fd);
}
END_TEST

/* Of both versions: an address inside, another host, and a path that leads out of its row. */
START_TEST(other_urls_are_refused)
{
    static const char *const urls[] = {
        "http://api.test:81/v2/x",
        "http://127.0.0.1/",
        "http://foreign.test/",
        "http://site.test/api/..%2fx",
        "http://u@site.test/",
        "ftp://site.test/",
        "http://site.test/api/..;/x",
        "",
        "http://",
    };
    int fd = front_connect();

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        proxy_fetch_result result;

        send_get(fd, 1, urls[i], 0);
        receive_page(fd, 1, PROXY_DENIED, &result);
        /* The operator's --allow-net would change nothing. */
        ck_assert_ptr_nonnull(strstr(result.proxy_fetch_result_u.sentence, "this server"));
        free_page(&result);
        send_fetch(fd, 2, urls[i], strlen(urls[i]));
        ck_assert_int_ne(receive_status(fd, 2), SUCCESS);
    }
    ck_assert_uint_eq(scene.submitted, 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"),
                      2 * sizeof(urls) / sizeof(urls[0]));
    close(fd);
}
END_TEST

/* What a member calls its own URLs is the client's. */
START_TEST(redirects_of_members_stay_in_the_row)
{
    static const struct {
        const char *location, *fetched, *final_url;
    } cases[] = {
        {"http://api.test:81/v2/y?z", "http://api.test:81/v2/y?z", "http://site.test/api/y?z"},
        {"//api.test:81/v2/y", "http://api.test:81/v2/y", "http://site.test/api/y"},
        {"/v2/y", "http://api.test:81/v2/y", "http://site.test/api/y"},
        {"y", "http://api.test:81/v2/y", "http://site.test/api/y"},
        {"http://site.test/api/y", "http://api.test:81/v2/y", "http://site.test/api/y"},
        /* Another row, */
        {"http://site.test/y", "http://a.test/y", "http://site.test/y"},
        {"http://TWO.test:80/y", "http://first.test/y", "http://two.test:80/y"},
    };
    int fd = front_connect();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene_fetch *fetch;

        send_get(fd, 1, "http://site.test/api/x", PROXY_FLAG_NO_STORE);
        origin_redirects("http://api.test:81/v2/x", 302, cases[i].location, "");
        fetch = await_fetch(cases[i].fetched);
        ck_assert_uint_ne(fetch->flags & REQUEST_CONFIGURED, 0);
        origin_answers(cases[i].fetched, 200, "", "page");
        expect_final_url(fd, cases[i].final_url);
    }
    close(fd);
}
END_TEST

/* It is fetched as what no row serves: not with the permission that a member has. */
START_TEST(redirects_may_lead_out_of_the_rows)
{
    static const char *const urls[] = {"https://foreign.test/v2", "http://api.test:81/v3",
                                       "http://10.0.0.1/"};
    int fd = front_connect();

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct scene_fetch *fetch;

        send_get(fd, 1, "http://site.test/api/x", PROXY_FLAG_NO_STORE);
        origin_redirects("http://api.test:81/v2/x", 302, urls[i], "");
        fetch = await_fetch(urls[i]);
        ck_assert_uint_eq(fetch->flags & REQUEST_CONFIGURED, 0);
        ck_assert_ptr_null(fetch->request->route);
        ck_assert(!request_is_owned(fetch->request));
        ck_assert_str_eq(fetch->host, "");
        /* And perhaps back. */
        origin_redirects(urls[i], 302, "http://site.test/x", "");
        fetch = await_fetch("http://a.test/x");
        ck_assert_uint_ne(fetch->flags & REQUEST_CONFIGURED, 0);
        ck_assert(request_is_owned(fetch->request));
        origin_answers("http://a.test/x", 200, "", "page");
        expect_final_url(fd, "http://site.test/x");
    }
    close(fd);
}
END_TEST

/* What the client had sent to the site is sent to other members of its rows, and to no other. */
START_TEST(secrets_stay_in_the_row)
{
    int fd = front_connect();

    send_get_with(fd, 1, "http://site.test/api/x", "Cookie: a=b\r\n");
    origin_redirects("http://api.test:81/v2/x", 302, "http://api.test:81/v2/y", "");
    ck_assert_ptr_nonnull(strstr(await_fetch("http://api.test:81/v2/y")->fields, "Cookie: a=b"));
    origin_redirects("http://api.test:81/v2/y", 302, "http://site.test/z", "");
    ck_assert_ptr_nonnull(strstr(await_fetch("http://a.test/z")->fields, "Cookie: a=b"));
    origin_redirects("http://a.test/z", 302, "http://two.test/", "");
    ck_assert_ptr_null(strstr(await_fetch("http://first.test/")->fields, "Cookie"));
    origin_answers("http://first.test/", 200, "", "page");
    expect_final_url(fd, "http://two.test/");
    close(fd);
}
END_TEST

/* The redirect and what it leads to are each stored under the client's URL. */
START_TEST(redirects_in_a_row_are_stored)
{
    int fd = front_connect();

    send_get(fd, 1, "http://site.test/api/x", 0);
    origin_redirects("http://api.test:81/v2/x", 301, "y", "");
    origin_answers("http://api.test:81/v2/y", 200, MAX_AGE, "page");
    expect_final_url(fd, "http://site.test/api/y");
    send_get(fd, 1, "http://site.test/api/x", 0);
    expect_final_url(fd, "http://site.test/api/y");
    ck_assert_uint_eq(scene.submitted, 2);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str("http://site.test/api/x")), 1);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str("http://site.test/api/y")), 1);
    close(fd);
}
END_TEST

/* With the URL of the member it would be longer than may be fetched. */
START_TEST(a_url_that_is_too_long)
{
    static const char begin[] = "http://site.test/api/";
    char url[PROXY_MAX_URL];
    proxy_fetch_result result;
    int fd = front_connect();

    memset(url, 'x', sizeof(url) - 1);
    memcpy(url, begin, sizeof(begin) - 1);
    url[sizeof(url) - 1] = '\0';
    send_get(fd, 1, url, 0);
    receive_page(fd, 1, PROXY_BAD_URL, &result);
    ck_assert_str_eq(result.proxy_fetch_result_u.sentence, "the URL is longer than 8,192 bytes");
    free_page(&result);
    close(fd);
}
END_TEST

/* They fail over, and are stored under the client's URL. */
START_TEST(members_are_tried)
{
    int fd = front_connect();

    send_get(fd, 1, "http://two.test/x", 0);
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "page", 4);
    expect_result(fd, "page");
    send_get(fd, 1, "http://two.test:80/y/../x", 0);
    expect_result(fd, "page");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"hit\"}"), 1);
    ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str("http://two.test/x")), 1);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: rows over RPC");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, urls_are_matched_by_the_rows);
    tcase_add_test(tcase, other_urls_are_refused);
    tcase_add_test(tcase, redirects_of_members_stay_in_the_row);
    tcase_add_test(tcase, redirects_may_lead_out_of_the_rows);
    tcase_add_test(tcase, secrets_stay_in_the_row);
    tcase_add_test(tcase, redirects_in_a_row_are_stored);
    tcase_add_test(tcase, a_url_that_is_too_long);
    tcase_add_test(tcase, members_are_tried);
    suite_add_tcase(suite, tcase);
    return suite;
}
