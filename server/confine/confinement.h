/*
 * The steps by which the starting process becomes the one that serves: user (privileges.h),
 * capabilities and sandbox (sandbox.h), as the options ask. Errors go to the log; the results are
 * exit statuses.
 *
 * One thread, before any other starts.
 */
#ifndef SUNPROXY_SERVER_CONFINE_CONFINEMENT_H
#define SUNPROXY_SERVER_CONFINE_CONFINEMENT_H

#include "server/listen/listen.h"
#include "server/config/options.h"
#include "server/confine/privileges.h"

/* Finds the user of --user, if there is one, for privileges_free_user(). EX_OK or EX_CONFIG. */
int confinement_find_user(const struct options *options, struct service_user *user);

/*
 * Opens the access log that the options name, so that it can be opened again after the user has
 * changed. Of a command *keeper is the process that runs it as that user, for keeper_wait();
 * otherwise 0. -1 with errno set on failure.
 */
int confinement_open_log(const struct options *options, const struct service_user *user,
                         pid_t *keeper);

/*
 * Starts the keeper of the command of --auth-helper, as that user (server/users/helper_keeper.h).
 * Returns the connection to it; -1 with errno.
 */
int confinement_start_helpers(const struct options *options, const struct service_user *user,
                              pid_t *keeper);

/*
 * listen_open(), in another process than the daemon, for sockets that are the daemon's then: gives
 * them to its user.
 */
bool confinement_open_sockets(const struct options *options, struct taken_sockets *taken,
                              struct listening *listening, struct buf *why);

/*
 * With sockets and log open: gives the socket and its lock to the user, has rpcbind forget entries
 * that the user could not replace, changes the user, and enters the sandbox. EX_OK or EX_OSERR, in
 * which case the process must not serve.
 */
int confinement_enter(const struct options *options, const struct listening *listening,
                      const struct service_user *user);

#endif
