/*
 * Who holds a TCP port on this machine, from /proc: for the sentence that says why we cannot.
 */
#ifndef SUNPROXY_SERVER_HOLDER_H
#define SUNPROXY_SERVER_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

/*
 * Appends "process 1234 (name)" for a listener on the port, if one can be seen: another user's
 * descriptors cannot, but by root. False if nothing was found.
 */
bool holder_of_port(uint16_t port, struct buf *out);

/* Appends "process 1234 (name)". */
void holder_describe(pid_t pid, struct buf *out);

#endif
