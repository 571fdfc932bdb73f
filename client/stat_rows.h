/*
 * What `sunproxy stat` shows of a server's metrics, and in which order: the well-known ones by the
 * labels and keys of one list, and behind them whatever else the server names.
 */
#ifndef SUNPROXY_CLIENT_STAT_ROWS_H
#define SUNPROXY_CLIENT_STAT_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/server_stats.h"

enum stat_unit { STAT_PLAIN, STAT_BYTES, STAT_MICROSECONDS };

struct stat_row {
    const char *name;  /* the server's, of a row or a family */
    const char *key;   /* in JSON; of an unknown row its name */
    const char *label; /* for people, likewise; NULL: the head of the table shows it */
    enum stat_unit unit;
    bool has_rate; /* it is a counter */
    uint64_t value;
};

/*
 * The rows of an answer in the order in which they are shown, histograms aside; NULL without
 * memory. Freed by free(); it refers to the answer.
 */
struct stat_row *stat_rows_make(const proxy_stats *stats, size_t *count);

/* The label of a histogram for people; an unknown one's name. */
const char *stat_rows_histogram_label(const char *name);

#endif
