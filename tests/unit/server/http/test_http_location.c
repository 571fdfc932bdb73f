/* Location and Content-Location of a reverse proxy's origins. */
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

static struct http_answer answer;

static void
begin_with(enum rewrite_location rewrite)
{
    static char any[] = "/=http://any.test", api[] = "site.test/api=http://api.test/v2",
                two[] = "two.test/=http://first.test:8000,http://second.test/base/",
                below[] = "below.test/in/=http://below.test/";
    static char *items[] = {any, api, two, below, NULL};

    front_options.origin = (struct option_list){.items = items, .count = 4};
    front_options.rewrite_location = rewrite;
    front_server_start(&(struct scene_options){0}, VICTIMS_ADMIN);
}

static void
respond(const char *url, unsigned status, const char *lines)
{
    struct scene_fetch *fetch = await_fetch(url);

    fetch->sink->begin(fetch->context);
    fetch->sink->response(
        fetch->context,
        &(struct fetch_response){.status = status, .lines = span_str(lines), .waited_us = 1000});
    ck_assert_int_eq(scene_head(fetch, status, lines, 4), FETCH_CONTINUE);
    ck_assert_int_eq(fetch->sink->body(fetch->context, "body", 4), FETCH_CONTINUE);
    scene_done(fetch, FETCH_OK, "");
}

/* A request for this path of the host; the answer to it has the line. */
static void
expect_line(int fd, const char *method, const char *target, const char *host, const char *line)
{
    char request[256];

    snprintf(request, sizeof(request), "%s %s HTTP/1.1\r\nHost: %s\r\n\r\n", method, target, host);
    ck_assert(http_send(fd, request));
    if (!line)
        return;
    ck_assert(http_receive(fd, &answer, strcmp(method, "HEAD") == 0));
    ck_assert_msg(http_has(&answer, line), "%s: %s", line, answer.head);
}

START_TEST(references_to_the_origin_become_paths)
{
    static const struct {
        const char *target, *host, *url, *location, *rewritten;
    } rows[] = {
        {"/a", "x", "http://any.test/a", "http://any.test/b?c#d", "/b?c#d"},
        {"/a", "x", "http://any.test/a", "HTTP://Any.Test:80/b", "/b"},
        {"/a", "x", "http://any.test/a", "http://any.test", "/"},
        {"/a", "x", "http://any.test/a", "http://any.test?q", "/?q"},
        {"/a", "x", "http://any.test/a", "//any.test/b", "/b"},
        /* Two slashes would begin an authority. */
        {"/a", "x", "http://any.test/a", "http://any.test//evil.test/", "/evil.test/"},
        {"/a", "x", "http://any.test/a", "http://any.test///evil.test/", "/evil.test/"},
        {"/a", "x", "http://any.test/a", "http://any.test/../b", "http://any.test/../b"},
        {"/a", "x", "http://any.test/a", "http://any.test:81/b", "http://any.test:81/b"},
        {"/a", "x", "http://any.test/a", "https://any.test/b", "https://any.test/b"},
        {"/a", "x", "http://any.test/a", "http://other.test/b", "http://other.test/b"},
        {"/a", "x", "http://any.test/a", "http://api.test/v2/b", "http://api.test/v2/b"},
        {"/a", "x", "http://any.test/a", "/b", "/b"},
        {"/a", "x", "http://any.test/a", "b", "b"},
        {"/a", "x", "http://any.test/a", "", ""},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v2/b", "/api/b"},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v2", "/api"},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v2?q", "/api?q"},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v2//b", "/api//b"},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v", "http://api.test/v"},
        {"/api/a", "site.test", "http://api.test/v2/a", "http://api.test/v22",
         "http://api.test/v22"},
        /* The URLs of a row are names of one origin. */
        {"/a", "two.test", "http://first.test:8000/a", "http://first.test:8000/b", "/b"},
        {"/a", "two.test", "http://first.test:8000/a", "http://second.test/base/b", "/b"},
        {"/a", "two.test", "http://first.test:8000/a", "http://first.test/b",
         "http://first.test/b"},
        {"/in/a", "below.test", "http://below.test/a", "http://below.test/b", "/in/b"},
        {"/in/a", "below.test", "http://below.test/a", "http://below.test", "/in/"},
    };
    static const char *const names[] = {"Location", "content-location"};

    begin_with(REWRITE_LOCATION_ON);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (unsigned k = 0; k < 2; k++) {
            char lines[300], line[300];
            int fd = http_connect();

            snprintf(lines, sizeof(lines), "X: before\r\n%s: %s\r\nX: behind\r\n", names[k],
                     rows[i].location);
            snprintf(line, sizeof(line), "%s: %s", names[k], rows[i].rewritten);
            expect_line(fd, "GET", rows[i].target, rows[i].host, NULL);
            respond(rows[i].url, k ? 200 : 302, lines);
            ck_assert(http_receive(fd, &answer, false));
            ck_assert_msg(http_has(&answer, line), "row %zu: %s", i, answer.head);
            ck_assert_uint_eq(answer.status, k ? 200 : 302);
            ck_assert(http_has(&answer, "X: before") && http_has(&answer, "X: behind"));
            ck_assert_str_eq(answer.body, "body");
            close(fd);
        }
    }
    front_server_stop();
}
END_TEST

