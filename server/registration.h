/*
 * The daemon's entries with rpcbind: both versions on tcp, tcp6 and local. A thread of its own
 * keeps them there: rpcbind may come later, or be restarted and have forgotten.
 *
 * What a daemon that was killed left behind is replaced at the start. What another daemon
 * registered later is left alone.
 */
#ifndef SUNPROXY_SERVER_REGISTRATION_H
#define SUNPROXY_SERVER_REGISTRATION_H

#include "server/listen.h"

struct registration;

/* Starts the thread; `listening` is read now and not kept. NULL with errno set on failure. */
struct registration *registration_start(const struct listening *listening);

/* Takes our entries out, within two seconds or not at all, and ends the thread. NULL is harmless.
 */
void registration_stop(struct registration *registration);

#endif
