/*
 * Chrome's History for tests: databases made in the scratch folder, and what loading them leaves.
 * After each test nothing in the folder may have changed.
 */
#ifndef SUNPROXY_TESTS_TRACE_CHROME_H
#define SUNPROXY_TESTS_TRACE_CHROME_H

#include <errno.h>
#include <sqlite3.h>

#include "tests/unit/trace/scratch.h"
#include "trace/trace.h"

#define PAGE 4096

static char chrome_why[512];

static const char chrome_schema[] =
    "CREATE TABLE meta(key LONGVARCHAR NOT NULL UNIQUE PRIMARY KEY, value LONGVARCHAR);"
    "INSERT INTO meta VALUES('version', '59');"
    "CREATE TABLE urls(id INTEGER PRIMARY KEY AUTOINCREMENT, url LONGVARCHAR);"
    "CREATE TABLE visits(id INTEGER PRIMARY KEY AUTOINCREMENT, url INTEGER NOT NULL,"
    " visit_time INTEGER NOT NULL);"
    "CREATE INDEX visits_time_index ON visits (visit_time);";

static inline void
chrome_run(sqlite3 *db, const char *sql)
{
    char *message = NULL;

    ck_assert_msg(sqlite3_exec(db, sql, NULL, NULL, &message) == SQLITE_OK, "%s: %s", sql, message);
}

static inline sqlite3 *
chrome_open(const char *name)
{
    sqlite3 *db;

    ck_assert_int_eq(sqlite3_open(scratch_path(name), &db), SQLITE_OK);
    return db;
}

static inline void
chrome_make(const char *name, const char *sql)
{
    sqlite3 *db = chrome_open(name);

    chrome_run(db, chrome_schema);
    chrome_run(db, sql);
    ck_assert_int_eq(sqlite3_close(db), SQLITE_OK);
}

/* Loads, and shows that this left no mark: not on a file, and not in the temporary folder. */
static inline enum trace_error
chrome_load(const char *name, struct trace_options options, struct trace **trace)
{
    struct buf before;
    struct buf after;
    enum trace_error error;

    scratch_picture(&before);
    chrome_why[0] = '\0';
    error = trace_load(scratch_path(name), &options, trace, chrome_why, sizeof(chrome_why));
    scratch_picture(&after);
    ck_assert_str_eq(buf_str(&before), buf_str(&after));
    buf_free(&before);
    buf_free(&after);
    return error;
}

static inline struct trace *
chrome_load_ok(const char *name)
{
    struct trace *trace;
    enum trace_error error = chrome_load(name, TRACE_OPTIONS_DEFAULT, &trace);

    ck_assert_msg(error == TRACE_OK, "%s", chrome_why);
    ck_assert_str_eq(trace->format, "chrome");
    return trace;
}

static inline void
chrome_refuse(const char *name, enum trace_error expected, const char *word)
{
    struct trace *trace;
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.format = "chrome";
    ck_assert_int_eq(chrome_load(name, options, &trace), expected);
    ck_assert_ptr_null(trace);
    ck_assert_msg(strstr(chrome_why, name) != NULL, "%s", chrome_why);
    ck_assert_msg(strstr(chrome_why, word) != NULL, "'%s' lacks '%s'", chrome_why, word);
}

/* TMPDIR is a folder below the scratch folder, and empty after every test. */
static inline void
chrome_setup(void)
{
    scratch_make();
    ck_assert_int_eq(mkdir(scratch_path("tmp"), 0700), 0);
    setenv("TMPDIR", scratch_path("tmp"), 1);
}

static inline void
chrome_teardown(void)
{
    ck_assert_msg(rmdir(scratch_path("tmp")) == 0, "a copy was left behind: %s", strerror(errno));
    unsetenv("TMPDIR");
    scratch_remove();
}

#endif
