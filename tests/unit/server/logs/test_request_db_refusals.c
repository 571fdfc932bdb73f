/* Files that are no request database of this schema, or cannot be opened. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/server/logs/request_db_fixture.h"

static void
expect_refusal(const char *part)
{
    buf_reset(&db_why);
    ck_assert_ptr_null(request_db_start(db_path, 0, 1, &db_times, &db_why));
    ck_assert_msg(strstr(buf_str(&db_why), part), "%s", buf_str(&db_why));
}

static void
write_text(const char *text)
{
    FILE *file = fopen(db_path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_file_that_is_something_else_is_refused_and_stays_as_it_is)
{
    sqlite3 *other;

    write_text("a log\n");
    expect_refusal("not an SQLite database");
    ck_assert_uint_eq(file_size(db_path), 6);
    write_text("a text that is longer than the head of a database, and is none\n");
    expect_refusal("not an SQLite database");
    unlink(db_path);
    ck_assert_int_eq(mkdir(db_path, 0700), 0);
    expect_refusal("Is a directory");
    rmdir(db_path);
    ck_assert_int_eq(mkfifo(db_path, 0600), 0);
    expect_refusal("not a regular file");
    unlink(db_path);
    other = sql_open(db_path);
    sql_run(other, "CREATE TABLE bookmarks (id, url)");
    expect_refusal("of something else");
    sql_run(other, "DROP TABLE bookmarks; PRAGMA user_version = 4");
    expect_refusal("of something else");
    sqlite3_close(other);
    ck_assert_str_eq(sql_ask(db_path, "SELECT count(*) FROM sqlite_master"), "0");
    ck_assert_str_eq(sql_ask(db_path, "PRAGMA journal_mode"), "delete");
}
END_TEST

START_TEST(another_schema_is_refused)
{
    sqlite3 *other;

    request_db_close(db_start(0, 1));
    other = sql_open(db_path);
    sql_run(other, "PRAGMA user_version = 4");
    expect_refusal("its schema is 4, of a later release");
    sql_run(other, "PRAGMA user_version = 0");
    expect_refusal("its schema is 0");
    sql_run(other, "PRAGMA user_version = 3; ALTER TABLE requests RENAME COLUMN bytes TO size");
    expect_refusal("bytes");
    sqlite3_close(other);
}
END_TEST

START_TEST(earlier_schemas_are_upgraded)
{
    static const char *const sql[] = {
        "ALTER TABLE requests DROP COLUMN user; ALTER TABLE requests DROP COLUMN reason; "
        "PRAGMA user_version = 1",
        "ALTER TABLE requests DROP COLUMN user; PRAGMA user_version = 2"};
    sqlite3 *other;

    request_db_close(db_start(0, 1));
    other = sql_open(db_path);
    sql_run(other, sql[_i]);
    sqlite3_close(other);
    request_db_close(db_start(0, 1));
    ck_assert_str_eq(sql_ask(db_path, "PRAGMA user_version"), "3");
    ck_assert_str_eq(sql_ask(db_path, "SELECT name FROM pragma_table_info('requests') "
                                      "ORDER BY cid DESC LIMIT 2"),
                     "user\nreason");
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_refused)
{
    sqlite3 *other;

    snprintf(db_path, sizeof(db_path), "%s/none/requests.db", db_folder);
    expect_refusal("No such file");
    snprintf(db_path, sizeof(db_path), "%s/requests.db", db_folder);
    request_db_close(db_start(0, 1));
    other = sql_open(db_path);
    sql_run(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    expect_refusal("another process has locked it");
    sqlite3_close(other);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db: refusals");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, db_setup, db_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_file_that_is_something_else_is_refused_and_stays_as_it_is);
    tcase_add_test(tests, another_schema_is_refused);
    tcase_add_loop_test(tests, earlier_schemas_are_upgraded, 0, 2);
    tcase_add_test(tests, a_file_that_cannot_be_opened_is_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
