/* Responses that their consumer pauses, and fetches that are cancelled. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

#define LARGE ((size_t)2 << 20)

/* An answer of LARGE bytes, numbered so that a lost or repeated piece shows. */
static char *large; /* with its head */
static size_t large_len;

static struct line script[] = {
    {.path = "/large"},
    {.path = "/small", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall"},
    {.path = "/empty", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/stalling",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
     .then = HANG},
    {.path = "/chunks",
     .bytes = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              "3\r\nabc\r\n4\r\ndefg\r\n1\r\nh\r\n0\r\n\r\n"},
    {.path = NULL},
};

static char *
body_of_large(void)
{
    return large + large_len - LARGE;
}

static void
set_up(void)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 2097152\r\n\r\n";

    fixture_set_up();
    large_len = strlen(head) + LARGE;
    large = malloc(large_len + 1);
    memcpy(large, head, strlen(head));
    for (size_t i = 0; i < LARGE; i += 8)
        snprintf(large + strlen(head) + i, 9, "%07zu\n", i / 8);
    script[0].bytes = large;
    script[0].len = large_len;
}

static void
tear_down(void)
{
    free(large);
    fixture_tear_down();
}

static uint64_t
bytes_received(struct fetcher *fetcher)
{
    struct fetch_stats stats;

    fetcher_get_stats(fetcher, &stats);
    return stats.bytes;
}

/* Longer than the stall and total limits, which do not run meanwhile, and bounded in memory. */
START_TEST(a_pause_outlasts_the_time_limits)
{
    struct origin *origin = origin_start(script);
    struct fetch_request request;
    struct fetcher *fetcher;
    struct paced paced;
    uint64_t received;
    char url[64];

    config.stall_timeout_us = 200000;
    config.total_timeout_us = 2500000;
    fetcher = start_fetcher(&config);
    paced_init(&paced, fetcher);
    paced.pause_at = 100000;
    request = paced_request(url, sizeof(url), origin->port, "", "/large", FETCH_MAY_PAUSE);
    paced_submit(&paced, &request);
    paced_wait_paused(&paced);
    usleep(2600000);
    ck_assert(!outcome_is_over(&paced.outcome));
    received = bytes_received(fetcher);
    ck_assert_uint_le(received, paced.outcome.body_len + 65536);
    usleep(100000);
    ck_assert_uint_eq(bytes_received(fetcher), received);
    paced_go_on(&paced);
    paced_expect(&paced, FETCH_OK);
    ck_assert_uint_eq(paced.pauses, 1);
    ck_assert_uint_eq(paced.outcome.body_len, LARGE);
    ck_assert_mem_eq(paced.outcome.body, body_of_large(), LARGE);
    ck_assert_uint_eq(bytes_received(fetcher), LARGE);
    paced_free(&paced);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

START_TEST(a_cancelled_pause)
{
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct fetch_request request;
    struct paced paced;
    char url[64];

    paced_init(&paced, fetcher);
    paced.pause_at = 1;
    request = paced_request(url, sizeof(url), origin->port, "", "/large", FETCH_MAY_PAUSE);
    paced_submit(&paced, &request);
    paced_wait_paused(&paced);
    fetcher_cancel(fetcher, paced.id);
    fetcher_resume(fetcher, paced.id);
    fetcher_cancel(fetcher, paced.id);
    paced_expect(&paced, FETCH_CANCELLED);
    /* Its number means nothing any more. */
    fetcher_cancel(fetcher, paced.id);
    fetcher_resume(fetcher, paced.id);
    expect_page(fetcher, "small", "http://127.0.0.1:%u/small", origin->port);
    paced_free(&paced);
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/pause");
    TCase *tc = tcase_create("pause");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_pause_outlasts_the_time_limits);
    tcase_add_test(tc, a_cancelled_pause);
    suite_add_tcase(suite, tc);
    return suite;
}
