/*
 * Writing to a log without waiting for its reader. A regular file takes all bytes at once. A pipe,
 * a terminal or a socket is asked first and takes one piece at a time, so that a reader that does
 * not read never blocks the writing thread.
 */
#ifndef SUNPROXY_SERVER_LOGS_SINK_H
#define SUNPROXY_SERVER_LOGS_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/*
 * Opens a log for appending, made with mode 0640. A FIFO without a reader is opened as well:
 * writing to it fails with EPIPE until a process opens it for reading. A regular file that can be
 * read, and does not end with a line feed, gets one. -1 with errno set on failure.
 */
int sink_open(const char *path);

/*
 * Writes what the descriptor takes now and returns the number of bytes, which may be fewer than
 * `len`. -1 with errno set on failure, EAGAIN if it takes none now. [any thread]
 *
 * Of this process one thread at a time writes to pipes, terminals and sockets, since the two logs
 * may share one. Another process that writes to the same pipe can still fill it between the
 * question and the write, if the descriptor is not in non-blocking mode.
 */
ssize_t sink_write(int fd, const char *bytes, size_t len);

/*
 * Removes the last bytes that were written to a regular file, as on a disk that is full, as long as
 * they are its last ones: another process may append to it. False if they stay.
 */
bool sink_cut(int fd, size_t len);

#endif
