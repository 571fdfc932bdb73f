/* The members of a row of --origin: failover, and the way back. */
#include "origins/origin_route.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

static struct http_answer answer;

static void
begin_reverse(void)
{
    static char two[] = "two.test/=http://first.test, http://second.test/base/";
    static char *items[] = {two, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 1};
    http_begin();
}

/* All of a response with this status. */
static void
respond(const char *url, unsigned status, const char *body)
{
    struct scene_fetch *fetch = await_fetch(url);

    fetch->sink->begin(fetch->context);
    fetch->sink->response(
        fetch->context,
        &(struct fetch_response){.status = status, .lines = span_str(""), .waited_us = 1000});
    if (scene_head(fetch, status, "", (int64_t)strlen(body)) == FETCH_ABORT) {
        scene_done(fetch, FETCH_INTERNAL, "aborted");
        return;
    }
    ck_assert_int_eq(fetch->sink->body(fetch->context, body, strlen(body)), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
}

static void
send_to(int fd, const char *method, const char *path)
{
    char request[256];

    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: two.test\r\n\r\n", method, path);
    ck_assert(http_send(fd, request));
}

START_TEST(the_next_member_is_tried_if_no_connection_can_be_made)
{
    int fd;

    begin_reverse();
    fd = http_connect();
    send_to(fd, "GET", "/x");
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    ck_assert_str_eq(await_fetch("http://second.test/base/x")->host, "two.test");
    origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"miss\"}"), 1);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 0);
    ck_assert_uint_eq(scene_metric("origin_fetches{result=\"connect_failed\"}"), 1);
    /* The first one is left for a while. One request tries it where there is no other. */
    send_to(fd, "GET", "/y");
    origin_fails("http://second.test/base/y", FETCH_RESOLVE_FAILED, "unknown");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 1);
    for (unsigned i = 1; i < ORIGIN_ROUTE_LAST_FAILURES; i++) {
        send_to(fd, "GET", "/v");
        origin_fails("http://second.test/base/v", FETCH_CONNECT_TIMED_OUT, "silent");
        if (i == ORIGIN_ROUTE_LAST_FAILURES - 1)
            origin_fails("http://first.test/v", FETCH_CONNECT_TIMED_OUT, "silent, too");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, 504);
    }
    ck_assert_uint_eq(scene_fetches(), 0);
    /* Then the others get their response at once. */
    send_to(fd, "GET", "/w");
    origin_fails("down", FETCH_DOWN, "all are down");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 503);
    ck_assert_ptr_nonnull(strstr(answer.head, "\r\nRetry-After: 1\r\n"));
    ck_assert_ptr_nonnull(strstr(answer.head, "detail=down"));
    ck_assert_ptr_nonnull(strstr(answer.body, "all are down"));
    ck_assert_uint_eq(scene_metric("origin_fetches{result=\"down\"}"), 1);
    scene.now_us += ORIGIN_ROUTE_TRIAL_US;
    send_to(fd, "GET", "/w");
    origin_responds("http://second.test/base/w", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    close(fd);
    front_server_stop();
}
END_TEST

/* After its time one request tries a member, and the others follow if that has a response. */
START_TEST(a_member_that_has_recovered_is_returned_to)
{
    int fd, other;

    begin_reverse();
    fd = http_connect();
    other = http_connect();
    send_to(fd, "GET", "/a");
    origin_fails("http://first.test/a", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/a", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    for (unsigned i = 0; i < 3; i++) {
        int64_t left_us = ORIGIN_ROUTE_LEFT_US << i;

        scene.now_us += left_us - SECOND;
        send_to(fd, "GET", "/b");
        origin_responds("http://second.test/base/b", "", BODY_INLINE, "page", 4);
        http_expect_page(fd, &answer, "page");
        scene.now_us += SECOND;
        send_to(fd, "GET", "/c");
        (void)await_fetch("http://first.test/c");
        send_to(other, "GET", "/d");
        origin_responds("http://second.test/base/d", "", BODY_INLINE, "page", 4);
        http_expect_page(other, &answer, "page");
        if (i == 2)
            break;
        origin_fails("http://first.test/c", FETCH_CONNECT_FAILED, "refused");
        origin_responds("http://second.test/base/c", "", BODY_INLINE, "page", 4);
        http_expect_page(fd, &answer, "page");
    }
    origin_responds("http://first.test/c", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    send_to(other, "GET", "/e");
    origin_responds("http://first.test/e", "", BODY_INLINE, "page", 4);
    http_expect_page(other, &answer, "page");
    close(other);
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(a_member_that_does_not_serve_is_left)
{
    static const unsigned statuses[] = {502, 503, 504};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        int fd;

        begin_reverse();
        fd = http_connect();
        send_to(fd, "GET", "/x");
        respond("http://first.test/x", statuses[i], "sorry");
        respond("http://second.test/base/x", 200, "page");
        http_expect_page(fd, &answer, "page");
        send_to(fd, "HEAD", "/y");
        respond("http://second.test/base/y", 404, "");
        ck_assert(http_receive(fd, &answer, true));
        ck_assert_uint_eq(answer.status, 404);
        /* The last one's response is what there is. */
        send_to(fd, "OPTIONS", "/z");
        respond("http://second.test/base/z", statuses[i], "last");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, statuses[i]);
        ck_assert_str_eq(answer.body, "last");
        /* What may have had an effect is not repeated. */
        scene.now_us += ORIGIN_ROUTE_LONGEST_US;
        send_to(fd, "DELETE", "/z");
        respond("http://first.test/z", statuses[i], "only");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, statuses[i]);
        ck_assert_uint_eq(scene_fetches(), 0);
        close(fd);
        front_server_stop();
    }
}
END_TEST

