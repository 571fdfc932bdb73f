/*
 * Requests that wait for the check of their user: what they have sent is kept, and not passed on;
 * whatever ends them meanwhile gives the check up.
 */
#include "server/users/users.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"
#include "tests/unit/server/users/made_hash.h"

#define QUICK "Proxy-Authorization: Basic cXVpY2s6cA==\r\n" /* quick:p */
#define SLOW "Proxy-Authorization: Basic c2xvdzpw\r\n"      /* slow:p */
#define WRONG "Proxy-Authorization: Basic c2xvdzpx\r\n"     /* slow:q */

static struct http_answer answer;
static struct users *users;

/* The checks of "slow" take a while. */
static void
begin(void)
{
    static char file[] = "users", hash[2][CRYPT_OUTPUT_SIZE];
    const struct users_config config = {.timeout_us = 60 * SECOND, .ttl_us = 60 * SECOND};
    struct buf text, why;

    buf_init(&text, 4096);
    buf_init(&why, 4096);
    buf_printf(&text, "quick:%s\nslow:%s\n", make_quick_hash(hash[0], "p"),
               make_hash(hash[1], "$2b$", 11, "p"));
    front_options.users = file;
    front_options.auth_realm = file;
    http_begin();
    users = front_service.users = users_create(&config);
    ck_assert_ptr_nonnull(users);
    service_config(&front_service)->users = user_file_read(buf_span(&text), "f", &why);
    ck_assert_msg(service_config(&front_service)->users, "%s", buf_str(&why));
    buf_free(&text);
    buf_free(&why);
}

static void
end(int64_t timeout_us)
{
    (void)front_server_halt(timeout_us);
    front_server_free();
    users_destroy(users);
}

static uint64_t
pending(void)
{
    struct users_stats stats;

    users_get_stats(users, &stats);
    return stats.pending;
}

START_TEST(a_body_is_held_until_the_user_is_accepted)
{
    static const char *const requests[] = {
        REQUEST("POST", SLOW "Expect: 100-continue\r\nContent-Length: 5\r\n") "hello",
        REQUEST("POST", SLOW "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n") "5\r\nhello"
                                                                                       "\r\n0\r\n\r\n",
        REQUEST("POST", SLOW "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n") "0\r\n\r\n",
    };
    struct scene_fetch *fetch;
    char got[16] = "";
    size_t len = 0, total = 0;
    int fd;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, requests[_i]));
    AWAIT(pending() == 1);
    ck_assert_ptr_null(scene_find(URL));
    fetch = await_fetch(URL);
    ck_assert_uint_eq(pending(), 0);
    while (scene_supply(fetch, got + total, sizeof(got) - total, &len) != FETCH_SUPPLY_END)
        total += len, len = 0;
    ck_assert_uint_eq(total, _i == 2 ? 0 : 5);
    scene_response(fetch, "", false);
    (void)scene_head(fetch, 204, "", 0);
    scene_done(fetch, FETCH_OK, "");
    ck_assert(http_receive(fd, &answer, true));
    ck_assert_uint_eq(answer.status, 100);
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 204);
    close(fd);
    end(60 * SECOND);
}
END_TEST

START_TEST(a_refused_user_sends_nothing_on)
{
    int fd;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("POST", WRONG "Expect: 100-continue\r\nContent-Length: 5\r\n")));
    http_expect_status(fd, &answer, 407);
    ck_assert(http_has(&answer, "Proxy-Authenticate: Basic realm=\"users\", charset=\"UTF-8\""));
    ck_assert(http_has(&answer, "Connection: close"));
    close(fd);
    end(60 * SECOND);
}
END_TEST

/* `_i`: how a client leaves, and whether it has sent more before. */
START_TEST(a_client_that_leaves)
{
    static const char *const requests[] = {
        REQUEST("GET", SLOW),
        REQUEST("GET", SLOW) REQUEST("GET", QUICK),
        REQUEST("POST", SLOW "Content-Length: 5\r\n") "he",
        "CONNECT origin.test:443 HTTP/1.1\r\nHost: origin.test\r\n" SLOW "\r\nhello",
    };
    const struct linger none = {.l_onoff = 1};
    int fd;

    begin();
    fd = http_connect();
    ck_assert(http_send(fd, requests[_i % 4]));
    AWAIT(pending() == 1);
    if (_i < 4)
        ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)), 0);
    close(fd);
    AWAIT(pending() == 0);
    /* Of a body that its client may have sent whole, the end is seen behind it. */
    if (_i == 6) {
        struct scene_fetch *fetch = await_fetch(URL);
        char got[8];
        size_t len;

        AWAIT(scene_supply(fetch, got, sizeof(got), &len) == FETCH_SUPPLY_FAILED);
        scene_done(fetch, FETCH_BODY_FAILED, "no body");
    }
    fd = http_connect();
    ck_assert(http_send(fd, "GET " URL "2 HTTP/1.1\r\nHost: x\r\n" QUICK "\r\n"));
    origin_answers(URL "2", 200, "", "hello");
    http_expect_page(fd, &answer, "hello");
    ck_assert_ptr_null(scene_find(URL));
    close(fd);
    end(60 * SECOND);
}
END_TEST

/* Connections are cut that wait for a check. */
START_TEST(the_server_ends)
{
    int fd[3];

    begin();
    for (unsigned i = 0; i < 3; i++) {
        fd[i] = http_connect();
        ck_assert(http_send(fd[i], REQUEST("GET", SLOW)));
    }
    AWAIT(pending() == 3);
    end(0);
    for (unsigned i = 0; i < 3; i++)
        close(fd[i]);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: users over HTTP");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_loop_test(tcase, a_body_is_held_until_the_user_is_accepted, 0, 3);
    tcase_add_test(tcase, a_refused_user_sends_nothing_on);
    tcase_add_loop_test(tcase, a_client_that_leaves, 0, 8);
    tcase_add_test(tcase, the_server_ends);
    suite_add_tcase(suite, tcase);
    return suite;
}
