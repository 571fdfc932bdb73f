/*
 * The daemon's messages for its operator, on standard error: sentences with a level, or JSON lines.
 * A line that cannot be written now, as to a pipe that is full, is lost: a log that is not read
 * must not block a worker. The next line that can be written is preceded by the number of those
 * lost. A file has whole lines, unless standard output is the same file.
 *
 * Safe on any thread.
 */
#ifndef SUNPROXY_SERVER_LOGS_LOG_H
#define SUNPROXY_SERVER_LOGS_LOG_H

#include "base/buf.h"

/* In the order of --log-level's words. */
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum log_format { LOG_FORMAT_PLAIN, LOG_FORMAT_JSON };

/* That of messages, by the value of --log-format: all but "json" are plain. */
enum log_format log_format_of(const char *text);

void log_setup(enum log_level most, enum log_format format);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * From now on errors are appended to this text, a line each, and no message is written, so that a
 * warning is not taken for one of the errors. NULL: they are written again. While no other thread logs.
 */
void log_capture(struct buf *text);

/* Logs each line of the text as an error. */
void log_errors(const char *lines);

#endif
