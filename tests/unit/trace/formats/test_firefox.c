/* Firefox: the database of its places. */
#include <sqlite3.h>

#include "tests/unit/trace/loading.h"

static void
make_places(const char *rows)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(scratch_path("places.sqlite"), &db), SQLITE_OK);
    ck_assert_int_eq(
        sqlite3_exec(db,
                     "CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url TEXT);"
                     "CREATE TABLE IF NOT EXISTS 'moz_historyvisits'(id INTEGER PRIMARY KEY, "
                     "from_visit INTEGER, place_id INTEGER, visit_date INTEGER, "
                     "visit_type INTEGER);",
                     NULL, NULL, NULL),
        SQLITE_OK);
    ck_assert_int_eq(sqlite3_exec(db, rows, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

START_TEST(places)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;

    make_places("INSERT INTO moz_places VALUES(1,'http://a.test/'),(2,'http://b.test/'),"
                "(3,'place:x');"
                "INSERT INTO moz_historyvisits VALUES(1,0,1,3000000,1),(2,1,2,3000000,5),"
                "(3,0,2,1000000,1),(4,0,9,1,1),(5,0,3,2,1),(6,0,1,NULL,1);");
    t = loading_file(scratch_path("places.sqlite"), options);
    ck_assert_str_eq(t->format, "firefox");
    ck_assert_str_eq(loading_picture(t), "http://b.test/@1 http://a.test/@3 http://b.test/@3");
    ck_assert_uint_eq(t->counts.skipped_orphan, 1);
    ck_assert_uint_eq(t->counts.skipped_scheme, 1);
    ck_assert_uint_eq(t->counts.skipped_bad, 1);
    ck_assert_str_eq(t->unit, "visit");
    ck_assert_uint_eq(t->counts.first_bad_line, 6);
    ck_assert_str_eq(t->counts.bad[0].text, "(it has no time)");
    trace_free(t);
    options.redirects = TRACE_REDIRECTS_DROP;
    t = loading_file(scratch_path("places.sqlite"), options);
    ck_assert_str_eq(loading_picture(t), "http://b.test/@1 http://b.test/@3");
    trace_free(t);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("formats: Firefox");
    TCase *tcase = tcase_create("formats");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, places);
    suite_add_tcase(suite, tcase);
    return suite;
}
