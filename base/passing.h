/*
 * Descriptors passed to another process over a stream socket of AF_UNIX (unix(7), SCM_RIGHTS).
 */
#ifndef SUNPROXY_BASE_PASSING_H
#define SUNPROXY_BASE_PASSING_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { PASSING_MAX = 4 }; /* descriptors in a message */

/* Sends `len` bytes (at least one) with copies of these descriptors. False with errno. */
bool passing_send(int fd, const void *bytes, size_t len, const int *passed, unsigned count);

/*
 * Receives what one passing_send() has sent: `len` bytes, and up to PASSING_MAX descriptors, closed
 * on exec, which are the caller's; *count of them. Returns the bytes, or 0 or -1 as recv() does,
 * then without a descriptor.
 */
ssize_t passing_receive(int fd, void *bytes, size_t len, int passed[PASSING_MAX], unsigned *count);

#endif
