#include "server/listen/serve.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/listen/listen_address.h"
#include "server/logs/log.h"

static void
log_socket(const struct listen_service *service, int fd, bool passed)
{
    char name[LISTEN_NAME];

    if (service->says)
        log_info(service->says, listen_describe(fd, name, sizeof(name)),
                 passed ? ", passed by the service manager" : "");
}

int
serve_begin(struct net_server *server, struct listening *listening,
            const struct listen_service *services)
{
    int error = 0;

    for (unsigned role = 0; role < LISTEN_ROLES; role++) {
        const struct listen_service *service = &services[role];
        struct listen_set *set = &listening->sets[role];

        for (unsigned i = 0; service->protocol && error == 0 && i < set->count; i++) {
            log_socket(service, set->sockets[i].fd, set->passed);
            error =
                net_server_listen(server, set->sockets[i].fd, service->protocol, service->context);
            if (error == 0)
                set->sockets[i].fd = -1;
        }
    }
    return error;
}

/* ---- changes --------------------------------------------------------------------------------- */

static bool
is_same_socket(int a, int b)
{
    struct stat one, other;

    return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino &&
           one.st_dev == other.st_dev;
}

/* The one of the same role that is the same socket; NULL: it is new. */
static struct taken_socket *
find_same(struct taken_sockets *offer, const struct taken_socket *item)
{
    for (unsigned i = 0; i < offer->count; i++)
        if (offer->items[i].role == item->role &&
            is_same_socket(offer->items[i].socket.fd, item->socket.fd))
            return &offer->items[i];
    return NULL;
}

/* The socket that was described as number `index`. */
static struct local_socket *
socket_at(struct listening *listening, unsigned index)
{
    unsigned role = 0;

    while (index >= listening->sets[role].count)
        index -= listening->sets[role++].count;
    return &listening->sets[role].sockets[index];
}

/* Serves those that are new, which `used` marks. 0, or an errno after which none of them is. */
static int
serve_new(struct net_server *server, struct taken_sockets *opened,
          const struct listen_service *services)
{
    int error = 0;
    unsigned i;

    for (i = 0; error == 0 && i < opened->count; i++) {
        const struct taken_socket *item = &opened->items[i];
        const struct listen_service *service = &services[item->role];

        if (item->used && service->protocol)
            error = net_server_listen(server, item->socket.fd, service->protocol, service->context);
    }
    /* The last one is the one that failed. */
    for (unsigned n = 0; error && n + 1 < i; n++)
        if (opened->items[n].used && services[opened->items[n].role].protocol) {
            net_server_unlisten(server, opened->items[n].socket.fd);
            opened->items[n].socket.fd = -1;
        }
    return error;
}

/* Does one of these have the socket, in any role? */
static bool
have_socket(const struct taken_sockets *sockets, int fd)
{
    for (unsigned i = 0; i < sockets->count; i++)
        if (is_same_socket(sockets->items[i].socket.fd, fd))
            return true;
    return false;
}

/* Gives up those of `offer` that are not `used`. One that `next` has in another role keeps its name,
 * and its lock by another descriptor. */
static void
remove_old(struct net_server *server, struct listening *listening, struct taken_sockets *offer,
           const struct taken_sockets *next, const struct listen_service *services)
{
    for (unsigned i = 0; i < offer->count; i++) {
        const struct taken_socket *item = &offer->items[i];
        struct local_socket *socket = socket_at(listening, i);
        char name[LISTEN_NAME];

        if (item->used)
            continue;
        socket->lent = have_socket(next, item->socket.fd);
        if (services[item->role].protocol) {
            log_info("%s is served no more", listen_describe(item->socket.fd, name, sizeof(name)));
            net_server_unlisten(server, item->socket.fd);
        }
        local_socket_close(socket);
    }
}

/* Puts a socket into the new lists, with what was known of the one that it is the same as. */
static void
add(struct listening *listening, struct taken_sockets *offer, const struct taken_socket *item,
    const struct local_socket *same, const struct listen_service *service)
{
    struct listen_set *set = &listening->sets[item->role];
    struct local_socket *socket = &set->sockets[set->count++];
    struct taken_socket *described = &offer->items[offer->count++];

    *described = *item;
    described->used = false;
    set->passed = item->passed;
    *socket = item->socket;
    socket->bound = item->socket.path[0] && !item->passed;
    if (same)
        *socket = *same;
    else if (service->protocol)
        socket->fd = -1;
    described->socket.lock = socket->lock;
}

/* The addresses of RPC, as they are registered. */
static void
note_addresses(struct listening *listening, const struct taken_sockets *offer)
{
    for (unsigned i = 0; i < offer->count; i++) {
        struct sockaddr_storage address = {0};
        socklen_t len = sizeof(address);

        if (offer->items[i].role != LISTEN_RPC ||
            getsockname(offer->items[i].socket.fd, (struct sockaddr *)&address, &len) != 0)
            continue;
        listening->port = listen_address_port(&address);
        listen_address_note(&listening->ipv4, &listening->ipv6, &address);
    }
}

int
serve_change(struct net_server *server, struct listening *listening, struct taken_sockets *offer,
             struct taken_sockets *opened, const struct listen_service *services)
{
    struct listening next = LISTENING_NONE;
    struct taken_sockets described = {.count = 0};
    struct taken_socket *same[TAKEN_SOCKETS_MAX];
    int error;

    for (unsigned i = 0; i < offer->count; i++)
        offer->items[i].used = false;
    for (unsigned i = 0; i < opened->count; i++) {
        same[i] = find_same(offer, &opened->items[i]);
        opened->items[i].used = !same[i];
    }
    error = serve_new(server, opened, services);
    if (error)
        return error;
    for (unsigned i = 0; i < opened->count; i++) {
        struct taken_socket *item = &opened->items[i];
        const struct local_socket *known = NULL;

        if (same[i]) {
            known = socket_at(listening, (unsigned)(same[i] - offer->items));
            same[i]->used = true;
            close(item->socket.fd);
            if (item->socket.lock >= 0)
                close(item->socket.lock);
            item->socket.fd = same[i]->socket.fd;
        } else {
            log_socket(&services[item->role], item->socket.fd, item->passed);
        }
        add(&next, &described, item, known, &services[item->role]);
    }
    remove_old(server, listening, offer, &described, services);
    if (next.sets[LISTEN_RPC].passed) {
        next.port = listening->port;
        next.ipv4 = listening->ipv4;
        next.ipv6 = listening->ipv6;
    } else {
        note_addresses(&next, &described);
    }
    *listening = next;
    *offer = described;
    opened->count = 0;
    return 0;
}
