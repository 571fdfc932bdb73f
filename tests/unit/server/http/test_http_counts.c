/* What the metrics count of requests, by front, status, outcome and bytes. */
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define URL "http://origin.test/page"
#define REQUEST(method, url, lines) method " " url " HTTP/1.1\r\nHost: origin.test\r\n" lines "\r\n"
#define ETAG "ETag: \"one\"\r\n"

static const struct scene_options defaults = {.max_body = 4 * MIB};
static struct http_answer answer;

static void
send_request(int fd, const char *request)
{
    ck_assert(http_send(fd, request));
}

START_TEST(responses_are_counted_by_status_and_outcome)
{
    size_t page;
    int fd;

    front_server_start(&defaults, VICTIMS_ALL);
    fd = http_connect();
    send_request(fd, REQUEST("GET", URL, ""));
    origin_responds(URL, MAX_AGE ETAG "Content-Length: 5\r\n", BODY_INLINE, "hello", 5);
    http_expect_status(fd, &answer, 200);
    http_expect_hit(fd, URL, "hello", 5);
    scene_expect_metric("requests{outcome=\"miss\"}", 1);
    scene_expect_metric("requests{outcome=\"hit\"}", 1);
    scene_expect_metric("hit_duration_microseconds_count", 1);
    scene_expect_metric("miss_duration_microseconds_count", 1);
    scene_expect_metric("origin_fetches{result=\"ok\"}", 1);
    scene_expect_metric("front_requests{front=\"http\"}", 2);
    scene_expect_metric("http_responses{class=\"2xx\"}", 2);
    /* Hits without a body, or with a part of it. */
    send_request(fd, REQUEST("GET", URL, "If-None-Match: \"one\"\r\n"));
    http_expect_status(fd, &answer, 304);
    send_request(fd, REQUEST("HEAD", URL, ""));
    ck_assert(http_receive(fd, &answer, true));
    send_request(fd, REQUEST("GET", URL, "Range: bytes=1-2\r\n"));
    http_expect_status(fd, &answer, 206);
    scene_expect_metric("requests{outcome=\"hit\"}", 4);
    scene_expect_metric("http_responses{class=\"3xx\"}", 1);
    scene_expect_metric("http_responses{class=\"2xx\"}", 4);
    scene_expect_metric("served_bytes{source=\"cache\"}", 5 + 2);
    scene_expect_metric("served_bytes{source=\"origin\"}", 5);
    scene_expect_metric("front_body_bytes{front=\"http\"}", 5 + 5 + 2);
    /* Pages of the proxy's own. */
    send_request(fd, REQUEST("GET", "http://origin.test/gone", ""));
    origin_fails("http://origin.test/gone", FETCH_TIMED_OUT, "nothing came");
    http_expect_status(fd, &answer, 504);
    page = answer.body_len;
    send_request(fd, "nonsense\r\n\r\n");
    http_expect_status(fd, &answer, 400);
    page += answer.body_len;
    close(fd);
    scene_expect_metric("requests{outcome=\"failure\"}", 1);
    scene_expect_metric("origin_fetches{result=\"timed_out\"}", 1);
    scene_expect_metric("http_responses{class=\"4xx\"}", 1);
    scene_expect_metric("http_responses{class=\"5xx\"}", 1);
    scene_expect_metric("front_requests{front=\"http\"}", 7);
    scene_expect_metric("front_body_bytes{front=\"http\"}", 5 + 5 + 2 + page);
    scene_expect_metric("served_bytes{source=\"cache\"}", 5 + 2);
    front_server_stop();
}
END_TEST

/* The first kilobyte of an object that has not come whole. */
START_TEST(a_range_that_is_answered_before_the_end_of_its_object_is_a_miss)
{
    struct scene_fetch *fetch;
    int fd;

    front_server_start(&defaults, VICTIMS_ALL);
    fd = http_connect();
    send_request(fd, REQUEST("GET", URL, "Range: bytes=0-999\r\n"));
    fetch = await_fetch(URL);
    scene_response(fetch, MAX_AGE ETAG "Content-Length: 5000\r\n", false);
    ck_assert_int_eq(scene_head(fetch, 200, MAX_AGE ETAG "Content-Length: 5000\r\n", 5000),
                     FETCH_CONTINUE);
    ck_assert_int_eq(scene_body(fetch, 2000), FETCH_CONTINUE);
    http_expect_status(fd, &answer, 206);
    ck_assert_uint_eq(answer.body_len, 1000);
    AWAIT(scene_metric("requests{outcome=\"miss\"}") == 1);
    scene_expect_metric("http_responses{class=\"2xx\"}", 1);
    scene_expect_metric("served_bytes{source=\"origin\"}", 1000);
    scene_body(fetch, 3000);
    scene_done(fetch, FETCH_OK, "");
    close(fd);
    front_server_stop();
}
END_TEST

