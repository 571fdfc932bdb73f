/* The measurement of the table: entries are where they were wanted, and all are found. */
#include "tests/bench/table_bench.h"

#include <stddef.h>

#include "tests/unit/unit.h"

#define ENTRIES 500

static const struct table_bench_config ordinary = {
    .parts = 4, .threads = 3, .lookups = 50, .entries = ENTRIES, .duration_us = 20000};

START_TEST(entries_begin_where_they_should)
{
    static const struct {
        enum table_layout layout;
        unsigned offset;
        uint64_t least, most;
    } rows[] = {{TABLE_ALIGNED, 0, ENTRIES, ENTRIES},
                {TABLE_ALL_ALIGNED, 0, ENTRIES, ENTRIES},
                {TABLE_MISALIGNED, 40, ENTRIES, ENTRIES},
                {TABLE_AS_IS, 40, 0, 0}}; /* malloc() aligns to 16 */

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct table_bench_config config = ordinary;
        struct table_bench *bench;

        config.layout = rows[i].layout;
        bench = table_bench_create(&config);
        ck_assert_ptr_nonnull(bench);
        ck_assert_uint_ge(table_bench_count_at(bench, rows[i].offset), rows[i].least);
        ck_assert_uint_le(table_bench_count_at(bench, rows[i].offset), rows[i].most);
        ck_assert(table_bench_is_valid(bench));
        table_bench_destroy(bench);
    }
}
END_TEST

START_TEST(threads_find_all_and_lose_none)
{
    for (int lock = TABLE_MUTEX; lock <= TABLE_RWLOCK; lock++) {
        for (int layout = TABLE_AS_IS; layout <= TABLE_ALL_ALIGNED; layout++) {
            struct table_bench_config config = ordinary;
            struct table_bench_result result;
            struct table_bench *bench;

            config.lock = (enum table_lock)lock;
            config.layout = (enum table_layout)layout;
            bench = table_bench_create(&config);
            ck_assert_ptr_nonnull(bench);
            for (int run = 0; run < 2; run++) {
                ck_assert(table_bench_run(bench, &result));
                ck_assert_uint_gt(result.operations, 0);
                ck_assert_uint_eq(result.missing, 0);
                ck_assert_int_ge(result.elapsed_us, config.duration_us);
                ck_assert_int_gt(result.cpu_us, 0);
                ck_assert(table_bench_is_valid(bench));
            }
            table_bench_destroy(bench);
        }
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("bench/table");
    TCase *tcase = tcase_create("table");

    tcase_add_test(tcase, entries_begin_where_they_should);
    tcase_add_test(tcase, threads_find_all_and_lose_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
