#include "client/connect.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sysexits.h>

#include "base/buf.h"
#include "base/paths.h"
#include "base/units.h"
#include "client/output.h"
#include "client/rpcbind.h"
#include "proxy.h"

/* A page, and generous room for what stands around it. */
#define MAX_REPLY (PROXY_MAX_PAGE + PROXY_MAX_HEADERS + 2 * (PROXY_MAX_VICTIMS + 1) * PROXY_MAX_URL)
#define MAX_CONNECT_US ((int64_t)10 * 1000000)
#define MAX_TRIED 4096

int
server_option(struct server_options *options, int option, const char *argument)
{
    uint64_t number;

    switch (option) {
    case OPTION_SOCKET:
        options->socket = argument;
        return 1;
    case OPTION_HOST:
        options->host = argument;
        return 1;
    case OPTION_PORT:
        if (!units_parse_uint(argument, 1, 65535, &number)) {
            output_complain("--port is a number from 1 to 65535, not '%s'", argument);
            return -1;
        }
        options->port = (unsigned)number;
        return 1;
    case OPTION_TIMEOUT:
        if (!units_parse_duration(argument, &options->timeout_us) || options->timeout_us <= 0) {
            output_complain("--timeout is a duration such as 500ms, 30s or 2m, not '%s'", argument);
            return -1;
        }
        return 1;
    default:
        return 0;
    }
}

struct rpc_client *
server_connect(const struct server *server, int64_t timeout_us)
{
    return rpc_client_connect((const struct sockaddr *)&server->address, server->len,
                              timeout_us < MAX_CONNECT_US ? timeout_us : MAX_CONNECT_US, MAX_REPLY);
}

/* ---- attempts ----------------------------------------------------------------------------------
 */

/* A search under way, and what it has come to. */
struct search {
    const struct server_options *options;
    struct server *server;
    struct buf tried; /* "unix:/a: No such file or directory; localhost:9: ..." */
};

static void
note(struct search *search, const char *what, const char *why)
{
    buf_printf(&search->tried, "%s%s: %s", search->tried.len ? "; " : "", what, why);
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

/* "unix:PATH", "HOST:PORT" or "[ADDRESS]:PORT". *status is EX_USAGE if it is none of them. */
static struct rpc_client *
try_environment(struct search *search, const char *text, enum server_wish wish, int *status)
{
    char host[256];
    const char *colon = strrchr(text, ':'), *end = colon;
    uint64_t port;

    if (strncmp(text, "unix:", 5) == 0) {
        if (wish != SERVER_TCP)
            return try_unix(search, text + 5);
        note(search, "SUNPROXY_SERVER", "names no TCP port");
        return NULL;
    }
    if (colon && *text == '[' && colon > text && colon[-1] == ']') {
        text++;
        end--;
    }
    if (!colon || end <= text || (size_t)(end - text) >= sizeof(host) ||
        !units_parse_uint(colon + 1, 1, 65535, &port)) {
        output_complain("SUNPROXY_SERVER is unix:PATH or HOST:PORT, not '%s'", text);
        *status = EX_USAGE;
        return NULL;
    }
    if (wish == SERVER_UNIX) {
        note(search, "SUNPROXY_SERVER", "names no AF_UNIX socket");
        return NULL;
    }
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    return try_tcp(search, host, (unsigned)port, AF_UNSPEC);
}

/* ---- rpcbind -----------------------------------------------------------------------------------
 */

/* Connects to rpcbind on the host: by its socket if that is this one. */
static struct rpc_client *
open_rpcbind(struct search *search, const char *host, bool local)
{
    struct server rpcbind, *server = search->server;
    struct rpc_client *client = NULL;

    search->server = &rpcbind;
    if (local)
        client = try_unix(search, RPCBIND_SOCKET);
    if (!client)
        client = try_tcp(search, host, RPCBIND_PORT, AF_UNSPEC);
    search->server = server;
    return client;
}

static struct rpc_client *
try_registered(struct search *search, struct rpc_client *rpcbind, const char *netid,
               const char *asked_host, bool local)
{
    char address[256], host[256];
    unsigned port;

    if (!rpcbind_find(rpcbind, PROXY_FETCHPROG, PROXY_VERS2, netid, search->options->timeout_us,
                      address, sizeof(address)))
        return NULL;
    if (strcmp(netid, "local") == 0)
        return try_unix(search, address);
    port = rpcbind_port(address);
    if (port == 0)
        return NULL;
    /* A daemon on this machine may listen on one address only; of another host's addresses, the
     * one that the user named is known to be reachable. */
    if (!local || !rpcbind_host(address, host, sizeof(host)))
        snprintf(host, sizeof(host), "%s", asked_host);
    return try_tcp(search, host, port, strcmp(netid, "tcp6") == 0 ? AF_INET6 : AF_INET);
}

static struct rpc_client *
try_default_socket(struct search *search)
{
    char path[256];

    return paths_default_socket(path, sizeof(path)) ? try_unix(search, path) : NULL;
}

/* Asks rpcbind, and tries the default socket, in the order that the wish wants. */
static struct rpc_client *
search_host(struct search *search, enum server_wish wish)
{
    const char *host = search->options->host ? search->options->host : "localhost";
    bool local = strcmp(host, "localhost") == 0;
    bool sockets = local && wish != SERVER_TCP, ports = wish != SERVER_UNIX;
    struct rpc_client *rpcbind = open_rpcbind(search, host, local), *client = NULL;
    size_t mark = search->tried.len;

    for (int step = 0; step < 2 && !client; step++) {
        bool turn_of_sockets = (step == 0) == (wish == SERVER_ADMIN || wish == SERVER_UNIX);

        if (turn_of_sockets && sockets) {
            if (rpcbind)
                client = try_registered(search, rpcbind, "local", host, local);
            if (!client)
                client = try_default_socket(search);
        } else if (!turn_of_sockets && ports && rpcbind) {
            client = try_registered(search, rpcbind, "tcp", host, local);
            if (!client)
                client = try_registered(search, rpcbind, "tcp6", host, local);
        }
    }
    if (rpcbind && !client && search->tried.len == mark)
        note(search, "rpcbind", "no sunproxyd is registered there");
    rpc_client_close(rpcbind);
    return client;
}

struct rpc_client *
server_find(const struct server_options *options, enum server_wish wish, struct server *server,
            int *status)
{
    struct search search = {.options = options, .server = server};
    const char *environment = getenv("SUNPROXY_SERVER");
    struct rpc_client *client = NULL;

    buf_init(&search.tried, MAX_TRIED);
    *status = EX_UNAVAILABLE;
    if (options->socket && !(options->port && (wish == SERVER_TCP || wish == SERVER_ANY))) {
        if (wish != SERVER_TCP)
            client = try_unix(&search, options->socket);
        else
            note(&search, options->socket, "is a socket, and TCP was asked for: give --port too");
    } else if (options->port) {
        if (wish != SERVER_UNIX)
            client = try_tcp(&search, options->host ? options->host : "localhost", options->port,
                             AF_UNSPEC);
        else
            note(&search, "--port", "is TCP, and an AF_UNIX socket was asked for: give --socket");
    } else if (!options->host && environment && *environment) {
        client = try_environment(&search, environment, wish, status);
    } else {
        client = search_host(&search, wish);
    }
    if (!client && *status == EX_UNAVAILABLE)
        output_complain("no server found. Tried %s", buf_str(&search.tried));
    buf_free(&search.tried);
    return client;
}
