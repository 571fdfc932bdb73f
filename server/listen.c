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

#include "base/paths.h"
#include "server/holder.h"
#include "server/passed_sockets.h"

#define BACKLOG 4096
#define PORT_TRIES 20 /* for a port that is free on every address */

static const char nothing_left[] = "there is no address and no socket to listen on";

static void
bad_address(struct buf *why, const char *text)
{
    buf_printf(why, "listen: \"%s\" is not an IPv4 or IPv6 address", text);
}

static void
too_many_addresses(struct buf *why)
{
    buf_printf(why, "listen: more than %d addresses", LISTEN_MOST_TCP);
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
        bind(fd, address, len) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    error = errno;
    close(fd);
    errno = error;
    return -1;
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);

    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return 0;
    return ntohs(address.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&address)->sin6_port
                                               : ((struct sockaddr_in *)&address)->sin_port);
}

static void
close_tcp(struct listening *listening)
{
    for (unsigned i = 0; i < listening->tcp_count; i++)
        if (listening->tcp[i] >= 0)
            close(listening->tcp[i]);
    listening->tcp_count = 0;
    listening->port = 0;
    listening->ipv4 = listening->ipv6 = false;
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

/* True if the machine lacks the family; false if the address is wrong or in use. */
static bool
family_is_missing(int error)
{
    return error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
}

/*
 * Opens every address on one port. EADDRINUSE with *chosen set means that the port that the system
 * chose for the first address is in use on another: try again.
 */
static int
open_all(struct listening *listening, char *const *addresses, bool optional, uint16_t port,
         const char **failed)
{
    for (; *addresses; addresses++) {
        struct sockaddr_storage address;
        socklen_t len;
        int fd;

        *failed = *addresses;
        if (listening->tcp_count == LISTEN_MOST_TCP)
            return E2BIG;
        if (!parse_address(*addresses, &address, &len))
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
        if (address.ss_family == AF_INET6)
            listening->ipv6 = true;
        else
            listening->ipv4 = true;
    }
    return listening->tcp_count ? 0 : EAFNOSUPPORT;
}

static enum listen_error
open_every_tcp(struct listening *listening, const struct options *options, struct buf *why)
{
    static char any4[] = "0.0.0.0", any6[] = "::";
    char *everywhere[] = {any4, any6, NULL};
    bool given = options->listen.count != 0;
    char **addresses = given ? options->listen.items : everywhere;
    uint16_t port = (uint16_t)options->port;
    const char *failed = "";
    int error = EADDRINUSE;

    if (given && strcmp(addresses[0], "none") == 0)
        return LISTEN_OK;
    for (int i = 0; i < PORT_TRIES && error == EADDRINUSE; i++) {
        close_tcp(listening);
        error = open_all(listening, addresses, !given, port, &failed);
        if (port)
            break;
    }
    if (error == 0)
        return LISTEN_OK;
    close_tcp(listening);
    switch (error) {
    case EADDRINUSE:
        buf_printf(why, "TCP port %u is in use", (unsigned)port);
        buf_append_str(why, " by ");
        if (!holder_of_port(port, why))
            buf_append_str(why, "an unknown process");
        return LISTEN_IN_USE;
    case EINVAL:
        bad_address(why, failed);
        return LISTEN_BAD_ADDRESS;
    case EADDRNOTAVAIL:
        buf_printf(why, "listen: %s is not an address of this machine", failed);
        return LISTEN_BAD_ADDRESS;
    case E2BIG:
        too_many_addresses(why);
        return LISTEN_BAD_ADDRESS;
    default:
        buf_printf(why, "listening on %s port %u: %s", failed, (unsigned)port, strerror(error));
        return LISTEN_FAILED;
    }
}

/* ---- AF_UNIX ------------------------------------------------------------------------------- */

/*
 * Creates the folder of a default path if it does not exist. In a place where every user may create
 * folders, an existing one must belong to this user.
 */
static bool
prepare_folder(const char *path, struct buf *why)
{
    char folder[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char *slash;

    snprintf(folder, sizeof(folder), "%s", path);
    slash = strrchr(folder, '/');
    if (!slash || slash == folder)
        return true;
    *slash = '\0';
    if (mkdir(folder, 0755) != 0 && errno != EEXIST) {
        buf_printf(why, "%s: %s", folder, strerror(errno));
        return false;
    }
    if (!paths_folder_is_safe(path)) {
        struct stat st;

        buf_printf(why, "%s is not a folder that this user owns", folder);
        if (lstat(folder, &st) == 0) {
            buf_append_str(why, "; it belongs to ");
            holder_describe_user(st.st_uid, why);
        }
        buf_append_str(why, "; give --socket PATH, or set XDG_RUNTIME_DIR");
        return false;
    }
    return true;
}

/* The sentence on a lock file that cannot be opened; it names an owner other than this user. */
static enum listen_error
refuse_lock_file(const char *path, int error, struct buf *why)
{
    struct stat st;

    buf_printf(why, "%s: %s", path, strerror(error));
    if (lstat(path, &st) == 0 && st.st_uid != geteuid()) {
        buf_append_str(why, "; it belongs to ");
        holder_describe_user(st.st_uid, why);
    }
    return LISTEN_FAILED;
}

/*
 * flock() needs only read permission, so other users must not be able to open the file. While root
 * starts, the folder may belong to --user: a file with a second name may be any other file of
 * root's, and is not changed.
 */
static bool
close_to_others(int lock)
{
    struct stat st;

    if (fstat(lock, &st) != 0)
        return false;
    if (!S_ISREG(st.st_mode) || st.st_nlink != 1) {
        errno = EMLINK;
        return false;
    }
    return (st.st_mode & 077) == 0 || fchmod(lock, 0600) == 0;
}

/* The process that holds a lock, from the kernel or else from the number in the file. */
static void
describe_lock_holder(int lock, struct buf *why)
{
    char text[32];
    ssize_t len;

    if (holder_of_lock(lock, why))
        return;
    len = pread(lock, text, sizeof(text) - 1, 0);
    text[len > 0 ? len : 0] = '\0';
    if (atol(text) > 0)
        holder_describe((pid_t)atol(text), why);
    else
        buf_append_str(why, "another process");
}

/*
 * Takes PATH.lock. Only its holder replaces the socket, so that a stale socket can be distinguished
 * from a live one. The file has mode 0600; one of mode 0644 from an earlier version is changed.
 */
static enum listen_error
take_lock(struct listening *listening, struct buf *why)
{
    char path[sizeof(listening->path) + 8], text[32];
    int n;

    snprintf(path, sizeof(path), "%s.lock", listening->path);
    listening->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (listening->lock < 0)
        return refuse_lock_file(path, errno, why);
    if (!close_to_others(listening->lock)) {
        enum listen_error error = refuse_lock_file(path, errno, why);

        close(listening->lock);
        listening->lock = -1;
        return error;
    }
    if (flock(listening->lock, LOCK_EX | LOCK_NB) != 0) {
        buf_printf(why, "socket %s is in use by ", listening->path);
        describe_lock_holder(listening->lock, why);
        close(listening->lock);
        listening->lock = -1;
        return LISTEN_IN_USE;
    }
    n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
    if (ftruncate(listening->lock, 0) != 0 || pwrite(listening->lock, text, (size_t)n, 0) != n) {
        /* The lock is held; only the process number is missing from the file. */
        errno = 0;
    }
    return LISTEN_OK;
}

/*
 * The folder of systemd's RuntimeDirectory= if there is one, else the default that clients know.
 * With --user, the runtime directory of root's session is not used.
 */
static bool
default_path(char *path, size_t size, bool has_user)
{
    const char *folder = getenv("RUNTIME_DIRECTORY");

    if (folder && folder[0] == '/')
        return (size_t)snprintf(path, size, "%s/sunproxy.sock", folder) < size;
    if (has_user && geteuid() == 0)
        return (size_t)snprintf(path, size, "%s", PATHS_SYSTEM_SOCKET) < size;
    return paths_default_socket(path, size);
}

/* Makes the path absolute, for rpcbind and clients in other folders. False, with a sentence, if it
 * does not fit. */
static bool
absolute_path(const char *given, char *path, size_t size, struct buf *why)
{
    char folder[PATH_MAX] = "";

    if ((given[0] == '/' || getcwd(folder, sizeof(folder))) &&
        (size_t)snprintf(path, size, given[0] == '/' ? "%s%s" : "%s/%s", folder, given) < size)
        return true;
    buf_printf(why, "socket: the whole path of %s is longer than %zu bytes", given, size - 1);
    return false;
}

/*
 * By the mask, since chmod() uses the name: in another user's folder the name may refer to another
 * file by then.
 */
static bool
bind_with_mode(int fd, const struct sockaddr_un *address, uint64_t mode)
{
    mode_t before = umask((mode_t)(~mode & 0777));
    bool done = bind(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
    int error = errno;

    umask(before);
    errno = error;
    return done;
}

static enum listen_error
open_local(struct listening *listening, const struct options *options, struct buf *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    enum listen_error error;
    struct stat st;

    if (options->socket && strcmp(options->socket, "none") == 0)
        return LISTEN_OK;
    if (options->socket) {
        if (!absolute_path(options->socket, listening->path, sizeof(listening->path), why))
            return LISTEN_BAD_ADDRESS;
    } else if (!default_path(listening->path, sizeof(listening->path), options->user)) {
        buf_append_str(why, "the socket has no default path; give --socket");
        return LISTEN_FAILED;
    } else if (!prepare_folder(listening->path, why)) {
        return LISTEN_FAILED;
    }
    listening->default_path = !options->socket;
    error = take_lock(listening, why);
    if (error != LISTEN_OK)
        return error;
    /* No other process holds the lock, so a socket that is still there is stale. */
    if (lstat(listening->path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        buf_printf(why, "socket: %s exists and is not a socket", listening->path);
        return LISTEN_BAD_ADDRESS;
    }
    unlink(listening->path);
    memcpy(address.sun_path, listening->path, sizeof(address.sun_path));
    listening->bound = true;
    listening->local = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (listening->local < 0 || !bind_with_mode(listening->local, &address, options->socket_mode) ||
        listen(listening->local, BACKLOG) != 0) {
        buf_printf(why, "socket %s: %s", listening->path, strerror(errno));
        return LISTEN_FAILED;
    }
    return LISTEN_OK;
}

enum listen_error
listen_check(const struct options *options, struct buf *why)
{
    bool tcp = options->listen.count == 0 || strcmp(options->listen.items[0], "none") != 0;
    bool local = !options->socket || strcmp(options->socket, "none") != 0;
    char path[sizeof(((struct listening *)NULL)->path)];
    struct sockaddr_storage address;
    socklen_t len;

    for (size_t i = 0; tcp && i < options->listen.count; i++) {
        if (!parse_address(options->listen.items[i], &address, &len)) {
            bad_address(why, options->listen.items[i]);
            return LISTEN_BAD_ADDRESS;
        }
    }
    if (options->listen.count > LISTEN_MOST_TCP) {
        too_many_addresses(why);
        return LISTEN_BAD_ADDRESS;
    }
    if (local && options->socket && !absolute_path(options->socket, path, sizeof(path), why))
        return LISTEN_BAD_ADDRESS;
    if (!tcp && !local) {
        buf_append_str(why, nothing_left);
        return LISTEN_BAD_ADDRESS;
    }
    return LISTEN_OK;
}

enum listen_error
listen_open(struct listening *listening, const struct options *options, struct buf *why)
{
    struct passed_sockets passed;
    enum listen_error error;

    *listening = (struct listening){.local = -1, .lock = -1};
    if (!passed_sockets_read(&passed, why))
        return LISTEN_BAD_ADDRESS;
    error = passed_sockets_adopt(&passed, listening, why);
    if (error == LISTEN_OK && !listening->tcp_passed)
        error = open_every_tcp(listening, options, why);
    if (error == LISTEN_OK && !listening->local_passed)
        error = open_local(listening, options, why);
    if (error == LISTEN_OK && listening->tcp_count == 0 && listening->local < 0) {
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
    if (listening->local >= 0)
        close(listening->local);
    listening->local = -1;
    if (listening->lock >= 0) {
        if (listening->bound)
            unlink(listening->path);
        close(listening->lock);
    }
    listening->lock = -1;
    listening->bound = false;
}
