/* Bodies of requests over HTTP. The origin is the test's. */
#include "tests/unit/net/stream.h"
#include "tests/unit/server/http/http_scene.h"

static struct http_answer answer;

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
    scene_response(fetch, "", false);
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

    http_begin();
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

    http_begin();
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

    http_begin();
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

    http_begin();
    fd = http_connect();
    ck_assert(http_send(fd, REQUEST("HEAD", "Content-Length: 0\r\n")));
    fetch = await_fetch(URL);
    ck_assert_int_eq(fetch->body.kind, REQUEST_BODY_NONE);
    scene_response(fetch, "", false);
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

    http_begin();
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

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: bodies of HTTP requests");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, bodies_are_passed_on);
    tcase_add_test(tcase, continue_is_sent_before_a_body_that_waits_for_it);
    tcase_add_test(tcase, bodies_that_break);
    tcase_add_test(tcase, a_length_of_zero_is_no_body);
    tcase_add_test(tcase, an_early_response);
    suite_add_tcase(suite, tcase);
    return suite;
}
