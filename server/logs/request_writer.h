/*
 * The writing of the request database: what is in the queues of the workers goes to the table
 * (request_table.h), in transactions of many rows. After a failure requests stay in the queues, and
 * the table is opened anew where the same connection cannot succeed. Failures and their ends are
 * logged, each once.
 *
 * One thread at a time calls these functions, but where they say otherwise.
 */
#ifndef SUNPROXY_SERVER_LOGS_REQUEST_WRITER_H
#define SUNPROXY_SERVER_LOGS_REQUEST_WRITER_H

#include <stdatomic.h>

#include "base/ring.h"
#include "server/logs/request_table.h"

struct request_writer {
    char *path;          /* owned */
    uint64_t max_bytes;  /* 0: no bound */
    int busy_ms;         /* of struct request_times */
    struct ring *queues; /* owned; by worker, which adds to it */
    unsigned queue_count;
    _Atomic uint64_t written, lost, removed,
        errors; /* of struct request_db_stats; lost: bad rows */

    struct request_table *table; /* NULL: it has to be opened */
    bool failing;                /* since the last success, which was logged */
    bool over; /* the last commit removed rows: there may be more over the bound */
    uint64_t dropped_told;
    int64_t complained_us;
    bool leaving;     /* the old file, which other processes read; that was logged */
    int64_t leave_us; /* when that was tried last */
    unsigned first;   /* the queue that the next transaction begins with */
};

/*
 * Makes the queues, in zeroed memory. False without memory. request_writer_free() frees what was
 * made in any case.
 */
bool request_writer_init(struct request_writer *writer, const char *path, uint64_t max_bytes,
                         unsigned workers, int busy_ms);

void request_writer_free(struct request_writer *writer);

/* Opens the table. False with a sentence in `why`. */
bool request_writer_open(struct request_writer *writer, struct buf *why);

/* One transaction. True if there may be more to do at once. */
bool request_writer_write(struct request_writer *writer);

/*
 * Writes what is left, for as long as that takes if it succeeds; what fails is tried again until
 * `until_us` (clock_monotonic_us()).
 */
void request_writer_write_last(struct request_writer *writer, int64_t until_us);

/*
 * Opens the file anew if it was moved away or removed. False if that has to be tried again, since
 * other processes prevent that the old one gets its last rows.
 */
bool request_writer_reopen(struct request_writer *writer);

/* Requests that are not written, and will not be. [any thread] */
uint64_t request_writer_count_dropped(const struct request_writer *writer);

/* Logs, now and then, that workers were faster than the writer. */
void request_writer_log_dropped(struct request_writer *writer);

/* Takes what is left from the queues, and counts it. */
uint64_t request_writer_count_unwritten(struct request_writer *writer);

#endif
