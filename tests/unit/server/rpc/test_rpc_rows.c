/* URLs over RPC of a server that is a reverse proxy: they are matched by its rows. */
#include "proxy.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

static void
set_up(void)
{
    static char api[] = "site.test/api=http://api.test:81/v2", root[] = "site.test/=http://a.test",
                two[] = "two.test/=http://first.test,http://second.test/base/ host=origin";
    static char *items[] = {api, root, two, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 3};
    front_server_start(&(struct scene_options){.capacity_pages = 10}, VICTIMS_NONE);
}

static void
tear_down(void)
{
    front_server_stop();
}

static void
expect_result(int fd, const char *body)
{
    proxy_fetch_result result;

    receive_page(fd, 1, PROXY_OK, &result);
    ck_assert_uint_eq(result.proxy_fetch_result_u.page.body.body_len, strlen(body));
    ck_assert(memcmp(result.proxy_fetch_result_u.page.body.body_val, body, strlen(body)) == 0);
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

/* No client gets the URL of a member. */
START_TEST(the_final_url_is_one_of_the_clients)
{
    static const struct {
        const char *led_to, *final_url;
    } cases[] = {
        {"http://api.test:81/v2/x", "http://site.test/api/x"},
        {"http://api.test:81/v2/y?z", "http://site.test/api/y?z"},
        {"http://api.test:81/v3", "http://site.test/api/x"},
        {"https://foreign.test/v2", "https://foreign.test/v2"},
    };
    int fd = front_connect();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        proxy_fetch_result result;
        const proxy_url *final_url = &result.proxy_fetch_result_u.page.final_url;
        struct scene_fetch *fetch;

        send_get(fd, 1, "http://site.test/api/x", PROXY_FLAG_NO_STORE);
        fetch = await_fetch("http://api.test:81/v2/x");
        snprintf(fetch->url, sizeof(fetch->url), "%s", cases[i].led_to);
        origin_responds(cases[i].led_to, "", BODY_INLINE, "page", 4);
        receive_page(fd, 1, PROXY_OK, &result);
        ck_assert(span_equal(span_of(final_url->proxy_url_val, final_url->proxy_url_len),
                             span_str(cases[i].final_url)));
        free_page(&result);
    }
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
    ck_assert_uint_eq(cache_purge(scene.cache, span_str("http://two.test/x")), 1);
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
    tcase_add_test(tcase, the_final_url_is_one_of_the_clients);
    tcase_add_test(tcase, a_url_that_is_too_long);
    tcase_add_test(tcase, members_are_tried);
    suite_add_tcase(suite, tcase);
    return suite;
}
