#include "server/listen/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "server/listen/holder.h"

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

/* A failure is harmless: the lock is held, and only the process number is missing from the file. */
static void
note_process(int lock)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%-20ld\n", (long)getpid());

    if (pwrite(lock, text, (size_t)n, 0) != n)
        errno = 0;
}

/*
 * Takes PATH.lock. Only its holder replaces the socket, so that a stale socket can be distinguished
 * from a live one. The file has mode 0600; one of mode 0644 from an earlier version is changed.
 */
static enum listen_error
take_lock(struct local_socket *local, struct buf *why)
{
    char path[sizeof(local->path) + 8];

    snprintf(path, sizeof(path), "%s.lock", local->path);
    local->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (local->lock < 0)
        return refuse_lock_file(path, errno, why);
    if (!close_to_others(local->lock)) {
        enum listen_error error = refuse_lock_file(path, errno, why);

        close(local->lock);
        local->lock = -1;
        return error;
    }
    if (flock(local->lock, LOCK_EX | LOCK_NB) != 0) {
        buf_printf(why, "socket %s is in use by ", local->path);
        describe_lock_holder(local->lock, why);
        close(local->lock);
        local->lock = -1;
        return LISTEN_IN_USE;
    }
    note_process(local->lock);
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

/* Opens the socket at local->path; false with errno. */
static bool
open_name(struct local_socket *local, uint64_t mode)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    unlink(local->path);
    memcpy(address.sun_path, local->path, sizeof(address.sun_path));
    local->bound = true;
    local->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return local->fd >= 0 && bind_with_mode(local->fd, &address, mode) &&
           listen(local->fd, LISTEN_BACKLOG) == 0;
}

/* Takes the lock and opens the socket at local->path. */
static enum listen_error
open_at(struct local_socket *local, uint64_t mode, struct buf *why)
{
    enum listen_error error;
    struct stat st;

    error = take_lock(local, why);
    if (error != LISTEN_OK)
        return error;
    /* No other process holds the lock, so a socket that is still there is stale. */
    if (lstat(local->path, &st) == 0 && !S_ISSOCK(st.st_mode)) {
        buf_printf(why, "socket: %s exists and is not a socket", local->path);
        return LISTEN_BAD_ADDRESS;
    }
    if (!open_name(local, mode)) {
        buf_printf(why, "socket %s: %s", local->path, strerror(errno));
        return LISTEN_FAILED;
    }
    return LISTEN_OK;
}

bool
local_socket_open_beside(struct local_socket *local)
{
    struct stat st;

    if ((lstat(local->path, &st) != 0 || S_ISSOCK(st.st_mode)) && open_name(local, 0600))
        return true;
    local_socket_close(local);
    return false;
}

bool
local_socket_name(struct local_socket *local, const char *path, bool has_user, struct buf *why)
{
    if (path)
        return absolute_path(path, local->path, sizeof(local->path), why);
    local->default_path = default_path(local->path, sizeof(local->path), has_user);
    if (!local->default_path)
        buf_append_str(why, "the socket has no default path; give --socket");
    return local->default_path;
}

enum listen_error
local_socket_open_default(struct local_socket *local, bool has_user, uint64_t mode, struct buf *why)
{
    if (!local_socket_name(local, NULL, has_user, why) || !prepare_folder(local->path, why))
        return LISTEN_FAILED;
    return open_at(local, mode, why);
}

enum listen_error
local_socket_open(struct local_socket *local, const char *path, uint64_t mode, struct buf *why)
{
    if (!local_socket_name(local, path, false, why))
        return LISTEN_BAD_ADDRESS;
    return open_at(local, mode, why);
}

enum listen_error
local_socket_check(const char *path, struct buf *why)
{
    char absolute[sizeof(((struct local_socket *)NULL)->path)];

    return absolute_path(path, absolute, sizeof(absolute), why) ? LISTEN_OK : LISTEN_BAD_ADDRESS;
}

void
local_socket_close(struct local_socket *local)
{
    if (local->fd >= 0)
        close(local->fd);
    local->fd = -1;
    if (local->bound && !local->lent)
        unlink(local->path);
    if (local->lock >= 0)
        close(local->lock);
    local->lock = -1;
    local->bound = local->lent = false;
}

void
local_socket_own(struct local_socket *local)
{
    if (local->lent && local->lock >= 0)
        note_process(local->lock);
    local->lent = false;
}
