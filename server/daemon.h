/*
 * The daemon's life cycle: set-up by the options, serving until SIGTERM or SIGINT, and tear-down in
 * the opposite order.
 */
#ifndef SUNPROXY_SERVER_DAEMON_H
#define SUNPROXY_SERVER_DAEMON_H

#include "server/config/options.h"

/*
 * Checks the options that only the parts themselves can check, without opening a socket. Returns an
 * exit status; errors are logged.
 */
int daemon_check(const struct options *options);

/*
 * Checks whether the daemon could listen where these options say, which daemon_check() has passed.
 * Returns an exit status; errors are logged, and a warning for each address that is in use.
 */
int daemon_check_addresses(const struct options *options);

/*
 * Logs a warning for each name that does not resolve, of a member of a row, a peer or a server of
 * the tier, of those that can be looked up in DAEMON_CHECK_NAMES_US. Of options that daemon_check() has passed.
 */
#define DAEMON_CHECK_NAMES_US ((int64_t)20 * 1000000)
void daemon_check_names(const struct options *options);

/* Runs until SIGTERM or SIGINT. Returns an exit status of sysexits.h; errors are logged. */
int daemon_run(const struct options *options);

#endif
