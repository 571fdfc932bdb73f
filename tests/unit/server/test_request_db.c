#include "server/request_db.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/request_schema.h"
#include "base/thread.h"
#include "server/log.h"
#include "tests/unit/unit.h"

#define MIB ((uint64_t)1 << 20)

static char folder[64], path[128], moved[128];
static struct net_peer peer;
static struct buf why;

static void
remove_file(const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char text[160];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(text, sizeof(text), "%s%s", name, ends[i]);
        unlink(text);
    }
}

static void
setup(void)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&peer.address;

    snprintf(folder, sizeof(folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/requests.db", folder);
    snprintf(moved, sizeof(moved), "%s/requests.db.1", folder);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, "192.0.2.7", &address->sin_addr);
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_PLAIN);
    signal(SIGXFSZ, SIG_IGN); /* as the daemon does */
    buf_init(&why, 1024);
}

static void
teardown(void)
{
    remove_file(path);
    remove_file(moved);
    rmdir(path);
    rmdir(folder);
    buf_free(&why);
}

static struct request_db *
start(uint64_t max_bytes, unsigned workers)
{
    struct request_db *db = request_db_start(path, max_bytes, workers, &why);

    ck_assert_msg(db, "%s", buf_str(&why));
    return db;
}

static void
add(struct request_db *db, unsigned worker, const char *url)
{
    request_db_add(db, &(struct access_entry){.peer = &peer,
                                              .url = span_str(url),
                                              .outcome = "hit",
                                              .protocol = "rpc2",
                                              .worker = worker,
                                              .status = 200,
                                              .bytes = 1024,
                                              .us = 57,
                                              .fetch_us = -1});
}

static void
add_many(struct request_db *db, unsigned count)
{
    char url[64];

    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof(url), "http://origin.test/page/%06u", i);
        add(db, 0, url);
    }
}

static struct request_db_stats
stats_of(struct request_db *db)
{
    struct request_db_stats stats;

    request_db_get_stats(db, &stats);
    return stats;
}

static void
wait_written(struct request_db *db, uint64_t rows)
{
    for (unsigned i = 0; stats_of(db).written < rows; i++) {
        ck_assert_msg(i < 3000, "no more rows are written: %llu of %llu",
                      (unsigned long long)stats_of(db).written, (unsigned long long)rows);
        usleep(10000);
    }
}

static void
wait_errors(struct request_db *db, uint64_t errors)
{
    for (unsigned i = 0; stats_of(db).errors < errors; i++) {
        ck_assert_uint_lt(i, 3000);
        usleep(10000);
    }
}

/* ---- another process's look ------------------------------------------------------------------ */

