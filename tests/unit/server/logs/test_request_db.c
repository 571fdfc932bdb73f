/* The rows of the request database: what they have, and that of each request there is one. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/request_schema.h"
#include "base/thread.h"
#include "tests/unit/server/logs/request_db_fixture.h"

START_TEST(a_row_has_what_is_known_of_the_request)
{
    static const struct {
        const char *url, *stored, *origin;
    } urls[] = {
        {"http://A.test/x", "http://A.test/x", "http://a.test"},
        {"HTTPS://a.test:8443?x", "HTTPS://a.test:8443?x", "https://a.test:8443"},
        {"http://user:w@rd@a.test/@", "http://user:w@rd@a.test/@", "http://a.test"},
        {"http://[::1]:80/", "http://[::1]:80/", "http://[::1]:80"},
        {"a.test:443", "a.test:443", "a.test:443"},
        {"/path?u=http://b.test/", "/path?u=http://b.test/", "NULL"},
        {"http://a.test/\xff \\\x01", "http://a.test/\\xff\\x20\\x5c\\x01", "http://a.test"},
        {"", "-", "NULL"},
    };
    const size_t count = sizeof(urls) / sizeof(urls[0]);
    const struct access_http http = {.method = span_str("PO\tST"), .minor = 1};
    struct request_db *db = db_start(0, 2);
    struct net_peer local = {.has_uid = true, .uid = 4711};
    struct stat st;

    local.address.ss_family = AF_UNIX;
    for (size_t i = 0; i < count; i++)
        db_add(db, 0, urls[i].url);
    request_db_add(db, &(struct access_entry){.peer = &local,
                                              .url = span_str("http://b.test/"),
                                              .user = span_str("a b"),
                                              .outcome = "timeout",
                                              .protocol = "http",
                                              .worker = 1,
                                              .bytes = UINT64_C(1) << 40,
                                              .us = 1000000,
                                              .fetch_us = 999,
                                              .http = &http});
    request_db_close(db);
    for (size_t i = 0; i < count; i++) {
        char sql[80];

        snprintf(sql, sizeof(sql), "SELECT url FROM requests WHERE id = %zu", i + 1);
        ck_assert_str_eq(sql_ask(db_path, sql), urls[i].stored);
        snprintf(sql, sizeof(sql), "SELECT origin FROM requests WHERE id = %zu", i + 1);
        ck_assert_str_eq(sql_ask(db_path, sql), urls[i].origin);
    }
    ck_assert_str_eq(sql_ask(db_path,
                             "SELECT DISTINCT protocol || ',' || client || ',' || method || ',' "
                             "|| outcome || ',' || status || ',' || bytes || ',' || duration_us "
                             "|| ',' || (fetch_us IS NULL) FROM requests WHERE id < 9"),
                     "rpc2,192.0.2.7,GET,hit,200,1024,57,1");
    ck_assert_str_eq(sql_ask(db_path,
                             "SELECT protocol || ',' || client || ',' || method || ',' || outcome "
                             "|| ',' || (status IS NULL) || ',' || bytes || ',' || duration_us "
                             "|| ',' || fetch_us || ',' || user FROM requests WHERE id = 9"),
                     "http,unix:4711,PO\\x09ST,timeout,1,1099511627776,1000000,999,a\\x20b");
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT count(user) FROM requests"), 1);
    /* Arrival, by the wall clock. */
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT count(*) FROM requests WHERE abs(time_us + "
                                              "duration_us - strftime('%s') * 1000000) < 60000000"),
                      9);
    ck_assert_int_eq(stat(db_path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(the_schema_is_that_which_is_documented)
{
    request_db_close(db_start(0, 1));
    ck_assert_uint_eq(sql_ask_number(db_path, "PRAGMA user_version"), 3);
    ck_assert_uint_eq(sql_ask_number(db_path, "PRAGMA application_id"), 0x73756e70);
    ck_assert_str_eq(sql_ask(db_path, "PRAGMA journal_mode"), "wal");
    ck_assert_str_eq(sql_ask(db_path, "SELECT name FROM pragma_table_info('requests')"),
                     "id\ntime_us\nduration_us\nfetch_us\nprotocol\nclient\nmethod\nurl\norigin\n"
                     "outcome\nstatus\nbytes\nreason\nuser");
    ck_assert_ptr_nonnull(
        strstr(sql_ask(db_path, "SELECT detail FROM (SELECT * FROM "
                                "pragma_index_list('requests')), (SELECT name AS detail "
                                "FROM pragma_index_info('requests_by_time'))"),
               "time_us"));
}
END_TEST

/* Readers of traces look there, and the log may hold all else for long. */
START_TEST(the_head_of_the_file_has_the_number_of_the_application_from_the_start_on)
{
    struct request_db *db = db_start(0, 1);
    unsigned char head[100];
    int fd = open(db_path, O_RDONLY);

    ck_assert_int_eq(read(fd, head, sizeof(head)), sizeof(head));
    close(fd);
    ck_assert_int_eq(memcmp(head + REQUEST_SCHEMA_APPLICATION_AT, "sunp", 4), 0);
    request_db_close(db);
}
END_TEST

START_TEST(rows_are_readable_while_the_thread_writes)
{
    struct request_db *db = db_start(0, 1);

    for (unsigned round = 1; round <= 3; round++) {
        db_add_many(db, 100);
        db_wait_written(db, round * 100);
        ck_assert_uint_eq(db_count_rows(db_path), round * 100);
    }
    request_db_close(db);
    /* Another start goes on in the same file. */
    db = db_start(0, 1);
    db_add_many(db, 1);
    request_db_close(db);
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT max(id) FROM requests"), 301);
    db_expect_sound(db_path);
}
END_TEST

START_TEST(a_row_that_cannot_be_inserted_does_not_stop_the_others)
{
    struct request_db *db = db_start(0, 1);
    sqlite3 *other = sql_open(db_path);

    sql_run(other, "CREATE UNIQUE INDEX once ON requests (url)");
    sqlite3_close(other);
    db_add(db, 0, "http://a.test/1");
    db_add(db, 0, "http://a.test/1");
    db_add(db, 0, "http://a.test/2");
    db_wait_written(db, 2);
    ck_assert_uint_eq(db_stats(db).dropped, 1);
    ck_assert_uint_eq(db_stats(db).errors, 1);
    request_db_close(db);
    ck_assert_str_eq(sql_ask(db_path, "SELECT url FROM requests"),
                     "http://a.test/1\nhttp://a.test/2");
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 4, EACH = 20000 };

struct adder {
    pthread_t thread;
    struct request_db *db;
    unsigned worker;
};

static void *
add_all(void *context)
{
    struct adder *adder = context;
    char url[64];

    for (unsigned i = 0; i < EACH; i++) {
        snprintf(url, sizeof(url), "http://origin.test/%u/%u", adder->worker, i);
        db_add(adder->db, adder->worker, url);
    }
    return NULL;
}

START_TEST(every_request_of_every_worker_is_written_or_counted)
{
    struct request_db *db = db_start(0, THREADS);
    struct adder adders[THREADS];
    struct request_db_stats stats;

    for (unsigned i = 0; i < THREADS; i++) {
        adders[i] = (struct adder){.db = db, .worker = i};
        ck_assert_int_eq(thread_start(&adders[i].thread, add_all, &adders[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        request_db_reopen(db);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(adders[i].thread, NULL);
    stats = db_stats(db);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), THREADS * EACH - stats.dropped);
    ck_assert_uint_eq(sql_ask_number(db_path, "SELECT count(DISTINCT url) FROM requests"),
                      THREADS * EACH - stats.dropped);
}
END_TEST

/* More than a transaction holds, of which none may begin before the database is closed. */
START_TEST(rows_that_can_be_written_are_written_at_the_end_whatever_time_it_takes)
{
    struct request_db *db;
    struct request_db_stats stats;

    db_times.write_us = 60000000;
    db_times.last_us = 0;
    db = db_start(0, 1);
    db_add_many(db, 40000);
    stats = db_stats(db);
    ck_assert_uint_gt(40000 - stats.dropped, 17000);
    request_db_close(db);
    ck_assert_uint_eq(db_count_rows(db_path), 40000 - stats.dropped);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, db_setup, db_teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_row_has_what_is_known_of_the_request);
    tcase_add_test(tests, the_schema_is_that_which_is_documented);
    tcase_add_test(tests, the_head_of_the_file_has_the_number_of_the_application_from_the_start_on);
    tcase_add_test(tests, rows_are_readable_while_the_thread_writes);
    tcase_add_test(tests, a_row_that_cannot_be_inserted_does_not_stop_the_others);
    tcase_add_test(tests, every_request_of_every_worker_is_written_or_counted);
    tcase_add_test(tests, rows_that_can_be_written_are_written_at_the_end_whatever_time_it_takes);
    suite_add_tcase(suite, tests);
    return suite;
}
