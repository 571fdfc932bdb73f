/* The fetcher against origins that break, lie, hang, or send too much. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"

#include "tests/unit/fetch/fixture.h"

#define OK "HTTP/1.1 200 OK\r\n"

static const struct line broken[] = {
    {.path = "/short", .bytes = OK "Content-Length: 10\r\n\r\nshort", .then = CLOSE},
    {.path = "/cut-head", .bytes = OK "Content-Len", .then = CLOSE},
    {.path = "/nothing", .bytes = "", .then = CLOSE},
    {.path = "/cut-chunk", .bytes = OK "Transfer-Encoding: chunked\r\n\r\n5\r\nab", .then = CLOSE},
    {.path = "/no-last-chunk",
     .bytes = OK "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
     .then = CLOSE},
    {.path = "/bad-chunk", .bytes = OK "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"},
    {.path = "/http09", .bytes = "<html>hello</html>\n", .then = CLOSE},
    {.path = "/nonsense", .bytes = "HTTP/1.1 abc\r\n\r\n", .then = CLOSE},
    {.path = "/two-lengths", .bytes = OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"},
    {.path = "/bad-length", .bytes = OK "Content-Length: 0x3\r\n\r\nabc", .then = CLOSE},
    {.path = "/unknown-transfer", .bytes = OK "Transfer-Encoding: rot13\r\n\r\nabc", .then = CLOSE},
    {.path = "/switching",
     .bytes = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\nabc",
     .then = CLOSE},
    {.path = NULL},
};

START_TEST(what_breaks)
{
    struct origin *origin = origin_start(broken);
    struct fetcher *fetcher = start_fetcher(&config);

    for (const struct line *line = broken; line->path; line++) {
        struct outcome o;

        fetch_one(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, line->path);
        ck_assert_msg(o.error == FETCH_ORIGIN_BROKE, "%s: %d %s", line->path, o.error, o.sentence);
        ck_assert_msg(strstr(o.sentence, "127.0.0.1") != NULL, "%s", o.sentence);
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

static const struct line odd[] = {
    {.path = "/interim",
     .bytes = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" OK
              "Content-Length: 6\r\n\r\nhello\n"},
    {.path = "/folded", .bytes = OK "A: b\r\n c\r\nContent-Length: 6\r\n\r\nhello\n"},
    {.path = "/lf", .bytes = "HTTP/1.1 200 OK\nContent-Length: 6\n\nhello\n"},
    {.path = NULL},
};

START_TEST(what_is_odd_and_fine)
{
    struct origin *origin = origin_start(odd);
    struct fetcher *fetcher = start_fetcher(&config);

    for (const struct line *line = odd; line->path; line++) {
        struct outcome o;

        fetch_fine(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, line->path);
        ck_assert_msg(strcmp(o.body, "hello\n") == 0, "%s: %s", line->path, o.body);
        ck_assert_uint_eq(o.status, 200);
        if (strcmp(line->path, "/folded") == 0)
            ck_assert_ptr_nonnull(strstr(o.headers, "A: b c\r\n"));
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

static const struct line bodiless[] = {
    {.path = "/204", .bytes = "HTTP/1.1 204 No\r\n\r\n"},
    {.path = "/304", .bytes = "HTTP/1.1 304 Same\r\nContent-Length: 99999999\r\nETag: x\r\n\r\n"},
    {.path = "/300", .bytes = "HTTP/1.1 300 Many\r\nContent-Length: 0\r\nLocation: /x\r\n\r\n"},
    {.path = "/302", .bytes = "HTTP/1.1 302 Where\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/307", .bytes = "HTTP/1.1 307 There\r\nContent-Length: 0\r\nLocation: /x\r\n\r\n"},
    {.path = "/500", .bytes = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n"},
    {.path = NULL},
};

START_TEST(other_statuses_are_passed_on)
{
    struct origin *origin = origin_start(bodiless);
    struct fetcher *fetcher = start_fetcher(&config);

    for (const struct line *line = bodiless; line->path; line++) {
        struct outcome o;

        char url[64];

        snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", origin->port, line->path);
        fetch_with(fetcher, url, "If-None-Match: x\r\n", &o);
        ck_assert_msg(o.error == FETCH_OK, "%s: %s", line->path, o.sentence);
        ck_assert_uint_eq(o.status, (unsigned)atoi(line->path + 1));
        ck_assert_int_eq(o.content_length, 0);
        ck_assert_uint_eq(o.body_len, 0);
        outcome_free(&o);
    }
    ck_assert_uint_eq(origin->requests, 6);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

static const struct line sizes[] = {
    {.path = "/10", .bytes = OK "Content-Length: 10\r\n\r\n0123456789"},
    {.path = "/11", .bytes = OK "Content-Length: 11\r\n\r\n0123456789a"},
    {.path = "/unstated-10", .bytes = OK "\r\n0123456789", .then = CLOSE},
    {.path = "/unstated-11", .bytes = OK "\r\n0123456789a", .then = CLOSE},
    {.path = "/chunked-11",
     .bytes = OK "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n"},
    {.path = NULL},
};

START_TEST(bodies_are_bounded)
{
    struct origin *origin = origin_start(sizes);
    struct fetcher *fetcher;

    config.max_body = 10;
    fetcher = start_fetcher(&config);
    for (const struct line *line = sizes; line->path; line++) {
        bool fits = strstr(line->path, "10") != NULL;
        struct outcome o;

        fetch_one(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, line->path);
        ck_assert_msg(o.error == (fits ? FETCH_OK : FETCH_TOO_LARGE), "%s: %d %s", line->path,
                      o.error, o.sentence);
        ck_assert_uint_le(o.body_len, 10);
        if (fits)
            ck_assert_str_eq(o.body, "0123456789");
        outcome_free(&o);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(headers_are_bounded)
{
    struct buf large, endless, line, grows;
    struct line script[6] = {{.path = NULL}};
    struct origin *origin;
    struct fetcher *fetcher;
    struct outcome o;

    buf_init(&large, 1 << 20);
    buf_append_str(&large, OK "Content-Length: 0\r\n");
    for (unsigned i = 0; i < 100; i++)
        buf_printf(&large, "X-%u: 0123456789012345678901234567890123456789\r\n", i);
    buf_append_str(&large, "\r\n");
    buf_init(&endless, 1 << 20);
    for (unsigned i = 0; i < 100; i++)
        buf_append_str(&endless, "HTTP/1.1 100 Continue\r\n\r\n");
    script[0] = (struct line){.path = "/large", .bytes = large.data};
    script[1] = (struct line){.path = "/interim", .bytes = endless.data, .then = HANG};
    /* Short lines with a bare LF: within the bound as they come, over it as they go on. */
    buf_init(&grows, 1 << 20);
    buf_append_str(&grows, "HTTP/1.1 200 OK\nContent-Length: 0\n");
    for (unsigned i = 0; i < 990; i++)
        buf_append_str(&grows, "A:b\n");
    buf_append_str(&grows, "\n");
    script[4] = (struct line){.path = "/grows", .bytes = grows.data};
    buf_init(&line, 1 << 20);
    buf_append_str(&line, OK "X: ");
    for (unsigned i = 0; i < 20000; i++)
        buf_append_str(&line, "0123456789");
    buf_append_str(&line, "\r\n\r\n");
    script[3] = (struct line){.path = "/line", .bytes = line.data, .then = CLOSE};
    script[2] = (struct line){.path = "/small", .bytes = OK "Content-Length: 0\r\n\r\n"};
    origin = origin_start(script);
    config.max_headers = 4000;
    fetcher = start_fetcher(&config);
    fetch_one(fetcher, &o, "http://127.0.0.1:%u/large", origin->port);
    ck_assert_msg(o.error == FETCH_TOO_LARGE, "%d %s", o.error, o.sentence);
    ck_assert_uint_eq(o.heads, 0);
    outcome_free(&o);
    expect_end(fetcher, FETCH_TOO_LARGE, "http://127.0.0.1:%u/grows", origin->port);
    expect_end(fetcher, FETCH_TOO_LARGE, "http://127.0.0.1:%u/line", origin->port);
    expect_end(fetcher, FETCH_ORIGIN_BROKE, "http://127.0.0.1:%u/interim", origin->port);
    expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/small", origin->port);
    fetcher_destroy(fetcher);
    config.max_headers = 65536;
    fetcher = start_fetcher(&config);
    expect_end(fetcher, FETCH_OK, "http://127.0.0.1:%u/large", origin->port);
    fetcher_destroy(fetcher);
    origin_stop(origin);
    buf_free(&large);
    buf_free(&endless);
    buf_free(&line);
    buf_free(&grows);
}
END_TEST

