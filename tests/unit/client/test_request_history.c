/* The reports of sunproxy stat --since, of databases with few rows. */
#define UNIT_STARTS_NO_THREAD

#include "client/request_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/request_schema.h"
#include "tests/unit/unit.h"

#define HOUR INT64_C(3600000000)
#define NUMBERS "PRAGMA application_id = 0x73756e70; PRAGMA user_version = 1;"

static char folder[64], path[128];
static sqlite3 *writer, *history;
static struct buf why, text;

static void
run(const char *sql)
{
    char *error = NULL;

    ck_assert_msg(sqlite3_exec(writer, sql, NULL, NULL, &error) == SQLITE_OK, "%s", error);
}

static void
setup(void)
{
    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/a %%41?#.db", folder);
    ck_assert_int_eq(sqlite3_open(path, &writer), SQLITE_OK);
    buf_init(&why, 1024);
    buf_init(&text, 1 << 20);
}

static void
teardown(void)
{
    static const char *const ends[] = {"", "-wal", "-shm"};

    sqlite3_close(history);
    sqlite3_close(writer);
    history = writer = NULL;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[160];

        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
    ck_assert_int_eq(rmdir(folder), 0);
    buf_free(&why);
    buf_free(&text);
}

static void
add(int64_t time_us, const char *url, const char *origin, const char *outcome, int64_t fetch_us,
    int bytes)
{
    char sql[512];

    snprintf(sql, sizeof(sql),
             "INSERT INTO requests (time_us, duration_us, fetch_us, protocol, client, method, url, "
             "origin, outcome, status, bytes) VALUES (%" PRId64 ", 1, nullif(%" PRId64
             ", -1), 'http', '-', 'GET', '%s', nullif('%s', ''), '%s', 200, %d)",
             time_us, fetch_us, url, origin, outcome, bytes);
    run(sql);
}

static void
open_history(void)
{
    history = request_history_open(path, &why);
    ck_assert_msg(history, "%s", buf_str(&why));
}

static const struct report *
report(const char *key)
{
    for (const struct report *r = request_reports; r->key; r++)
        if (strcmp(r->key, key) == 0)
            return r;
    ck_abort_msg("no report %s", key);
    return NULL;
}

/* The rows, columns separated by blanks, rows by ';'. */
static const char *
ask(const char *key, int64_t since_us, int64_t until_us, uint64_t top)
{
    sqlite3_stmt *rows = request_history_ask(history, report(key), since_us, until_us, top, &why);
    int rc;

    ck_assert_msg(rows, "%s", buf_str(&why));
    buf_reset(&text);
    while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
        ck_assert_int_le(sqlite3_column_count(rows), REPORT_COLUMNS);
        for (int i = 0; i < sqlite3_column_count(rows); i++) {
            const char *value = (const char *)sqlite3_column_text(rows, i);

            ck_assert_ptr_nonnull(report(key)->columns[i].key);
            buf_printf(&text, "%s%s", i ? " " : text.len ? "; " : "", value ? value : "-");
        }
        ck_assert_ptr_null(report(key)->columns[sqlite3_column_count(rows)].key);
    }
    ck_assert_int_eq(rc, SQLITE_DONE);
    sqlite3_finalize(rows);
    return buf_str(&text);
}

static void
make_rows(void)
{
    run("PRAGMA journal_mode = WAL;" REQUEST_SCHEMA_SQL NUMBERS);
    add(HOUR, "http://a/1", "http://a", "miss", 5000, 100);
    add(HOUR + 1, "http://a/1", "http://a", "hit", -1, 100);
    add(HOUR + 2, "http://a/2", "http://a", "coalesced", -1, 200);
    add(2 * HOUR - 1, "http://b/", "http://b", "timed_out", 30000, 0);
    add(3 * HOUR, "http://a/1", "http://a", "hit", -1, 300);
    add(3 * HOUR, "http://a/1", "http://a", "stale", 7000, 100);
    /* No requests for pages. */
    add(3 * HOUR, "b:443", "b:443", "tunnel", -1, 1000);
    add(3 * HOUR, "-", "", "local", -1, 50);
    /* No fetches that the origin has answered or failed. */
    add(4 * HOUR, "http://c/", "http://c", "denied", 900000, 0);
}

