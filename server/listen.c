#include "server/listen.h"

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

#include "base/units.h"
#include "server/holder.h"
#include "server/passed_sockets.h"

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

static int
open_tcp(const struct sockaddr *address, socklen_t len)
{
    int on = 1, error;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (address->sa_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0) &&
        bind(fd, address, len) == 0 && listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static uint16_t
port_in(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                : ((const struct sockaddr_in *)address)->sin_port);
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? port_in(&address) : 0;
}

static void
close_tcp(struct listening *listening)
{
    for (unsigned i = 0; i < listening->tcp_count; i++)
        if (listening->tcp[i] >= 0)
            close(listening->tcp[i]);
    listening->tcp_count = 0;
    listening->port = 0;
    listening->ipv4.ss_family = listening->ipv6.ss_family = AF_UNSPEC;
}

/* Numeric addresses only: a name may resolve to another machine's address. */
static bool
parse_address(const char *text, struct sockaddr_storage *address, socklen_t *len)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;

    if (getaddrinfo(text, "0", &hints, &found) != 0)
        return false;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

static void
set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
}

void
listen_note_address(struct listening *listening, const struct sockaddr_storage *address)
{
    struct sockaddr_storage *known =
        address->ss_family == AF_INET6 ? &listening->ipv6 : &listening->ipv4;

    if (known->ss_family == AF_UNSPEC)
        *known = *address;
    else if (known->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)known)->sin6_addr = in6addr_any;
    else
        ((struct sockaddr_in *)known)->sin_addr.s_addr = INADDR_ANY;
}

const char *
listen_address_text(const struct sockaddr_storage *address, char text[INET6_ADDRSTRLEN])
{
    *text = '\0';
    if (address->ss_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text,
                  INET6_ADDRSTRLEN);
    else if (address->ss_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, text,
                  INET6_ADDRSTRLEN);
    return text;
}

/* True if the machine lacks the family; false if the address is wrong or in use. */
static bool
family_is_missing(int error)
{
    return error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
}

/*
 * Opens every address on one port. EADDRINUSE with *chosen set means that the port that the system
 * chose for the first address is in use on another: try again. On failure *at is the number of the
 * address.
 */
static int
open_all(struct listening *listening, char *const *addresses, bool optional, uint16_t port,
         size_t *at)
{
    for (*at = 0; addresses[*at]; ++*at) {
        struct sockaddr_storage address;
        socklen_t len;
        int fd;

        if (listening->tcp_count == LISTEN_MOST_TCP)
            return E2BIG;
        if (!parse_address(addresses[*at], &address, &len))
            return EINVAL;
        set_port(&address, port ? port : listening->port);
        fd = open_tcp((struct sockaddr *)&address, len);
        if (fd < 0 && optional &&
            (family_is_missing(errno) || (errno == EADDRNOTAVAIL && address.ss_family == AF_INET6)))
            continue;
        if (fd < 0)
            return errno;
        listening->tcp[listening->tcp_count++] = fd;
        listening->port = port_of(fd);
        listen_note_address(listening, &address);
    }
    return listening->tcp_count ? 0 : EAFNOSUPPORT;
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
open_every_tcp(struct listening *listening, const struct options *options, struct buf *why)
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
        error = open_all(listening, addresses, !given, port, &at);
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
open_local(struct listening *listening, const struct options *options, struct buf *why)
{
    if (!options->socket)
        return local_socket_open_default(&listening->local, options->user, options->socket_mode,
                                         why);
    if (strcmp(options->socket, "none") == 0)
        return LISTEN_OK;
    return local_socket_open(&listening->local, options->socket, options->socket_mode, why);
}

/* ---- HTTP ---------------------------------------------------------------------------------- */

bool
listen_parse_http(const char *option, const char *text, struct listen_http_address *http,
                  struct buf *why)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
    char address[INET6_ADDRSTRLEN + 2];
    uint64_t port;

    *http = (struct listen_http_address){0};
    if (strncmp(text, "unix:", 5) == 0) {
        http->path = text + 5;
        if (*http->path)
            return local_socket_check(http->path, why) == LISTEN_OK;
    } else if (len && len < sizeof(address) && units_parse_uint(colon + 1, 0, UINT16_MAX, &port)) {
        memcpy(address, text, len);
        address[len - brackets] = '\0';
        if (parse_address(address + brackets, &http->address, &http->len) &&
            brackets == (http->address.ss_family == AF_INET6)) {
            set_port(&http->address, (uint16_t)port);
            return true;
        }
    }
    buf_printf(why, "%s: \"%s\" is not ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or unix:PATH", option,
               text);
    return false;
}

