/*
 * The sockets of a running daemon, in the process that takes them over from it (take_over.h), or
 * described in the daemon for that process.
 *
 * One thread.
 */
#ifndef SUNPROXY_SERVER_LISTEN_TAKEN_SOCKETS_H
#define SUNPROXY_SERVER_LISTEN_TAKEN_SOCKETS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "server/listen/local_socket.h"

/* What a socket serves. */
enum listen_role {
    LISTEN_TAKE_OVER, /* processes that take over */
    LISTEN_RPC,       /* over TCP */
    LISTEN_LOCAL,     /* RPC over AF_UNIX */
    LISTEN_HTTP,
    LISTEN_HTTP_PROXIED,
    LISTEN_METRICS,
    LISTEN_ROLES,
};

#define TAKEN_SOCKETS_MAX 128

struct taken_socket {
    struct local_socket socket; /* fd -1: taken out */
    enum listen_role role;
    bool passed; /* by a service manager */
    bool used;   /* taken out */
};

struct taken_sockets {
    struct taken_socket items[TAKEN_SOCKETS_MAX];
    unsigned count;
};

/*
 * Takes out the TCP socket at that address; for port 0, one of that role for which the system has
 * chosen the port. -1: there is none.
 */
int taken_sockets_find(struct taken_sockets *taken, enum listen_role role,
                       const struct sockaddr *address);

/* Takes out the AF_UNIX socket at that path, with its lock, which is of that role, or of another one
 * of HTTP. False: there is none. */
bool taken_sockets_find_local(struct taken_sockets *taken, enum listen_role role,
                              struct local_socket *local);

/* Closes those that were not taken out; names and locks stay. */
void taken_sockets_close(struct taken_sockets *taken);

#endif