static sqlite3 *
open_other(const char *name)
{
    sqlite3 *handle;

    ck_assert_int_eq(
        sqlite3_open_v2(name, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
        SQLITE_OK);
    return handle;
}

static void
run(sqlite3 *handle, const char *sql)
{
    char *error = NULL;

    ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
}

/* The first column of the result's rows, one per line; static memory. */
static const char *
ask(const char *name, const char *sql)
{
    static struct buf text;
    sqlite3 *handle = open_other(name);
    sqlite3_stmt *statement;
    int rc;

    buf_free(&text);
    buf_init(&text, 1 << 20);
    rc = sqlite3_prepare_v2(handle, sql, -1, &statement, NULL);
    ck_assert_msg(rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(handle));
    while ((rc = sqlite3_step(statement)) == SQLITE_ROW) {
        const unsigned char *value = sqlite3_column_text(statement, 0);

        buf_printf(&text, "%s%s", text.len ? "\n" : "", value ? (const char *)value : "NULL");
    }
    ck_assert_msg(rc == SQLITE_DONE, "%s: %s", sql, sqlite3_errmsg(handle));
    sqlite3_finalize(statement);
    ck_assert_int_eq(sqlite3_close(handle), SQLITE_OK);
    return buf_str(&text);
}

static uint64_t
ask_number(const char *name, const char *sql)
{
    return strtoull(ask(name, sql), NULL, 10);
}

static uint64_t
size_of(const char *name)
{
    struct stat st;

    ck_assert_int_eq(stat(name, &st), 0);
    return (uint64_t)st.st_size;
}

/* ---- rows ------------------------------------------------------------------------------------ */

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
    struct request_db *db = start(0, 2);
    struct net_peer local = {.has_uid = true, .uid = 4711};
    struct stat st;

    local.address.ss_family = AF_UNIX;
    for (size_t i = 0; i < count; i++)
        add(db, 0, urls[i].url);
    request_db_add(db, &(struct access_entry){.peer = &local,
                                              .url = span_str("http://b.test/"),
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
        ck_assert_str_eq(ask(path, sql), urls[i].stored);
        snprintf(sql, sizeof(sql), "SELECT origin FROM requests WHERE id = %zu", i + 1);
        ck_assert_str_eq(ask(path, sql), urls[i].origin);
    }
    ck_assert_str_eq(ask(path, "SELECT DISTINCT protocol || ',' || client || ',' || method || ',' "
                               "|| outcome || ',' || status || ',' || bytes || ',' || duration_us "
                               "|| ',' || (fetch_us IS NULL) FROM requests WHERE id < 9"),
                     "rpc2,192.0.2.7,GET,hit,200,1024,57,1");
    ck_assert_str_eq(ask(path,
                         "SELECT protocol || ',' || client || ',' || method || ',' || outcome "
                         "|| ',' || (status IS NULL) || ',' || bytes || ',' || duration_us "
                         "|| ',' || fetch_us FROM requests WHERE id = 9"),
                     "http,unix:4711,PO\\x09ST,timeout,1,1099511627776,1000000,999");
    /* Arrival, by the wall clock. */
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests WHERE abs(time_us + "
                                       "duration_us - strftime('%s') * 1000000) < 60000000"),
                      9);
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0640);
}
END_TEST

START_TEST(the_schema_is_that_which_is_documented)
{
    request_db_close(start(0, 1));
    ck_assert_uint_eq(ask_number(path, "PRAGMA user_version"), 1);
    ck_assert_uint_eq(ask_number(path, "PRAGMA application_id"), 0x73756e70);
    ck_assert_str_eq(ask(path, "PRAGMA journal_mode"), "wal");
    ck_assert_str_eq(ask(path, "SELECT name FROM pragma_table_info('requests')"),
                     "id\ntime_us\nduration_us\nfetch_us\nprotocol\nclient\nmethod\nurl\norigin\n"
                     "outcome\nstatus\nbytes");
    ck_assert_ptr_nonnull(strstr(ask(path, "SELECT detail FROM (SELECT * FROM "
                                           "pragma_index_list('requests')), (SELECT name AS detail "
                                           "FROM pragma_index_info('requests_by_time'))"),
                                 "time_us"));
}
END_TEST

/* Readers of traces look there, and the log may hold all else for long. */
START_TEST(the_head_of_the_file_has_the_number_of_the_application_from_the_start_on)
{
    struct request_db *db = start(0, 1);
    unsigned char head[100];
    int fd = open(path, O_RDONLY);

    ck_assert_int_eq(read(fd, head, sizeof(head)), sizeof(head));
    close(fd);
    ck_assert_int_eq(memcmp(head + REQUEST_SCHEMA_APPLICATION_AT, "sunp", 4), 0);
    request_db_close(db);
}
END_TEST

START_TEST(rows_are_readable_while_the_thread_writes)
{
    struct request_db *db = start(0, 1);

    for (unsigned round = 1; round <= 3; round++) {
        add_many(db, 100);
        wait_written(db, round * 100);
        ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), round * 100);
    }
    request_db_close(db);
    /* Another start goes on in the same file. */
    db = start(0, 1);
    add_many(db, 1);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT max(id) FROM requests"), 301);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

