/*
 * Listening sockets: which worker gets a newcomer, and what becomes of it when there is no room.
 */
#include "rpc/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ACCEPT_AT_ONCE = 64, /* then it is the others' turn */
    PAUSE_US = 100000    /* when there is nothing that accept could take */
};

/* ---- which worker ---------------------------------------------------------------------------- */

static unsigned
connections_of(struct rpc_worker *worker)
{
    return atomic_load_explicit(&worker->connections, memory_order_relaxed);
}

/* The one with the fewest connections; in turn where that is equal. */
static struct rpc_worker *
choose_worker(struct rpc_server *server, uint64_t *open)
{
    struct rpc_worker *best = NULL;

    *open = 0;
    for (unsigned i = 0; i < server->worker_count; i++) {
        struct rpc_worker *worker = server->workers[(server->next + i) % server->worker_count];
        unsigned connections = connections_of(worker);

        *open += connections;
        if (!best || connections < connections_of(best))
            best = worker;
    }
    server->next = (best->number + 1) % server->worker_count;
    return best;
}

static void
refuse(struct rpc_server *server, int fd)
{
    rpc_counter_add(&server->refused, 1);
    close(fd);
}

static void
judge_by_socket(int fd, struct rpc_peer *peer)
{
    struct ucred credentials;
    socklen_t len = sizeof(credentials);
    int one = 1;

    peer->client = client_key_of_address((const struct sockaddr *)&peer->address);
    if (peer->address.ss_family != AF_UNIX) {
        /* Replies are written whole. A failure costs time, nothing else. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &len) != 0)
        return;
    peer->has_uid = true;
    peer->uid = credentials.uid;
    peer->pid = credentials.pid;
    peer->client = client_key_of_uid(peer->uid);
}

static void
hand_over(struct rpc_listener *listener, int fd, struct rpc_peer *peer)
{
    struct rpc_server *server = listener->server;
    uint64_t open;
    struct rpc_worker *worker = choose_worker(server, &open);
    struct rpc_connection *c;

    if (open >= server->limits.max_connections) {
        refuse(server, fd);
        return;
    }
    peer->address.ss_family = listener->family;
    judge_by_socket(fd, peer);
    c = rpc_connection_create(worker, fd, peer);
    if (!c) {
        refuse(server, fd);
        return;
    }
    rpc_counter_add(&server->accepted, 1);
    atomic_fetch_add(&worker->connections, 1);
    if (worker->number == 0)
        rpc_connection_adopt(c);
    else
        rpc_worker_post(worker, &c->adopt);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static int
open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/*
 * No descriptor is left, and the newcomer would wake us without end. The spare one is given up to
 * accept it, so that it can be closed. False if that did not help.
 */
static bool
refuse_with_spare(struct rpc_listener *listener)
{
    struct rpc_server *server = listener->server;
    int fd;

    if (server->spare_fd < 0)
        return false;
    close(server->spare_fd);
    fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        refuse(server, fd);
    server->spare_fd = open_spare();
    return fd >= 0;
}

static void
pause_accepting(struct rpc_listener *listener)
{
    struct timeval pause = {.tv_usec = PAUSE_US};

    if (event_add(listener->retry, &pause) == 0)
        event_del(listener->event);
}

static void
on_retry(evutil_socket_t fd, short what, void *context)
{
    struct rpc_listener *listener = context;

    (void)fd;
    (void)what;
    if (listener->server->spare_fd < 0)
        listener->server->spare_fd = open_spare();
    if (event_add(listener->event, NULL) != 0)
        pause_accepting(listener);
}

static void
on_newcomer(evutil_socket_t fd, short what, void *context)
{
    struct rpc_listener *listener = context;

    (void)what;
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        struct rpc_peer peer = {.address_len = sizeof(peer.address)};
        int newcomer = accept4(fd, (struct sockaddr *)&peer.address, &peer.address_len,
                               SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (newcomer >= 0) {
            hand_over(listener, newcomer, &peer);
            continue;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        if (errno == EMFILE || errno == ENFILE) {
            if (refuse_with_spare(listener))
                continue;
            pause_accepting(listener);
            break;
        }
        if (errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(listener);
            break;
        }
        /* Anything else was the newcomer's own trouble (accept(2)): it has gone already. */
    }
    rpc_worker_settle(listener->server->workers[0]);
}

/* ---- opening and closing --------------------------------------------------------------------- */

int
rpc_listener_open(struct rpc_server *server, int fd)
{
    struct event_base *base = server->workers[0]->base;
    struct rpc_listener *listener;
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return errno;
    if (server->spare_fd < 0)
        server->spare_fd = open_spare();
    if (server->spare_fd < 0)
        return errno;
    listener = calloc(1, sizeof(*listener));
    if (!listener)
        return ENOMEM;
    listener->server = server;
    listener->fd = fd;
    listener->family = address.ss_family;
    listener->event = event_new(base, fd, EV_READ | EV_PERSIST, on_newcomer, listener);
    listener->retry = event_new(base, -1, 0, on_retry, listener);
    if (!listener->event || !listener->retry || event_add(listener->event, NULL) != 0) {
        if (listener->event)
            event_free(listener->event);
        if (listener->retry)
            event_free(listener->retry);
        free(listener);
        return ENOMEM;
    }
    SLIST_INSERT_HEAD(&server->listeners, listener, link);
    return 0;
}

void
rpc_listener_close(struct rpc_listener *listener)
{
    SLIST_REMOVE(&listener->server->listeners, listener, rpc_listener, link);
    event_free(listener->event);
    event_free(listener->retry);
    close(listener->fd);
    free(listener);
}
