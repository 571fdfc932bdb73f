/*
 * The daemon's life: put together what the options ask for, serve until told to stop, take it
 * apart in the opposite order.
 */
#ifndef SUNPROXY_SERVER_DAEMON_H
#define SUNPROXY_SERVER_DAEMON_H

#include "server/options.h"

/* Judges what only the parts themselves can judge, without opening a socket. An exit status; what
 * is wrong is logged. */
int daemon_check(const struct options *options);

/* Runs until SIGTERM or SIGINT. An exit status of sysexits.h; what is wrong is logged. */
int daemon_run(const struct options *options);

#endif