static const struct line hanging[] = {
    {.path = "/silent", .bytes = "", .then = HANG},
    {.path = "/head", .bytes = OK "Content-Le", .then = HANG},
    {.path = "/body", .bytes = OK "Content-Length: 10\r\n\r\nabc", .then = HANG},
    {.path = "/unstated", .bytes = OK "\r\nabc", .then = HANG},
    {.path = NULL},
};

static void
expect_time_out(const struct line *script, const char *path, const char *word)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    fetch_one(fetcher, &o, "http://127.0.0.1:%u%s", origin->port, path);
    ck_assert_msg(o.error == FETCH_TIMED_OUT, "%s: %d %s", path, o.error, o.sentence);
    ck_assert_msg(strstr(o.sentence, word) != NULL, "%s: %s", path, o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}

START_TEST(an_origin_that_hangs)
{
    config.first_byte_timeout_us = 150000;
    expect_time_out(hanging, "/silent", "first byte");
    config.first_byte_timeout_us = 5000000;
    config.stall_timeout_us = 150000;
    expect_time_out(hanging, "/head", "headers");
    expect_time_out(hanging, "/body", "body");
    expect_time_out(hanging, "/unstated", "body");
    config.stall_timeout_us = 5000000;
    config.total_timeout_us = 150000;
    expect_time_out(hanging, "/silent", "whole");
    expect_time_out(hanging, "/body", "whole");
}
END_TEST

