/*
 * The keeper of the helpers of --auth-helper (server/commands/keeper.h): sunproxyd-auth, which
 * starts and ends processes of the command as the daemon wishes. Each gets a socket as its standard
 * input and output, of which the daemon gets the other end.
 */
#ifndef SUNPROXY_SERVER_USERS_HELPER_KEEPER_H
#define SUNPROXY_SERVER_USERS_HELPER_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HELPERS_MAX 64u /* processes of the command */

/* What the daemon sends: a helper ends if it runs, and is then started if that is wished. */
struct helper_wish {
    uint32_t number; /* below HELPERS_MAX */
    uint32_t starts; /* 1, or 0 */
};

/* The answer to a wish to start one, with its socket (base/passing.h) if error is 0. */
struct helper_begun {
    uint32_t number;
    int32_t error;
};

/*
 * Starts the keeper, and in it calls enter(context) first, which returns false if it must not go
 * on. Returns the connection to it, which takes wishes; -1 with errno. *keeper is the process, for
 * keeper_wait() after the connection was closed, which ends the helpers. Before any other thread.
 */
int helper_keeper_start(const char *command, bool (*enter)(const void *context),
                        const void *context, pid_t *keeper);

#endif
