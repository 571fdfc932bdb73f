/*
 * The request database of sunproxyd.
 */
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <zlib.h>

#include "base/request_schema.h"
#include "tests/unit/trace/loading.h"

#define HEADER "PRAGMA application_id = 0x73756e70; PRAGMA user_version = 1;"
#define ROW(id, time, method, url, outcome, status, bytes)                                     \
    "INSERT INTO requests VALUES(" #id "," #time ",5,NULL,'http','192.0.2.1'," method ",'" url \
    "','http://a.test','" outcome "'," #status "," #bytes ",NULL,NULL);"

static sqlite3 *
make(const char *name, const char *sql)
{
    const char *path = scratch_path(name);
    char *message = NULL;
    sqlite3 *db;

    unlink(path);
    ck_assert_int_eq(sqlite3_open(path, &db), SQLITE_OK);
    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s", message);
    return db;
}

static const char schema[] = REQUEST_SCHEMA_SQL HEADER "PRAGMA journal_mode = WAL;";

static const char requests[] = ROW(1, 3000000, "'GET'", "http://a.test/1", "hit", 200, 10)
    ROW(2, 1000000, "'GET'", "http://a.test/\\x20\\xff\\x5c", "miss", 200,
        20) ROW(3, 2000000, "'HEAD'", "http://a.test/1", "stale", 200, 0)
        ROW(4, 2000000, "'GET'", "http://b.test/", "timed_out", NULL, 77)
            ROW(5, 5000000, "'CONNECT'", "b.test:443", "tunnel", 200, 5)
                ROW(6, 6000000, "NULL", "-", "local", 400, 5)
                    ROW(7, 7000000, "'GET'", "http://a.test/1", "revalidated", 200, 30)
                        ROW(8, 7000000, "'GET'", "http://a.test/2", "coalesced", 304, 0)
                            ROW(9, 8000000, "'GET'", "http://a.test/\\x2", "hit", 200, 1)
                                ROW(10, 'soon', "'GET'", "http://a.test/3", "hit", 200, 1)
                                    ROW(11, 9000000, "'GET'", "http://a.test/3", "hit", 70000, 1);

/* With all of these rows. */
static void
make_closed(void)
{
    sqlite3 *db = make("requests.db", schema);

    ck_assert_int_eq(sqlite3_exec(db, requests, NULL, NULL, NULL), SQLITE_OK);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

START_TEST(requests_in_the_order_of_their_arrivals)
{
    struct trace_options options = loading_all();
    struct trace *t;

    /* In a write-ahead log, while another process has it open. */
    sqlite3 *db = make("requests.db", schema);

    ck_assert_int_eq(sqlite3_exec(db, requests, NULL, NULL, NULL), SQLITE_OK);
    t = loading_file(scratch_path("requests.db"), TRACE_OPTIONS_DEFAULT);
    ck_assert_str_eq(t->format, "request-db");
    ck_assert_str_eq(t->unit, "row");
    ck_assert_str_eq(loading_picture(t), "http://a.test/ \xff\\@1=20/200 http://a.test/1@3=10/200 "
                                         "http://a.test/1@7=30/200 http://a.test/2@7/304");
    ck_assert_uint_eq(t->counts.skipped_method, 2);
    ck_assert_uint_eq(t->counts.skipped_status, 1);
    ck_assert_uint_eq(t->counts.skipped_orphan, 1);
    ck_assert_uint_eq(t->counts.skipped_bad, 3);
    ck_assert_uint_eq(t->counts.first_bad_line, 9);
    ck_assert_uint_eq(t->counts.logged_hits, 2);
    ck_assert_uint_eq(t->counts.logged_outcomes, 4);
    trace_free(t);
    t = loading_file(scratch_path("requests.db"), options);
    ck_assert_uint_eq(t->request_count, 6);
    trace_free(t);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

START_TEST(by_its_name_and_that_of_the_log)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    static const char *const names[] = {"request-db", "sunproxyd"};

    make_closed();
    for (size_t i = 0; i < 2; i++) {
        struct trace *t;

        options.format = names[i];
        t = loading_file(scratch_path("requests.db"), options);
        ck_assert_str_eq(t->format, "request-db");
        ck_assert_uint_eq(t->request_count, 4);
        trace_free(t);
    }
}
END_TEST

START_TEST(a_compressed_one)
{
    size_t len;
    char *bytes;
    gzFile file;
    struct trace *t;

    make_closed();
    bytes = scratch_read(scratch_path("requests.db"), &len);
    file = gzopen(scratch_path("requests.gz"), "w");
    ck_assert_int_eq(gzwrite(file, bytes, (unsigned)len), (int)len);
    gzclose(file);
    free(bytes);
    t = loading_file(scratch_path("requests.gz"), TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->request_count, 4);
    trace_free(t);
}
END_TEST

START_TEST(nothing_is_changed)
{
    struct buf before, after;

    make_closed();
    scratch_picture(&before);
    trace_free(loading_file(scratch_path("requests.db"), TRACE_OPTIONS_DEFAULT));
    scratch_picture(&after);
    ck_assert_str_eq(buf_str(&before), buf_str(&after));
    buf_free(&before);
    buf_free(&after);
}
END_TEST

/* Their ends lie in chains of pages. */
START_TEST(long_urls)
{
    struct trace *t;

    sqlite3_close(make(
        "requests.db", REQUEST_SCHEMA_SQL HEADER
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) "
        "INSERT INTO requests SELECT i, i, 1, NULL, 'rpc2', '-', 'GET', "
        "'http://a.test/' || hex(zeroblob(30000)) || i, 'http://a.test', 'hit', 200, i, 'stale', NULL FROM n"));
    t = loading_file(scratch_path("requests.db"), TRACE_OPTIONS_DEFAULT);
    ck_assert_uint_eq(t->request_count, 300);
    ck_assert_uint_eq(t->url_count, 300);
    ck_assert_uint_eq(t->urls[299].len, 14 + 60000 + 3);
    trace_free(t);
}
END_TEST

