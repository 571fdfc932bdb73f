/*
 * The daemon's entries with rpcbind: both versions on tcp, tcp6 and local, with the address that is
 * listened on, or the wildcard address for several. A thread of its own
 * registers them again when rpcbind starts later or was restarted.
 *
 * Entries of a killed daemon are replaced at the start. Entries that another daemon registers later
 * are not changed.
 */
#ifndef SUNPROXY_SERVER_RPC_REGISTRATION_H
#define SUNPROXY_SERVER_RPC_REGISTRATION_H

#include <sys/types.h>

#include "server/listen/listen.h"

struct registration;

/*
 * Before root changes to this user: removes entries of other users, which that user could not
 * replace, and logs a line for each. Takes at most two seconds.
 */
void registration_make_way(uid_t uid);

/* Starts the thread; `listening` is read only during the call. NULL with errno set on failure. */
struct registration *registration_start(const struct listening *listening);

/* Ends the thread; the entries stay, for the process that has taken the sockets over. NULL is
 * harmless. */
void registration_leave(struct registration *registration);

/* Removes own entries, unless that takes over two seconds, and ends the thread. NULL is harmless.
 */
void registration_stop(struct registration *registration);

#endif
