#include "server/listen/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/listen/holder.h"
#include "server/listen/listen_address.h"
#include "server/listen/passed_sockets.h"
#include "server/listen/take_over.h"

#define PORT_TRIES 20 /* for a port that is free on every address */

static const char nothing_left[] = "there is no address and no socket to listen on";

/* The sentence on items[i] of --listen. */
static void
bad_address(struct buf *why, const struct option_list *list, size_t i)
{
    buf_printf(why, "%slisten: \"%s\" is not an IPv4 or IPv6 address", option_place(list, i),
               list->items[i]);
}

static void
too_many_addresses(struct buf *why, const struct option_list *list, const char *option, size_t most)
{
    buf_printf(why, "%s%s: more than %zu addresses", option_place(list, most), option, most);
}

/* ---- TCP ---------------------------------------------------------------------------------- */

static void
close_set(struct listen_set *set)
{
    for (unsigned i = 0; i < set->count; i++)
        local_socket_close(&set->sockets[i]);
    set->count = 0;
}

static void
close_tcp(struct listening *listening)
{
    close_set(&listening->sets[LISTEN_RPC]);
    listening->port = 0;
    listening->ipv4.ss_family = listening->ipv6.ss_family = AF_UNSPEC;
}

/* A socket of the running daemon, or another one. */
static int
take_or_open(struct taken_sockets *taken, enum listen_role role, const struct sockaddr *address,
             socklen_t len)
{
    int fd = taken_sockets_find(taken, role, address);

    return fd >= 0 ? fd : listen_address_open(address, len);
}

/*
 * Opens every address on one port. EADDRINUSE with *chosen set means that the port that the system
 * chose for the first address is in use on another: try again. On failure *at is the number of the
 * address.
 */
static int
open_all(struct listening *listening, char *const *addresses, bool optional, uint16_t port,
         struct taken_sockets *taken, size_t *at)
{
    struct listen_set *set = &listening->sets[LISTEN_RPC];

    for (*at = 0; addresses[*at]; ++*at) {
        struct sockaddr_storage address;
        socklen_t len;
        int fd;

        if (set->count == LISTEN_MOST_TCP)
            return E2BIG;
        if (!listen_address_parse(addresses[*at], &address, &len))
            return EINVAL;
        listen_address_set_port(&address, port ? port : listening->port);
        fd = take_or_open(taken, LISTEN_RPC, (struct sockaddr *)&address, len);
        if (fd < 0 && optional &&
            (listen_address_family_is_missing(errno) ||
             (errno == EADDRNOTAVAIL && address.ss_family == AF_INET6)))
            continue;
        if (fd < 0)
            return errno;
        set->sockets[set->count] = LOCAL_SOCKET_NONE;
        set->sockets[set->count].any_port = !port;
        set->sockets[set->count++].fd = fd;
        listening->port = listen_address_port_of(fd);
        listen_address_note(&listening->ipv4, &listening->ipv6, &address);
    }
    return set->count ? 0 : EAFNOSUPPORT;
}

static enum listen_error
refuse_port(uint16_t port, struct buf *why)
{
    buf_printf(why, "TCP port %u is in use by ", (unsigned)port);
    if (!holder_of_port(port, why))
        buf_append_str(why, "an unknown process");
    return LISTEN_IN_USE;
}

static enum listen_error
open_every_tcp(struct listening *listening, const struct options *options,
               struct taken_sockets *taken, struct buf *why)
{
    static char loopback4[] = "127.0.0.1", loopback6[] = "::1";
    char *loopback[] = {loopback4, loopback6, NULL};
    bool given = options->listen.count != 0;
    char **addresses = given ? options->listen.items : loopback;
    uint16_t port = (uint16_t)options->port;
    int error = EADDRINUSE;
    size_t at = 0;

