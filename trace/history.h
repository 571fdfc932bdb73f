/*
 * What browsers' histories have in common: an SQLite database with a table of URLs and one of
 * visits. Each visit is a request, in order of time, then id.
 *
 * What is read is a private copy (snapshot.h), also of what comes compressed or from a FIFO, of up
 * to 1 GiB then. The database is not trusted: views, triggers and functions in its schema are
 * switched off, and only tables are read.
 */
#ifndef SUNPROXY_TRACE_HISTORY_H
#define SUNPROXY_TRACE_HISTORY_H

#include "trace/builder.h"
#include "trace/input.h"

struct history {
    const char *query; /* time, id of the URL (NULL: it is missing), URL, id of the visit */
    const char
        *without_redirects; /* the same but for the visits that led elsewhere by themselves */
    const char *expected;   /* for the sentence when the tables are not there */
    int64_t epoch_us;       /* what a time has at 1970-01-01 UTC */
};

bool history_is_sqlite(struct span head);

enum trace_error history_read(struct input *in, const struct history *history,
                              const struct trace_options *options, struct trace_builder *builder,
                              char *why, size_t why_size);

#endif
