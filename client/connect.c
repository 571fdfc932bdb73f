#include "client/connect.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/paths.h"
#include "cli/output.h"
#include "client/address.h"
#include "client/rpcbind.h"
#include "proxy.h"

/* A page with its headers, and twice the size of all URLs beside it. */
#define MAX_REPLY (PROXY_MAX_PAGE + PROXY_MAX_HEADERS + 2 * (PROXY_MAX_VICTIMS + 1) * PROXY_MAX_URL)
#define MAX_CONNECT_US ((int64_t)10 * 1000000)
#define MAX_TRIED 4096

#define AT(field) offsetof(struct server_options, field)

static const struct option_row rows[] = {
    {"socket", 0, "PATH", option_text, AT(socket), 0, 0, NULL, "AF_UNIX socket of the server"},
    {"host", 0, "HOST", option_text, AT(host), 0, 0, NULL,
     "host of the server (default: localhost)"},
    {"port", 0, "N", option_uint, AT(port), 1, 65535, NULL,
     "TCP port of the server (default: from rpcbind on that host)"},
    {"timeout", 0, "TIME", option_duration, AT(timeout_us), 0, 0, "90s",
     "time limit for each answer: 500ms, 30s"},
    {0},
};

const struct option_group server_option_group = {
    .heading = "The server",
    .rows = rows,
    .after = "With both --socket and --port, administration uses the socket, and pages are fetched "
             "over TCP. Without --socket, --host and --port, the environment variable "
             "SUNPROXY_SERVER names the server: unix:PATH or HOST:PORT. Without that, rpcbind on "
             "this machine is asked, then the default socket is tried.",
};

struct rpc_client *
server_connect(const struct server *server, int64_t timeout_us)
{
    return rpc_client_connect((const struct sockaddr *)&server->address, server->len,
                              timeout_us < MAX_CONNECT_US ? timeout_us : MAX_CONNECT_US, MAX_REPLY);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* The state of a search. */
struct search {
    const struct server_options *options;
    struct server *server;
    const char *prefix; /* of the notes */
    struct buf tried;   /* "unix:/a: No such file or directory; localhost:9: ..." */
};

static void
note(struct search *search, const char *what, const char *why)
{
    buf_printf(&search->tried, "%s%s%s: %s", search->tried.len ? "; " : "", search->prefix, what,
               why);
}

static struct rpc_client *
attempt(struct search *search)
{
    struct rpc_client *client = server_connect(search->server, search->options->timeout_us);

    if (!client)
        note(search, search->server->name, strerror(errno));
    return client;
}

static struct rpc_client *
try_unix(struct search *search, const char *path)
{
    struct server *server = search->server;
    struct sockaddr_un *address = (struct sockaddr_un *)&server->address;

    snprintf(server->name, sizeof(server->name), "unix:%s", path);
    if (strlen(path) >= sizeof(address->sun_path)) {
        note(search, server->name, "the path is too long for a socket");
        return NULL;
    }
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address->sun_path, path, strlen(path));
    server->len = sizeof(*address);
    return attempt(search);
}

static struct rpc_client *
try_tcp(struct search *search, const char *host, unsigned port, int family)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *found, *each;
    struct server *server = search->server;
    struct rpc_client *client = NULL;
    char service[16];
    int error;

    snprintf(service, sizeof(service), "%u", port);
    snprintf(server->name, sizeof(server->name), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
             port);
    error = getaddrinfo(host, service, &hints, &found);
    if (error) {
        note(search, server->name, error == EAI_SYSTEM ? strerror(errno) : gai_strerror(error));
        return NULL;
    }
    for (each = found; each && !client; each = each->ai_next) {
        memcpy(&server->address, each->ai_addr, each->ai_addrlen);
        server->len = each->ai_addrlen;
        client = attempt(search);
    }
    freeaddrinfo(found);
    return client;
}

/* The server that SUNPROXY_SERVER names. *status is EX_USAGE if it names none. */
static struct rpc_client *
try_environment(struct search *search, const char *text, enum server_route route, int *status)
{
    struct server_address address;

    if (!server_address_parse(&address, text)) {
        output_complain("SUNPROXY_SERVER is unix:PATH or HOST:PORT, not '%s'", text);
        *status = EX_USAGE;
        return NULL;
    }
    if (address.path && route == SERVER_TCP) {
        note(search, "SUNPROXY_SERVER", "names no TCP port");
        return NULL;
    }
    if (!address.path && route == SERVER_UNIX) {
        note(search, "SUNPROXY_SERVER", "names no AF_UNIX socket");
        return NULL;
    }
    return address.path ? try_unix(search, address.path)
                        : try_tcp(search, address.host, address.port, AF_UNSPEC);
}

