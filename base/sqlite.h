/*
 * What every connection to an SQLite database needs here, whoever made the database. Result codes
 * are SQLite's. A connection belongs to one thread at a time.
 */
#ifndef SUNPROXY_BASE_SQLITE_H
#define SUNPROXY_BASE_SQLITE_H

#include <sqlite3.h>
#include <stdint.h>

/*
 * Lets nothing in the schema run, which may have been made to do harm (sqlite.org/security.html):
 * triggers and views are off, functions and virtual tables in it are not trusted, and no statement
 * may damage the file.
 */
int sqlite_distrust_schema(sqlite3 *handle);

/* Runs statements whose results are not wanted. */
int sqlite_run(sqlite3 *handle, const char *sql);

/*
 * The first column of the first row that a statement returns, in *number. SQLITE_ERROR without a
 * row; *number is as before then, as after any failure.
 */
int sqlite_read_number(sqlite3 *handle, const char *sql, int64_t *number);

#endif