    if (given && strcmp(addresses[0], "none") == 0)
        return LISTEN_OK;
    for (int i = 0; i < PORT_TRIES && error == EADDRINUSE; i++) {
        close_tcp(listening);
        error = open_all(listening, addresses, !given, port, taken, &at);
        if (port)
            break;
    }
    if (error == 0)
        return LISTEN_OK;
    close_tcp(listening);
    switch (error) {
    case EADDRINUSE:
        return refuse_port(port, why);
    case EINVAL:
        bad_address(why, &options->listen, at);
        return LISTEN_BAD_ADDRESS;
    case EADDRNOTAVAIL:
        buf_printf(why, "%slisten: %s is not an address of this machine",
                   option_place(&options->listen, at), addresses[at]);
        return LISTEN_BAD_ADDRESS;
    case E2BIG:
        too_many_addresses(why, &options->listen, "listen", LISTEN_MOST_TCP);
        return LISTEN_BAD_ADDRESS;
    default:
        buf_printf(why, "listening on %s port %u: %s",
                   addresses[at] ? addresses[at] : "any address", (unsigned)port, strerror(error));
        return LISTEN_FAILED;
    }
}

/* ---- AF_UNIX ------------------------------------------------------------------------------- */

static enum listen_error
open_local(struct listening *listening, const struct options *options, struct taken_sockets *taken,
           struct buf *why)
{
    struct listen_set *set = &listening->sets[LISTEN_LOCAL];
    struct local_socket *local = &set->sockets[0];

    if (options->socket && strcmp(options->socket, "none") == 0)
        return LISTEN_OK;
    *local = LOCAL_SOCKET_NONE;
    set->count = 1;
    if (!local_socket_name(local, options->socket, options->user, why))
        return options->socket ? LISTEN_BAD_ADDRESS : LISTEN_FAILED;
    if (taken_sockets_find_local(taken, LISTEN_LOCAL, local))
        return LISTEN_OK;
    return options->socket
               ? local_socket_open(local, options->socket, options->socket_mode, why)
               : local_socket_open_default(local, options->user, options->socket_mode, why);
}

/* Without one, sockets are taken over only by a process that this one starts. */
static void
open_take_over(struct listening *listening, struct taken_sockets *taken)
{
    struct listen_set *set = &listening->sets[LISTEN_TAKE_OVER];
    struct local_socket *socket = &set->sockets[0];
    const struct local_socket *local = listen_local(listening);

    *socket = LOCAL_SOCKET_NONE;
    if (local && take_over_name(local->path, socket->path, sizeof(socket->path)) &&
        (taken_sockets_find_local(taken, LISTEN_TAKE_OVER, socket) ||
         local_socket_open_beside(socket)))
        set->count = 1;
}

/* ---- HTTP ---------------------------------------------------------------------------------- */

/* The values of an option that names addresses of HTTP. */
struct http_addresses {
    enum listen_role role;
    const struct option_list *list;
    const char *option;
};

/*
 * Opens every address of a value; the second one only where the machine has its family. Without a
 * port of its own it gets that of the first. 0, or the errno of the address *at.
 */
static int
open_addresses(struct listen_set *set, enum listen_role role, const struct listen_http *http,
               struct taken_sockets *taken, unsigned *at)
{
    unsigned opened = 0;

    for (*at = 0; *at < http->count; ++*at) {
        struct sockaddr_storage address = http->addresses[*at];
        struct local_socket *socket = &set->sockets[set->count + opened];

        if (*at && listen_address_port(&address) == 0)
            listen_address_set_port(&address, listen_address_port_of(set->sockets[set->count].fd));
        *socket = LOCAL_SOCKET_NONE;
        socket->any_port = listen_address_port(&http->addresses[0]) == 0;
        socket->fd = take_or_open(taken, role, (const struct sockaddr *)&address, http->lens[*at]);
        if (socket->fd >= 0) {
            opened++;
        } else if (!*at || (!listen_address_family_is_missing(errno) && errno != EADDRNOTAVAIL)) {
            int error = errno;

            while (opened)
                local_socket_close(&set->sockets[set->count + --opened]);
            return error;
        }
    }
    set->count += opened;
    return 0;
}

static enum listen_error
open_tcp(struct listen_set *set, enum listen_role role, const char *name,
         const struct listen_http *http, struct taken_sockets *taken, struct buf *why)
{
    bool chosen = listen_address_port(&http->addresses[0]) == 0;
    int error = EADDRINUSE;
    unsigned at = 0;

    /* A port that the system has chosen for the first address may be in use at the second. */
    for (int i = 0; error == EADDRINUSE && i < (chosen ? PORT_TRIES : 1); i++)
        error = open_addresses(set, role, http, taken, &at);
    if (error == 0)
        return LISTEN_OK;
    if (error == EADDRINUSE)
        return refuse_port(listen_address_port(&http->addresses[at]), why);
    buf_printf(why, "%s: %s", name, strerror(error));
    return error == EADDRNOTAVAIL ? LISTEN_BAD_ADDRESS : LISTEN_FAILED;
}

