#include "server/listen/take_over.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/passing.h"
#include "base/units.h"

#define FORMAT 0x53544f31u /* of the messages; another one for another content */
#define WAIT_SECONDS 30

enum kind { KIND_SOCKET, KIND_END, KIND_READY, KIND_YIELD, KIND_REFUSAL };

/* Each message has this size. */
struct message {
    uint32_t format;
    uint32_t kind;
    uint32_t role; /* of a socket; the descriptors are it and its lock, if it has one */
    uint32_t passed;
    uint32_t any_port;
    int32_t pid;                     /* of one that is ready */
    uint8_t used[TAKEN_SOCKETS_MAX]; /* likewise, by the order of the sockets */
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

bool
take_over_name(const char *local_path, char *path, size_t size)
{
    return (size_t)snprintf(path, size, "%s.take-over", local_path) < size;
}

static bool
send_message(int fd, struct message *message, const int *passed, unsigned count)
{
    message->format = FORMAT;
    return passing_send(fd, message, sizeof(*message), passed, count);
}

static bool
send_kind(int fd, enum kind kind)
{
    struct message message = {.kind = kind};

    return send_message(fd, &message, NULL, 0);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static bool
is_of(int fd, uid_t uid)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == 0 || peer.uid == geteuid() || peer.uid == uid);
}

int
take_over_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0 || is_of(fd, 0))
        return fd;
    close(fd);
    return -1;
}

bool
take_over_offer(int fd, const struct taken_sockets *offer)
{
    bool sent = true;

    for (unsigned i = 0; sent && i < offer->count; i++) {
        const struct taken_socket *item = &offer->items[i];
        const int passed[] = {item->socket.fd, item->socket.lock};
        struct message message = {.kind = KIND_SOCKET,
                                  .role = item->role,
                                  .passed = item->passed,
                                  .any_port = item->socket.any_port};

        memcpy(message.path, item->socket.path, sizeof(message.path));
        sent = send_message(fd, &message, passed, item->socket.lock >= 0 ? 2 : 1);
    }
    return sent && send_kind(fd, KIND_END);
}

enum take_over_state
take_over_look(int fd, struct taken_sockets *offer, pid_t *pid)
{
    struct message message;
    ssize_t received = recv(fd, &message, sizeof(message), MSG_DONTWAIT | MSG_PEEK);

    if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return TAKE_OVER_WAITS;
    if (received != (ssize_t)sizeof(message) || message.format != FORMAT ||
        message.kind != KIND_READY)
        return TAKE_OVER_GONE;
    (void)recv(fd, &message, sizeof(message), 0);
    *pid = message.pid;
    for (unsigned i = 0; i < offer->count; i++)
        offer->items[i].used = message.used[i];
    return TAKE_OVER_READY;
}

void
take_over_yield(int fd)
{
    (void)send_kind(fd, KIND_YIELD);
}

void
take_over_refuse(int fd)
{
    (void)send_kind(fd, KIND_REFUSAL);
}

/* ---- the new process ------------------------------------------------------------------------- */

/* -1 without an inherited connection; -2 with a sentence for one that is none. */
static int
inherited(struct buf *why)
{
    const char *text = getenv(TAKE_OVER_VARIABLE);
    uint64_t fd;

    if (!text)
        return -1;
    if (!units_parse_uint(text, 3, INT32_MAX, &fd) || fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0) {
        buf_printf(why, TAKE_OVER_VARIABLE ": \"%s\" is not a descriptor", text);
        return -2;
    }
    unsetenv(TAKE_OVER_VARIABLE);
    return (int)fd;
}

static bool
set_time_limit(int fd)
{
    const struct timeval limit = {.tv_sec = WAIT_SECONDS};

    return setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0;
}

int
take_over_connect(const char *local_path, uid_t uid, struct buf *why)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = inherited(why);

    if (fd >= 0 && set_time_limit(fd))
        return fd;
    if (fd != -1 || !local_path ||
        !take_over_name(local_path, address.sun_path, sizeof(address.sun_path)))
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && set_time_limit(fd) &&
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
        if (is_of(fd, uid))
            return fd;
        buf_printf(why, "%s is another user's", address.sun_path);
    } else if (fd < 0 || (errno != ENOENT && errno != ECONNREFUSED)) {
        buf_printf(why, "%s: %s", address.sun_path, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool
is_listening(int fd)
{
    int type = -1, listens = 0;
    socklen_t len = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens == 1;
}

/* Adds a socket that was received; the descriptors are its own. */
static bool
add(struct taken_sockets *taken, const struct message *message, const int *passed, unsigned count)
{
    struct taken_socket *item;

    if (taken->count == TAKEN_SOCKETS_MAX || message->role >= LISTEN_ROLES || count < 1 ||
        count > 2 || !is_listening(passed[0]) ||
        !memchr(message->path, '\0', sizeof(message->path)))
        return false;
    item = &taken->items[taken->count++];
    *item = (struct taken_socket){
        .socket = LOCAL_SOCKET_NONE, .role = message->role, .passed = message->passed};
    item->socket.any_port = message->any_port;
    item->socket.fd = passed[0];
    item->socket.lock = count > 1 ? passed[1] : -1;
    memcpy(item->socket.path, message->path, sizeof(item->socket.path));
    return true;
}

bool
take_over_receive(int fd, struct taken_sockets *taken, struct buf *why)
{
    taken->count = 0;
    for (;;) {
        int passed[PASSING_MAX];
        struct message message;
        unsigned count;
        bool sound = passing_receive(fd, &message, sizeof(message), passed, &count) > 0;

        if (sound && message.format == FORMAT && message.kind == KIND_END && !count)
            return true;
        if (sound && message.format == FORMAT && message.kind == KIND_SOCKET &&
            add(taken, &message, passed, count))
            continue;
        while (sound && count)
            close(passed[--count]);
        if (sound && message.format == FORMAT && message.kind == KIND_REFUSAL)
            buf_append_str(why, "another process takes over already");
        else
            buf_append_str(why, "the running daemon does not pass its sockets in a form that this "
                                "version reads");
        taken_sockets_close(taken);
        return false;
    }
}

bool
take_over_finish(int fd, const struct taken_sockets *taken)
{
    struct message message = {.kind = KIND_READY, .pid = getpid()};
    ssize_t received;

    for (unsigned i = 0; i < taken->count; i++)
        message.used[i] = taken->items[i].used;
    if (!send_message(fd, &message, NULL, 0))
        return errno == EPIPE; /* it has ended */
    do
        received = recv(fd, &message, sizeof(message), MSG_WAITALL);
    while (received < 0 && errno == EINTR);
    return received == 0 || (received < 0 && errno == ECONNRESET) ||
           (received == (ssize_t)sizeof(message) && message.kind == KIND_YIELD);
}
