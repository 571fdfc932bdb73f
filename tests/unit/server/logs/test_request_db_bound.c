/* The bound on the size of the request database. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/server/logs/request_db_fixture.h"

#define MIB ((uint64_t)1 << 20)

/* Rows are removed after the last one is written, too: until the two numbers are of one time. */
static void
wait_rows(struct request_db *db, uint64_t added)
{
    uint64_t rows = 0, left = 0;

    for (unsigned i = 0; i < 3000; i++) {
        rows = db_count_rows(db_path);
        left = added - db_stats(db).removed;
        if (rows == left)
            break;
        usleep(10000);
    }
    ck_assert_uint_eq(rows, left);
}

START_TEST(over_the_bound_the_oldest_rows_are_removed)
{
    struct request_db *db = db_start(MIB, 1);

    for (unsigned round = 1; round <= 10; round++) {
        db_add_many(db, 5000);
        db_wait_written(db, round * 5000);
    }
    ck_assert_uint_eq(db_stats(db).dropped, 0);
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT max(id) FROM requests"), 50000);
    ck_assert_uint_eq(
        sql_ask_number(db_path, "SELECT max(id) - min(id) + 1 - count(*) FROM requests"), 0);
    wait_rows(db, 50000);
    ck_assert_uint_gt(db_count_rows(db_path), 3000);
    request_db_close(db);
    ck_assert_uint_le(file_size(db_path), MIB);
    ck_assert_uint_gt(file_size(db_path), MIB * 3 / 4);
    db_expect_sound(db_path);
}
END_TEST

START_TEST(under_a_lower_bound_a_file_shrinks)
{
    struct request_db *db = db_start(0, 1);

    db_add_many(db, 20000);
    request_db_close(db);
    ck_assert_uint_gt(file_size(db_path), 2 * MIB);
    /* Nothing has to be added for that. */
    db = db_start(MIB / 2, 1);
    for (unsigned i = 0; db_stats(db).removed < 1000 && i < 3000; i++)
        usleep(10000);
    request_db_close(db);
    ck_assert_uint_le(file_size(db_path), MIB / 2);
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT max(id) FROM requests"), 20000);
    db_expect_sound(db_path);
}
END_TEST

START_TEST(the_newest_row_stays_under_any_bound)
{
    struct request_db *db = db_start(1, 1);

    db_add_many(db, 100);
    db_wait_written(db, 100);
    db_add_many(db, 1);
    db_wait_written(db, 101);
    request_db_close(db);
    ck_assert_str_eq(sql_ask(db_path, "SELECT id FROM requests"), "101");
}
END_TEST

START_TEST(the_log_that_a_reader_holds_is_bounded_too)
{
    enum { ROUNDS = 40, EACH_ROUND = 1000, LONG = 1000 };
    struct request_db *db;
    char log[160], url[LONG + 1];
    sqlite3 *reader;
    uint64_t most = 0;

    db_times.busy_ms = 200;
    db = db_start(16 * MIB, 1);
    snprintf(log, sizeof(log), "%s-wal", db_path);
    memset(url, 'x', LONG);
    url[LONG] = '\0';
    db_add_many(db, 10);
    db_wait_written(db, 10);
    reader = sql_begin_reading(db_path);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t written = db_stats(db).written;

        for (unsigned i = 0; i < EACH_ROUND; i++)
            db_add(db, 0, url);
        for (unsigned i = 0; db_stats(db).written < written + EACH_ROUND; i++) {
            if (db_stats(db).errors != 0)
                break;
            ck_assert_uint_lt(i, 3000);
            usleep(10000);
        }
        most = file_size(log) > most ? file_size(log) : most;
    }
    ck_assert_uint_ge(db_stats(db).errors, 1);
    ck_assert_uint_ge(db_stats(db).dropped, 1);
    ck_assert_msg(file_size(db_path) + most <= 20 * MIB, "%llu bytes of log",
                  (unsigned long long)most);
    sqlite3_close(reader);
    db_wait_written(db, 10 + (uint64_t)ROUNDS * EACH_ROUND - db_stats(db).dropped);
    request_db_close(db);
    ck_assert_uint_le(file_size(db_path), 16 * MIB);
    db_expect_sound(db_path);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db: the bound");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, db_setup, db_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, over_the_bound_the_oldest_rows_are_removed);
    tcase_add_test(tests, under_a_lower_bound_a_file_shrinks);
    tcase_add_test(tests, the_newest_row_stays_under_any_bound);
    tcase_add_test(tests, the_log_that_a_reader_holds_is_bounded_too);
    suite_add_tcase(suite, tests);
    return suite;
}