static enum listen_error
open_path(struct listen_set *set, enum listen_role role, const char *path, uint64_t mode,
          struct taken_sockets *taken, struct buf *why)
{
    struct local_socket *socket = &set->sockets[set->count++];

    *socket = LOCAL_SOCKET_NONE;
    if (!local_socket_name(socket, path, false, why))
        return LISTEN_BAD_ADDRESS;
    if (taken_sockets_find_local(taken, role, socket))
        return LISTEN_OK;
    return local_socket_open(socket, path, mode, why);
}

/* After check_http(). */
static enum listen_error
open_http(struct listen_set *set, const struct http_addresses *addresses, size_t i, uint64_t mode,
          struct taken_sockets *taken, struct buf *why)
{
    const struct option_list *list = addresses->list;
    struct listen_http http;
    enum listen_error error;
    struct buf name;

    if (!listen_http_parse(addresses->option, list->items[i], &http, why))
        return LISTEN_BAD_ADDRESS;
    if (http.path)
        return open_path(set, addresses->role, http.path, mode, taken, why);
    buf_init(&name, 8192);
    buf_printf(&name, "%s%s: %s", option_place(list, i), addresses->option, list->items[i]);
    error = open_tcp(set, addresses->role, buf_str(&name), &http, taken, why);
    buf_free(&name);
    return error;
}

/* A line in `why` for each value that is no address. */
static enum listen_error
check_http(const struct option_list *list, const char *option, struct buf *why)
{
    enum listen_error error = LISTEN_OK;
    struct listen_http http;

    if (list->count > LISTEN_MOST_HTTP) {
        buf_end_line(why);
        too_many_addresses(why, list, option, LISTEN_MOST_HTTP);
        error = LISTEN_BAD_ADDRESS;
    }
    for (size_t i = 0; i < list->count; i++) {
        struct buf name;

        buf_end_line(why);
        buf_init(&name, 8192);
        buf_printf(&name, "%s%s", option_place(list, i), option);
        if (!listen_http_parse(buf_str(&name), list->items[i], &http, why))
            error = LISTEN_BAD_ADDRESS;
        buf_free(&name);
    }
    return error;
}

static enum listen_error
open_every_http(struct listening *listening, const struct http_addresses *addresses, uint64_t mode,
                struct taken_sockets *taken, struct buf *why)
{
    struct listen_set *set = &listening->sets[addresses->role];
    enum listen_error error = check_http(addresses->list, addresses->option, why);

    for (size_t i = 0; error == LISTEN_OK && i < addresses->list->count; i++)
        error = open_http(set, addresses, i, mode, taken, why);
    return error;
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool
check_tcp(const struct option_list *list, struct buf *why)
{
    struct sockaddr_storage address;
    socklen_t len;
    bool ok = true;

    for (size_t i = 0; i < list->count; i++) {
        if (listen_address_parse(list->items[i], &address, &len))
            continue;
        buf_end_line(why);
        bad_address(why, list, i);
        ok = false;
    }
    if (list->count > LISTEN_MOST_TCP) {
        buf_end_line(why);
        too_many_addresses(why, list, "listen", LISTEN_MOST_TCP);
        ok = false;
    }
    return ok;
}

enum listen_error
listen_check(const struct options *options, struct buf *why)
{
    bool tcp = options->listen.count == 0 || strcmp(options->listen.items[0], "none") != 0;
    bool local = !options->socket || strcmp(options->socket, "none") != 0;
    bool ok = !tcp || check_tcp(&options->listen, why);

    if (local && options->socket) {
        buf_end_line(why);
        ok = local_socket_check(options->socket, why) == LISTEN_OK && ok;
    }
    if (!tcp && !local && !options->http.count && !options->http_proxied.count) {
        buf_end_line(why);
        buf_append_str(why, nothing_left);
        ok = false;
    }
    ok = check_http(&options->http, "http", why) == LISTEN_OK && ok;
    ok = check_http(&options->http_proxied, "http-proxied", why) == LISTEN_OK && ok;
    ok = check_http(&options->metrics, "metrics", why) == LISTEN_OK && ok;
    buf_unend_line(why);
    return ok ? LISTEN_OK : LISTEN_BAD_ADDRESS;
}

/* Those of HTTP that were not passed. */
static enum listen_error
open_every(struct listening *listening, const struct options *options, struct taken_sockets *taken,
           struct buf *why)
{
    const struct http_addresses all[] = {
        {LISTEN_HTTP, &options->http, "http"},
        {LISTEN_HTTP_PROXIED, &options->http_proxied, "http-proxied"},
        {LISTEN_METRICS, &options->metrics, "metrics"},
    };
    enum listen_error error = LISTEN_OK;

