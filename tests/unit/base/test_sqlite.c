#define UNIT_STARTS_NO_THREAD

#include "base/sqlite.h"

#include "tests/unit/unit.h"

static sqlite3 *handle;

static void
set_up(void)
{
    ck_assert_int_eq(sqlite3_open(":memory:", &handle), SQLITE_OK);
}

static void
tear_down(void)
{
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
}

START_TEST(a_number_is_that_of_the_first_column_and_row)
{
    int64_t number = 0;

    ck_assert_int_eq(sqlite_read_number(
                         handle, "SELECT 1099511627776, 2 UNION SELECT 1099511627777, 3", &number),
                     SQLITE_OK);
    ck_assert_int_eq(number, INT64_C(1) << 40);
}
END_TEST

/* tear_down() could not close the connection if a statement were left. */
START_TEST(without_a_row_there_is_no_number)
{
    int64_t number = 7;

    ck_assert_int_eq(sqlite_run(handle, "CREATE TABLE t (x)"), SQLITE_OK);
    ck_assert_int_eq(sqlite_read_number(handle, "SELECT x FROM t", &number), SQLITE_ERROR);
    ck_assert_int_eq(sqlite_read_number(handle, "SELECT y FROM t", &number), SQLITE_ERROR);
    ck_assert_int_eq(sqlite_read_number(handle, "SELECT abs(-9223372036854775808)", &number),
                     SQLITE_ERROR);
    ck_assert_int_eq(number, 7);
}
END_TEST

START_TEST(nothing_in_a_schema_runs_that_is_not_trusted)
{
    int64_t number = 0;

    ck_assert_int_eq(
        sqlite_run(handle,
                   "CREATE TABLE t (x); CREATE TABLE log (x); CREATE VIEW v AS SELECT 1;"
                   "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO log VALUES (1); END"),
        SQLITE_OK);
    ck_assert_int_eq(sqlite_distrust_schema(handle), SQLITE_OK);
    ck_assert_int_eq(sqlite_run(handle, "INSERT INTO t VALUES (1)"), SQLITE_OK);
    ck_assert_int_eq(sqlite_read_number(handle, "SELECT count(*) FROM log", &number), SQLITE_OK);
    ck_assert_int_eq(number, 0);
    ck_assert_int_ne(sqlite_run(handle, "SELECT * FROM v"), SQLITE_OK);
    ck_assert_int_eq(sqlite_run(handle, "PRAGMA writable_schema = ON"), SQLITE_OK);
    ck_assert_int_ne(sqlite_run(handle, "DELETE FROM sqlite_master"), SQLITE_OK);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("base/sqlite");
    TCase *tcase = tcase_create("sqlite");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, a_number_is_that_of_the_first_column_and_row);
    tcase_add_test(tcase, without_a_row_there_is_no_number);
    tcase_add_test(tcase, nothing_in_a_schema_runs_that_is_not_trusted);
    suite_add_tcase(suite, tcase);
    return suite;
}
