/* Chrome's History: databases made here for every way in which one can be odd or broken. */
#include "tests/unit/trace/chrome.h"

#define EPOCH_1601_US 11644473600000000

/* ---- what is read -------------------------------------------------------------------------- */

START_TEST(order_times_and_ties)
{
    struct trace *t;

    chrome_make("History",
                "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'https://b.test/'),"
                "(3,'http://a.test/');"
                "INSERT INTO visits VALUES(1,1,13000000000000002),(4,3,13000000000000001),"
                "(3,2,13000000000000001),(2,1,13000000000000001),(9,2,0),(8,2,-5);");
    t = chrome_load_ok("History");
    ck_assert_uint_eq(t->request_count, 6);
    ck_assert_uint_eq(t->url_count, 2); /* two rows, one URL */
    ck_assert_str_eq(t->urls[0].ptr, "https://b.test/");
    ck_assert_int_eq(t->times_us[0], -5 - EPOCH_1601_US);
    ck_assert_int_eq(t->times_us[1], -EPOCH_1601_US);
    ck_assert_int_eq(t->times_us[2], 13000000000000001 - EPOCH_1601_US);
    ck_assert_uint_eq(t->ids[2], 1);
    ck_assert_uint_eq(t->ids[3], 0);
    ck_assert_uint_eq(t->ids[4], 1);
    ck_assert_int_eq(t->times_us[5], 13000000000000002 - EPOCH_1601_US);
    ck_assert_ptr_null(t->sizes);
    trace_free(t);
}
END_TEST

/* A search was for the name of a table of Firefox. */
START_TEST(words_of_another_browser)
{
    struct trace *t;

    chrome_make("History", "INSERT INTO urls VALUES"
                           "(1,'https://www.google.com/search?q=moz_historyvisits');"
                           "INSERT INTO visits VALUES(1,1,13000000000000002);");
    t = chrome_load_ok("History");
    ck_assert_uint_eq(t->request_count, 1);
    trace_free(t);
}
END_TEST

START_TEST(since_until_and_limit)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    chrome_make("History",
                "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'http://b.test/');"
                "INSERT INTO visits VALUES(1,1,11644473600000000),(2,2,11644473600000001),"
                "(3,1,11644473600000002),(4,2,11644473600000003);");
    options.since_us = 1;
    options.until_us = 3;
    ck_assert_int_eq(chrome_load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 2);
    ck_assert_int_eq(t->times_us[0], 1);
    ck_assert_int_eq(t->times_us[1], 2);
    ck_assert_uint_eq(t->counts.skipped_time, 2);
    trace_free(t);
    options.limit = 1;
    ck_assert_int_eq(chrome_load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 1);
    ck_assert_str_eq(t->urls[0].ptr, "http://b.test/");
    trace_free(t);
    options.since_us = 9;
    options.until_us = INT64_MAX;
    ck_assert_int_eq(chrome_load("History", options, &t), TRACE_EMPTY);
    ck_assert_ptr_nonnull(strstr(chrome_why, "4 outside the chosen times"));
}
END_TEST

START_TEST(what_is_left_out)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    chrome_make(
        "History",
        "INSERT INTO urls VALUES(1,'http://a.test/'),(2,'chrome://newtab/'),(3,NULL),"
        "(4,x'687474703a2f2f622e746573742f'),(5,'file:///x'),(6,''),"
        "(7,CAST(x'687474703a2f2f622e7465737400' AS TEXT));"
        "INSERT INTO visits(url,visit_time) VALUES(1,1),(2,2),(3,3),(4,4),(5,5),(6,6),(7,7),"
        "(8,8),(9,9),(1,'yesterday'),(1,-9223372036854775808),(1,1.5),(1,10);");
    t = chrome_load_ok("History");
    ck_assert_uint_eq(t->request_count, 2);
    ck_assert_uint_eq(t->counts.skipped_scheme, 2);
    ck_assert_uint_eq(t->counts.skipped_orphan, 2);
    ck_assert_uint_eq(t->counts.skipped_bad, 7);
    trace_free(t);
    options.all_schemes = true;
    ck_assert_int_eq(chrome_load("History", options, &t), TRACE_OK);
    ck_assert_uint_eq(t->request_count, 4);
    ck_assert_uint_eq(t->counts.skipped_scheme, 0);
    trace_free(t);
}
END_TEST

