/*
 * Responses that their consumer pauses, and fetches that are cancelled.
 *
 * Waits for most of its time, so tests/run.sh runs it beside others.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/fetch/fixture.h"
#include "tests/unit/fetch/paced.h"

#define LARGE ((size_t)2 << 20)

/* An answer of LARGE bytes, numbered so that a lost or repeated piece shows. */
static char large[LARGE + 64]; /* with its head; made once */
static size_t large_len;

static struct line script[] = {
    {.path = "/large"},
    {.path = "/small", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nsmall"},
    {.path = "/empty", .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"},
    {.path = "/stalling",
     .bytes = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
     .then = HANG},
    {.path = "/hanging", .bytes = "", .then = HANG},
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
    if (large_len)
        return;
    large_len = strlen(head) + LARGE;
    memcpy(large, head, strlen(head));
    for (size_t i = 0; i < LARGE; i += 8)
        snprintf(large + strlen(head) + i, 9, "%07zu\n", i / 8);
    script[0].bytes = large;
    script[0].len = large_len;
}

static uint64_t
bytes_received(struct fetcher *fetcher)
{
    struct fetch_stats stats;

    fetcher_get_stats(fetcher, &stats);
    return stats.bytes;
}

/* A fetch by a paced consumer, and what it needs. */
struct pausing {
    struct origin *origin;
    struct fetcher *fetcher;
    struct paced paced;
    struct request request;
    char url[64];
};

static void
pausing_init(struct pausing *p, const char *path, unsigned flags)
{
    p->origin = origin_start(script);
    p->fetcher = start_fetcher(&config);
    paced_init(&p->paced, p->fetcher);
    p->request = paced_request(p->url, sizeof(p->url), p->origin->port, "", path, flags);
}

static void
pausing_free(struct pausing *p)
{
    paced_free(&p->paced);
    fetcher_destroy(p->fetcher);
    origin_stop(p->origin);
}

static void
expect_large(const struct paced *paced)
{
    ck_assert_uint_eq(paced->outcome.body_len, LARGE);
    ck_assert_mem_eq(paced->outcome.body, body_of_large(), LARGE);
}

/* Frees it as well. */
static void
expect_timed_out(struct pausing *p, const char *part)
{
    paced_expect(&p->paced, FETCH_TIMED_OUT);
    ck_assert_msg(strstr(p->paced.outcome.sentence, part) != NULL, "%s", p->paced.outcome.sentence);
    pausing_free(p);
}

/* ---- pauses and time ----------------------------------------------------------------- */

/* Longer than the stall and total limits, which do not run meanwhile, and bounded in memory. */
START_TEST(a_pause_outlasts_the_time_limits)
{
    struct pausing p;
    uint64_t received;

    config.stall_timeout_us = 200000;
    config.total_timeout_us = 1500000;
    pausing_init(&p, "/large", REQUEST_STREAMS);
    p.paced.pause_at = 100000;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    usleep(1600000);
    ck_assert(!outcome_is_over(&p.paced.outcome));
    received = bytes_received(p.fetcher);
    ck_assert_uint_le(received, paced_len(&p.paced) + 65536);
    usleep(100000);
    ck_assert_uint_eq(bytes_received(p.fetcher), received);
    paced_go_on(&p.paced);
    paced_expect(&p.paced, FETCH_OK);
    ck_assert_uint_eq(p.paced.pauses, 1);
    expect_large(&p.paced);
    ck_assert_uint_eq(bytes_received(p.fetcher), LARGE);
    pausing_free(&p);
}
END_TEST

/* Neither its bound of bytes nor the total time ends a body of any length, but a stall does. */
START_TEST(a_body_of_any_length_has_only_the_limit_of_stalls)
{
    struct pausing p, stalls, hangs;

    config.max_body = 100000;
    config.total_timeout_us = 1500000;
    config.stall_timeout_us = 2500000;
    pausing_init(&p, "/large", 0);
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_TOO_LARGE);
    pausing_free(&p);
    pausing_init(&p, "/large", REQUEST_STREAMS);
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_OK);
    expect_large(&p.paced);
    pausing_free(&p);
    /* The times of these run at once. */
    pausing_init(&stalls, "/stalling", REQUEST_STREAMS);
    pausing_init(&hangs, "/hanging", REQUEST_STREAMS);
    hangs.request.client = unit_client(2); /* a client has its turns in one fetcher */
    paced_submit(&stalls.paced, &stalls.request);
    paced_submit(&hangs.paced, &hangs.request);
    expect_timed_out(&stalls, "more of the body");
    expect_timed_out(&hangs, "whole fetch");
}
END_TEST