static _Atomic bool enough;

static void *
write_all_the_time(void *context)
{
    sqlite3 *db = context;

    while (!enough)
        if (sqlite3_exec(db,
                         "BEGIN IMMEDIATE;"
                         "INSERT INTO requests SELECT NULL, time_us, 5, NULL, 'http', '-', 'GET', "
                         "url, NULL, 'hit', 200, bytes, NULL, NULL FROM requests WHERE id < 11;"
                         "COMMIT",
                         NULL, NULL, NULL) != SQLITE_OK)
            return NULL;
    return db;
}

/* Ten rows in each transaction: a part of one is never seen. */
START_TEST(one_that_is_written_all_the_time)
{
    sqlite3 *db = make("requests.db", schema);
    void *written;
    pthread_t thread;
    size_t before = 0;

    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(sqlite3_exec(db, ROW(NULL, 1, "'GET'", "http://a.test/", "hit", 200, 1),
                                      NULL, NULL, NULL),
                         SQLITE_OK);
    enough = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, write_all_the_time, db), 0);
    /* On a busy machine the first loads may be over before the thread has begun. */
    for (int i = 0; i < 10 || (before <= 10 && i < 100000); i++) {
        struct trace *t = loading_file(scratch_path("requests.db"), TRACE_OPTIONS_DEFAULT);

        ck_assert_uint_eq(t->request_count % 10, 0);
        ck_assert_uint_ge(t->request_count, before);
        before = t->request_count;
        trace_free(t);
    }
    enough = true;
    pthread_join(thread, &written);
    ck_assert_ptr_nonnull(written);
    ck_assert_uint_gt(before, 10);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}
END_TEST

static const struct {
    const char *sql, *word;
} refused[] = {
    {"CREATE TABLE other(a); INSERT INTO other VALUES(1);", "no such table"},
    {"CREATE TABLE requests(id INTEGER PRIMARY KEY, time_us, url);", "no such column"},
    {"CREATE VIEW requests AS SELECT 1 AS id, 2 AS time_us, 'GET' AS method, 'http://a.test/' AS url, "
     "'hit' AS outcome, 200 AS status, 1 AS bytes;",
     "expected the table requests"},
    {"CREATE TABLE requests(id INTEGER PRIMARY KEY, time_us, method, outcome, status, bytes, "
     "url TEXT AS (hex(zeroblob(1000))));INSERT INTO requests(id) VALUES(1);",
     "it computes columns"},
    {REQUEST_SCHEMA_SQL, "no request"},
};

START_TEST(what_is_no_such_database)
{
    char sql[4096];

    snprintf(sql, sizeof(sql), "%s%s", HEADER, refused[_i].sql);
    sqlite3_close(make("requests.db", sql));
    ck_assert_int_ne(loading_refused(scratch_path("requests.db"), TRACE_OPTIONS_DEFAULT), TRACE_OK);
    ck_assert_msg(strstr(loading_why, refused[_i].word), "%s", loading_why);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("request_db");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, scratch_make, scratch_remove);
    tcase_add_test(tests, requests_in_the_order_of_their_arrivals);
    tcase_add_test(tests, by_its_name_and_that_of_the_log);
    tcase_add_test(tests, a_compressed_one);
    tcase_add_test(tests, nothing_is_changed);
    tcase_add_test(tests, long_urls);
    tcase_add_test(tests, one_that_is_written_all_the_time);
    tcase_add_loop_test(tests, what_is_no_such_database, 0,
                        (int)(sizeof(refused) / sizeof(refused[0])));
    suite_add_tcase(suite, tests);
    return suite;
}
