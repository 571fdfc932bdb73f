/*
 * Listening sockets passed by a service manager: the protocol of sd_listen_fds(3). The manager sets
 * LISTEN_PID to this process, LISTEN_FDS to the number of descriptors, the first of which is 3, and
 * may set LISTEN_FDNAMES to their names, separated by colons.
 *
 * One thread, before the workers start.
 */
#ifndef SUNPROXY_SERVER_LISTEN_PASSED_SOCKETS_H
#define SUNPROXY_SERVER_LISTEN_PASSED_SOCKETS_H

#include <stdbool.h>

#include "base/buf.h"
#include "server/listen/listen.h"

#define PASSED_SOCKETS_FIRST 3

struct passed_sockets {
    int first;
    unsigned count;
    const char *names; /* as in LISTEN_FDNAMES, borrowed; NULL: none */
};

/*
 * Reads the environment. No LISTEN_FDS, or variables meant for another process, are a count of 0.
 * False, with a sentence, if a variable is malformed.
 */
bool passed_sockets_read(struct passed_sockets *passed, struct buf *why);

/*
 * Moves the descriptors into `listening`, which has to be empty: any number of listening TCP
 * sockets of one port up to LISTEN_MOST_TCP, and at most one listening AF_UNIX socket with a path.
 * Those with the name "http", "http-proxied" or "metrics" are for HTTP, up to LISTEN_HTTP_SOCKETS
 * each. Marks their sets as passed. Anything else is LISTEN_BAD_ADDRESS with a sentence that names
 * the descriptor; that one and those after it are left as they are.
 */
enum listen_error passed_sockets_adopt(const struct passed_sockets *passed,
                                       struct listening *listening, struct buf *why);

/* Moves one that was passed to the running daemon likewise. */
enum listen_error passed_sockets_adopt_taken(struct taken_socket *taken,
                                             struct listening *listening, struct buf *why);

#endif
