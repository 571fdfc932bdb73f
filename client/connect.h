/*
 * Finding the server: the options that every subcommand has for it, and where to look without them.
 */
#ifndef SUNPROXY_CLIENT_CONNECT_H
#define SUNPROXY_CLIENT_CONNECT_H

#include <getopt.h>
#include <stdint.h>
#include <sys/socket.h>

#include "cli/command.h"
#include "rpc/client.h"

struct server_options {
    const char *socket; /* --socket; NULL: not given */
    const char *host;   /* --host */
    unsigned port;      /* --port; 0: not given */
    int64_t timeout_us; /* --timeout, for each call */
};

#define SERVER_OPTIONS_DEFAULT ((struct server_options){.timeout_us = 90 * (int64_t)1000000})

/* Values of the long options below; a command's own begin at SERVER_OPTION_END. */
enum {
    OPTION_SOCKET = OPTION_OWN,
    OPTION_HOST,
    OPTION_PORT,
    OPTION_TIMEOUT,
    SERVER_OPTION_END,
};

/* For a subcommand's array of options. */
#define SERVER_LONG_OPTIONS                                   \
    {"socket", required_argument, NULL, OPTION_SOCKET},       \
        {"host", required_argument, NULL, OPTION_HOST},       \
        {"port", required_argument, NULL, OPTION_PORT},       \
        {"timeout", required_argument, NULL, OPTION_TIMEOUT}, \
    {                                                         \
        "help", no_argument, NULL, OPTION_HELP                \
    }

#define SERVER_OPTIONS_HELP                                                             \
    "Which server:\n"                                                                   \
    "  --socket PATH       its AF_UNIX socket\n"                                        \
    "  --host HOST         where it runs (default: localhost)\n"                        \
    "  --port N            its TCP port on that host; without it, rpcbind is asked\n"   \
    "  --timeout DURATION  wait so long for an answer: 500ms, 30s, 2m (default: 90s)\n" \
    "  With both --socket and --port, administration goes over the socket, pages\n"     \
    "  over TCP. Without any of them, $SUNPROXY_SERVER says where: unix:PATH or\n"      \
    "  HOST:PORT. Without that, rpcbind on this machine is asked, then the default\n"   \
    "  socket is tried.\n"

/*
 * Takes an option of the above: 1 if it was one, 0 if it is not ours, -1 (complained) if its
 * argument is wrong. OPTION_HELP is the subcommand's to handle.
 */
int server_option(struct server_options *options, int option, const char *argument);

enum server_wish {
    SERVER_ANY,   /* TCP before AF_UNIX */
    SERVER_ADMIN, /* AF_UNIX before TCP: over it, administrators are known */
    SERVER_TCP,   /* nothing else */
    SERVER_UNIX,
};

struct server {
    struct sockaddr_storage address;
    socklen_t len;
    char name[320]; /* for people: "unix:/run/..." or "localhost:1234" */
};

/*
 * Finds the server and connects. With both --socket and --port, the wish chooses. NULL, after a
 * complaint that says what was tried, with the exit status in *status.
 */
struct rpc_client *server_find(const struct server_options *options, enum server_wish wish,
                               struct server *server, int *status);

/* One more connection to it. NULL with errno set. Any thread may. */
struct rpc_client *server_connect(const struct server *server, int64_t timeout_us);

#endif
