/*
 * An AF_UNIX socket that the daemon listens on, with a lock beside it (PATH.lock), by which a stale
 * socket can be distinguished from a live one: only the holder of the lock replaces the socket.
 * When another process holds it, the sentence names that process.
 *
 * One thread, before the workers start and after they have ended.
 */
#ifndef SUNPROXY_SERVER_LISTEN_LOCAL_SOCKET_H
#define SUNPROXY_SERVER_LISTEN_LOCAL_SOCKET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/buf.h"

/* Why the daemon cannot listen somewhere. */
enum listen_error {
    LISTEN_OK,
    LISTEN_BAD_ADDRESS, /* not an address of this machine */
    LISTEN_IN_USE,      /* by another process */
    LISTEN_FAILED,
};

#define LISTEN_BACKLOG 4096

#define LOCAL_SOCKET_NONE ((struct local_socket){.fd = -1, .lock = -1})

struct local_socket {
    int fd;            /* listening; -1: none, or taken */
    int lock;          /* on PATH.lock while the socket is in use; -1: none */
    bool bound;        /* the socket's name is removed at the end, */
    bool lent;         /* unless it is still the running daemon's (taken_sockets.h) */
    bool any_port;     /* of a TCP socket: the system has chosen its port */
    bool default_path; /* by local_socket_open_default() */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

/*
 * Both open a socket with the permissions `mode`. On an error `why` has a sentence, and what was
 * opened is closed by local_socket_close(). The default path is in the folder of systemd's
 * RuntimeDirectory= if there is one, else where clients look for it; `has_user`: the daemon changes
 * to another user, so the runtime directory of root's session is not used.
 */
enum listen_error local_socket_open(struct local_socket *local, const char *path, uint64_t mode,
                                    struct buf *why);
enum listen_error local_socket_open_default(struct local_socket *local, bool has_user,
                                            uint64_t mode, struct buf *why);

/* The path that they open, in local->path: the default one for NULL. False with a sentence. */
bool local_socket_name(struct local_socket *local, const char *path, bool has_user,
                       struct buf *why);

/* Opens the socket at local->path that another one's lock protects, for this user and root. False
 * if that cannot be done. */
bool local_socket_open_beside(struct local_socket *local);

/* A socket that was taken from a running daemon is this process's from now on. */
void local_socket_own(struct local_socket *local);

/* Checks a path without opening anything. */
enum listen_error local_socket_check(const char *path, struct buf *why);

/* Removes the name, releases the lock, and closes the socket unless the server has it (fd is -1).
 */
void local_socket_close(struct local_socket *local);

#endif
