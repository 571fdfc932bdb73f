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

static const size_t layouts[] = {POOL_ENTRY_ALIGNED, POOL_ENTRY_MISALIGNED};

START_TEST(a_page_is_found_and_the_first_one_stays)
{
    static struct pool_pages pages;
    const struct pool_page *page;
    char url[64];

    ck_assert(pool_pages_init(&pages, layouts[_i]));
    ck_assert_ptr_null(pool_pages_find(&pages, "http://a/"));
    page = add(&pages, "http://a/", "one");
    ck_assert_ptr_nonnull(page);
    ck_assert_ptr_eq(pool_pages_find(&pages, "http://a/"), page);
    ck_assert_ptr_eq(add(&pages, "http://a/", "two"), page);
    ck_assert_str_eq(buf_str(&page->body), "one");
    /* As many pages as a quarter of the table: hardly any has five neighbours. */
    for (unsigned i = 0; i < POOL_CHAINS / 4; i++) {
        snprintf(url, sizeof(url), "http://b/%u", i * 97);
        ck_assert_ptr_nonnull(add(&pages, url, url));
        page = pool_pages_find(&pages, url);
        ck_assert_ptr_nonnull(page);
        ck_assert_str_eq(buf_str(&page->body), url);
    }
    pool_pages_free(&pages);
}
END_TEST

/* Of more pages than the table has entries each new one is found, in place of one that was
   requested less. */
START_TEST(a_full_table_replaces_what_was_requested_least)
{
    static struct pool_pages pages;
    unsigned found = 0;
    char url[64];

    ck_assert(pool_pages_init(&pages, layouts[_i]));
    ck_assert_ptr_nonnull(add(&pages, "http://popular/", "body"));
    for (unsigned i = 0; i < 10; i++)
        ck_assert_ptr_nonnull(pool_pages_find(&pages, "http://popular/"));
    for (unsigned i = 0; i < 3 * POOL_CHAINS; i++) {
        snprintf(url, sizeof(url), "http://b/%u", i);
        ck_assert_ptr_nonnull(add(&pages, url, url));
        ck_assert_ptr_nonnull(pool_pages_find(&pages, url));
    }
    for (unsigned i = 0; i < 3 * POOL_CHAINS; i++) {
        snprintf(url, sizeof(url), "http://b/%u", i);
        found += pool_pages_find(&pages, url) != NULL;
    }
    ck_assert_uint_gt(found, POOL_CHAINS * 9 / 10);
    ck_assert_uint_lt(found, POOL_CHAINS);
    ck_assert_ptr_nonnull(pool_pages_find(&pages, "http://popular/"));
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
    tcase_add_loop_test(tcase, a_page_is_found_and_the_first_one_stays, 0, 2);
    tcase_add_loop_test(tcase, a_full_table_replaces_what_was_requested_least, 0, 2);
    suite_add_tcase(suite, tcase);
    return suite;
}