const char *
listen_describe(int fd, char *name, size_t size)
{
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);
    char text[INET6_ADDRSTRLEN];

    (void)getsockname(fd, (struct sockaddr *)&address, &len);
    if (address.ss_family == AF_UNIX) {
        snprintf(name, size, "unix:%.*s", (int)sizeof(((struct sockaddr_un *)NULL)->sun_path),
                 ((const struct sockaddr_un *)&address)->sun_path);
    } else if (address.ss_family == AF_INET6) {
        snprintf(name, size, "[%s]:%u", listen_address_text(&address, text),
                 (unsigned)port_in(&address));
    } else {
        snprintf(name, size, "%s:%u", listen_address_text(&address, text),
                 (unsigned)port_in(&address));
    }
    return name;
}

/* After check_http(). */
static enum listen_error
open_http(struct local_socket *socket, const struct option_list *list, size_t i, const char *option,
          uint64_t mode, struct buf *why)
{
    struct listen_http_address http;

    *socket = LOCAL_SOCKET_NONE;
    if (!listen_parse_http(option, list->items[i], &http, why))
        return LISTEN_BAD_ADDRESS;
    if (http.path)
        return local_socket_open(socket, http.path, mode, why);
    socket->fd = open_tcp((const struct sockaddr *)&http.address, http.len);
    if (socket->fd >= 0)
        return LISTEN_OK;
    if (errno == EADDRINUSE)
        return refuse_port(port_in(&http.address), why);
    buf_printf(why, "%s%s: %s: %s", option_place(list, i), option, list->items[i], strerror(errno));
    return errno == EADDRNOTAVAIL ? LISTEN_BAD_ADDRESS : LISTEN_FAILED;
}

/* A line in `why` for each value that is no address. */
static enum listen_error
check_http(const struct option_list *list, const char *option, struct buf *why)
{
    enum listen_error error = LISTEN_OK;
    struct listen_http_address http;

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
        if (!listen_parse_http(buf_str(&name), list->items[i], &http, why))
            error = LISTEN_BAD_ADDRESS;
        buf_free(&name);
    }
    return error;
}

static enum listen_error
open_every_http(const struct option_list *list, const char *option, uint64_t mode,
                struct local_socket *sockets, unsigned *count, struct buf *why)
{
    enum listen_error error = check_http(list, option, why);

    for (size_t i = 0; error == LISTEN_OK && i < list->count; i++)
        error = open_http(&sockets[(*count)++], list, i, option, mode, why);
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
        if (parse_address(list->items[i], &address, &len))
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

enum listen_error
listen_open(struct listening *listening, const struct options *options, struct buf *why)
{
    struct passed_sockets passed;
    enum listen_error error;

    *listening = LISTENING_NONE;
    if (!passed_sockets_read(&passed, why))
        return LISTEN_BAD_ADDRESS;
    error = passed_sockets_adopt(&passed, listening, why);
    if (error == LISTEN_OK && !listening->tcp_passed)
        error = open_every_tcp(listening, options, why);
    if (error == LISTEN_OK && !listening->local_passed)
        error = open_local(listening, options, why);
    if (error == LISTEN_OK && !listening->http_passed)
        error = open_every_http(&options->http, "http", options->socket_mode, listening->http,
                                &listening->http_count, why);
    if (error == LISTEN_OK)
        error = open_every_http(&options->http_proxied, "http-proxied", options->socket_mode,
                                listening->http_proxied, &listening->http_proxied_count, why);
    if (error == LISTEN_OK)
        error = open_every_http(&options->metrics, "metrics", options->socket_mode,
                                listening->metrics, &listening->metrics_count, why);
    if (error == LISTEN_OK && listening->tcp_count == 0 && listening->local.fd < 0 &&
        listening->http_count == 0 && listening->http_proxied_count == 0) {
        buf_append_str(why, nothing_left);
        error = LISTEN_BAD_ADDRESS;
    }
    if (error != LISTEN_OK)
        listen_close(listening);
    return error;
}

void
listen_close(struct listening *listening)
{
    close_tcp(listening);
    local_socket_close(&listening->local);
    for (unsigned i = 0; i < listening->http_count; i++)
        local_socket_close(&listening->http[i]);
    for (unsigned i = 0; i < listening->http_proxied_count; i++)
        local_socket_close(&listening->http_proxied[i]);
    for (unsigned i = 0; i < listening->metrics_count; i++)
        local_socket_close(&listening->metrics[i]);
    listening->http_count = listening->http_proxied_count = listening->metrics_count = 0;
}
