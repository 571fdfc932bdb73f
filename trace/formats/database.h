/*
 * Opens an SQLite database that may have been made to do harm, for reading some columns of some of
 * its tables: what "Defense Against The Dark Arts" (sqlite.org/security.html) advises, and bounds
 * on what SQLite itself does not check.
 *
 * - Nothing in the schema runs: views and triggers are off, virtual tables have no modules,
 *   generated columns are refused, and an authorizer allows no function and no table but those that
 *   were named.
 * - Sizes of texts, rows, statements and schema are limited, and so is SQLite's heap: a limit of
 *   the process, so that one database is open at a time.
 * - Pages may be part of a table several times, and chains of overflow pages may have loops. So
 *   the reader checks that ids rise from row to row (database_rises()), and accounts for the
 *   bytes that rows hand out (database_spend()): both are bounded by the size of the file then.
 * - Rows may share overflow pages, also those of columns that are not read. The number of pages
 *   that SQLite fetches is bounded by a multiple of the pages in the file.
 *
 * "PRAGMA quick_check", which is advised too, is not run: it reads everything, evaluates the
 * schema's expressions, and refuses a database whose only damage is an index that is not needed.
 */
#ifndef SUNPROXY_TRACE_FORMATS_DATABASE_H
#define SUNPROXY_TRACE_FORMATS_DATABASE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

#define DATABASE_TABLES 2u

/* Asked now and then while a statement runs; other than 0 ends it with SQLITE_INTERRUPT. */
typedef int database_stop(void *context);

struct database {
    sqlite3 *handle;           /* NULL: not open */
    const char *const *tables; /* DATABASE_TABLES names, not owned */
    uint64_t bytes_left;       /* that rows may still hand out */
    uint64_t most_fetches;     /* of pages */
    uint64_t fetches_asked;    /* their number when `stop` was last called */
    unsigned looks;            /* since then */
    bool is_exhausted;         /* more pages than that were fetched */
    database_stop *stop;
    void *stop_context; /* not owned */
    sqlite3_int64 soft_heap_before, hard_heap_before;
};

/*
 * Opens the database at `path`, a private copy. `d` stays where it is until it is closed. Returns a
 * result code of SQLite. The caller calls database_close() in any case; database_explain()
 * returns the sentence.
 */
int database_open(struct database *d, const char *path, const char *const *tables,
                  database_stop *stop, void *context);

/*
 * Settles what could not be known before the first statement was prepared: that no table has
 * generated columns, that no page was cut, and how many bytes rows may hand out.
 */
int database_check(struct database *d, const char *path);

/* SQLITE_OK, or SQLITE_CORRUPT when rows hand out more bytes than the files could hold. */
int database_spend(struct database *d, sqlite3_stmt *statement, int column);

/*
 * Accounts for a row of a scan, from 0, whose first column is its id, and sees that the id is above
 * that of the row before, in *last.
 */
int database_check_row(struct database *d, sqlite3_stmt *statement, size_t row, int64_t *last);

/*
 * The result code that counts: SQLITE_CORRUPT for a statement that failed because too many pages
 * were fetched, otherwise `rc`.
 */
int database_verdict(const struct database *d, int rc);

/* A progress handler for database_open(), with the input as its context. */
int database_stops_with_input(void *input);

/* False if this id, of the row behind that with *last, is not above it: a page came again. */
bool database_rises(int64_t *last, bool first, int64_t id);

/* What a result code means: of the library's last error, or of our own verdict. Static or the
 * handle's memory. */
const char *database_explain(const struct database *d, int rc);

/*
 * The error of a trace for the result code of a statement, with a sentence that names the file, and
 * what was `expected` of one that is no such database.
 */
enum trace_error database_error(const struct database *d, int rc, const char *path,
                                const char *expected, char *why, size_t why_size);

void database_close(struct database *d);

#endif
