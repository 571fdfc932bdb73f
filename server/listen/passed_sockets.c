#include "server/listen/passed_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/units.h"

bool
passed_sockets_read(struct passed_sockets *passed, struct buf *why)
{
    const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    uint64_t value;

    *passed = (struct passed_sockets){.first = PASSED_SOCKETS_FIRST};
    if (!pid || !count)
        return true;
    if (!units_parse_uint(pid, 1, INT_MAX, &value)) {
        buf_printf(why, "LISTEN_PID: \"%s\" is not a process id", pid);
        return false;
    }
    if (value != (uint64_t)getpid())
        return true;
    if (!units_parse_uint(count, 0, INT_MAX - PASSED_SOCKETS_FIRST, &value)) {
        buf_printf(why, "LISTEN_FDS: \"%s\" is not a number of descriptors", count);
        return false;
    }
    passed->count = (unsigned)value;
    passed->names = getenv("LISTEN_FDNAMES");
    return true;
}

/* The name of a descriptor; empty if it has none. */
static struct span
name_of(const struct passed_sockets *passed, unsigned i)
{
    const char *name = passed->names;

    for (unsigned skipped = 0; name && skipped < i; skipped++) {
        name = strchr(name, ':');
        name = name ? name + 1 : NULL;
    }
    return name ? span_of(name, strcspn(name, ":")) : span_of(NULL, 0);
}

/* Appends 'passed descriptor 4 ("NAME")', with the name if there is one. */
static void
append_descriptor(const struct passed_sockets *passed, unsigned i, struct buf *why)
{
    struct span name = name_of(passed, i);

    buf_printf(why, "passed descriptor %d", passed->first + (int)i);
    if (name.len)
        buf_printf(why, " (\"%.*s\")", (int)name.len, name.ptr);
}

static int
socket_option(int fd, int level, int name, int otherwise)
{
    int value;
    socklen_t len = sizeof(value);

    return getsockopt(fd, level, name, &value, &len) == 0 ? value : otherwise;
}

/* The reason why a descriptor cannot be served whatever its address is, or NULL. */
static const char *
unusable(int fd)
{
    int flags;

    if (fcntl(fd, F_GETFD) < 0)
        return " is not open";
    if (socket_option(fd, SOL_SOCKET, SO_TYPE, -1) == -1)
        return " is not a socket";
    if (socket_option(fd, SOL_SOCKET, SO_TYPE, -1) != SOCK_STREAM)
        return " is not a stream socket";
    if (socket_option(fd, SOL_SOCKET, SO_ACCEPTCONN, 0) != 1)
        return " does not listen; a socket unit has to have Accept=no";
    flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
        return " cannot be made non-blocking";
    return NULL;
}

/* All of them take over `fd`, or append what is wrong with it to `why`. */
static bool
adopt_tcp(struct listening *listening, int fd, const struct sockaddr_storage *address,
          struct buf *why)
{
    static const struct sockaddr_storage any = {.ss_family = AF_INET};
    bool inet6 = address->ss_family == AF_INET6;
    uint16_t port = ntohs(inet6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                : ((const struct sockaddr_in *)address)->sin_port);

    if (listening->tcp_count == LISTEN_MOST_TCP) {
        buf_printf(why, " is one more than the %d TCP sockets that can be served", LISTEN_MOST_TCP);
        return false;
    }
    if (listening->tcp_count && listening->port != port) {
        buf_printf(why, " has TCP port %u, another one %u; all need the same", (unsigned)port,
                   (unsigned)listening->port);
        return false;
    }
    listening->tcp[listening->tcp_count++] = fd;
    listening->tcp_passed = true;
    listening->port = port;
    listen_address_note(&listening->ipv4, &listening->ipv6, address);
    if (inet6 && socket_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) == 0)
        listen_address_note(&listening->ipv4, &listening->ipv6, &any);
    return true;
}

static bool
adopt_local(struct listening *listening, int fd, const struct sockaddr_un *address, socklen_t len,
            struct buf *why)
{
    size_t size = len - offsetof(struct sockaddr_un, sun_path);

    if (listening->local.fd >= 0) {
        buf_append_str(why, " is a second AF_UNIX socket; only one can be served");
        return false;
    }
    if (size == 0 || address->sun_path[0] != '/') {
        buf_append_str(why, " is an AF_UNIX socket without an absolute path");
        return false;
    }
    if (size > sizeof(listening->local.path))
        size = sizeof(listening->local.path);
    memcpy(listening->local.path, address->sun_path, size);
    listening->local.path[sizeof(listening->local.path) - 1] = '\0';
    listening->local.fd = fd;
    listening->local_passed = true;
    return true;
}

/* Of any family: addresses of HTTP are independent of each other. */
static bool
adopt_http(struct listening *listening, int fd, struct buf *why)
{
    if (listening->http_count == LISTEN_HTTP_SOCKETS) {
        buf_printf(why, " is one more than the %d sockets for HTTP that can be served",
                   LISTEN_HTTP_SOCKETS);
        return false;
    }
    listening->http[listening->http_count] = LOCAL_SOCKET_NONE;
    listening->http[listening->http_count++].fd = fd;
    listening->http_passed = true;
    return true;
}

static bool
adopt(struct listening *listening, int fd, bool http, struct buf *why)
{
    const char *reason = unusable(fd);
    struct sockaddr_storage address = {0};
    socklen_t len = sizeof(address);

    if (reason) {
        buf_append_str(why, reason);
        return false;
    }
    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0) {
        buf_printf(why, ": %s", strerror(errno));
        return false;
    }
    if (http && (address.ss_family == AF_INET || address.ss_family == AF_INET6 ||
                 address.ss_family == AF_UNIX))
        return adopt_http(listening, fd, why);
    switch (address.ss_family) {
    case AF_INET:
    case AF_INET6:
        return adopt_tcp(listening, fd, &address, why);
    case AF_UNIX:
        return adopt_local(listening, fd, (struct sockaddr_un *)&address, len, why);
    default:
        buf_append_str(why, " is neither a TCP nor an AF_UNIX socket");
        return false;
    }
}

enum listen_error
passed_sockets_adopt(const struct passed_sockets *passed, struct listening *listening,
                     struct buf *why)
{
    for (unsigned i = 0; i < passed->count; i++) {
        struct buf detail;
        bool adopted;

        buf_init(&detail, 512);
        adopted = adopt(listening, passed->first + (int)i,
                        span_equal(name_of(passed, i), span_str("http")), &detail);
        if (!adopted) {
            append_descriptor(passed, i, why);
            buf_append_str(why, buf_str(&detail));
        }
        buf_free(&detail);
        if (!adopted)
            return LISTEN_BAD_ADDRESS;
    }
    return LISTEN_OK;
}
