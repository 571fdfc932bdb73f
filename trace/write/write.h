/*
 * Writes a trace in one of our formats: one file and one row each, as for reading. What is read
 * back from it has the same requests in the same order.
 */
#ifndef SUNPROXY_TRACE_WRITE_WRITE_H
#define SUNPROXY_TRACE_WRITE_WRITE_H

#include "trace/trace.h"

struct trace_write_options {
    const char *site; /* NULL, or makes URLs of a format's numbers: site/number, with one slash */
    const uint8_t *writes; /* NULL, or by request: is it a write (PUT) and not a read? */
};

struct trace_writer {
    const char *name;
    const char *summary;
    bool files_only; /* cannot go to standard output, a device or a FIFO */
    bool reads_only; /* writes are left out */
    bool by_time;    /* is read in the order of time, so times that go back are raised */
    /* To a stream that is open, or, with files_only, to a new file at `path`. 0, or an errno. */
    int (*write)(const struct trace *trace, const struct trace_write_options *options, FILE *file);
    int (*write_file)(const struct trace *trace, const struct trace_write_options *options,
                      const char *path);
};

/* Every one there is, ended by NULL. */
extern const struct trace_writer *const trace_writers[];

const struct trace_writer *trace_writer_find(const char *name);

/* By the name of the file to write (".tsv", ".bin", "History"); NULL: it suggests none. */
const struct trace_writer *trace_writer_for(const char *path);

/*
 * Writes to a file, or to standard output for "-". A file that is there is replaced when, and only
 * when, everything is written (base/save.h); a device or a FIFO is written in place, or refused
 * with files_only. False with a sentence.
 */
bool trace_write(const struct trace *trace, const struct trace_writer *writer,
                 const struct trace_write_options *options, const char *path, char *why,
                 size_t why_size);

/*
 * How many requests this writer gives a later time than theirs, that of one before them, so that
 * reading gives the same order.
 */
uint64_t trace_write_raised(const struct trace *trace, const struct trace_writer *writer,
                            const struct trace_write_options *options);

/* Is this request to be written by a writer of reads only? */
static inline bool
trace_write_skips(const struct trace_writer *writer, const struct trace_write_options *options,
                  size_t request)
{
    return writer->reads_only && options->writes && options->writes[request];
}

#endif
