/* Writes and kept connections: they share them, and nothing is sent twice. */
#include <stdio.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static const struct line script[] = {
    {.path = "/", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine"},
    {.path = "/closing", .bytes = "", .then = CLOSE},
    {.path = "/last", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine", .then = CLOSE},
    {.path = NULL},
};

static const struct write {
    const char *method;
    enum request_body_kind kind;
} writes[] = {
    {"POST", REQUEST_BODY_SUPPLIED},  {"PUT", REQUEST_BODY_SUPPLIED},
    {"PATCH", REQUEST_BODY_SUPPLIED}, {"DELETE", REQUEST_BODY_NONE},
    {"POST", REQUEST_BODY_NONE},      {"UNKNOWN", REQUEST_BODY_NONE},
};

static void
expect_write(struct fetcher *fetcher, struct origin *origin, const struct write *write,
             const char *path, enum fetch_error error)
{
    struct request request;
    struct paced paced;
    char url[64];

    paced_init(&paced, fetcher);
    paced.source = "once";
    paced.source_len = 4;
    request = paced_request(url, sizeof(url), origin->port, write->method, path, 0);
    request.body = (struct request_body){.kind = write->kind, .length = 4};
    paced_submit(&paced, &request);
    paced_expect(&paced, error);
    if (error == FETCH_OK)
        ck_assert_str_eq(paced.outcome.body, "fine");
    if (write->kind != REQUEST_BODY_NONE) {
        pthread_mutex_lock(&origin->lock);
        ck_assert_uint_eq(origin->last_body_len, 4);
        ck_assert_mem_eq(origin->last_body, "once", 4);
        pthread_mutex_unlock(&origin->lock);
    }
    paced_free(&paced);
}

START_TEST(they_use_kept_connections)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);

    for (unsigned i = 0; i < 300; i++)
        expect_write(fetcher, origin, &writes[i % LENGTH(writes)], "/", FETCH_OK);
    ck_assert_uint_eq(origin_requests(origin), 300);
    ck_assert_uint_eq(origin->connections, 1);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* The origin closes a kept connection before the write: that is seen, and the write is sent. */
START_TEST(a_kept_connection_that_was_closed)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);

    for (unsigned i = 0; i < LENGTH(writes); i++) {
        expect_page(fetcher, "fine", "http://127.0.0.1:%u/last", origin->port);
        ck_assert_uint_eq(origin_wait_open(origin, 0), 0);
        expect_write(fetcher, origin, &writes[i], "/last", FETCH_OK);
    }
    ck_assert_uint_eq(origin_requests(origin), 2 * LENGTH(writes));
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/*
 * An origin that reads the write on a kept connection and closes that: one arrival. No other
 * connection is opened for it.
 */
START_TEST(a_connection_that_is_closed_after_the_write)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    unsigned sent = 0;

    for (unsigned i = 0; i < LENGTH(writes); i++) {
        expect_page(fetcher, "fine", "http://127.0.0.1:%u/", origin->port);
        expect_write(fetcher, origin, &writes[i], "/closing", FETCH_ORIGIN_BROKE);
        sent += 2;
        ck_assert_uint_eq(origin_requests(origin), sent);
        ck_assert_uint_eq(origin->connections, sent / 2);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tc;
    Suite *suite = fixture_suite("fetch/writes", &tc);

    tcase_add_test(tc, they_use_kept_connections);
    tcase_add_test(tc, a_kept_connection_that_was_closed);
    tcase_add_test(tc, a_connection_that_is_closed_after_the_write);
    return suite;
}
