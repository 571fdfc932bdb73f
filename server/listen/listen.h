/*
 * The daemon's sockets. For RPC: TCP over IPv4 and IPv6 on one port, on the loopback unless
 * --listen names other addresses, and an AF_UNIX socket. For HTTP, and for the metrics: any of both
 * kinds. Sockets that a service manager passed (passed_sockets.h) replace own ones of the same
 * kind: no TCP socket for RPC is opened if one was passed, and so on. When an address is in use,
 * the sentence names the process.
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
#include "server/config/options.h"

#define LISTEN_MOST_TCP 16
#define LISTEN_MOST_HTTP 16 /* values of an option */
#define LISTEN_HTTP_SOCKETS (LISTEN_MOST_HTTP * LISTEN_HTTP_ADDRESSES)

struct listening {
    int tcp[LISTEN_MOST_TCP]; /* owned until rpc_server_listen() takes them */
    unsigned tcp_count;
    uint16_t port; /* 0: no TCP */
    /* The only address of each family, or the family's wildcard address if there are several;
       AF_UNSPEC: none. */
    struct sockaddr_storage ipv4, ipv6;
    bool tcp_passed, local_passed; /* by a service manager; its name is not removed */
    struct local_socket local;
    struct local_socket http[LISTEN_HTTP_SOCKETS]; /* of TCP only `fd`; owned until it is -1 */
    unsigned http_count;
    bool http_passed;
    struct local_socket http_proxied[LISTEN_HTTP_SOCKETS]; /* likewise */
    unsigned http_proxied_count;
    struct local_socket metrics[LISTEN_HTTP_SOCKETS]; /* likewise */
    unsigned metrics_count;
};

#define LISTENING_NONE ((struct listening){.local = {.fd = -1, .lock = -1}})

/* Checks the addresses and the path of the socket: a line in `why` for each error. Opens nothing.
 */
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