START_TEST(utf16_is_understood)
{
    sqlite3 *db = chrome_open("History");
    struct trace *t;

    chrome_run(db, "PRAGMA encoding = 'UTF-16';");
    chrome_run(db, chrome_schema);
    chrome_run(db, "INSERT INTO urls VALUES(1,'http://a.test/');INSERT INTO visits VALUES(1,1,1);");
    sqlite3_close(db);
    t = chrome_load_ok("History");
    ck_assert_str_eq(t->urls[0].ptr, "http://a.test/");
    trace_free(t);
}
END_TEST

/* An index of times from which a visit is missing: the table has it all the same. */
START_TEST(a_damaged_index_does_not_matter)
{
    struct trace *t;
    sqlite3 *db;

    chrome_make("History",
                "INSERT INTO urls VALUES(1,'http://a.test/');"
                "INSERT INTO visits VALUES(1,1,1),(2,1,2);PRAGMA writable_schema=ON;"
                "CREATE TABLE saved AS SELECT * FROM sqlite_master WHERE type='index' AND "
                "tbl_name='visits';"
                "DELETE FROM sqlite_master WHERE name='visits_time_index';");
    db = chrome_open("History");
    chrome_run(db, "INSERT INTO visits VALUES(3,1,3);PRAGMA writable_schema=ON;"
                   "INSERT INTO sqlite_master SELECT * FROM saved;");
    sqlite3_close(db);
    t = chrome_load_ok("History");
    ck_assert_uint_eq(t->request_count, 3);
    trace_free(t);
}
END_TEST

/* ---- broken -------------------------------------------------------------------------------- */

START_TEST(other_tables_and_columns)
{
    sqlite3 *db = chrome_open("places.sqlite");

    chrome_run(db, "CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url TEXT)");
    sqlite3_close(db);
    chrome_refuse("places.sqlite", TRACE_NOT_A_TRACE,
                  "no such table: visits; expected Chrome's tables");
    db = chrome_open("columns");
    chrome_run(db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
                   "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_date INTEGER)");
    sqlite3_close(db);
    chrome_refuse("columns", TRACE_NOT_A_TRACE, "no such column: v.visit_time");
    db = chrome_open("urls");
    chrome_run(db, "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER)");
    sqlite3_close(db);
    chrome_refuse("urls", TRACE_NOT_A_TRACE, "no such table: urls");
}
END_TEST

/* A view could run for ever; none is asked. */
START_TEST(views_are_not_run)
{
    sqlite3 *db = chrome_open("History");

    chrome_run(
        db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
            "CREATE VIEW visits AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) "
            "SELECT i AS id, i AS url, i AS visit_time FROM n;");
    sqlite3_close(db);
    chrome_refuse("History", TRACE_NOT_A_TRACE, "expected Chrome's tables");
}
END_TEST

/* Nor is an expression that stands in for a column. */
START_TEST(computed_columns_are_refused)
{
    sqlite3 *db = chrome_open("History");

    chrome_run(db, "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT AS (hex(id)));"
                   "CREATE TABLE visits(id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);"
                   "INSERT INTO urls VALUES(1); INSERT INTO visits VALUES(1, 1, 1);");
    sqlite3_close(db);
    chrome_refuse("History", TRACE_NOT_A_TRACE, "it computes columns");
}
END_TEST