START_TEST(a_row_that_cannot_be_inserted_does_not_stop_the_others)
{
    struct request_db *db = start(0, 1);
    sqlite3 *other = open_other(path);

    run(other, "CREATE UNIQUE INDEX once ON requests (url)");
    sqlite3_close(other);
    add(db, 0, "http://a.test/1");
    add(db, 0, "http://a.test/1");
    add(db, 0, "http://a.test/2");
    wait_written(db, 2);
    ck_assert_uint_eq(stats_of(db).dropped, 1);
    ck_assert_uint_eq(stats_of(db).errors, 1);
    request_db_close(db);
    ck_assert_str_eq(ask(path, "SELECT url FROM requests"), "http://a.test/1\nhttp://a.test/2");
}
END_TEST

/* ---- the bound ------------------------------------------------------------------------------- */

START_TEST(over_the_bound_the_oldest_rows_are_removed)
{
    struct request_db *db = start(MIB, 1);

    for (unsigned round = 1; round <= 10; round++) {
        add_many(db, 5000);
        wait_written(db, round * 5000);
    }
    ck_assert_uint_eq(stats_of(db).dropped, 0);
    ck_assert_uint_eq(ask_number(path, "SELECT max(id) FROM requests"), 50000);
    ck_assert_uint_eq(ask_number(path, "SELECT max(id) - min(id) + 1 - count(*) FROM requests"), 0);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"),
                      50000 - stats_of(db).removed);
    ck_assert_uint_gt(ask_number(path, "SELECT count(*) FROM requests"), 3000);
    request_db_close(db);
    ck_assert_uint_le(size_of(path), MIB);
    ck_assert_uint_gt(size_of(path), MIB * 3 / 4);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

