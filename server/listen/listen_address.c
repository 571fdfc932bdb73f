#include "server/listen/listen_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/units.h"
#include "server/listen/local_socket.h"

/* ---- addresses ------------------------------------------------------------------------------- */

/* Numeric addresses only: a name may resolve to another machine's address. */
bool
listen_address_parse(const char *text, struct sockaddr_storage *address, socklen_t *len)
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

uint16_t
listen_address_port(const struct sockaddr_storage *address)
{
    return ntohs(address->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                                : ((const struct sockaddr_in *)address)->sin_port);
}

void
listen_address_set_port(struct sockaddr_storage *address, uint16_t port)
{
    if (address->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)address)->sin6_port = htons(port);
    else
        ((struct sockaddr_in *)address)->sin_port = htons(port);
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

void
listen_address_note(struct sockaddr_storage *ipv4, struct sockaddr_storage *ipv6,
                    const struct sockaddr_storage *address)
{
    struct sockaddr_storage *known = address->ss_family == AF_INET6 ? ipv6 : ipv4;

    if (known->ss_family == AF_UNSPEC)
        *known = *address;
    else if (known->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)known)->sin6_addr = in6addr_any;
    else
        ((struct sockaddr_in *)known)->sin_addr.s_addr = INADDR_ANY;
}

/* ---- sockets --------------------------------------------------------------------------------- */

/* -1 with errno. */
static int
bind_socket(const struct sockaddr *address, socklen_t len)
{
    int on = 1, error;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (address->sa_family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) == 0) &&
        bind(fd, address, len) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int
listen_address_open(const struct sockaddr *address, socklen_t len)
{
    int fd = bind_socket(address, len), error;

    if (fd < 0 || listen(fd, LISTEN_BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

int
listen_address_try(const struct sockaddr *address, socklen_t len)
{
    int fd = bind_socket(address, len);

    if (fd < 0)
        return errno;
    close(fd);
    return 0;
}

bool
listen_address_family_is_missing(int error)
{
    return error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
}

uint16_t
listen_address_port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    return getsockname(fd, (struct sockaddr *)&address, &len) == 0 ? listen_address_port(&address)
                                                                   : 0;
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
                 (unsigned)listen_address_port(&address));
    } else {
        snprintf(name, size, "%s:%u", listen_address_text(&address, text),
                 (unsigned)listen_address_port(&address));
    }
    return name;
}

/* ---- values of options ----------------------------------------------------------------------- */

/* A host that is more than one address: NULL if it is none. The second address is of IPv6. */
static const char *const *
find_several(const char *host)
{
    static const struct {
        const char *host;
        const char *addresses[LISTEN_HTTP_ADDRESSES];
    } rows[] = {
        {"", {"0.0.0.0", "::"}},
        {"*", {"0.0.0.0", "::"}},
        {"localhost", {"127.0.0.1", "::1"}},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcasecmp(host, rows[i].host) == 0)
            return rows[i].addresses;
    return NULL;
}

static bool
add_address(struct listen_http *http, const char *text, uint16_t port)
{
    struct sockaddr_storage *address = &http->addresses[http->count];

    if (!listen_address_parse(text, address, &http->lens[http->count]))
        return false;
    listen_address_set_port(address, port);
    http->count++;
    return true;
}

/* "ADDRESS:PORT" and its kin. */
static bool
read_tcp(const char *text, struct listen_http *http)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    bool brackets = len > 2 && text[0] == '[' && text[len - 1] == ']';
    char host[INET6_ADDRSTRLEN + 2];
    const char *const *several;
    uint64_t port;

    if (!colon || len >= sizeof(host) || !units_parse_uint(colon + 1, 0, UINT16_MAX, &port))
        return false;
    memcpy(host, text, len);
    host[len - brackets] = '\0';
    several = find_several(host);
    if (several)
        return add_address(http, several[0], (uint16_t)port) &&
               add_address(http, several[1], (uint16_t)port);
    return add_address(http, host + brackets, (uint16_t)port) &&
           brackets == (http->addresses[0].ss_family == AF_INET6);
}

bool
listen_http_parse(const char *option, const char *text, struct listen_http *http, struct buf *why)
{
    *http = (struct listen_http){0};
    if (strncmp(text, "unix:", 5) == 0) {
        http->path = text + 5;
        if (*http->path)
            return local_socket_check(http->path, why) == LISTEN_OK;
    } else if (read_tcp(text, http)) {
        return true;
    }
    buf_printf(why,
               "%s: \"%s\" is not ADDRESS:PORT, [ADDRESS]:PORT for IPv6, localhost:PORT, :PORT for "
               "all addresses, or unix:PATH",
               option, text);
    return false;
}
