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
close_tcp(struct listening *listening)
{
    for (unsigned i = 0; i < listening->tcp_count; i++)
        if (listening->tcp[i] >= 0)
            close(listening->tcp[i]);
    listening->tcp_count = 0;
    listening->port = 0;
    listening->ipv4.ss_family = listening->ipv6.ss_family = AF_UNSPEC;
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
        if (!listen_address_parse(addresses[*at], &address, &len))
            return EINVAL;
        listen_address_set_port(&address, port ? port : listening->port);
        fd = listen_address_open((struct sockaddr *)&address, len);
        if (fd < 0 && optional &&
            (listen_address_family_is_missing(errno) ||
             (errno == EADDRNOTAVAIL && address.ss_family == AF_INET6)))
            continue;
        if (fd < 0)
            return errno;
        listening->tcp[listening->tcp_count++] = fd;
        listening->port = listen_address_port_of(fd);
        listen_address_note(&listening->ipv4, &listening->ipv6, &address);
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

/*
 * Opens every address of a value; the second one only where the machine has its family. Without a
 * port of its own it gets that of the first. 0, or the errno of the address *at.
 */
static int
open_addresses(struct local_socket *sockets, unsigned *count, const struct listen_http *http,
               unsigned *at)
{
    unsigned opened = 0;

    for (*at = 0; *at < http->count; ++*at) {
        struct sockaddr_storage address = http->addresses[*at];
        struct local_socket *socket = &sockets[*count + opened];

        if (*at && listen_address_port(&address) == 0)
            listen_address_set_port(&address, listen_address_port_of(sockets[*count].fd));
        *socket = LOCAL_SOCKET_NONE;
        socket->fd = listen_address_open((const struct sockaddr *)&address, http->lens[*at]);
        if (socket->fd >= 0) {
            opened++;
        } else if (!*at || (!listen_address_family_is_missing(errno) && errno != EADDRNOTAVAIL)) {
            int error = errno;

            while (opened)
                local_socket_close(&sockets[*count + --opened]);
            return error;
        }
    }
    *count += opened;
    return 0;
}

static enum listen_error
open_tcp(struct local_socket *sockets, unsigned *count, const char *name,
         const struct listen_http *http, struct buf *why)
{
    bool chosen = listen_address_port(&http->addresses[0]) == 0;
    int error = EADDRINUSE;
    unsigned at = 0;

    /* A port that the system has chosen for the first address may be in use at the second. */
    for (int i = 0; error == EADDRINUSE && i < (chosen ? PORT_TRIES : 1); i++)
        error = open_addresses(sockets, count, http, &at);
    if (error == 0)
        return LISTEN_OK;
    if (error == EADDRINUSE)
        return refuse_port(listen_address_port(&http->addresses[at]), why);
    buf_printf(why, "%s: %s", name, strerror(error));
    return error == EADDRNOTAVAIL ? LISTEN_BAD_ADDRESS : LISTEN_FAILED;
}

/* After check_http(). */
static enum listen_error
open_http(struct local_socket *sockets, unsigned *count, const struct option_list *list, size_t i,
          const char *option, uint64_t mode, struct buf *why)
{
    struct listen_http http;
    enum listen_error error;
    struct buf name;

    if (!listen_http_parse(option, list->items[i], &http, why))
        return LISTEN_BAD_ADDRESS;
    if (http.path) {
        sockets[*count] = LOCAL_SOCKET_NONE;
        return local_socket_open(&sockets[(*count)++], http.path, mode, why);
    }
    buf_init(&name, 8192);
    buf_printf(&name, "%s%s: %s", option_place(list, i), option, list->items[i]);
    error = open_tcp(sockets, count, buf_str(&name), &http, why);
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
open_every_http(const struct option_list *list, const char *option, uint64_t mode,
                struct local_socket *sockets, unsigned *count, struct buf *why)
{
    enum listen_error error = check_http(list, option, why);

    for (size_t i = 0; error == LISTEN_OK && i < list->count; i++)
        error = open_http(sockets, count, list, i, option, mode, why);
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
