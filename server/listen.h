/*
 * The daemon's sockets: TCP over IPv4 and IPv6 on one port, and an AF_UNIX socket. Sockets that a
 * service manager passed (passed_sockets.h) stand in for own ones of the same kind: no TCP socket
 * is opened if one was passed, and no AF_UNIX socket likewise. When an address is taken, the
 * sentence says by which process.
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
    int tcp[LISTEN_MOST_TCP]; /* owned until they are taken by rpc_server_listen() */
    unsigned tcp_count;
    uint16_t port; /* 0: no TCP */
    bool ipv4, ipv6;
    bool tcp_passed, local_passed; /* by a service manager; such a name is not removed */
    int local;                     /* -1: none */
    bool bound;                    /* the socket's name is ours to remove */
    int lock;          /* held on PATH.lock for as long as the socket is ours; -1: none */
    bool default_path; /* no --socket was given */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

enum listen_error {
    LISTEN_OK,
    LISTEN_BAD_ADDRESS, /* not an address of this machine */
    LISTEN_IN_USE,      /* another process has it */
    LISTEN_FAILED,
};

/* Are the addresses and the path of the socket such as can be listened on? Opens nothing. */
enum listen_error listen_check(const struct options *options, struct buf *why);

/* Takes what was passed and opens the rest that the options ask for; otherwise nothing is open and
 * `why` has a sentence. */
enum listen_error listen_open(struct listening *listening, const struct options *options,
                              struct buf *why);

/*
 * Removes the AF_UNIX socket's name and lets go of the lock, and closes what was not taken (set to
 * -1 by whoever takes it).
 */
void listen_close(struct listening *listening);

#endif