    for (size_t i = 0; error == LISTEN_OK && i < sizeof(all) / sizeof(all[0]); i++)
        if (!listening->sets[all[i].role].passed)
            error = open_every_http(listening, &all[i], options->socket_mode, taken, why);
    return error;
}

static enum listen_error
adopt_passed(struct listening *listening, struct taken_sockets *taken, struct buf *why)
{
    struct passed_sockets passed;
    enum listen_error error;

    if (!passed_sockets_read(&passed, why))
        return LISTEN_BAD_ADDRESS;
    error = passed_sockets_adopt(&passed, listening, why);
    for (unsigned i = 0; taken && error == LISTEN_OK && i < taken->count; i++)
        if (taken->items[i].passed)
            error = passed_sockets_adopt_taken(&taken->items[i], listening, why);
    return error;
}

enum listen_error
listen_open(struct listening *listening, const struct options *options, struct taken_sockets *taken,
            struct buf *why)
{
    const struct listen_set *sets = listening->sets;
    enum listen_error error;

    *listening = LISTENING_NONE;
    error = adopt_passed(listening, taken, why);
    if (error == LISTEN_OK && !sets[LISTEN_RPC].passed)
        error = open_every_tcp(listening, options, taken, why);
    if (error == LISTEN_OK && !sets[LISTEN_LOCAL].passed)
        error = open_local(listening, options, taken, why);
    if (error == LISTEN_OK)
        error = open_every(listening, options, taken, why);
    if (error == LISTEN_OK && !sets[LISTEN_RPC].count && !sets[LISTEN_LOCAL].count &&
        !sets[LISTEN_HTTP].count && !sets[LISTEN_HTTP_PROXIED].count) {
        buf_append_str(why, nothing_left);
        error = LISTEN_BAD_ADDRESS;
    }
    if (error == LISTEN_OK)
        open_take_over(listening, taken);
    else
        listen_close(listening);
    return error;
}

const struct local_socket *
listen_local(const struct listening *listening)
{
    const struct listen_set *set = &listening->sets[LISTEN_LOCAL];

    return set->count ? &set->sockets[0] : NULL;
}

/* ---- handing them over --------------------------------------------------------------------- */

void
listen_offer(const struct listening *listening, struct taken_sockets *offer)
{
    offer->count = 0;
    for (unsigned role = 0; role < LISTEN_ROLES; role++) {
        const struct listen_set *set = &listening->sets[role];

        for (unsigned i = 0; i < set->count; i++)
            offer->items[offer->count++] = (struct taken_socket){
                .socket = set->sockets[i], .role = role, .passed = set->passed};
    }
}

void
listen_give(struct listening *listening, const struct taken_sockets *offer)
{
    unsigned next = 0;

    for (unsigned role = 0; role < LISTEN_ROLES; role++)
        for (unsigned i = 0; i < listening->sets[role].count; i++)
            if (offer->items[next++].used)
                listening->sets[role].sockets[i].bound = false;
}

void
listen_own(struct listening *listening)
{
    for (unsigned role = 0; role < LISTEN_ROLES; role++)
        for (unsigned i = 0; i < listening->sets[role].count; i++)
            local_socket_own(&listening->sets[role].sockets[i]);
}

/* That of take-over first: the lock of RPC's AF_UNIX socket protects it. */
void
listen_close(struct listening *listening)
{
    for (unsigned role = 0; role < LISTEN_ROLES; role++)
        close_set(&listening->sets[role]);
    *listening = LISTENING_NONE;
}