START_TEST(totals)
{
    make_rows();
    open_history();
    ck_assert_str_eq(ask("total", 0, INT64_MAX, 10),
                     "7 42.8571428571429 28.5714285714286 75.0 50.0 2 800 3600000000 14400000000");
    ck_assert_str_eq(ask("total", HOUR + 1, HOUR + 2, 10),
                     "1 100.0 100.0 100.0 100.0 0 100 3600000001 3600000001");
    ck_assert_str_eq(ask("total", 9 * HOUR, INT64_MAX, 10), "0 - - - - 0 0 - -");
}
END_TEST

START_TEST(hours_in_their_order)
{
    make_rows();
    open_history();
    ck_assert_str_eq(ask("hours", 0, INT64_MAX, 1),
                     "3600000000 4 50.0 25.0 25.0 1 400; 10800000000 2 50.0 50.0 75.0 0 400; "
                     "14400000000 1 0.0 0.0 - 1 0");
    for (int64_t hour = 0; hour < 300; hour++)
        add((1000 + hour) * HOUR, "http://a/", "http://a", "hit", -1, 1);
    ck_assert_int_eq(strncmp(ask("hours", 0, INT64_MAX, 1), "4075200000000 1 ", 16), 0);
}
END_TEST

START_TEST(urls_with_the_most_requests)
{
    make_rows();
    open_history();
    ck_assert_str_eq(ask("urls", 0, INT64_MAX, 2), "4 50.0 600 http://a/1; 1 0.0 200 http://a/2");
    ck_assert_str_eq(ask("urls", 4 * HOUR, INT64_MAX, 2), "1 0.0 0 http://c/");
}
END_TEST

START_TEST(origins_with_the_slowest_fetches)
{
    make_rows();
    open_history();
    ck_assert_str_eq(ask("origins", 0, INT64_MAX, 10),
                     "1 1 30000.0 30000 30000 http://b; 2 0 6000.0 7000 7000 http://a");
    ck_assert_str_eq(ask("origins", 0, INT64_MAX, 1), "1 1 30000.0 30000 30000 http://b");
    for (int i = 1; i <= 100; i++)
        add(9 * HOUR, "http://d/", "http://d", "miss", i * 1000, 0);
    ck_assert_str_eq(ask("origins", 9 * HOUR, INT64_MAX, 10),
                     "100 0 50500.0 95000 100000 http://d");
}
END_TEST

/* Each is bounded to the times that are asked for, by the index. */
START_TEST(reports_read_no_other_times)
{
    make_rows();
    open_history();
    for (const struct report *r = request_reports; r->key; r++) {
        char sql[2048];
        sqlite3_stmt *plan;
        bool uses_index = false;

        snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", r->sql);
        ck_assert_int_eq(sqlite3_prepare_v2(history, sql, -1, &plan, NULL), SQLITE_OK);
        while (sqlite3_step(plan) == SQLITE_ROW) {
            const char *detail = (const char *)sqlite3_column_text(plan, 3);

            if (strstr(detail, "SEARCH requests USING INDEX requests_by_time (time_us>? AND "
                               "time_us<?)"))
                uses_index = true;
            ck_assert_msg(!strstr(detail, "SCAN requests"), "%s: %s", r->key, detail);
        }
        ck_assert_msg(uses_index, "%s", r->key);
        sqlite3_finalize(plan);
    }
}
END_TEST

