/*
 * A request database in a folder of its own, for tests: requests are added as a worker adds them,
 * and the file is looked at by connections of its own, as another process would.
 */
#ifndef SUNPROXY_TESTS_SERVER_LOGS_REQUEST_DB_FIXTURE_H
#define SUNPROXY_TESTS_SERVER_LOGS_REQUEST_DB_FIXTURE_H

#include <sqlite3.h>

#include "server/logs/request_db.h"
#include "tests/unit/unit.h"

/* Where the database is, and where a test may move it. */
extern char db_folder[64], db_path[128], db_moved[128];

/* For sentences of the database. */
extern struct buf db_why;

/* With which db_start() starts it: rows are written every 50 ms, and the last ones for 30 s. */
extern struct request_times db_times;

void db_setup(void);
void db_teardown(void);

/* Removes a database and the files beside it, as far as there are any. */
void db_remove_files(const char *name);

/* Starts the database at db_path. */
struct request_db *db_start(uint64_t max_bytes, unsigned workers);

/* Adds a request; db_add_many() adds some of worker 0, with a URL each. */
void db_add(struct request_db *db, unsigned worker, const char *url);
void db_add_many(struct request_db *db, unsigned count);

struct request_db_stats db_stats(struct request_db *db);

/* Waits until the database has counted that many of them. */
void db_wait_written(struct request_db *db, uint64_t rows);
void db_wait_errors(struct request_db *db, uint64_t errors);

/* A connection to a file, which is made where there is none; sqlite3_close() ends it. */
sqlite3 *sql_open(const char *name);

void sql_run(sqlite3 *handle, const char *sql);

/* A connection in a transaction that reads the rows. */
sqlite3 *sql_begin_reading(const char *name);

/* The first column of the result's rows, one per line; static memory. */
const char *sql_ask(const char *name, const char *sql);

uint64_t sql_ask_number(const char *name, const char *sql);

uint64_t db_count_rows(const char *name);

/* The file has no damage that SQLite can find. */
void db_expect_sound(const char *name);

uint64_t file_size(const char *name);

#endif
