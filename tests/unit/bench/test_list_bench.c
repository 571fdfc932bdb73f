/* The measurement of locks of a list: no key is lost, whatever the lock and the threads. */
#include "tests/bench/list_bench.h"

#include "tests/unit/unit.h"

/* Keys of a small range are found, inserted again and deleted often. */
static const struct list_bench_config ordinary = {.threads = 1,
                                                  .keys = 100,
                                                  .operations = 6001,
                                                  .members = 50,
                                                  .inserts = 25,
                                                  .range = 300,
                                                  .seed = 7};

static struct list_bench_result
run(struct list_bench_config config)
{
    struct list_bench *bench = list_bench_create(&config);
    struct list_bench_result result;

    ck_assert_ptr_nonnull(bench);
    ck_assert_uint_eq(list_bench_count(bench), config.keys);
    ck_assert(list_bench_run(bench, &result));
    ck_assert_uint_eq(list_bench_count(bench), config.keys + result.inserted - result.deleted);
    ck_assert_int_gt(result.elapsed_us, 0);
    ck_assert_int_gt(result.cpu_us, 0);
    list_bench_destroy(bench);
    return result;
}

START_TEST(threads_lose_no_key)
{
    struct list_bench_config config = ordinary;
    struct list_bench_result result;

    config.lock = (enum list_lock)_i;
    config.threads = 5;
    result = run(config);
    ck_assert_uint_gt(result.found, 500);
    ck_assert_uint_gt(result.inserted, 100);
    ck_assert_uint_gt(result.deleted, 100);
}
END_TEST

START_TEST(locks_do_not_change_what_one_thread_does)
{
    struct list_bench_config config = ordinary;
    struct list_bench_result first = run(config), other;

    config.lock = (enum list_lock)_i;
    other = run(config);
    ck_assert_uint_eq(other.found, first.found);
    ck_assert_uint_eq(other.inserted, first.inserted);
    ck_assert_uint_eq(other.deleted, first.deleted);
}
END_TEST

START_TEST(all_operations_are_done)
{
    struct list_bench_config config = ordinary;

    config.members = 0;
    config.inserts = 100;
    config.keys = 0;
    config.range = (uint64_t)1 << 40; /* no key is drawn twice */
    config.threads = 4;
    config.lock = (enum list_lock)_i;
    config.operations = 1001;
    ck_assert_uint_eq(run(config).inserted, config.operations);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("list_bench");
    TCase *tcase = tcase_create("list_bench");

    tcase_add_loop_test(tcase, threads_lose_no_key, LIST_RWLOCK, LIST_NODE_MUTEX + 1);
    tcase_add_loop_test(tcase, locks_do_not_change_what_one_thread_does, LIST_MUTEX,
                        LIST_NODE_MUTEX + 1);
    tcase_add_loop_test(tcase, all_operations_are_done, LIST_RWLOCK, LIST_NODE_MUTEX + 1);
    suite_add_tcase(suite, tcase);
    return suite;
}
