/*
 * The lines of a file of users, as sunproxy passwd changes them: "NAME:HASH". Other lines stay as
 * they are. Pure; safe on any thread.
 */
#ifndef SUNPROXY_CLIENT_USER_LINES_H
#define SUNPROXY_CLIENT_USER_LINES_H

#include "base/buf.h"

/*
 * Writes the lines of `text` to `to`, with `hash` as that of the user, at the place of its line or
 * behind the others; NULL: without the user. *had_user: it was there before. Lines that double it
 * are dropped. False if `to` has failed.
 */
bool user_lines_change(struct span text, struct span name, const char *hash, struct buf *to,
                       bool *had_user);

#endif