/* ---- rpcbind --------------------------------------------------------------------------------- */

/* A transport that sunproxyd registers. rpcbind answers only for the transport of the question. */
struct transport {
    const char *netid;
    int family;
};

static const struct transport transports[] = {
    {"tcp", AF_INET}, {"tcp6", AF_INET6}, {"local", AF_UNIX}};

/* Asks rpcbind on the host for the address on a transport; false after a note. */
static bool
ask_rpcbind(struct search *search, const struct transport *transport, const char *host,
            char *address, size_t size)
{
    struct server rpcbind, *server = search->server;
    struct rpc_client *client;
    bool found = false;

    search->server = &rpcbind;
    search->prefix = transport->family == AF_INET6 ? "rpcbind over IPv6 at " : "rpcbind at ";
    client = transport->family == AF_UNIX ? try_unix(search, RPCBIND_SOCKET)
                                          : try_tcp(search, host, RPCBIND_PORT, transport->family);
    if (client) {
        found = rpcbind_find(client, PROXY_FETCHPROG, PROXY_VERS2, transport->netid,
                             search->options->timeout_us, address, size);
        if (!found)
            note(search, rpcbind.name, "no sunproxyd is registered");
    }
    rpc_client_close(client);
    search->server = server;
    search->prefix = "";
    return found;
}

static struct rpc_client *
try_registered(struct search *search, const struct transport *transport, const char *host)
{
    char address[256];
    unsigned port;

    if (!ask_rpcbind(search, transport, host, address, sizeof(address)))
        return NULL;
    if (transport->family == AF_UNIX)
        return try_unix(search, address);
    /* Of the host's addresses, that of rpcbind is known to be reachable. */
    port = rpcbind_port(address);
    if (port != 0)
        return try_tcp(search, host, port, transport->family);
    note(search, "rpcbind", "it returned an invalid address");
    return NULL;
}

/* Tries the sockets of this machine. */
static struct rpc_client *
try_sockets(struct search *search, const char *host)
{
    char path[256];
    struct rpc_client *client;

    if (strcmp(host, "localhost") != 0)
        return NULL;
    client = try_registered(search, &transports[2], host);
    if (client || !paths_default_socket(path, sizeof(path)))
        return client;
    /* In a folder of another user, the server may be that user's. */
    if (paths_folder_is_safe(path))
        return try_unix(search, path);
    note(search, path,
         access(path, F_OK) == 0 ? "its folder belongs to another user" : strerror(errno));
    return NULL;
}

static struct rpc_client *
try_ports(struct search *search, const char *host)
{
    struct rpc_client *client = try_registered(search, &transports[0], host);

    return client ? client : try_registered(search, &transports[1], host);
}

static struct rpc_client *
search_host(struct search *search, enum server_route route)
{
    const char *host = search->options->host ? search->options->host : "localhost";
    struct rpc_client *client = NULL;

    switch (route) {
    case SERVER_ANY:
        client = try_ports(search, host);
        return client ? client : try_sockets(search, host);
    case SERVER_ADMIN:
        client = try_sockets(search, host);
        return client ? client : try_ports(search, host);
    case SERVER_TCP:
        return try_ports(search, host);
    case SERVER_UNIX:
        if (strcmp(host, "localhost") != 0)
            note(search, host, "an AF_UNIX socket is on this machine only");
        return try_sockets(search, host);
    }
    return NULL;
}

struct rpc_client *
server_find(const struct server_options *options, enum server_route route, struct server *server,
            int *status)
{
    struct search search = {.options = options, .server = server, .prefix = ""};
    const char *environment = getenv("SUNPROXY_SERVER");
    struct rpc_client *client = NULL;

    buf_init(&search.tried, MAX_TRIED);
    *status = EX_UNAVAILABLE;
    if (options->socket && !(options->port && (route == SERVER_TCP || route == SERVER_ANY))) {
        if (route != SERVER_TCP)
            client = try_unix(&search, options->socket);
        else
            note(&search, options->socket,
                 "is an AF_UNIX socket, but TCP is needed: give --port too");
    } else if (options->port) {
        if (route != SERVER_UNIX)
            client = try_tcp(&search, options->host ? options->host : "localhost",
                             (unsigned)options->port, AF_UNSPEC);
        else
            note(&search, "--port", "is TCP, but an AF_UNIX socket is needed: give --socket");
    } else if (!options->host && environment && *environment) {
        client = try_environment(&search, environment, route, status);
    } else {
        client = search_host(&search, route);
    }
    if (!client && *status == EX_UNAVAILABLE)
        output_complain("no server found. Tried %s", buf_str(&search.tried));
    buf_free(&search.tried);
    return client;
}
