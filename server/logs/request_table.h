/*
 * The table of the request database: its rows, transactions, and the bound on its size. The schema
 * is that of base/request_schema.h; request_db.h has the thread and the queue.
 *
 * Result codes are SQLite's. A table belongs to one thread at a time.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_TABLE_H
#define SUNPROXY_SERVER_LOGS_REQUEST_TABLE_H

#include <stdint.h>

#include "server/logs/access_text.h"
#include "server/logs/request_file.h"

struct request_table;

/* A request as it is inserted. */
struct request_row {
    int64_t time_us; /* of its arrival, since 1970 */
    int64_t duration_us;
    int64_t fetch_us; /* -1: none */
    uint64_t bytes;
    const char *protocol, *outcome;
    const char *reason; /* NULL or "": none */
    unsigned status; /* 0: none */
    struct access_client client;
    struct span method; /* empty: unknown */
    struct span user;   /* empty: none */
    struct span url;    /* any bytes */
};

/*
 * Opens a database of this schema, or makes it where there is no file or an empty one, with mode
 * 0640. A lock of another process is waited for `busy_ms`. With `max_bytes` other than 0 the oldest
 * rows are removed when there are more bytes. NULL with a sentence in `why`, as for a file that is
 * something else or is locked.
 */
struct request_table *request_table_open(const char *path, uint64_t max_bytes, int busy_ms,
                                         struct buf *why);

/*
 * Begins a transaction, inserts a row, ends the transaction. Where the write-ahead log takes what
 * the bound leaves, it is emptied first; SQLITE_BUSY if another process reads from it.
 * request_table_commit() removes rows over the bound, some at a time, and sets *removed to their
 * number. After a failure of one the caller calls request_table_rollback(); but a row that cannot
 * be inserted because of what it contains (request_table_blames_row()) may be left out.
 */
int request_table_begin(struct request_table *table);
int request_table_insert(struct request_table *table, const struct request_row *row);
int request_table_commit(struct request_table *table, uint64_t *removed);
void request_table_rollback(struct request_table *table);

bool request_table_blames_row(int rc);

/* May the same connection succeed later? Otherwise the file has to be opened anew. */
bool request_table_may_recover(int rc);

/* A phrase on the last failure; valid until the next call. */
const char *request_table_explain(const struct request_table *table, int rc);

/* Where the open file is. */
enum request_place request_table_place(const struct request_table *table);

/*
 * Moves what is in the write-ahead log to the file, also to one that was moved, without waiting.
 * SQLITE_BUSY if a part is left, as for a process that reads what was there earlier.
 */
int request_table_settle(struct request_table *table);

/*
 * Settles the table and closes it. Log and index of a file that was moved are removed, so that the
 * next one of that name has its own. False if the file was moved and rows are left in the log,
 * which stays then. NULL is harmless.
 */
bool request_table_close(struct request_table *table);

#endif
