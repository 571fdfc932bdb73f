/* Failures while the request database is written: a locked file, a full disk. */
#include <sys/resource.h>

#include "tests/unit/server/logs/request_db_fixture.h"

START_TEST(while_the_file_is_locked_requests_wait_and_are_dropped_when_the_queue_is_full)
{
    struct request_db *db;
    sqlite3 *other;
    struct request_db_stats stats;
    const unsigned count = 20000;

    db_times.busy_ms = 200;
    db = db_start(0, 16);
    other = sql_open(db_path);
    sql_run(other, "BEGIN IMMEDIATE");
    db_add_many(db, count);
    db_wait_errors(db, 1);
    stats = db_stats(db);
    ck_assert_uint_eq(stats.written, 0);
    ck_assert_uint_gt(stats.dropped, 0);
    ck_assert_uint_lt(stats.dropped, count);
    sql_run(other, "COMMIT");
    sqlite3_close(other);
    db_wait_written(db, count - stats.dropped);
    db_add(db, 0, "http://a.test/after");
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), count - stats.dropped + 1);
    /* The oldest of those that waited are there. */
    ck_assert_str_eq(sql_ask(db_path, "SELECT url FROM requests WHERE id IN (1, 2)"),
                     "http://origin.test/page/000000\nhttp://origin.test/page/000001");
}
END_TEST

START_TEST(at_the_end_a_locked_file_is_not_waited_for_without_limit)
{
    struct request_db *db;
    sqlite3 *other;

    db_times.busy_ms = 200;
    db_times.last_us = 400000;
    db = db_start(0, 1);
    other = sql_open(db_path);
    sql_run(other, "BEGIN IMMEDIATE");
    db_add_many(db, 10);
    request_db_close(db);
    sql_run(other, "COMMIT");
    sqlite3_close(other);
    ck_assert_uint_eq(db_count_rows(db_path), 0);
}
END_TEST

START_TEST(what_a_full_disk_does_not_take_is_written_later)
{
    struct request_db *db = db_start(0, 1);
    struct rlimit limit, low;

    db_add_many(db, 10);
    db_wait_written(db, 10);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = (struct rlimit){.rlim_cur = file_size(db_path), .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    db_add_many(db, 2000);
    db_wait_errors(db, 2);
    ck_assert_uint_eq(db_stats(db).written, 10);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    db_wait_written(db, 2010);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), 2010);
    db_expect_sound(db_path);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db: failures");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, db_setup, db_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests,
                   while_the_file_is_locked_requests_wait_and_are_dropped_when_the_queue_is_full);
    tcase_add_test(tests, at_the_end_a_locked_file_is_not_waited_for_without_limit);
    tcase_add_test(tests, what_a_full_disk_does_not_take_is_written_later);
    suite_add_tcase(suite, tests);
    return suite;
}