/* What is stored has the origin's field; each response has it anew. */
START_TEST(stored_responses_are_rewritten_too)
{
    static const char lines[] = "Location: http://api.test/v2/b\r\nETag: \"a\"\r\n" MAX_AGE
                                "Content-Location: http://api.test/v2/c\r\n";
    static const char conditional[] = "GET /api/a HTTP/1.1\r\nHost: site.test\r\n"
                                      "If-None-Match: \"a\"\r\n\r\n",
                      range[] =
                          "GET /api/a HTTP/1.1\r\nHost: site.test\r\nRange: bytes=1-2\r\n\r\n";
    int fd;

    begin_with(REWRITE_LOCATION_ON);
    fd = http_connect();
    expect_line(fd, "GET", "/api/a", "site.test", NULL);
    respond("http://api.test/v2/a", 200, lines);
    ck_assert(http_receive(fd, &answer, false));
    expect_line(fd, "GET", "/api/a", "site.test", "Location: /api/b");
    ck_assert(http_has(&answer, "Content-Location: /api/c"));
    ck_assert(http_has_start(&answer, "Cache-Status: sunproxy; hit"));
    ck_assert_str_eq(answer.body, "body");
    expect_line(fd, "HEAD", "/api/a", "site.test", "Content-Location: /api/c");
    ck_assert(http_send(fd, conditional));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 304);
    ck_assert(http_has(&answer, "Content-Location: /api/c"));
    ck_assert(http_send(fd, range));
    ck_assert(http_receive(fd, &answer, false));
    ck_assert_uint_eq(answer.status, 206);
    ck_assert(http_has(&answer, "Content-Location: /api/c"));
    ck_assert_str_eq(answer.body, "od");
    close(fd);
    front_server_stop();
}
END_TEST

START_TEST(fields_are_left_as_they_are_elsewhere)
{
    int fd;

    begin_with(REWRITE_LOCATION_OFF);
    fd = http_connect();
    expect_line(fd, "GET", "/a", "x", NULL);
    respond("http://any.test/a", 302, "Location: http://any.test/b\r\n");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert(http_has(&answer, "Location: http://any.test/b"));
    close(fd);
    front_server_stop();

    front_options.origin = (struct option_list){0};
    front_options.rewrite_location = REWRITE_LOCATION_ON;
    front_server_start(&(struct scene_options){0}, VICTIMS_ADMIN);
    fd = http_connect();
    expect_line(fd, "GET", "http://any.test/a", "any.test", NULL);
    respond("http://any.test/a", 302, "Location: http://any.test/b\r\n");
    ck_assert(http_receive(fd, &answer, false));
    ck_assert(http_has(&answer, "Location: http://any.test/b"));
    close(fd);
    front_server_stop();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server: Location over HTTP");
    TCase *tests = tcase_create("all");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, references_to_the_origin_become_paths);
    tcase_add_test(tests, stored_responses_are_rewritten_too);
    tcase_add_test(tests, fields_are_left_as_they_are_elsewhere);
    suite_add_tcase(suite, tests);
    return suite;
}
