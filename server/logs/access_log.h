/*
 * The access log: a line a request. A worker only appends to a buffer in memory; a thread of its
 * own writes the buffer out, so that a slow disk delays no request. When the disk is full, or
 * slower than the requests for long, lines are lost and counted, and serving goes on. A line of
 * which a file has taken a part is removed from it, so that it has whole lines at any time. Lines for a
 * pipe that is full, or for a FIFO, a command or a service (log_target.h) that does not take them,
 * wait in memory, up to 16 MiB.
 *
 * A plain line has nine fields separated by tabs: time, client, URL, outcome, HTTP status, bytes
 * of the body, microseconds, the URLs of the pages that were evicted for it, separated by spaces
 * (access_text_listed() of them, and "+N" for N more), and the reason (http/reason.h), or of a failure a sentence; "-" stands for nothing. Bytes outside
 * of printable ASCII, and the backslash, are written as \xNN. A plain line of an HTTP request is of
 * the combined format of HTTP servers, in UTC, with the reason behind it, or failure and sentence.
 * With a format string all lines are as it says (base/log_pattern.h).
 */
#ifndef SUNPROXY_SERVER_LOGS_ACCESS_LOG_H
#define SUNPROXY_SERVER_LOGS_ACCESS_LOG_H

#include <stdint.h>

#include "server/logs/access_line.h"

struct access_log;

/*
 * Opens the file for appending, made with mode 0640; "-" is standard output. A FIFO without a
 * reader does not block. -1 with errno set on failure.
 */
int access_log_open_file(const char *path);

/*
 * Starts the thread on the descriptor of a file that access_log_open_file() has opened by that
 * path, or of a command or a service, as the path says (log_target.h); takes the descriptor in any case. NULL with errno set on failure.
 */
struct access_log *access_log_start(int fd, const char *path);

/*
 * Why the file of a log could not be opened, by its errno. Where /proc is missing, so are
 * /dev/stdout and the like, which lead there.
 */
const char *access_log_explain(int error);

/*
 * Writes out what is left and ends the thread. A pipe that takes nothing has two seconds; what is
 * left then is lost and counted. NULL is harmless.
 */
void access_log_close(struct access_log *log);

/* Appends a line of this format. [any thread] */
void access_log_add(struct access_log *log, const struct access_entry *entry,
                    const struct access_format *format);

/*
 * Opens the file anew, after the old one was moved away. Returns when that is done or has failed,
 * which is logged; but after two seconds at most, for the file system may hang. Does nothing where
 * there is no other file: standard output, a command, a service. [any thread]
 */
void access_log_reopen(struct access_log *log);

/* Lines that were lost so far. [any thread] */
uint64_t access_log_lost(struct access_log *log);

#endif
