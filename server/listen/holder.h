/*
 * Which process holds a TCP port or a lock on this machine, from /proc, and which user owns a file:
 * for the sentence that says why the daemon cannot have it.
 */
#ifndef SUNPROXY_SERVER_LISTEN_HOLDER_H
#define SUNPROXY_SERVER_LISTEN_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends "process 1234 (name)" for a listener on the port, if one can be seen: another user's
 * descriptors cannot, but by root. False if nothing was found.
 */
bool holder_of_port(uint16_t port, struct buf *out);

/*
 * Appends "process 1234 (name)" for the process that holds a flock(2) on the file behind fd. False
 * if /proc/locks names none, as for a process of another PID namespace.
 */
bool holder_of_lock(int fd, struct buf *out);

/* Appends "process 1234 (name)". */
void holder_describe(pid_t pid, struct buf *out);

/* Appends "user NAME", or "user 1234" if that uid has no name. */
void holder_describe_user(uid_t uid, struct buf *out);

#endif
