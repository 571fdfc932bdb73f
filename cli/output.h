/*
 * What the user sees: complaints on stderr, and the certainty that what was written to stdout got
 * there. Thread-safe but for output_finish() and output_name().
 */
#ifndef SUNPROXY_CLI_OUTPUT_H
#define SUNPROXY_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"

/* What stands in front of each complaint, "sunproxy get"; static memory of the caller's. */
void output_name(const char *name);

/*
 * A line on stderr, the second without the program's name. What is not printable (printable.h)
 * comes out as '?'.
 */
void output_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void output_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints text that comes from elsewhere, or the name of a file, to stdout, likewise. */
void output_put(const char *text);

/*
 * Writes lines, ended by LF or CR LF: as they are, or to a terminal likewise. Errors show in
 * ferror().
 */
void output_put_lines(FILE *to, struct span lines);

/*
 * Flushes stdout at the end of the program. Returns `status`, unless something that was written did
 * not get through (disk full, reader gone): then as output_failed().
 */
int output_finish(int status);

/* Has the reader of stdout, a pipe or a socket, gone away? */
bool output_is_unread(void);

/*
 * Complains about stdout with errno's story, unless its reader has gone away: whoever pipes into
 * head(1) wanted no more. Returns EX_IOERR.
 */
int output_failed(void);

/*
 * Flushes stdout between pieces of output that may go on for long. EX_OK, or as output_failed()
 * when something that was written since the start did not get through.
 */
int output_flush(void);

/*
 * Prints a JSON text as one line and frees the buffer. EX_OK, or after a complaint EX_SOFTWARE if
 * the buffer has failed, EX_IOERR if it cannot be written.
 */
int output_json(struct buf *json);

/*
 * May this stream be redrawn and coloured? Only a terminal that is not dumb; never with NO_COLOR
 * set to anything in the environment (no-color.org).
 */
bool output_is_lively(FILE *stream);

#endif