START_TEST(a_connection_that_hangs)
{
    struct fetcher *fetcher;
    struct outcome o;
    uint16_t port;
    int listener = scripted_listen(&port, 0);
    int fillers[8];

    /* With the backlog full, further connections are neither taken nor refused. */
    for (unsigned i = 0; i < 8; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET,
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                 .sin_port = htons(port)};

        fillers[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        connect(fillers[i], (struct sockaddr *)&in, sizeof(in));
    }
    config.connect_timeout_us = 200000;
    fetcher = start_fetcher(&config);
    fetch_one(fetcher, &o, "http://127.0.0.1:%u/", port);
    ck_assert_msg(o.error == FETCH_CONNECT_TIMED_OUT, "%d %s", o.error, o.sentence);
    ck_assert_msg(strstr(o.sentence, "connecting") != NULL, "%s", o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    for (unsigned i = 0; i < 8; i++)
        close(fillers[i]);
    close(listener);
}
END_TEST

START_TEST(a_handshake_that_hangs)
{
    struct fetcher *fetcher;
    struct outcome o;
    uint16_t port;
    int listener = scripted_listen(&port, 8);

    config.connect_timeout_us = 200000;
    fetcher = start_fetcher(&config);
    fetch_one(fetcher, &o, "https://127.0.0.1:%u/", port);
    ck_assert_msg(o.error == FETCH_CONNECT_TIMED_OUT, "%d %s", o.error, o.sentence);
    ck_assert_msg(strstr(o.sentence, "connecting") != NULL, "%s", o.sentence);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    close(listener);
}
END_TEST

START_TEST(no_origin_there)
{
    struct fetcher *fetcher = start_fetcher(&config);
    uint16_t port;

    close(scripted_listen(&port, 1));
    expect_end(fetcher, FETCH_CONNECT_FAILED, "http://127.0.0.1:%u/", port);
    fetcher_destroy(fetcher);
}
END_TEST

/* ---- receivers that refuse ------------------------------------------------------------------- */

static enum fetch_flow
refuse_head(void *context, const struct fetch_head *head)
{
    (void)context;
    (void)head;
    return FETCH_ABORT;
}

static enum fetch_flow
refuse_body(void *context, const void *bytes, size_t len)
{
    (void)context;
    (void)bytes;
    (void)len;
    return FETCH_ABORT;
}

START_TEST(a_receiver_that_refuses)
{
    static const struct fetch_sink no_head = {
        .head = refuse_head,
        .body = outcome_body,
        .done = outcome_done,
    };
    static const struct fetch_sink no_body = {
        .head = outcome_head, .body = refuse_body, .done = outcome_done};
    struct origin *origin = origin_start(sizes);
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/10", origin->port);
    outcome_init(&o);
    ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &no_head, &o, NULL));
    outcome_wait(&o);
    ck_assert_int_eq(o.error, FETCH_INTERNAL);
    outcome_free(&o);
    outcome_init(&o);
    ck_assert(submit_request(fetcher, &GET(OUTCOME_CLIENT, url, ""), &no_body, &o, NULL));
    outcome_wait(&o);
    ck_assert_int_eq(o.error, FETCH_INTERNAL);
    ck_assert_uint_eq(o.heads, 1);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(requests_that_cannot_be_made)
{
    struct fetcher *fetcher = start_fetcher(&config);
    struct outcome o;

    fetch_with(fetcher, "file:///etc/passwd", "", &o);
    ck_assert_int_eq(o.error, FETCH_BAD_URL);
    outcome_free(&o);
    fetch_with(fetcher, "", "", &o);
    ck_assert_int_eq(o.error, FETCH_BAD_URL);
    outcome_free(&o);
    fetch_with(fetcher, "http://127.0.0.1:1/", "Host: x\r\n", &o);
    ck_assert_int_eq(o.error, FETCH_BAD_HEADERS);
    outcome_free(&o);
    fetcher_destroy(fetcher);
    fetcher_destroy(NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/broken", &tc);

    tcase_add_test(tc, what_breaks);
    tcase_add_test(tc, what_is_odd_and_fine);
    tcase_add_test(tc, other_statuses_are_passed_on);
    tcase_add_test(tc, bodies_are_bounded);
    tcase_add_test(tc, headers_are_bounded);
    tcase_add_test(tc, an_origin_that_hangs);
    tcase_add_test(tc, a_connection_that_hangs);
    tcase_add_test(tc, a_handshake_that_hangs);
    tcase_add_test(tc, no_origin_there);
    tcase_add_test(tc, a_receiver_that_refuses);
    tcase_add_test(tc, requests_that_cannot_be_made);
    return suite;
}