START_TEST(a_pause_has_a_limit_of_its_own)
{
    struct pausing p;

    config.pause_timeout_us = 200000;
    pausing_init(&p, "/large", REQUEST_STREAMS);
    p.paced.pause_at = 1;
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_TIMED_OUT);
    ck_assert_ptr_nonnull(strstr(p.paced.outcome.sentence, "pause"));
    pausing_free(&p);
}
END_TEST

/* After a pause the stall limit runs anew. */
START_TEST(an_origin_that_stalls_after_a_pause)
{
    struct pausing p;

    config.stall_timeout_us = 300000;
    pausing_init(&p, "/stalling", REQUEST_STREAMS);
    p.paced.pause_at = 4;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    usleep(500000);
    ck_assert(!outcome_is_over(&p.paced.outcome));
    paced_go_on(&p.paced);
    paced_expect(&p.paced, FETCH_TIMED_OUT);
    ck_assert_str_eq(p.paced.outcome.body, "half");
    pausing_free(&p);
}
END_TEST

/* ---- where a pause may begin --------------------------------------------------------- */

START_TEST(a_pause_at_the_head)
{
    struct pausing p;

    pausing_init(&p, "/large", REQUEST_STREAMS);
    p.paced.pause_at_head = true;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    usleep(200000);
    ck_assert_uint_eq(paced_len(&p.paced), 0);
    ck_assert_uint_le(bytes_received(p.fetcher), 65536);
    paced_go_on(&p.paced);
    paced_expect(&p.paced, FETCH_OK);
    expect_large(&p.paced);
    pausing_free(&p);
}
END_TEST

START_TEST(a_pause_without_a_body_to_come)
{
    struct pausing p;

    pausing_init(&p, "/empty", REQUEST_STREAMS);
    p.paced.pause_at_head = true;
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_OK);
    ck_assert_uint_eq(p.paced.outcome.body_len, 0);
    pausing_free(&p);
}
END_TEST

/* The pieces of chunks, and the end of the body, each wait for their resume. */
START_TEST(a_pause_at_each_piece)
{
    struct pausing p;

    pausing_init(&p, "/chunks", REQUEST_STREAMS);
    p.paced.pause_at = p.paced.pause_step = 1;
    paced_submit(&p.paced, &p.request);
    for (unsigned i = 0; i < 3; i++) {
        static const size_t lengths[] = {3, 7, 8};

        paced_wait_paused(&p.paced);
        usleep(50000);
        ck_assert(!outcome_is_over(&p.paced.outcome));
        ck_assert_uint_eq(paced_len(&p.paced), lengths[i]);
        paced_go_on(&p.paced);
    }
    paced_expect(&p.paced, FETCH_OK);
    ck_assert_str_eq(p.paced.outcome.body, "abcdefgh");
    ck_assert_uint_eq(p.paced.pauses, 3);
    pausing_free(&p);
}
END_TEST

START_TEST(a_pause_without_its_flag)
{
    struct pausing p;

    pausing_init(&p, "/large", 0);
    p.paced.pause_at = 1;
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_INTERNAL);
    pausing_free(&p);
}
END_TEST

/* ---- resuming ------------------------------------------------------------------------ */

/* A resume that came before the pause does not end it, though the loop has yet to see it. */
START_TEST(a_resume_before_the_pause)
{
    struct pausing p;

    pausing_init(&p, "/small", REQUEST_STREAMS);
    p.paced.resume_at_head = true;
    p.paced.pause_at = 1;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    usleep(200000);
    ck_assert(!outcome_is_over(&p.paced.outcome));
    paced_go_on(&p.paced);
    paced_expect(&p.paced, FETCH_OK);
    ck_assert_str_eq(p.paced.outcome.body, "small");
    pausing_free(&p);
}
END_TEST

#define READERS 4u
#define EACH 4u

static void *
read_along(void *argument)
{
    struct paced *paced = argument;

    for (unsigned i = 0; i < EACH; i++) {
        pthread_mutex_lock(&paced[i].outcome.lock);
        while (!paced[i].outcome.over) {
            bool resumes = paced[i].paused;

            paced[i].paused = false;
            pthread_mutex_unlock(&paced[i].outcome.lock);
            if (resumes)
                fetcher_resume(paced[i].fetcher, paced[i].id);
            pthread_mutex_lock(&paced[i].outcome.lock);
            if (!paced[i].paused && !paced[i].outcome.over)
                pthread_cond_wait(&paced[i].outcome.changed, &paced[i].outcome.lock);
        }
        pthread_mutex_unlock(&paced[i].outcome.lock);
    }
    return NULL;
}

