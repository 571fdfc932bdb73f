/* The request database is opened anew, after its file was moved away, removed, or neither. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/server/logs/request_db_fixture.h"

static void
await_new_file(void)
{
    for (unsigned i = 0; access(db_path, F_OK) != 0; i++) {
        ck_assert_uint_lt(i, 3000);
        usleep(10000);
    }
}

START_TEST(a_damaged_file_is_replaced_by_a_new_one_when_it_was_moved_away)
{
    struct request_db *db = db_start(0, 1);
    char garbage[8192];
    int fd;

    db_add_many(db, 1000);
    db_wait_written(db, 1000);
    request_db_close(db);
    memset(garbage, 0xa5, sizeof(garbage));
    fd = open(db_path, O_WRONLY);
    for (off_t at = 4096; at < (off_t)file_size(db_path); at += 4096)
        ck_assert_int_eq(pwrite(fd, garbage, 4096, at), 4096);
    close(fd);
    db = db_start(0, 1);
    db_add_many(db, 5);
    db_wait_errors(db, 1);
    ck_assert_uint_eq(db_stats(db).written, 0);
    ck_assert_int_eq(rename(db_path, db_moved), 0);
    request_db_reopen(db);
    db_wait_written(db, 5);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), 5);
}
END_TEST

START_TEST(an_old_file_that_was_moved_away_has_its_rows_and_the_new_one_later_ones)
{
    struct request_db *db = db_start(0, 1);

    db_add_many(db, 100);
    db_wait_written(db, 100);
    ck_assert_int_eq(rename(db_path, db_moved), 0);
    db_add_many(db, 20);
    request_db_reopen(db);
    /* The reopening waits two seconds at most. */
    await_new_file();
    ck_assert_uint_eq(db_stats(db).written, 120);
    db_add_many(db, 3);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_moved), 120);
    db_expect_sound(db_moved);
    ck_assert_uint_eq(db_count_rows(db_path), 3);
}
END_TEST

/* Writes 110 rows, of which 100 stay in the log for the reader that is returned. */
static sqlite3 *
write_beside_reader(struct request_db *db)
{
    sqlite3 *reader;

    db_add_many(db, 10);
    db_wait_written(db, 10);
    reader = sql_begin_reading(db_path);
    db_add_many(db, 100);
    db_wait_written(db, 110);
    return reader;
}

START_TEST(a_file_that_was_moved_away_while_it_is_read_is_left_with_all_of_its_rows)
{
    struct request_db *db;
    sqlite3 *reader;

    db_times.reopen_us = 200000;
    db = db_start(0, 1);
    reader = write_beside_reader(db);
    ck_assert_int_eq(rename(db_path, db_moved), 0);
    request_db_reopen(db);
    db_add_many(db, 20);
    db_wait_written(db, 130);
    ck_assert_int_ne(access(db_path, F_OK), 0);
    sqlite3_close(reader);
    await_new_file();
    db_add_many(db, 3);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_moved), 130);
    db_expect_sound(db_moved);
    ck_assert_uint_eq(db_count_rows(db_path), 3);
}
END_TEST

START_TEST(a_file_that_was_removed_is_left_at_once)
{
    struct request_db *db = db_start(0, 1);
    sqlite3 *reader = write_beside_reader(db);

    ck_assert_int_eq(unlink(db_path), 0);
    request_db_reopen(db);
    ck_assert_int_eq(access(db_path, F_OK), 0);
    db_add_many(db, 3);
    request_db_close(db);
    sqlite3_close(reader);
    ck_assert_uint_eq(db_count_rows(db_path), 3);
    db_expect_sound(db_path);
}
END_TEST

START_TEST(log_and_index_of_another_file_are_not_those_of_an_empty_one)
{
    struct request_db *db;
    struct stat before, after;
    char index[160];
    FILE *f;

    snprintf(index, sizeof(index), "%s-shm", db_path);
    f = fopen(index, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fputs("left", f) >= 0 && fstat(fileno(f), &before) == 0, 1);
    db = db_start(0, 1);
    ck_assert_int_eq(stat(index, &after), 0);
    fclose(f);
    ck_assert_uint_ne(before.st_ino, after.st_ino);
    request_db_close(db);
}
END_TEST

START_TEST(reopening_without_a_move_goes_on_in_the_same_file)
{
    struct request_db *db = db_start(0, 1);

    for (unsigned i = 0; i < 3; i++) {
        db_add_many(db, 10);
        request_db_reopen(db);
    }
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), 30);
}
END_TEST

START_TEST(a_reopening_that_fails_is_tried_again)
{
    struct request_db *db;

    db_times.reopen_us = 200000;
    db = db_start(0, 1);
    ck_assert_int_eq(rename(db_path, db_moved), 0);
    ck_assert_int_eq(mkdir(db_path, 0700), 0);
    request_db_reopen(db);
    db_wait_errors(db, 1);
    db_add_many(db, 10);
    db_wait_errors(db, 2);
    ck_assert_int_eq(rmdir(db_path), 0);
    db_wait_written(db, 10);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), 10);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db: reopening");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, db_setup, db_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_damaged_file_is_replaced_by_a_new_one_when_it_was_moved_away);
    tcase_add_test(tests, an_old_file_that_was_moved_away_has_its_rows_and_the_new_one_later_ones);
    tcase_add_test(tests, a_file_that_was_moved_away_while_it_is_read_is_left_with_all_of_its_rows);
    tcase_add_test(tests, a_file_that_was_removed_is_left_at_once);
    tcase_add_test(tests, log_and_index_of_another_file_are_not_those_of_an_empty_one);
    tcase_add_test(tests, reopening_without_a_move_goes_on_in_the_same_file);
    tcase_add_test(tests, a_reopening_that_fails_is_tried_again);
    suite_add_tcase(suite, tests);
    return suite;
}
