/* What the thread-pool server of the parallelism study is made of. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "base/thread.h"
#include "tests/bench/job_queue.h"
#include "tests/bench/pool_pages.h"
#include "tests/unit/unit.h"

#define THREADS 4
#define JOBS 2000

static int jobs[JOBS];

START_TEST(a_queue_is_in_order_and_bounded)
{
    struct job_queue queue;

    ck_assert(job_queue_init(&queue, 3));
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 3; i++)
            ck_assert(job_queue_add(&queue, &jobs[i]));
        ck_assert_uint_eq(queue.count, 3);
        for (int i = 0; i < 2; i++)
            ck_assert_ptr_eq(job_queue_take(&queue), &jobs[i]);
        ck_assert(job_queue_add(&queue, &jobs[9]));
        ck_assert_ptr_eq(job_queue_take(&queue), &jobs[2]);
        ck_assert_ptr_eq(job_queue_take(&queue), &jobs[9]);
    }
    ck_assert(job_queue_add(&queue, &jobs[0]));
    job_queue_close(&queue);
    ck_assert(!job_queue_add(&queue, &jobs[1]));
    ck_assert_ptr_eq(job_queue_take(&queue), &jobs[0]);
    ck_assert_ptr_null(job_queue_take(&queue));
    job_queue_free(&queue);
}
END_TEST

static _Atomic unsigned taken[JOBS];

static void *
take_all(void *queue)
{
    int *job;

    while ((job = job_queue_take(queue)))
        atomic_fetch_add(&taken[job - jobs], 1);
    return NULL;
}

START_TEST(each_item_is_taken_once)
{
    struct job_queue queue;
    pthread_t threads[THREADS];

    ck_assert(job_queue_init(&queue, 2));
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(thread_start(&threads[i], take_all, &queue), 0);
    for (int i = 0; i < JOBS; i++)
        ck_assert(job_queue_add(&queue, &jobs[i]));
    job_queue_close(&queue);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < JOBS; i++)
        ck_assert_uint_eq(taken[i], 1);
    job_queue_free(&queue);
}
END_TEST

static const struct pool_page *
add(struct pool_pages *pages, const char *url, const char *text)
{
    struct buf body;

    buf_init(&body, 100);
    ck_assert(buf_append_str(&body, text));
    return pool_pages_add(pages, url, &body);
}

START_TEST(a_page_is_found_and_the_first_one_stays)
{
    static struct pool_pages pages;
    const struct pool_page *page;
    char url[64];

    pool_pages_init(&pages);
    ck_assert_ptr_null(pool_pages_find(&pages, "http://a/"));
    page = add(&pages, "http://a/", "one");
    ck_assert_ptr_nonnull(page);
    ck_assert_ptr_eq(pool_pages_find(&pages, "http://a/"), page);
    ck_assert_ptr_eq(add(&pages, "http://a/", "two"), page);
    ck_assert_str_eq(buf_str(&page->body), "one");
    /* More pages than chains. */
    for (unsigned i = 0; i < 2 * POOL_CHAINS; i++) {
        snprintf(url, sizeof(url), "http://b/%u", i);
        ck_assert_ptr_nonnull(add(&pages, url, url));
    }
    for (unsigned i = 0; i < 2 * POOL_CHAINS; i++) {
        snprintf(url, sizeof(url), "http://b/%u", i);
        page = pool_pages_find(&pages, url);
        ck_assert_ptr_nonnull(page);
        ck_assert_str_eq(buf_str(&page->body), url);
    }
    pool_pages_free(&pages);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("bench/pool");
    TCase *tcase = tcase_create("pool");

    tcase_add_test(tcase, a_queue_is_in_order_and_bounded);
    tcase_add_test(tcase, each_item_is_taken_once);
    tcase_add_test(tcase, a_page_is_found_and_the_first_one_stays);
    suite_add_tcase(suite, tcase);
    return suite;
}
