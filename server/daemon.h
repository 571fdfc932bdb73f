/*
 * The daemon's life cycle: set up what the options ask for, serve until SIGTERM or SIGINT, tear
 * down in the opposite order.
 */
#ifndef SUNPROXY_SERVER_DAEMON_H
#define SUNPROXY_SERVER_DAEMON_H

#include "server/options.h"

/* Checks the options that only the parts themselves can check, without opening a socket. An exit
 * status; what is wrong is logged. */
int daemon_check(const struct options *options);

/* Runs until SIGTERM or SIGINT. An exit status of sysexits.h; what is wrong is logged. */
int daemon_run(const struct options *options);

#endif