/*
 * A response ends for its client before the fetch does, which is not cancelled then: the connection
 * to the origin would be lost with it, or what has come of an object that is stored.
 */
START_TEST(a_fetch_whose_response_is_whole_is_not_cancelled)
{
    static const struct {
        const char *method, *lines, *fields;
        unsigned status;
        long long length;
        size_t sent, want;
    } cases[] = {
        {"HEAD", "", "Content-Length: 5000000\r\n", 200, 5000000, 0, 200},
        {"GET", "", "", 204, -1, 0, 204},
        {"GET", "Range: bytes=0-9\r\n", MAX_AGE "Content-Length: 5000\r\n", 200, 5000, 5000, 206},
        {"GET", "Range: bytes=0-9\r\n", MAX_AGE "Content-Length: 2000000\r\n", 200, 2000000, 10,
         206},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct scene_fetch *fetch;
        char request[256];
        int fd;

        front_server_start(&defaults, VICTIMS_ALL);
        front_store(URL, MAX_AGE, BODY_INLINE, "hello", 5);
        fd = http_connect();
        snprintf(request, sizeof(request),
                 "%s http://origin.test/short HTTP/1.1\r\nHost: x\r\n%s\r\n", cases[i].method,
                 cases[i].lines);
        send_request(fd, request);
        fetch = await_fetch("http://origin.test/short");
        scene_response(fetch, cases[i].fields, false);
        ck_assert_int_eq(scene_head(fetch, cases[i].status, cases[i].fields, cases[i].length),
                         FETCH_CONTINUE);
        if (cases[i].sent)
            scene_body(fetch, cases[i].sent);
        ck_assert(http_receive(fd, &answer, i == 0));
        ck_assert_uint_eq(answer.status, cases[i].want);
        /* The worker is done with the response when it takes the next request. */
        send_request(fd,
                     REQUEST("GET", "http://nowhere.test/", "Cache-Control: only-if-cached\r\n"));
        http_expect_status(fd, &answer, 504);
        ck_assert(!scene_is_cancelled(fetch));
        if (cases[i].length > (long long)cases[i].sent && i)
            scene_body(fetch, (size_t)cases[i].length - cases[i].sent);
        scene_expect_metric("front_requests{front=\"http\"}", 2);
        ck_assert_uint_eq(scene_metric("requests{outcome=\"bypass\"}") +
                              scene_metric("requests{outcome=\"miss\"}"),
                          2);
        scene_done(fetch, FETCH_OK, "");
        ck_assert_uint_eq(scene_metric("requests{outcome=\"bypass\"}") +
                              scene_metric("requests{outcome=\"miss\"}"),
                          2);
        scene_expect_metric("origin_fetches{result=\"ok\"}", 2);
        close(fd);
        front_server_stop();
    }
}
END_TEST

START_TEST(requests_are_counted_by_the_front_that_they_came_to)
{
    webpageResponse response = {.webPageContents = NULL};
    proxy_fetch_result result;
    int fd;

    front_server_start(&defaults, VICTIMS_ALL);
    front_store(URL, MAX_AGE, BODY_INLINE, "hello", 5);
    scene_expect_metric("front_requests{front=\"rpc2\"}", 1);
    fd = front_connect();
    send_fetch(fd, 1, URL, strlen(URL));
    receive_result(fd, 1, (xdrproc_t)xdr_webpageResponse, &response);
    xdr_free((xdrproc_t)xdr_webpageResponse, &response);
    scene_expect_metric("front_requests{front=\"rpc1\"}", 1);
    scene_expect_metric("front_body_bytes{front=\"rpc1\"}", 5);
    send_get(fd, 2, URL, 0);
    receive_page(fd, 2, PROXY_OK, &result);
    free_page(&result);
    scene_expect_metric("front_requests{front=\"rpc2\"}", 2);
    scene_expect_metric("front_body_bytes{front=\"rpc2\"}", 10);
    scene_expect_metric("front_requests{front=\"http\"}", 0);
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: metrics of requests");
    TCase *tcase = tcase_create("all");

    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, responses_are_counted_by_status_and_outcome);
    tcase_add_test(tcase, a_range_that_is_answered_before_the_end_of_its_object_is_a_miss);
    tcase_add_test(tcase, a_fetch_whose_response_is_whole_is_not_cancelled);
    tcase_add_test(tcase, requests_are_counted_by_the_front_that_they_came_to);
    suite_add_tcase(suite, tcase);
    return suite;
}
