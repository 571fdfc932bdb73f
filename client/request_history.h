/*
 * The past of a server, from its request database (base/request_schema.h): what sunproxy stat
 * --since shows. The database is only read, also while the server writes it.
 */
#ifndef SUNPROXY_CLIENT_REQUEST_HISTORY_H
#define SUNPROXY_CLIENT_REQUEST_HISTORY_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* NULL with a sentence in `why`. Closed by sqlite3_close(). */
sqlite3 *request_history_open(const char *path, struct buf *why);

/*
 * False if a file that no process wrote when it was opened is written now. What was read since then
 * may be wrong.
 */
bool request_history_is_sound(sqlite3 *history);

/* How a column of a report is shown. */
enum report_kind {
    REPORT_TEXT,
    REPORT_URL,  /* a text whose password is not shown */
    REPORT_TIME, /* microseconds since 1970 */
    REPORT_COUNT,
    REPORT_PERCENT,
    REPORT_BYTES,
    REPORT_DURATION, /* microseconds */
};

struct report_column {
    const char *key;   /* in JSON */
    const char *label; /* for people */
    int width;         /* as printf's; of a text that is cut to it, the last column */
    enum report_kind kind;
};

#define REPORT_COLUMNS 9

/* A query and its columns, in the order of the result's. A column without a key ends the list. */
struct report {
    const char *key;
    const char *title; /* for people; NULL: its only row has a line for each column */
    const char *none;  /* instead of a table without rows */
    const char *sql;
    uint64_t most; /* rows; 0: as many as are asked for */
    struct report_column columns[REPORT_COLUMNS + 1];
};

/* Ended by one without a key. */
extern const struct report request_reports[];

/*
 * Prepares the query of a report for the requests that arrived from `since_us` on and before
 * `until_us`, microseconds since 1970; at most `top` rows. NULL with a sentence in `why`.
 */
sqlite3_stmt *request_history_ask(sqlite3 *history, const struct report *report, int64_t since_us,
                                  int64_t until_us, uint64_t top, struct buf *why);

#endif
