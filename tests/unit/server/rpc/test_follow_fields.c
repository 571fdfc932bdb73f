/* The fields that are sent to where redirects lead. */
#include "tests/unit/server/rpc/follow.h"

#define DEFAULTS "User-Agent: agent/1\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"

static char agent[] = "agent/1";

static void
set_up_agent(void)
{
    front_options.user_agent = agent;
    follow_set_up();
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
    expect_page_of(fd, 1, PROXY_MISS, C, "page");
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
    expect_page_of(fd, 1, PROXY_BYPASS, "http://host/d", "page");
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
    expect_page_of(fd, 1, PROXY_BYPASS, C, "page");
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
    expect_page_of(fd, 1, PROXY_BYPASS, C, "page");
    ck_assert_uint_eq(scene_stats().pages, 0);
    close(fd);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/rpc: fields behind redirects");
    TCase *tests = tcase_create("fields");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up_agent, follow_tear_down);
    tcase_add_test(tests, fields_of_the_proxy);
    tcase_add_loop_test(tests, secrets_are_sent_to_the_first_origin_alone, 0, 3);
    tcase_add_test(tests, fields_of_the_client_come_before_ours);
    tcase_add_test(tests, what_secrets_lead_to_is_the_clients_alone);
    suite_add_tcase(suite, tests);
    return suite;
}
