/*
 * The daemon's sockets. For RPC: TCP over IPv4 and IPv6 on one port, on the loopback unless
 * --listen names other addresses, and an AF_UNIX socket. For HTTP, and for the metrics: any of both
 * kinds. Sockets that a service manager passed (passed_sockets.h) replace own ones of the same
 * kind: no TCP socket for RPC is opened if one was passed, and so on. When an address is in use,
 * the sentence names the process.
 *
 * One thread, before the workers start and after they have ended.
 */
#ifndef SUNPROXY_SERVER_LISTEN_H
#define SUNPROXY_SERVER_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/local_socket.h"
#include "server/options.h"

#define LISTEN_MOST_TCP 16
#define LISTEN_MOST_HTTP 16

struct listening {
    int tcp[LISTEN_MOST_TCP]; /* owned until rpc_server_listen() takes them */
    unsigned tcp_count;
    uint16_t port; /* 0: no TCP */
    /* The only address of each family, or the family's wildcard address if there are several;
       AF_UNSPEC: none. */
    struct sockaddr_storage ipv4, ipv6;
    bool tcp_passed, local_passed; /* by a service manager; its name is not removed */
    struct local_socket local;
    struct local_socket http[LISTEN_MOST_HTTP]; /* of TCP only `fd`; owned until it is -1 */
    unsigned http_count;
    bool http_passed;
    struct local_socket http_proxied[LISTEN_MOST_HTTP]; /* likewise */
    unsigned http_proxied_count;
    struct local_socket metrics[LISTEN_MOST_HTTP]; /* likewise */
    unsigned metrics_count;
};

#define LISTENING_NONE ((struct listening){.local = {.fd = -1, .lock = -1}})

/*
 * An address of HTTP, the value of `option`: "ADDRESS:PORT", with an IPv6 address in brackets, or
 * "unix:PATH". False with a sentence in `why` for anything else.
 */
struct listen_http_address {
    struct sockaddr_storage address;
    socklen_t len;
    const char *path; /* in the text; NULL: TCP */
};
bool listen_parse_http(const char *option, const char *text, struct listen_http_address *http,
                       struct buf *why);

/* Writes the name of a listening socket as --http has it; returns `name`. */
#define LISTEN_NAME 128
const char *listen_describe(int fd, char *name, size_t size);

/* A TCP socket for RPC has this address: adds it to those of its family. */
void listen_note_address(struct listening *listening, const struct sockaddr_storage *address);

/* Writes an address without its port, nothing for AF_UNSPEC; returns `text`. */
const char *listen_address_text(const struct sockaddr_storage *address,
                                char text[INET6_ADDRSTRLEN]);

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
