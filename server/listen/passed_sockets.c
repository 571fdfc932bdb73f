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

static void
add(struct listen_set *set, int fd)
{
    set->sockets[set->count] = LOCAL_SOCKET_NONE;
    set->sockets[set->count++].fd = fd;
    set->passed = true;
}

/* All of them take over `fd`, or append what is wrong with it to `why`. */
static bool
adopt_tcp(struct listening *listening, int fd, const struct sockaddr_storage *address,
          struct buf *why)
{
    static const struct sockaddr_storage any = {.ss_family = AF_INET};
    struct listen_set *set = &listening->sets[LISTEN_RPC];
    bool inet6 = address->ss_family == AF_INET6;
    uint16_t port = ntohs(inet6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                                : ((const struct sockaddr_in *)address)->sin_port);

    if (set->count == LISTEN_MOST_TCP) {
        buf_printf(why, " is one more than the %d TCP sockets that can be served", LISTEN_MOST_TCP);
        return false;
    }
    if (set->count && listening->port != port) {
        buf_printf(why, " has TCP port %u, another one %u; all need the same", (unsigned)port,
                   (unsigned)listening->port);
        return false;
    }
    add(set, fd);
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
    struct listen_set *set = &listening->sets[LISTEN_LOCAL];
    size_t size = len - offsetof(struct sockaddr_un, sun_path);
    char *path = set->sockets[0].path;

    if (set->count) {
        buf_append_str(why, " is a second AF_UNIX socket; only one can be served");
        return false;
    }
    if (size == 0 || address->sun_path[0] != '/') {
        buf_append_str(why, " is an AF_UNIX socket without an absolute path");
        return false;
    }
    add(set, fd);
    if (size >= sizeof(set->sockets[0].path))
        size = sizeof(set->sockets[0].path) - 1;
    memcpy(path, address->sun_path, size);
    return true;
}

/* Of any family: addresses of HTTP are independent of each other. */
static bool
adopt_http(struct listening *listening, enum listen_role role, int fd, struct buf *why)
{
    if (listening->sets[role].count == LISTEN_HTTP_SOCKETS) {
        buf_printf(why, " is one more than the %d sockets for HTTP that can be served",
                   LISTEN_HTTP_SOCKETS);
        return false;
    }
    add(&listening->sets[role], fd);
    return true;
}

/* For RPC, unless the role is one of HTTP. */
static bool
adopt(struct listening *listening, int fd, enum listen_role role, struct buf *why)
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
    if (role >= LISTEN_HTTP && (address.ss_family == AF_INET || address.ss_family == AF_INET6 ||
                                address.ss_family == AF_UNIX))
        return adopt_http(listening, role, fd, why);
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

/* By its name. */
static enum listen_role
role_of(struct span name)
{
    static const struct {
        const char *name;
        enum listen_role role;
    } roles[] = {
        {"http", LISTEN_HTTP},
        {"http-proxied", LISTEN_HTTP_PROXIED},
        {"metrics", LISTEN_METRICS},
    };

    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
        if (span_equal(name, span_str(roles[i].name)))
            return roles[i].role;
    return LISTEN_RPC;
}

enum listen_error
passed_sockets_adopt_taken(struct taken_socket *taken, struct listening *listening, struct buf *why)
{
    struct buf detail;
    bool adopted;

    buf_init(&detail, 512);
    adopted = adopt(listening, taken->socket.fd, taken->role, &detail);
    if (adopted) {
        taken->socket.fd = -1;
        taken->used = true;
    } else {
        buf_printf(why, "a socket of the running daemon%s", buf_str(&detail));
    }
    buf_free(&detail);
    return adopted ? LISTEN_OK : LISTEN_BAD_ADDRESS;
}

enum listen_error
passed_sockets_adopt(const struct passed_sockets *passed, struct listening *listening,
                     struct buf *why)
{
    for (unsigned i = 0; i < passed->count; i++) {
        struct buf detail;
        bool adopted;

        buf_init(&detail, 512);
        adopted = adopt(listening, passed->first + (int)i, role_of(name_of(passed, i)), &detail);
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