START_TEST(under_a_lower_bound_a_file_shrinks)
{
    struct request_db *db = start(0, 1);

    add_many(db, 20000);
    request_db_close(db);
    ck_assert_uint_gt(size_of(path), 2 * MIB);
    /* Nothing has to be added for that. */
    db = start(MIB / 2, 1);
    for (unsigned i = 0; stats_of(db).removed < 1000 && i < 3000; i++)
        usleep(10000);
    request_db_close(db);
    ck_assert_uint_le(size_of(path), MIB / 2);
    ck_assert_uint_eq(ask_number(path, "SELECT max(id) FROM requests"), 20000);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

START_TEST(the_newest_row_stays_under_any_bound)
{
    struct request_db *db = start(1, 1);

    add_many(db, 100);
    wait_written(db, 100);
    add_many(db, 1);
    wait_written(db, 101);
    request_db_close(db);
    ck_assert_str_eq(ask(path, "SELECT id FROM requests"), "101");
}
END_TEST

START_TEST(the_log_that_a_reader_holds_is_bounded_too)
{
    enum { ROUNDS = 40, EACH_ROUND = 1000, LONG = 1000 };
    struct request_db *db = start(16 * MIB, 1);
    char log[160], url[LONG + 1];
    sqlite3 *reader;
    uint64_t most = 0;

    snprintf(log, sizeof(log), "%s-wal", path);
    memset(url, 'x', LONG);
    url[LONG] = '\0';
    add_many(db, 10);
    wait_written(db, 10);
    reader = open_other(path);
    run(reader, "BEGIN; SELECT count(*) FROM requests");
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t written = stats_of(db).written;

        for (unsigned i = 0; i < EACH_ROUND; i++)
            add(db, 0, url);
        for (unsigned i = 0; stats_of(db).written < written + EACH_ROUND; i++) {
            if (stats_of(db).errors != 0)
                break;
            ck_assert_uint_lt(i, 3000);
            usleep(10000);
        }
        most = size_of(log) > most ? size_of(log) : most;
    }
    ck_assert_uint_ge(stats_of(db).errors, 1);
    ck_assert_uint_ge(stats_of(db).dropped, 1);
    ck_assert_msg(size_of(path) + most <= 20 * MIB, "%llu bytes of log", (unsigned long long)most);
    sqlite3_close(reader);
    wait_written(db, 10 + (uint64_t)ROUNDS * EACH_ROUND - stats_of(db).dropped);
    request_db_close(db);
    ck_assert_uint_le(size_of(path), 16 * MIB);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

/* ---- what is no such database ---------------------------------------------------------------- */

static void
expect_refusal(const char *part)
{
    buf_reset(&why);
    ck_assert_ptr_null(request_db_start(path, 0, 1, &why));
    ck_assert_msg(strstr(buf_str(&why), part), "%s", buf_str(&why));
}

static void
write_text(const char *text)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

START_TEST(a_file_that_is_something_else_is_refused_and_stays_as_it_is)
{
    sqlite3 *other;

    write_text("a log\n");
    expect_refusal("not an SQLite database");
    ck_assert_uint_eq(size_of(path), 6);
    write_text("a text that is longer than the head of a database, and is none\n");
    expect_refusal("not an SQLite database");
    unlink(path);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    expect_refusal("Is a directory");
    rmdir(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    expect_refusal("not a regular file");
    unlink(path);
    other = open_other(path);
    run(other, "CREATE TABLE bookmarks (id, url)");
    expect_refusal("of something else");
    run(other, "DROP TABLE bookmarks; PRAGMA user_version = 3");
    expect_refusal("of something else");
    sqlite3_close(other);
    ck_assert_str_eq(ask(path, "SELECT count(*) FROM sqlite_master"), "0");
    ck_assert_str_eq(ask(path, "PRAGMA journal_mode"), "delete");
}
END_TEST

START_TEST(another_schema_is_refused)
{
    sqlite3 *other;

    request_db_close(start(0, 1));
    other = open_other(path);
    run(other, "PRAGMA user_version = 2");
    expect_refusal("its schema is 2, of a later release");
    run(other, "PRAGMA user_version = 0");
    expect_refusal("its schema is 0");
    run(other, "PRAGMA user_version = 1; ALTER TABLE requests RENAME COLUMN bytes TO size");
    expect_refusal("bytes");
    sqlite3_close(other);
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_is_refused)
{
    sqlite3 *other;

    snprintf(path, sizeof(path), "%s/none/requests.db", folder);
    expect_refusal("No such file");
    snprintf(path, sizeof(path), "%s/requests.db", folder);
    request_db_close(start(0, 1));
    other = open_other(path);
    run(other, "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
    expect_refusal("another process has locked it");
    sqlite3_close(other);
}
END_TEST

/* ---- failures while it serves ---------------------------------------------------------------- */

START_TEST(while_the_file_is_locked_requests_wait_and_are_dropped_when_the_queue_is_full)
{
    struct request_db *db = start(0, 16);
    sqlite3 *other = open_other(path);
    struct request_db_stats stats;
    const unsigned count = 20000;

    run(other, "BEGIN IMMEDIATE");
    add_many(db, count);
    wait_errors(db, 1);
    stats = stats_of(db);
    ck_assert_uint_eq(stats.written, 0);
    ck_assert_uint_gt(stats.dropped, 0);
    ck_assert_uint_lt(stats.dropped, count);
    run(other, "COMMIT");
    sqlite3_close(other);
    wait_written(db, count - stats.dropped);
    add(db, 0, "http://a.test/after");
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), count - stats.dropped + 1);
    /* The oldest of those that waited are there. */
    ck_assert_str_eq(ask(path, "SELECT url FROM requests WHERE id IN (1, 2)"),
                     "http://origin.test/page/000000\nhttp://origin.test/page/000001");
}
END_TEST

START_TEST(at_the_end_a_locked_file_is_not_waited_for_without_limit)
{
    struct request_db *db = start(0, 1);
    sqlite3 *other = open_other(path);

    run(other, "BEGIN IMMEDIATE");
    add_many(db, 10);
    request_db_close(db);
    run(other, "COMMIT");
    sqlite3_close(other);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 0);
}
END_TEST

