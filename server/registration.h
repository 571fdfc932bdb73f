/*
 * The daemon's entries with rpcbind: both versions on tcp, tcp6 and local. A thread of its own
 * keeps them there: rpcbind may come later, or be restarted and have forgotten.
 *
 * What a daemon that was killed left behind is replaced at the start. What another daemon
 * registered later is left alone.
 */
#ifndef SUNPROXY_SERVER_REGISTRATION_H
#define SUNPROXY_SERVER_REGISTRATION_H

#include <sys/types.h>

#include "server/listen.h"

struct registration;

/*
 * For root that is about to become this user: removes entries of other users, which that user could
 * not replace, with a line in the log for each. Takes two seconds at most.
 */
void registration_make_way(uid_t uid);

/* Starts the thread; `listening` is read now and not kept. NULL with errno set on failure. */
struct registration *registration_start(const struct listening *listening);

/* Takes our entries out, within two seconds or not at all, and ends the thread. NULL is harmless.
 */
void registration_stop(struct registration *registration);

#endif
