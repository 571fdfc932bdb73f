#include "tests/unit/server/logs/request_db_fixture.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/logs/log.h"

char db_folder[64], db_path[128], db_moved[128];
struct buf db_why;
struct request_times db_times;

static struct net_peer peer;

void
db_remove_files(const char *name)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal"};
    char text[160];

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(text, sizeof(text), "%s%s", name, ends[i]);
        unlink(text);
    }
}

void
db_setup(void)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&peer.address;

    snprintf(db_folder, sizeof(db_folder), "/tmp/sunproxy-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(db_folder));
    snprintf(db_path, sizeof(db_path), "%s/requests.db", db_folder);
    snprintf(db_moved, sizeof(db_moved), "%s/requests.db.1", db_folder);
    address->sin_family = AF_INET;
    inet_pton(AF_INET, "192.0.2.7", &address->sin_addr);
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_PLAIN);
    signal(SIGXFSZ, SIG_IGN); /* as the daemon does */
    buf_init(&db_why, 1024);
    db_times = request_times;
    db_times.write_us = 50000;
    db_times.leave_us = 40000;
    db_times.last_us = 30000000; /* on a busy machine many rows take more than two seconds */
}

void
db_teardown(void)
{
    db_remove_files(db_path);
    db_remove_files(db_moved);
    rmdir(db_path);
    rmdir(db_folder);
    buf_free(&db_why);
}

struct request_db *
db_start(uint64_t max_bytes, unsigned workers)
{
    struct request_db *db = request_db_start(db_path, max_bytes, workers, &db_times, &db_why);

    ck_assert_msg(db, "%s", buf_str(&db_why));
    return db;
}

void
db_add(struct request_db *db, unsigned worker, const char *url)
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

void
db_add_many(struct request_db *db, unsigned count)
{
    char url[64];

    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof(url), "http://origin.test/page/%06u", i);
        db_add(db, 0, url);
    }
}

struct request_db_stats
db_stats(struct request_db *db)
{
    struct request_db_stats stats;

    request_db_get_stats(db, &stats);
    return stats;
}

void
db_wait_written(struct request_db *db, uint64_t rows)
{
    for (unsigned i = 0; db_stats(db).written < rows; i++) {
        ck_assert_msg(i < 30000, "no more rows are written: %llu of %llu",
                      (unsigned long long)db_stats(db).written, (unsigned long long)rows);
        usleep(10000);
    }
}

void
db_wait_errors(struct request_db *db, uint64_t errors)
{
    for (unsigned i = 0; db_stats(db).errors < errors; i++) {
        ck_assert_uint_lt(i, 3000);
        usleep(10000);
    }
}

/* ---- another process's look ------------------------------------------------------------------ */

sqlite3 *
sql_open(const char *name)
{
    sqlite3 *handle;

    ck_assert_int_eq(
        sqlite3_open_v2(name, &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL),
        SQLITE_OK);
    return handle;
}

void
sql_run(sqlite3 *handle, const char *sql)
{
    char *error = NULL;

    ck_assert_msg(sqlite3_exec(handle, sql, NULL, NULL, &error) == SQLITE_OK, "%s: %s", sql, error);
}

sqlite3 *
sql_begin_reading(const char *name)
{
    sqlite3 *reader = sql_open(name);

    sql_run(reader, "BEGIN; SELECT count(*) FROM requests");
    return reader;
}

const char *
sql_ask(const char *name, const char *sql)
{
    static struct buf text;
    sqlite3 *handle = sql_open(name);
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

uint64_t
sql_ask_number(const char *name, const char *sql)
{
    return strtoull(sql_ask(name, sql), NULL, 10);
}

uint64_t
db_count_rows(const char *name)
{
    return sql_ask_number(name, "SELECT count(*) FROM requests");
}

void
db_expect_sound(const char *name)
{
    ck_assert_str_eq(sql_ask(name, "PRAGMA integrity_check"), "ok");
}

uint64_t
file_size(const char *name)
{
    struct stat st;

    ck_assert_int_eq(stat(name, &st), 0);
    return (uint64_t)st.st_size;
}