START_TEST(what_a_full_disk_does_not_take_is_written_later)
{
    struct request_db *db = start(0, 1);
    struct rlimit limit, low;

    add_many(db, 10);
    wait_written(db, 10);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = (struct rlimit){.rlim_cur = size_of(path), .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &low), 0);
    add_many(db, 2000);
    wait_errors(db, 2);
    ck_assert_uint_eq(stats_of(db).written, 10);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    wait_written(db, 2010);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 2010);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

START_TEST(a_damaged_file_is_replaced_by_a_new_one_when_it_was_moved_away)
{
    struct request_db *db = start(0, 1);
    char garbage[8192];
    int fd;

    add_many(db, 1000);
    wait_written(db, 1000);
    request_db_close(db);
    memset(garbage, 0xa5, sizeof(garbage));
    fd = open(path, O_WRONLY);
    for (off_t at = 4096; at < (off_t)size_of(path); at += 4096)
        ck_assert_int_eq(pwrite(fd, garbage, 4096, at), 4096);
    close(fd);
    db = start(0, 1);
    add_many(db, 5);
    wait_errors(db, 1);
    ck_assert_uint_eq(stats_of(db).written, 0);
    ck_assert_int_eq(rename(path, moved), 0);
    request_db_reopen(db);
    wait_written(db, 5);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 5);
}
END_TEST

START_TEST(an_old_file_that_was_moved_away_has_its_rows_and_the_new_one_later_ones)
{
    struct request_db *db = start(0, 1);

    add_many(db, 100);
    wait_written(db, 100);
    ck_assert_int_eq(rename(path, moved), 0);
    add_many(db, 20);
    request_db_reopen(db);
    /* It waits two seconds at most. */
    for (unsigned i = 0; access(path, F_OK) != 0 && i < 3000; i++)
        usleep(10000);
    ck_assert_uint_eq(stats_of(db).written, 120);
    add_many(db, 3);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(moved, "SELECT count(*) FROM requests"), 120);
    ck_assert_str_eq(ask(moved, "PRAGMA integrity_check"), "ok");
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 3);
}
END_TEST

static sqlite3 *
begin_reading(const char *name)
{
    sqlite3 *reader = open_other(name);

    run(reader, "BEGIN; SELECT count(*) FROM requests");
    return reader;
}

START_TEST(a_file_that_was_moved_away_while_it_is_read_is_left_with_all_of_its_rows)
{
    struct request_db *db = start(0, 1);
    sqlite3 *reader;

    add_many(db, 10);
    wait_written(db, 10);
    reader = begin_reading(path);
    add_many(db, 100);
    wait_written(db, 110);
    ck_assert_int_eq(rename(path, moved), 0);
    request_db_reopen(db);
    add_many(db, 20);
    wait_written(db, 130);
    ck_assert_int_ne(access(path, F_OK), 0);
    sqlite3_close(reader);
    for (unsigned i = 0; access(path, F_OK) != 0; i++) {
        ck_assert_uint_lt(i, 3000);
        usleep(10000);
    }
    add_many(db, 3);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(moved, "SELECT count(*) FROM requests"), 130);
    ck_assert_str_eq(ask(moved, "PRAGMA integrity_check"), "ok");
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 3);
}
END_TEST

START_TEST(a_file_that_was_removed_is_left_at_once)
{
    struct request_db *db = start(0, 1);
    sqlite3 *reader;

    add_many(db, 10);
    wait_written(db, 10);
    reader = begin_reading(path);
    add_many(db, 100);
    wait_written(db, 110);
    ck_assert_int_eq(unlink(path), 0);
    request_db_reopen(db);
    ck_assert_int_eq(access(path, F_OK), 0);
    add_many(db, 3);
    request_db_close(db);
    sqlite3_close(reader);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 3);
    ck_assert_str_eq(ask(path, "PRAGMA integrity_check"), "ok");
}
END_TEST

