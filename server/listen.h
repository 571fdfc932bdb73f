/*
 * The daemon's sockets: TCP over IPv4 and IPv6 on one port, and an AF_UNIX socket. Sockets that a
 * service manager passed (passed_sockets.h) replace own ones of the same kind: no TCP socket is
 * opened if one was passed, and no AF_UNIX socket if one of these was. When an address is in use,
 * the sentence names the process.
 *
 * One thread, before the workers start and after they have ended.
 */
#ifndef SUNPROXY_SERVER_LISTEN_H
#define SUNPROXY_SERVER_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/un.h>

#include "base/buf.h"
#include "server/options.h"

#define LISTEN_MOST_TCP 16

struct listening {
    int tcp[LISTEN_MOST_TCP]; /* owned until rpc_server_listen() takes them */
    unsigned tcp_count;
    uint16_t port; /* 0: no TCP */
    bool ipv4, ipv6;
    bool tcp_passed, local_passed; /* by a service manager; its name is not removed */
    int local;                     /* -1: none */
    bool bound;        /* the socket's name was created here and is removed at the end */
    int lock;          /* on PATH.lock while the socket is in use; -1: none */
    bool default_path; /* no --socket was given */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

enum listen_error {
    LISTEN_OK,
    LISTEN_BAD_ADDRESS, /* not an address of this machine */
    LISTEN_IN_USE,      /* by another process */
    LISTEN_FAILED,
};

/* Checks the addresses and the path of the socket. Opens nothing. */
enum listen_error listen_check(const struct options *options, struct buf *why);

/* Takes passed sockets and opens the others that the options name. On an error nothing is open and
 * `why` has a sentence. */
enum listen_error listen_open(struct listening *listening, const struct options *options,
                              struct buf *why);

/*
 * Removes the AF_UNIX socket's name, releases the lock, and closes the sockets that were not taken
 * (taking one sets it to -1).
 */
void listen_close(struct listening *listening);

#endif
