#include "server/listen/taken_sockets.h"

#include <string.h>
#include <unistd.h>

#include "server/listen/listen_address.h"

static size_t
size_of(const struct sockaddr *address)
{
    return address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
                                          : sizeof(struct sockaddr_in);
}

static bool
is_at(int fd, const struct sockaddr *wanted)
{
    struct sockaddr_storage address = {0}, any = {0};
    socklen_t len = sizeof(address);
    const size_t size = size_of(wanted);

    if (getsockname(fd, (struct sockaddr *)&address, &len) != 0 ||
        address.ss_family != wanted->sa_family)
        return false;
    memcpy(&any, wanted, size);
    if (!listen_address_port(&any))
        listen_address_set_port(&address, 0);
    return memcmp(&address, &any, size) == 0;
}

static int
take_out(struct taken_socket *item)
{
    int fd = item->socket.fd;

    item->socket.fd = -1;
    item->used = true;
    return fd;
}

int
taken_sockets_find(struct taken_sockets *taken, enum listen_role role,
                   const struct sockaddr *address)
{
    struct sockaddr_storage wanted = {0};

    memcpy(&wanted, address, size_of(address));
    for (unsigned i = 0; taken && i < taken->count; i++) {
        struct taken_socket *item = &taken->items[i];

        if (!item->passed && item->socket.fd >= 0 && !item->socket.path[0] &&
            (listen_address_port(&wanted) || (item->socket.any_port && item->role == role)) &&
            is_at(item->socket.fd, address))
            return take_out(item);
    }
    return -1;
}

/* Sockets of HTTP may change what they serve; that of RPC has another socket beside it. */
static bool
is_exchangeable(enum listen_role role, enum listen_role other)
{
    return role == other || (role >= LISTEN_HTTP && other >= LISTEN_HTTP);
}

bool
taken_sockets_find_local(struct taken_sockets *taken, enum listen_role role,
                         struct local_socket *local)
{
    for (unsigned i = 0; taken && i < taken->count; i++) {
        struct taken_socket *item = &taken->items[i];

        if (!is_exchangeable(item->role, role) || item->passed || item->socket.fd < 0 ||
            strcmp(item->socket.path, local->path) != 0)
            continue;
        local->lock = item->socket.lock;
        item->socket.lock = -1;
        local->fd = take_out(item);
        local->bound = local->lent = true;
        return true;
    }
    return false;
}

void
taken_sockets_close(struct taken_sockets *taken)
{
    for (unsigned i = 0; i < taken->count; i++) {
        struct local_socket *socket = &taken->items[i].socket;

        if (socket->fd >= 0)
            close(socket->fd);
        if (socket->lock >= 0)
            close(socket->lock);
        socket->fd = socket->lock = -1;
    }
    taken->count = 0;
}