START_TEST(log_and_index_of_another_file_are_not_those_of_an_empty_one)
{
    struct request_db *db;
    struct stat before, after;
    char index[160];
    FILE *f;

    snprintf(index, sizeof(index), "%s-shm", path);
    f = fopen(index, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fputs("left", f) >= 0 && fstat(fileno(f), &before) == 0, 1);
    db = start(0, 1);
    ck_assert_int_eq(stat(index, &after), 0);
    fclose(f);
    ck_assert_uint_ne(before.st_ino, after.st_ino);
    request_db_close(db);
}
END_TEST

START_TEST(reopening_without_a_move_goes_on_in_the_same_file)
{
    struct request_db *db = start(0, 1);

    for (unsigned i = 0; i < 3; i++) {
        add_many(db, 10);
        request_db_reopen(db);
    }
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 30);
}
END_TEST

START_TEST(a_reopening_that_fails_is_tried_again)
{
    struct request_db *db = start(0, 1);

    ck_assert_int_eq(rename(path, moved), 0);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    request_db_reopen(db);
    wait_errors(db, 1);
    add_many(db, 10);
    wait_errors(db, 2);
    ck_assert_int_eq(rmdir(path), 0);
    wait_written(db, 10);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"), 10);
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
        add(adder->db, adder->worker, url);
    }
    return NULL;
}

START_TEST(every_request_of_every_worker_is_written_or_counted)
{
    struct request_db *db = start(0, THREADS);
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
    stats = stats_of(db);
    request_db_close(db);
    ck_assert_uint_eq(ask_number(path, "SELECT count(*) FROM requests"),
                      THREADS * EACH - stats.dropped);
    ck_assert_uint_eq(ask_number(path, "SELECT count(DISTINCT url) FROM requests"),
                      THREADS * EACH - stats.dropped);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db");
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, a_row_has_what_is_known_of_the_request);
    tcase_add_test(tests, the_schema_is_that_which_is_documented);
    tcase_add_test(tests, the_head_of_the_file_has_the_number_of_the_application_from_the_start_on);
    tcase_add_test(tests, rows_are_readable_while_the_thread_writes);
    tcase_add_test(tests, a_row_that_cannot_be_inserted_does_not_stop_the_others);
    tcase_add_test(tests, over_the_bound_the_oldest_rows_are_removed);
    tcase_add_test(tests, under_a_lower_bound_a_file_shrinks);
    tcase_add_test(tests, the_newest_row_stays_under_any_bound);
    tcase_add_test(tests, the_log_that_a_reader_holds_is_bounded_too);
    tcase_add_test(tests, a_file_that_is_something_else_is_refused_and_stays_as_it_is);
    tcase_add_test(tests, another_schema_is_refused);
    tcase_add_test(tests, a_file_that_cannot_be_opened_is_refused);
    tcase_add_test(tests,
                   while_the_file_is_locked_requests_wait_and_are_dropped_when_the_queue_is_full);
    tcase_add_test(tests, at_the_end_a_locked_file_is_not_waited_for_without_limit);
    tcase_add_test(tests, what_a_full_disk_does_not_take_is_written_later);
    tcase_add_test(tests, a_damaged_file_is_replaced_by_a_new_one_when_it_was_moved_away);
    tcase_add_test(tests, an_old_file_that_was_moved_away_has_its_rows_and_the_new_one_later_ones);
    tcase_add_test(tests, a_file_that_was_moved_away_while_it_is_read_is_left_with_all_of_its_rows);
    tcase_add_test(tests, a_file_that_was_removed_is_left_at_once);
    tcase_add_test(tests, log_and_index_of_another_file_are_not_those_of_an_empty_one);
    tcase_add_test(tests, reopening_without_a_move_goes_on_in_the_same_file);
    tcase_add_test(tests, a_reopening_that_fails_is_tried_again);
    tcase_add_test(tests, every_request_of_every_worker_is_written_or_counted);
    suite_add_tcase(suite, tests);
    return suite;
}