START_TEST(no_database_and_no_visits)
{
    char garbage[3 * PAGE];

    for (size_t i = 0; i < sizeof(garbage); i++)
        garbage[i] = (char)(i * 197 + i / 251);
    scratch_write("encrypted", garbage, sizeof(garbage));
    chrome_refuse("encrypted", TRACE_NOT_A_TRACE, "not an SQLite database (or an encrypted one)");
    memcpy(garbage, "SQLite format 3", 16);
    scratch_write("garbage", garbage, sizeof(garbage));
    chrome_refuse("garbage", TRACE_NOT_A_TRACE, "not an SQLite database");
    scratch_write("nothing", "", 0);
    chrome_refuse("nothing", TRACE_NOT_A_TRACE, "no such table: visits");
    chrome_make("fresh", "");
    chrome_refuse("fresh", TRACE_EMPTY, "no requests, read as chrome");
    chrome_make("orphans", "INSERT INTO visits VALUES(1,1,1),(2,7,1);");
    chrome_refuse("orphans", TRACE_EMPTY, "; left out: 2 without a URL");
}
END_TEST

/* Cut anywhere, it is said to be damaged, never read in part. */
START_TEST(truncated_at_every_page)
{
    size_t len;
    char *bytes;

    chrome_make(
        "whole",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 600) "
        "INSERT INTO urls SELECT i, 'http://host.test/a/long/enough/path/to/fill/pages/' || i "
        "FROM n; INSERT INTO visits SELECT id, id, id FROM urls;");
    bytes = scratch_read(scratch_path("whole"), &len);
    ck_assert_uint_ge(len, 12 * PAGE);
    for (size_t cut = PAGE; cut < len; cut += PAGE) {
        scratch_write("cut", bytes, cut);
        chrome_refuse("cut", TRACE_NOT_A_TRACE, "damaged or cut short");
        scratch_write("cut", bytes, cut + 1000);
        chrome_refuse("cut", TRACE_NOT_A_TRACE, "damaged or cut short");
    }
    scratch_write("cut", bytes, 1000);
    chrome_refuse("cut", TRACE_NOT_A_TRACE, "cut");
    scratch_write("cut", bytes, 60);
    chrome_refuse("cut", TRACE_NOT_A_TRACE, "expected Chrome's tables");
    free(bytes);
}
END_TEST

/* Whatever one page turns into: a trace or a sentence, no crash, and nothing left behind. */
START_TEST(every_page_overwritten)
{
    size_t len;
    char *bytes;
    char saved[PAGE];
    struct trace *t;

    chrome_make(
        "whole",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 300) "
        "INSERT INTO urls SELECT i, 'http://host.test/a/long/enough/path/to/fill/pages/' || i "
        "FROM n; INSERT INTO visits SELECT id, id, id FROM urls;");
    bytes = scratch_read(scratch_path("whole"), &len);
    for (size_t at = 0; at < len; at += PAGE) {
        memcpy(saved, bytes + at, PAGE);
        for (size_t i = at == 0 ? 100 : 0; i < PAGE; i++)
            bytes[at + i] = (char)(bytes[at + i] ^ (char)(i * 31 + at / PAGE));
        scratch_write("bad", bytes, len);
        if (chrome_load("bad", TRACE_OPTIONS_DEFAULT, &t) != TRACE_OK)
            ck_assert_ptr_nonnull(strstr(chrome_why, "bad"));
        else
            trace_free(t);
        memcpy(bytes + at, saved, PAGE);
    }
    free(bytes);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("chrome");
    TCase *tcase = tcase_create("made");

    tcase_add_checked_fixture(tcase, chrome_setup, chrome_teardown);
    tcase_add_test(tcase, order_times_and_ties);
    tcase_add_test(tcase, words_of_another_browser);
    tcase_add_test(tcase, since_until_and_limit);
    tcase_add_test(tcase, what_is_left_out);
    tcase_add_test(tcase, utf16_is_understood);
    tcase_add_test(tcase, a_damaged_index_does_not_matter);
    tcase_add_test(tcase, other_tables_and_columns);
    tcase_add_test(tcase, views_are_not_run);
    tcase_add_test(tcase, computed_columns_are_refused);
    tcase_add_test(tcase, no_database_and_no_visits);
    tcase_add_test(tcase, truncated_at_every_page);
    tcase_add_test(tcase, every_page_overwritten);
    suite_add_tcase(suite, tcase);
    return suite;
}
