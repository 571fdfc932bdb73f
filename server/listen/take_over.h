/*
 * A process takes the listening sockets over from the daemon that runs: both are the same sockets
 * then, so that a connection that waits to be accepted is lost by neither's end.
 *
 *   new process       daemon
 *   connects
 *                     sends each socket, with its lock, and the end of the list
 *   is ready, and says
 *   which it uses
 *                     stops accepting, and yields
 *   accepts
 *
 * Before it yields, each of both may end, and the daemon goes on as before. The new process
 * connects to a socket beside the daemon's AF_UNIX socket, PATH.take-over, or inherits a connection
 * from the process that has started it for the daemon (config/opener.h).
 *
 * One thread in either process. Nothing here but take_over_connect() blocks the daemon.
 */
#ifndef SUNPROXY_SERVER_LISTEN_TAKE_OVER_H
#define SUNPROXY_SERVER_LISTEN_TAKE_OVER_H

#include <sys/types.h>

#include "base/buf.h"
#include "server/listen/taken_sockets.h"

/* The descriptor of an inherited connection, in the environment. */
#define TAKE_OVER_VARIABLE "SUNPROXY_TAKE_OVER"

/* The path beside that of an AF_UNIX socket. False if it does not fit. */
bool take_over_name(const char *local_path, char *path, size_t size);

/* ---- the daemon ------------------------------------------------------------------------------ */

/* Accepts a connection of root or of this user. -1: there is none; one of another user is closed.
 */
int take_over_accept(int listener);

/* Sends all sockets. False if not all could be sent. */
bool take_over_offer(int fd, const struct taken_sockets *offer);

enum take_over_state { TAKE_OVER_WAITS, TAKE_OVER_READY, TAKE_OVER_GONE };

/* Has the new process said that it is ready? Then its *pid, and which sockets it uses. */
enum take_over_state take_over_look(int fd, struct taken_sockets *offer, pid_t *pid);

/* The new process is the one that serves; or it took too long, and is to end. */
void take_over_yield(int fd);
void take_over_refuse(int fd);

/* ---- the new process ------------------------------------------------------------------------- */

/*
 * A connection to the daemon with an AF_UNIX socket at this path (NULL: there is none), of root,
 * this user or `uid`; an inherited one, if there is one. -1 without a sentence in `why`: no daemon
 * runs there.
 */
int take_over_connect(const char *local_path, uid_t uid, struct buf *why);

/* Receives the sockets, within half a minute. False with a sentence in `why`. */
bool take_over_receive(int fd, struct taken_sockets *taken, struct buf *why);

/*
 * Says that this process is ready, and which sockets it uses, and waits until the daemon has
 * yielded, or has ended. False if it refuses, or does not answer within half a minute.
 */
bool take_over_finish(int fd, const struct taken_sockets *taken);

#endif
