/*
 * The request database: a row a request, in SQLite (request_table.h). A worker only copies the
 * request to a queue of its own, without a lock; a thread writes what is in the queues, once a
 * second or when one of them is a quarter full, in transactions of many rows.
 *
 * When the disk is full, the file locked or damaged, requests wait in the queues while the thread
 * tries again every second. A queue that is full drops requests and counts them; no worker waits.
 * The failure is logged once, and so is its end.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_DB_H
#define SUNPROXY_SERVER_LOGS_REQUEST_DB_H

#include <stdint.h>

#include "base/buf.h"
#include "server/logs/access_entry.h"

struct request_db;

/* How long the database waits. */
struct request_times {
    int64_t write_us;  /* rows are written this often, also after a failure */
    int64_t leave_us;  /* this often, leaving a file that was moved away is tried */
    int64_t reopen_us; /* a caller waits at most this long for a reopening */
    int64_t last_us;   /* at the end, rows that cannot be written are tried again this long */
    int busy_ms;       /* a lock of another process is waited for this long */
};

/* Those of the daemon; tests use shorter ones. */
extern const struct request_times request_times;

/*
 * Opens or makes the file, which is bounded to `max_bytes` (0: not bounded), and starts the thread.
 * `workers` is the number of threads that add requests; `times` are copied. NULL with a sentence
 * in `why`.
 */
struct request_db *request_db_start(const char *path, uint64_t max_bytes, unsigned workers,
                                    const struct request_times *times, struct buf *why);

/*
 * Writes what is in the queues and ends the thread. What cannot be written within times.last_us is
 * dropped, which is logged. No worker adds any more. NULL is harmless.
 */
void request_db_close(struct request_db *db);

/* Adds a request. [the thread whose number is entry->worker] */
void request_db_add(struct request_db *db, const struct access_entry *entry);

/*
 * Opens the file anew, after the old one was moved away; the old one has all rows then. Returns
 * when that is done or has failed, which is logged; but after times.reopen_us at most. [any thread]
 */
void request_db_reopen(struct request_db *db);

struct request_db_stats {
    uint64_t written; /* rows */
    uint64_t dropped; /* requests that are not written */
    uint64_t removed; /* oldest rows, over the bound */
    uint64_t errors;  /* attempts to open the file or write to it that failed */
};

/* [any thread] */
void request_db_get_stats(const struct request_db *db, struct request_db_stats *stats);

#endif
