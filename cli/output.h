/*
 * Output for the user: complaints on stderr, and checks that stdout was written. Thread-safe except
 * output_finish() and output_name().
 */
#ifndef SUNPROXY_CLI_OUTPUT_H
#define SUNPROXY_CLI_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/buf.h"

/* The prefix of each complaint, "sunproxy get"; static memory of the caller. */
void output_name(const char *name);

/*
 * Print a line on stderr, the first one with the prefix. Characters that are not printable
 * (printable.h) are replaced by '?'.
 */
void output_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
void output_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Prints a line of a protocol on stderr likewise, without a prefix. */
void output_trace(struct span line);

/* Prints text of the network or the name of a file to stdout, likewise. */
void output_put(const char *text);

/* Prints it as a field of CSV, likewise (RFC 4180): in quotation marks if it needs them. */
void output_put_csv(struct span text);

/*
 * Writes lines, ended by LF or CR LF: as they are, or to a terminal likewise. Errors show in
 * ferror().
 */
void output_put_lines(FILE *to, struct span lines);

/*
 * Flushes stdout at the end of the program. Returns `status`, or output_failed() if some output
 * could not be written (disk full, reader exited).
 */
int output_finish(int status);

/* True if stdout is a pipe or a socket whose reader has exited. */
bool output_is_unread(void);

/*
 * Complains about stdout with errno, unless its reader has exited, such as head(1). Returns
 * EX_IOERR.
 */
int output_failed(void);

/*
 * Flushes stdout between pieces of output that may go on for long. EX_OK, or as output_failed()
 * if some output since the start could not be written.
 */
int output_flush(void);

/*
 * Prints a JSON text as one line and frees the buffer. EX_OK, or after a complaint EX_SOFTWARE if
 * the buffer has failed, EX_IOERR if it cannot be written.
 */
int output_json(struct buf *json);

/*
 * True if this stream may be redrawn and coloured: a terminal that is not dumb, without NO_COLOR in
 * the environment (no-color.org).
 */
bool output_is_lively(FILE *stream);

#endif