START_TEST(a_member_that_hangs_is_left)
{
    static char row[] = "two.test/=http://first.test,http://second.test,http://third.test";
    static char *items[] = {row, NULL};
    struct scene_fetch *fetch;
    int fd;

    front_options.origin = (struct option_list){.items = items, .count = 1};
    http_begin();
    fd = http_connect();
    /* A fetch that had no turn says nothing about the member. */
    send_to(fd, "GET", "/q");
    origin_fails("http://first.test/q", FETCH_TIMED_OUT, "in the queue");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 504);
    for (unsigned i = 0; i < 2; i++) {
        static const char *const urls[] = {"http://first.test/x", "http://second.test/x"};

        if (i == 0)
            send_to(fd, "GET", "/x");
        fetch = await_fetch(urls[i]);
        fetch->sink->begin(fetch->context);
        scene_done(fetch, FETCH_TIMED_OUT, "silent");
    }
    /* A third one might take as long. */
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 504);
    send_to(fd, "GET", "/y");
    origin_responds("http://third.test/y", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    /* One that has been sent, and has broken, is repeated if that is harmless. */
    scene.now_us += ORIGIN_ROUTE_LEFT_US;
    send_to(fd, "GET", "/z");
    origin_fails("http://first.test/z", FETCH_ORIGIN_BROKE, "closed");
    origin_responds("http://second.test/z", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    scene.now_us += 2 * ORIGIN_ROUTE_LEFT_US;
    send_to(fd, "GET", "/w");
    origin_responds("http://first.test/w", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    send_to(fd, "POST", "/z");
    origin_fails("http://first.test/z", FETCH_ORIGIN_BROKE, "closed");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    /* It may have closed a connection that was kept: that is no failure of the member. */
    send_to(fd, "GET", "/w");
    origin_responds("http://first.test/w", "", BODY_INLINE, "page", 4);
    http_expect_page(fd, &answer, "page");
    ck_assert_uint_eq(scene_fetches(), 0);
    close(fd);
    front_server_stop();
}
END_TEST

/* Nothing was sent of it, whatever its method. */
START_TEST(a_request_with_a_body_goes_on_if_nothing_was_sent)
{
    static const char request[] =
        "POST /x HTTP/1.1\r\nHost: two.test\r\nContent-Length: 1\r\n\r\na";
    struct scene_fetch *fetch;
    char byte[4];
    size_t len;
    int fd;

    begin_reverse();
    fd = http_connect();
    ck_assert(http_send(fd, request));
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    fetch = await_fetch("http://second.test/base/x");
    ck_assert_str_eq(fetch->method, "POST");
    ck_assert_int_eq(fetch->body.length, 1);
    AWAIT(scene_supply(fetch, byte, sizeof(byte), &len) == FETCH_SUPPLIED);
    ck_assert(len == 1 && byte[0] == 'a');
    origin_responds("http://second.test/base/x", "", BODY_INLINE, "done", 4);
    http_expect_page(fd, &answer, "done");
    /* Of this one a part may have been. */
    ck_assert(http_send(fd, request));
    fetch = await_fetch("http://second.test/base/x");
    AWAIT(scene_supply(fetch, byte, sizeof(byte), &len) == FETCH_SUPPLIED);
    origin_fails("http://second.test/base/x", FETCH_CONNECT_FAILED, "refused");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 502);
    ck_assert_uint_eq(scene_fetches(), 0);
    close(fd);
    front_server_stop();
}
END_TEST

#define EXPIRED "Cache-Control: max-age=0\r\nETag: \"1\"\r\n"

START_TEST(the_next_member_is_preferred_to_a_stale_response)
{
    struct scene_fetch *fetch;
    int fd;

    begin_reverse();
    fd = http_connect();
    send_to(fd, "GET", "/x");
    origin_responds("http://first.test/x", EXPIRED, BODY_INLINE, "old", 3);
    http_expect_page(fd, &answer, "old");
    /* Where there is no connection to any of them, it is the stale one that there is. */
    send_to(fd, "GET", "/x");
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    fetch = await_fetch("http://second.test/base/x");
    ck_assert_ptr_nonnull(strstr(fetch->fields, "If-None-Match: \"1\""));
    origin_fails("http://second.test/base/x", FETCH_TIMED_OUT, "silent");
    http_expect_page(fd, &answer, "old");
    ck_assert_uint_eq(scene_fetches(), 0);
    ck_assert_uint_eq(scene_metric("requests{outcome=\"stale\"}"), 1);
    scene.now_us += ORIGIN_ROUTE_LEFT_US;
    send_to(fd, "GET", "/x");
    origin_fails("http://first.test/x", FETCH_CONNECT_FAILED, "refused");
    origin_responds("http://second.test/base/x", EXPIRED, BODY_INLINE, "new", 3);
    http_expect_page(fd, &answer, "new");
    ck_assert_uint_eq(scene_metric("requests{outcome=\"failure\"}"), 0);
    close(fd);
    front_server_stop();
}
END_TEST

/* A reference names the page as the client knows it, or as the member does. */
START_TEST(a_write_invalidates_what_its_response_names)
{
    static const char *const locations[] = {
        "Location: /base/x\r\n", "Location: http://second.test/base/x\r\n",
        "Content-Location: http://first.test/x#y\r\n", "Location: http://two.test/x\r\n",
        "Content-Location: x\r\n"};

    for (size_t i = 0; i < sizeof(locations) / sizeof(locations[0]); i++) {
        int fd;

        begin_reverse();
        fd = http_connect();
        send_to(fd, "GET", "/x");
        origin_responds("http://first.test/x", MAX_AGE, BODY_INLINE, "old", 3);
        http_expect_page(fd, &answer, "old");
        send_to(fd, "POST", "/p");
        origin_fails("http://first.test/p", FETCH_CONNECT_FAILED, "refused");
        origin_responds("http://second.test/base/p", locations[i], BODY_INLINE, "done", 4);
        http_expect_page(fd, &answer, "done");
        send_to(fd, "GET", "/x");
        origin_responds("http://second.test/base/x", MAX_AGE, BODY_INLINE, "new", 3);
        http_expect_page(fd, &answer, "new");
        close(fd);
        front_server_stop();
    }
}
END_TEST

/* One that no member has got goes on. Without a response it may have been done. */
START_TEST(a_write_that_a_member_may_have_got_goes_to_no_other)
{
    static const char first[] = "http://first.test/x", second[] = "http://second.test/base/x";
    static const struct {
        enum fetch_error error; /* FETCH_OK: the member's status is 503 */
        unsigned status;        /* that the client gets */
        const char *then;       /* where the page is fetched then; NULL: it is still stored */
    } rows[] = {
        {FETCH_CONNECT_FAILED, 404, NULL},
        {FETCH_ORIGIN_BROKE, 502, first},
        {FETCH_TIMED_OUT, 504, second},
        {FETCH_OK, 503, NULL},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        int fd;

        begin_reverse();
        fd = http_connect();
        send_to(fd, "GET", "/x");
        origin_responds(first, MAX_AGE, BODY_INLINE, "old", 3);
        http_expect_page(fd, &answer, "old");
        send_to(fd, "DELETE", "/x");
        if (rows[i].error) {
            struct scene_fetch *fetch = await_fetch(first);

            fetch->sink->begin(fetch->context);
            scene_done(fetch, rows[i].error, "failed");
        } else {
            respond(first, 503, "busy");
        }
        if (rows[i].error == FETCH_CONNECT_FAILED)
            respond(second, 404, "none");
        ck_assert(http_receive(fd, &answer, false));
        ck_assert_uint_eq(answer.status, rows[i].status);
        ck_assert_uint_eq(scene_fetches(), 0);
        send_to(fd, "GET", "/x");
        if (rows[i].then)
            respond(rows[i].then, 200, "new");
        http_expect_page(fd, &answer, rows[i].then ? "new" : "old");
        close(fd);
        front_server_stop();
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: members of a reverse proxy");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, the_next_member_is_tried_if_no_connection_can_be_made);
    tcase_add_test(tcase, a_member_that_has_recovered_is_returned_to);
    tcase_add_test(tcase, a_member_that_does_not_serve_is_left);
    tcase_add_test(tcase, a_member_that_hangs_is_left);
    tcase_add_test(tcase, a_request_with_a_body_goes_on_if_nothing_was_sent);
    tcase_add_test(tcase, the_next_member_is_preferred_to_a_stale_response);
    tcase_add_test(tcase, a_write_invalidates_what_its_response_names);
    tcase_add_test(tcase, a_write_that_a_member_may_have_got_goes_to_no_other);
    suite_add_tcase(suite, tcase);
    return suite;
}