START_TEST(a_database_that_is_being_written)
{
    make_rows();
    open_history();
    run("BEGIN IMMEDIATE");
    add(5 * HOUR, "http://a/", "http://a", "hit", -1, 0);
    ck_assert_int_eq(strncmp(ask("total", 0, INT64_MAX, 1), "7 ", 2), 0);
    run("COMMIT");
    ck_assert_int_eq(strncmp(ask("total", 0, INT64_MAX, 1), "8 ", 2), 0);
    ck_assert_int_ne(sqlite3_exec(history, "DELETE FROM requests", NULL, NULL, NULL), SQLITE_OK);
}
END_TEST

START_TEST(beside_a_database_at_rest_no_file_is_made)
{
    char name[160];

    make_rows();
    sqlite3_close(writer);
    writer = NULL;
    open_history();
    ck_assert_int_eq(strncmp(ask("total", 0, INT64_MAX, 1), "7 ", 2), 0);
    snprintf(name, sizeof(name), "%s-shm", path);
    ck_assert_int_ne(access(name, F_OK), 0);
    sqlite3_close(history);
    history = NULL;
    snprintf(name, sizeof(name), "%s-wal", path);
    ck_assert_int_ne(access(name, F_OK), 0);
}
END_TEST

START_TEST(a_database_at_rest_that_is_written_meanwhile)
{
    make_rows();
    sqlite3_close(writer);
    writer = NULL;
    open_history();
    ck_assert_int_eq(strncmp(ask("total", 0, INT64_MAX, 1), "7 ", 2), 0);
    ck_assert(request_history_is_sound(history));
    ck_assert_int_eq(sqlite3_open(path, &writer), SQLITE_OK);
    run("BEGIN IMMEDIATE");
    add(5 * HOUR, "http://a/", "http://a", "hit", -1, 0);
    run("COMMIT");
    ck_assert(!request_history_is_sound(history));
    sqlite3_close(history);
    open_history();
    ck_assert(request_history_is_sound(history));
}
END_TEST

static const struct {
    const char *sql, *word;
} refused[] = {
    {"CREATE TABLE requests (id)", "not a database of sunproxyd"},
    {"PRAGMA application_id = 0x73756e70; PRAGMA user_version = 4", "its schema is 4"},
    {NUMBERS "CREATE TABLE other (id)", "no such table"},
    {NUMBERS "CREATE VIEW requests AS SELECT 1 AS time_us, 'hit' AS outcome, 1 AS bytes, "
             "hex(zeroblob(1000000000)) AS url",
     "view"},
};

START_TEST(what_is_no_such_database)
{
    run(refused[_i].sql);
    history = request_history_open(path, &why);
    if (history)
        ck_assert_ptr_null(request_history_ask(history, report("total"), 0, INT64_MAX, 1, &why));
    ck_assert_msg(strstr(buf_str(&why), refused[_i].word), "%s", buf_str(&why));
}
END_TEST

START_TEST(what_is_no_database)
{
    FILE *file = fopen(path, "w");

    fputs("a text that is longer than the head of a database, which has one hundred bytes, "
          "some of which are zero, and is none\n",
          file);
    fclose(file);
    ck_assert_ptr_null(request_history_open(path, &why));
    ck_assert_msg(strstr(buf_str(&why), "not a database"), "%s", buf_str(&why));
    buf_reset(&why);
    unlink(path);
    ck_assert_ptr_null(request_history_open(path, &why));
    ck_assert_str_eq(buf_str(&why), "No such file or directory");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client/request_history");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, totals);
    tcase_add_test(tests, hours_in_their_order);
    tcase_add_test(tests, urls_with_the_most_requests);
    tcase_add_test(tests, origins_with_the_slowest_fetches);
    tcase_add_test(tests, reports_read_no_other_times);
    tcase_add_test(tests, a_database_that_is_being_written);
    tcase_add_test(tests, a_database_at_rest_that_is_written_meanwhile);
    tcase_add_test(tests, beside_a_database_at_rest_no_file_is_made);
    tcase_add_loop_test(tests, what_is_no_such_database, 0,
                        (int)(sizeof(refused) / sizeof(refused[0])));
    tcase_add_test(tests, what_is_no_database);
    suite_add_tcase(suite, tests);
    return suite;
}