/* Threads of readers that catch up, each with several fetches. */
START_TEST(resumed_by_other_threads)
{
    static struct paced paced[READERS][EACH];
    struct origin *origin = origin_start(script);
    struct fetcher *fetcher = start_fetcher(&config);
    struct request request;
    pthread_t readers[READERS];
    char url[64];

    request = paced_request(url, sizeof(url), origin->port, "", "/large", REQUEST_STREAMS);
    for (unsigned i = 0; i < READERS * EACH; i++) {
        struct paced *one = &paced[i / EACH][i % EACH];

        paced_init(one, fetcher);
        one->pause_at = one->pause_step = 65536;
        paced_submit(one, &request);
    }
    for (unsigned i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&readers[i], NULL, read_along, paced[i]), 0);
    for (unsigned i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    for (unsigned i = 0; i < READERS * EACH; i++) {
        struct paced *one = &paced[i / EACH][i % EACH];

        paced_expect(one, FETCH_OK);
        expect_large(one);
        ck_assert_uint_ge(one->pauses, 20);
        paced_free(one);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- many ---------------------------------------------------------------------------- */

#define PAUSED 24u

/* More paused ones than the origin may have active: they do not count, and take little memory. */
START_TEST(paused_fetches_do_not_block_others)
{
    static struct paced paced[PAUSED];
    struct origin *origin = origin_start(script);
    struct request request;
    struct fetcher *fetcher;
    uint64_t delivered = 0;
    char url[64];

    config.max_active_per_origin = 2;
    fetcher = start_fetcher(&config);
    request = paced_request(url, sizeof(url), origin->port, "", "/large", REQUEST_STREAMS);
    for (unsigned i = 0; i < PAUSED; i++) {
        paced_init(&paced[i], fetcher);
        paced[i].pause_at = 1;
        paced_submit(&paced[i], &request);
    }
    for (unsigned i = 0; i < PAUSED; i++) {
        paced_wait_paused(&paced[i]);
        delivered += paced_len(&paced[i]);
    }
    ck_assert_uint_le(bytes_received(fetcher), delivered + PAUSED * 65536);
    for (unsigned i = 0; i < 10; i++)
        expect_page(fetcher, "small", "http://127.0.0.1:%u/small", origin->port);
    for (unsigned i = 0; i < PAUSED; i++) {
        if (i % 2)
            fetcher_cancel(fetcher, paced[i].id);
        else
            paced_go_on(&paced[i]);
    }
    for (unsigned i = 0; i < PAUSED; i++) {
        paced_expect(&paced[i], i % 2 ? FETCH_CANCELLED : FETCH_OK);
        if (i % 2 == 0)
            expect_large(&paced[i]);
        paced_free(&paced[i]);
    }
    fetcher_destroy(fetcher);
    origin_stop(origin);
}
END_TEST

/* ---- ends ---------------------------------------------------------------------------- */

START_TEST(a_cancelled_pause)
{
    struct pausing p;

    pausing_init(&p, "/large", REQUEST_STREAMS);
    p.paced.pause_at = 1;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    fetcher_cancel(p.fetcher, p.paced.id);
    fetcher_resume(p.fetcher, p.paced.id);
    fetcher_cancel(p.fetcher, p.paced.id);
    paced_expect(&p.paced, FETCH_CANCELLED);
    /* Its number has no meaning any more, nor has one that was never given. */
    fetcher_cancel(p.fetcher, p.paced.id);
    fetcher_resume(p.fetcher, p.paced.id);
    fetcher_cancel(p.fetcher, 0);
    fetcher_cancel(p.fetcher, UINT64_MAX);
    expect_page(p.fetcher, "small", "http://127.0.0.1:%u/small", p.origin->port);
    pausing_free(&p);
}
END_TEST

/* Before it has a turn, while its name is resolved, and while the origin keeps it waiting. */
START_TEST(cancelled_at_each_stage)
{
    struct paced active, queued, resolving;
    struct request request;
    struct pausing p;

    names_use(&config, NULL);
    config.max_active_per_origin = 1;
    pausing_init(&p, "/hanging", 0);
    paced_init(&active, p.fetcher);
    paced_init(&queued, p.fetcher);
    paced_init(&resolving, p.fetcher);
    paced_submit(&active, &p.request);
    paced_submit(&queued, &p.request);
    request = GET(OUTCOME_CLIENT, "http://hang.test/", "");
    paced_submit(&resolving, &request);
    fetcher_cancel(p.fetcher, queued.id);
    paced_expect(&queued, FETCH_CANCELLED);
    fetcher_cancel(p.fetcher, resolving.id);
    paced_expect(&resolving, FETCH_CANCELLED);
    ck_assert(!outcome_is_over(&active.outcome));
    fetcher_cancel(p.fetcher, active.id);
    paced_expect(&active, FETCH_CANCELLED);
    names_release();
    expect_page(p.fetcher, "small", "http://127.0.0.1:%u/small", p.origin->port);
    paced_free(&active);
    paced_free(&queued);
    paced_free(&resolving);
    pausing_free(&p);
}
END_TEST

/* From a call-back no other one follows but done(). */
START_TEST(cancelled_from_a_call_back)
{
    struct pausing p;

    pausing_init(&p, "/large", 0);
    p.paced.cancel_at_head = true;
    paced_submit(&p.paced, &p.request);
    paced_expect(&p.paced, FETCH_CANCELLED);
    ck_assert_uint_eq(p.paced.outcome.heads, 1);
    ck_assert_uint_eq(p.paced.outcome.body_len, 0);
    pausing_free(&p);
}
END_TEST

START_TEST(stopped_in_a_pause)
{
    struct pausing p;
    uint64_t id;

    pausing_init(&p, "/large", REQUEST_STREAMS);
    p.paced.pause_at = 1;
    paced_submit(&p.paced, &p.request);
    paced_wait_paused(&p.paced);
    fetcher_stop(p.fetcher);
    ck_assert(outcome_is_over(&p.paced.outcome));
    paced_expect(&p.paced, FETCH_STOPPING);
    fetcher_resume(p.fetcher, p.paced.id);
    fetcher_cancel(p.fetcher, p.paced.id);
    ck_assert(!submit_request(p.fetcher, &p.request, &outcome_sink, &p, &id));
    ck_assert_int_eq(errno, ESHUTDOWN);
    pausing_free(&p);
}
END_TEST

static void *
submit_and_cancel(void *argument)
{
    struct pausing *p = argument;
    struct paced paced;

    for (unsigned i = 0; i < 100; i++) {
        paced_init(&paced, p->fetcher);
        paced.pause_at = i % 3;
        paced_submit(&paced, &p->request);
        if (i % 4 == 0)
            usleep(i * 20);
        fetcher_resume(p->fetcher, paced.id);
        fetcher_cancel(p->fetcher, paced.id);
        outcome_wait(&paced.outcome);
        ck_assert_uint_eq(paced.outcome.dones, 1);
        ck_assert_msg(paced.outcome.error == FETCH_CANCELLED || paced.outcome.error == FETCH_OK,
                      "%s", paced.outcome.sentence);
        paced_free(&paced);
    }
    return NULL;
}

/* Each fetch has one end, whenever it is cancelled. */
START_TEST(cancelled_by_many_threads)
{
    pthread_t threads[4];
    struct pausing p;

    pausing_init(&p, "/small", REQUEST_STREAMS);
    for (unsigned i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, submit_and_cancel, &p), 0);
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_page(p.fetcher, "small", "http://127.0.0.1:%u/small", p.origin->port);
    pausing_free(&p);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("fetch/pause");
    TCase *tc = tcase_create("pause");

    tcase_add_checked_fixture(tc, set_up, fixture_tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_pause_outlasts_the_time_limits);
    tcase_add_test(tc, a_body_of_any_length_has_only_the_limit_of_stalls);
    tcase_add_test(tc, a_pause_has_a_limit_of_its_own);
    tcase_add_test(tc, an_origin_that_stalls_after_a_pause);
    tcase_add_test(tc, a_pause_at_the_head);
    tcase_add_test(tc, a_pause_without_a_body_to_come);
    tcase_add_test(tc, a_pause_at_each_piece);
    tcase_add_test(tc, a_pause_without_its_flag);
    tcase_add_test(tc, a_resume_before_the_pause);
    tcase_add_test(tc, resumed_by_other_threads);
    tcase_add_test(tc, paused_fetches_do_not_block_others);
    tcase_add_test(tc, a_cancelled_pause);
    tcase_add_test(tc, cancelled_at_each_stage);
    tcase_add_test(tc, cancelled_from_a_call_back);
    tcase_add_test(tc, stopped_in_a_pause);
    tcase_add_test(tc, cancelled_by_many_threads);
    suite_add_tcase(suite, tc);
    return suite;
}
