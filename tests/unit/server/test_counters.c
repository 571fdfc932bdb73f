#include "server/counters.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "tests/unit/unit.h"

#define WORKERS 2
#define ROUNDS 20000

static struct counters *counters;
static _Atomic bool over;

static void *
count(void *argument)
{
    unsigned worker = (unsigned)(uintptr_t)argument;

    while (!atomic_load(&over)) {
        counters_add(counters, worker, COUNT_REQUESTS, 1);
        counters_add(counters, worker, COUNT_BYTES_SERVED, 100);
    }
    return NULL;
}

static void *
rebase(void *argument)
{
    (void)argument;
    while (!atomic_load(&over))
        counters_rebase(counters);
    return NULL;
}

START_TEST(sums_of_all_workers_since_the_last_rebase)
{
    uint64_t sums[COUNTERS];

    counters = counters_create(WORKERS);
    ck_assert_ptr_nonnull(counters);
    counters_add(counters, 0, COUNT_HITS, 3);
    counters_add(counters, 1, COUNT_HITS, 4);
    counters_read(counters, sums);
    ck_assert_uint_eq(sums[COUNT_HITS], 7);
    ck_assert_uint_eq(sums[COUNT_MISSES], 0);
    counters_rebase(counters);
    counters_add(counters, 1, COUNT_HITS, 5);
    counters_read(counters, sums);
    ck_assert_uint_eq(sums[COUNT_HITS], 5);
    counters_destroy(counters);
}
END_TEST

/* A base taken after the sum would leave a difference below zero: some 2^64 requests. */
START_TEST(nobody_reads_less_than_nothing)
{
    pthread_t threads[WORKERS + 1];
    uint64_t sums[COUNTERS];

    counters = counters_create(WORKERS);
    ck_assert_ptr_nonnull(counters);
    atomic_store(&over, false);
    for (uintptr_t i = 0; i < WORKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count, (void *)i), 0);
    ck_assert_int_eq(pthread_create(&threads[WORKERS], NULL, rebase, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        counters_read(counters, sums);
        for (unsigned which = 0; which < COUNTERS; which++)
            ck_assert_uint_lt(sums[which], UINT64_MAX / 2);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i <= WORKERS; i++)
        pthread_join(threads[i], NULL);
    counters_destroy(counters);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/counters");
    TCase *tc = tcase_create("counters");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, sums_of_all_workers_since_the_last_rebase);
    tcase_add_test(tc, nobody_reads_less_than_nothing);
    suite_add_tcase(suite, tc);
    return suite;
}
