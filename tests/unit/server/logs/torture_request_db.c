/*
 * The request database with each of its allocations failing in turn, and with each of SQLite's:
 * what fails is answered, and what was committed is there.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "server/logs/log.h"
#include "server/logs/request_table.h"
#include "tests/unit/server/logs/request_db_fixture.h"
#include "tests/unit/torture.h"

static char folder[64], path[128];
static unsigned committed;

/* ---- SQLite's allocations -------------------------------------------------------------------- */

static sqlite3_mem_methods usual;
static unsigned allocations, fails_at; /* 0: none fails */

static bool
is_to_fail(void)
{
    return ++allocations == fails_at;
}

static void *
allocate(int size)
{
    return is_to_fail() ? NULL : usual.xMalloc(size);
}

static void *
reallocate(void *old, int size)
{
    return is_to_fail() ? NULL : usual.xRealloc(old, size);
}

static void
replace_methods(void)
{
    sqlite3_mem_methods failing;

    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_GETMALLOC, &usual), SQLITE_OK);
    failing = usual;
    failing.xMalloc = allocate;
    failing.xRealloc = reallocate;
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_MALLOC, &failing), SQLITE_OK);
    /* No caches of small pieces, which would stand in for allocations. */
    ck_assert_int_eq(sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0), SQLITE_OK);
}

/* ---- what is done ---------------------------------------------------------------------------- */

static unsigned
count_rows(void)
{
    sqlite3 *handle;
    sqlite3_stmt *statement;
    unsigned count = 0;

    ck_assert_int_eq(sqlite3_open(path, &handle), SQLITE_OK);
    if (sqlite3_prepare_v2(handle, "SELECT count(*) FROM requests", -1, &statement, NULL) ==
        SQLITE_OK) {
        ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
        count = (unsigned)sqlite3_column_int(statement, 0);
    }
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return count;
}

/* Opens, writes two transactions of three rows, under a bound, and closes. */
static void
write_rows(struct request_table *table)
{
    const struct request_row row = {
        .protocol = "rpc2",
        .outcome = "hit",
        .method = span_str("GET"),
        .fetch_us = -1,
        .url = span_str("http://user@origin.test/a long path \\ with what has to be escaped")};

    for (unsigned transaction = 0; transaction < 2; transaction++) {
        uint64_t removed;
        int rc = request_table_begin(table);
        unsigned rows = 0;

        for (unsigned i = 0; rc == SQLITE_OK && i < 3; i++) {
            rc = request_table_insert(table, &row);
            rows += rc == SQLITE_OK;
            if (request_table_blames_row(rc))
                rc = SQLITE_OK;
        }
        if (rc == SQLITE_OK)
            rc = request_table_commit(table, &removed);
        if (rc == SQLITE_OK) {
            committed += rows;
        } else {
            ck_assert_ptr_nonnull(request_table_explain(table, rc));
            request_table_rollback(table);
        }
    }
}

static void
use_table(void *context)
{
    struct request_table *table;
    struct buf why;

    (void)context;
    db_remove_files(path);
    committed = 0;
    buf_init(&why, 1024);
    table = request_table_open(path, 1 << 20, request_times.busy_ms, &why);
    if (table)
        write_rows(table);
    request_table_close(table);
    buf_free(&why);
}

static void
use_database(void *context)
{
    struct request_db *db;
    struct buf why;

    (void)context;
    buf_init(&why, 1024);
    db = request_db_start(path, 0, 2, &request_times, &why);
    request_db_close(db);
    ck_assert(db || torture_failed());
    buf_free(&why);
}

/* ---- the walks ------------------------------------------------------------------------------- */

static void
check_table(void *context)
{
    use_table(context);
    ck_assert_uint_eq(count_rows(), committed);
    ck_assert(committed == 6 || torture_failed());
}

START_TEST(our_allocations)
{
    ck_assert_uint_gt(torture_walk(check_table, NULL), 5);
    ck_assert_uint_gt(torture_walk(use_database, NULL), 3);
    db_remove_files(path);
    rmdir(folder);
}
END_TEST

START_TEST(allocations_of_sqlite)
{
    unsigned walked = 0;

    do {
        allocations = 0;
        fails_at = ++walked;
        use_table(NULL);
        fails_at = 0;
        ck_assert_uint_eq(count_rows(), committed);
        ck_assert(committed == 6 || allocations >= walked);
    } while (allocations >= walked && walked < 20000);
    ck_assert_uint_gt(walked, 100);
    ck_assert_uint_lt(walked, 20000);
    db_remove_files(path);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/request_db: allocations");
    TCase *tests = tcase_create("all");

    replace_methods();
    log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_PLAIN);
    /* Some hundred databases are made, and a disk would be waited for each time. */
    snprintf(folder, sizeof(folder), "%s/sunproxy-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/requests.db", folder);
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, allocations_of_sqlite);
    tcase_add_test(tests, our_allocations);
    suite_add_tcase(suite, tests);
    return suite;
}
