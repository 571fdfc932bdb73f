/*
 * Finding the server: the options that all commands share, and the places without them.
 */
#ifndef SUNPROXY_CLIENT_CONNECT_H
#define SUNPROXY_CLIENT_CONNECT_H

#include <stdint.h>
#include <sys/socket.h>

#include "cli/options.h"
#include "rpc/client.h"

struct server_options {
    const char *socket; /* --socket; NULL: not given */
    const char *host;   /* --host */
    uint64_t port;      /* --port; 0: not given */
    int64_t timeout_us; /* --timeout, for each call */
};

/* For struct server_options. */
extern const struct option_group server_option_group;

enum server_route {
    SERVER_ANY,   /* TCP before AF_UNIX */
    SERVER_ADMIN, /* AF_UNIX before TCP: the server identifies administrators on it */
    SERVER_TCP,   /* only this one */
    SERVER_UNIX,
};

struct server {
    struct sockaddr_storage address;
    socklen_t len;
    char name[320]; /* for people: "unix:/run/..." or "localhost:1234" */
};

/*
 * Finds the server and connects. With both --socket and --port, the route decides. NULL after a
 * complaint that lists what was tried, with the exit status in *status.
 */
struct rpc_client *server_find(const struct server_options *options, enum server_route route,
                               struct server *server, int *status);

/* Opens another connection to it. NULL with errno set. Any thread may call it. */
struct rpc_client *server_connect(const struct server *server, int64_t timeout_us);

#endif
