/*
 * Histories of browsers: an SQLite database with a table of URLs and one of visits. Each visit is a
 * request, in order of time, then id.
 *
 * A private copy is read (snapshot.h), also of compressed input and of a FIFO, of up to 1 GiB then.
 * The database is not trusted (database.h): both tables are read from their beginning to their end,
 * once, and joined and sorted here. So work and memory are bounded by the size of the file,
 * whatever it claims to contain. A query plan of SQLite's could be misled by statistics in the
 * file, and its sort would write the rows to memory or disk.
 */
#ifndef SUNPROXY_TRACE_FORMATS_HISTORY_H
#define SUNPROXY_TRACE_FORMATS_HISTORY_H

#include "trace/builder.h"
#include "trace/formats/database.h"
#include "trace/input.h"

struct history {
    const char *tables[DATABASE_TABLES]; /* of visits, of URLs */
    /*
     * Columns of the table of visits, called v: time, id of the URL, whether the visit was
     * redirected (or NULL), id of the redirected visit that led to this one (or NULL). Every row is
     * read, in the order of the table, together with its id: the column id, or the number of the
     * row in a table that has no such column.
     */
    const char *visits;
    const char *visits_and_redirects; /* the same; `visits` has NULL for the last two */
    const char *urls;     /* a statement: every URL in the order of the table: id, URL */
    const char *expected; /* for the sentence when the tables are missing */
    int64_t epoch_us;     /* the time of 1970-01-01 UTC, in microseconds */
    bool in_seconds;      /* times are in seconds, whole or not; else microseconds */
};

bool history_is_sqlite(struct span head);

enum trace_error history_read(struct input *in, const struct history *history,
                              const struct trace_options *options, struct trace_builder *builder,
                              char *why, size_t why_size);

#endif
