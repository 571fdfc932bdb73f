/*
 * The daemon's sockets. For RPC: TCP over IPv4 and IPv6 on one port, on the loopback unless
 * --listen names other addresses, and an AF_UNIX socket. For HTTP, and for the metrics: any of both
 * kinds. Sockets that a service manager passed (passed_sockets.h) replace own ones of the same
 * kind: no TCP socket for RPC is opened if one was passed, and so on. Beside the AF_UNIX socket
 * there is one by which another process takes all of them over (take_over.h). When an address is in
 * use, the sentence names the process.
 *
 * One thread, before the workers start and after they have ended.
 */
#ifndef SUNPROXY_SERVER_LISTEN_LISTEN_H
#define SUNPROXY_SERVER_LISTEN_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/listen/listen_address.h"
#include "server/listen/local_socket.h"
#include "server/listen/taken_sockets.h"
#include "server/config/options.h"

#define LISTEN_MOST_TCP 16
#define LISTEN_MOST_HTTP 16 /* values of an option */
#define LISTEN_HTTP_SOCKETS (LISTEN_MOST_HTTP * LISTEN_HTTP_ADDRESSES)

/* The sockets of a role. */
struct listen_set {
    struct local_socket sockets[LISTEN_HTTP_SOCKETS]; /* of TCP only `fd`; owned until it is -1 */
    unsigned count;
    bool passed; /* by a service manager; their names are not removed */
};

struct listening {
    struct listen_set sets[LISTEN_ROLES]; /* by role */
    uint16_t port;                        /* of RPC; 0: no TCP */
    /* The only address of each family that RPC has, or the family's wildcard address if there are
       several; AF_UNSPEC: none. */
    struct sockaddr_storage ipv4, ipv6;
};

#define LISTENING_NONE ((struct listening){.port = 0})

/* The AF_UNIX socket of RPC; NULL: there is none. */
const struct local_socket *listen_local(const struct listening *listening);

/* Checks the addresses and the path of the socket: a line in `why` for each error. Opens nothing.
 */
enum listen_error listen_check(const struct options *options, struct buf *why);

/*
 * Takes passed sockets and opens the others that the options name, or takes them from those of a
 * running daemon, where it has them at the same address. On an error nothing is open, nothing of
 * that daemon's is removed, and `why` has a sentence.
 */
enum listen_error listen_open(struct listening *listening, const struct options *options,
                              struct taken_sockets *taken, struct buf *why);

/* Describes all sockets for another process that takes them over; they stay owned as they are. */
void listen_offer(const struct listening *listening, struct taken_sockets *offer);

/* Those that another process has taken over are not removed by listen_close(). */
void listen_give(struct listening *listening, const struct taken_sockets *offer);

/* What was taken from a running daemon belongs to this process from now on. */
void listen_own(struct listening *listening);

/*
 * Removes the names of AF_UNIX sockets, releases their locks, and closes the sockets that the
 * server has not taken (which sets `fd` to -1).
 */
void listen_close(struct listening *listening);

#endif
