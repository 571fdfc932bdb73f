/*
 * Safari's History.db, and histories whose tables lack the column id of visits.
 */
#include <sqlite3.h>

#include "tests/unit/trace/loading.h"

static const char *
make(const char *name, const char *sql)
{
    const char *path = scratch_path(name);
    char *message = NULL;
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
    return path;
}

static const char safari[] =
    "CREATE TABLE history_items(id INTEGER PRIMARY KEY AUTOINCREMENT, url TEXT NOT NULL UNIQUE,"
    " domain_expansion TEXT NULL, visit_count INTEGER NOT NULL);"
    "CREATE TABLE history_visits(id INTEGER PRIMARY KEY AUTOINCREMENT, history_item INTEGER NOT NULL"
    " REFERENCES history_items(id) ON DELETE CASCADE, visit_time REAL NOT NULL, title TEXT NULL,"
    " load_successful BOOLEAN NOT NULL DEFAULT 1, redirect_source INTEGER NULL UNIQUE,"
    " redirect_destination INTEGER NULL UNIQUE);"
    "INSERT INTO history_items VALUES (1, 'http://a.test/', 'a', 2), (2, 'https://b.test/', 'b', 1),"
    " (3, 'about:blank', NULL, 1);"
    "INSERT INTO history_visits(id, history_item, visit_time, redirect_source, redirect_destination)"
    " VALUES (1, 1, 0.5, NULL, 2), (2, 2, 0.75, 1, NULL), (3, 1, 700000000.25, NULL, NULL),"
    " (4, 3, 5, NULL, NULL), (5, 9, 6, NULL, NULL), (6, 1, 'soon', NULL, NULL),"
    " (7, 1, 1e300, NULL, NULL);";

START_TEST(visits)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    const char *path = make("History.db", safari);
    struct trace *t = loading_file(path, options);

    ck_assert_str_eq(t->format, "safari");
    ck_assert_str_eq(t->unit, "visit");
    ck_assert_uint_eq(t->request_count, 3);
    ck_assert_int_eq(t->times_us[0], 978307200500000);
    ck_assert_int_eq(t->times_us[1], 978307200750000);
    ck_assert_int_eq(t->times_us[2], 1678307200250000);
    ck_assert_uint_eq(t->counts.skipped_scheme, 1);
    ck_assert_uint_eq(t->counts.skipped_orphan, 1);
    ck_assert_uint_eq(t->counts.skipped_bad, 2);
    trace_free(t);
    options.redirects = TRACE_REDIRECTS_DROP;
    options.format = "safari";
    t = loading_file(path, options);
    ck_assert_uint_eq(t->request_count, 2);
    ck_assert_int_eq(t->times_us[0], 978307200750000);
    trace_free(t);
}
END_TEST

START_TEST(no_safari)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.format = "safari";
    make("other", "CREATE TABLE history_visits(id INTEGER PRIMARY KEY, visit_time REAL)");
    ck_assert_int_eq(loading_refused(scratch_path("other"), options), TRACE_NOT_A_TRACE);
    ck_assert_msg(strstr(loading_why, "expected Safari's tables") != NULL, "%s", loading_why);
}
END_TEST

/* As an export of the tables has them: rows in order, and no column id, or no key. */
START_TEST(visits_without_an_id)
{
    struct trace *t = loading_file(
        make("History",
             "CREATE TABLE urls(id INTEGER PRIMARY KEY, url TEXT);"
             "CREATE TABLE visits(url INTEGER, visit_time INTEGER, transition INTEGER);"
             "INSERT INTO urls VALUES (1, 'http://a.test/'), (2, 'http://b.test/');"
             "INSERT INTO visits VALUES (2, 11644473600000000 + 2000000, 0x20000000),"
             " (1, 11644473600000000 + 1000000, 0), (2, 11644473600000000 + 1000000, 0);"),
        TRACE_OPTIONS_DEFAULT);

    ck_assert_str_eq(loading_picture(t), "http://a.test/@1 http://b.test/@1 http://b.test/@2");
    trace_free(t);
    t = loading_file(
        make("places",
             "CREATE TABLE moz_places(id INTEGER PRIMARY KEY, url TEXT);"
             "CREATE TABLE moz_historyvisits(from_visit INTEGER, place_id INTEGER,"
             " visit_date INTEGER, visit_type INTEGER);"
             "INSERT INTO moz_places VALUES (1, 'http://a.test/');"
             "INSERT INTO moz_historyvisits VALUES (0, 1, 1000000, 1), (1, 1, 2000000, 1);"),
        TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(t->format, "firefox");
    ck_assert_str_eq(loading_picture(t), "http://a.test/@1 http://a.test/@2");
    trace_free(t);
}
END_TEST

/* libCacheSim writes -2 where the next request is not known. */
START_TEST(next_requests_that_are_not_known)
{
    char bytes[3 * 24] = {0};
    struct trace *t;

    for (unsigned i = 0; i < 3; i++) {
        char *record = bytes + i * 24;

        record[0] = (char)(i + 1);
        record[4] = (char)(i % 2 + 7);
        record[12] = 100;
        memset(record + 16, 0xff, 8);
        record[16] = (char)0xfe;
    }
    t = loading_bytes(bytes, sizeof(bytes), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(t->format, "oracle");
    ck_assert_str_eq(loading_picture(t), "7@1=100 8@2=100 7@3=100");
    trace_free(t);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("safari");
    TCase *tcase = tcase_create("safari");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_add_test(tcase, visits);
    tcase_add_test(tcase, no_safari);
    tcase_add_test(tcase, visits_without_an_id);
    tcase_add_test(tcase, next_requests_that_are_not_known);
    suite_add_tcase(suite, tcase);
    return suite;
}
