/*
 * A restart without a refused connection: the process that replaces a daemon takes its listening
 * sockets over (listen/take_over.h), and the daemon ends when its requests have ended. Both halves
 * are here. The connection between both stays for the stores of either (store/store.h).
 *
 * The main thread's.
 */
#ifndef SUNPROXY_SERVER_RESTART_H
#define SUNPROXY_SERVER_RESTART_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "server/config/opener.h"
#include "server/config/options.h"
#include "server/listen/listen.h"

struct restart {
    int listener;     /* for processes that take over; not owned; -1: none */
    int fd;           /* connection with one, or with the daemon that is to be replaced; -1: none */
    int64_t until_us; /* it has time to become ready */
    pid_t successor;  /* the process that has taken over */
    struct taken_sockets sockets; /* described for it, or taken from the daemon */
};

#define RESTART_NONE ((struct restart){.listener = -1, .fd = -1})

/* ---- the daemon that is replaced ------------------------------------------------------------- */

/* These sockets are passed (listen_offer()); they must stay. */
void restart_offer(struct restart *restart, const struct taken_sockets *offer);

/* Starts the process that replaces this one. What prevents it is logged. */
void restart_begin(struct restart *restart, struct opener *opener);

/* Is there a process that takes over, and is not ready yet? */
bool restart_is_going_on(const struct restart *restart);

/* Talks with the process that takes over, without waiting. True: it is ready and serves, and this
 * daemon calls restart_yield() when it does not accept any more. */
bool restart_look(struct restart *restart);

/* Returns the connection, which is the caller's. */
int restart_yield(struct restart *restart);

/* ---- the process that replaces it ------------------------------------------------------------ */

/*
 * With --take-over: receives the sockets of the daemon that runs, if one runs, of this user, root
 * or `uid`. Returns a status of sysexits.h; an error is logged.
 */
int restart_take(struct restart *restart, const struct options *options, uid_t uid);

/*
 * This process is ready: the daemon, if there is one, yields, and the sockets are its own then. What
 * it accepts from now on is served here alone. *fd: the connection, which is the caller's; -1.
 */
int restart_finish(struct restart *restart, struct listening *listening, int *fd);

/* Closes what is left. */
void restart_free(struct restart *restart);

#endif
