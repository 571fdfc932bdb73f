/*
 * Listening sockets: newcomers are accepted, judged (admission.h) and handed to a worker.
 */
#include "rpc/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "rpc/admission.h"

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

/* `spare`: the descriptor is the spare one, and there is no other. */
static void
hand_over(struct rpc_listener *listener, int fd, struct rpc_peer *peer, bool spare)
{
    struct rpc_server *server = listener->server;
    int one = 1;
    uint64_t open;
    struct rpc_worker *worker = choose_worker(server, &open);
    struct client_entry *client;
    struct rpc_connection *c;

    peer->address.ss_family = listener->family;
    /* Replies are written whole. A failure costs time, nothing else. */
    if (listener->family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (!rpc_admission_judge(server, fd, peer, open, spare, &client)) {
        close(fd);
        return;
    }
    c = rpc_connection_create(worker, fd, peer);
    if (!c) {
        rpc_admission_give_up(server, peer, client);
        close(fd);
        return;
    }
    c->client = client;
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

static int
accept_one(struct rpc_listener *listener, struct rpc_peer *peer)
{
    peer->address_len = sizeof(peer->address);
    return accept4(listener->fd, (struct sockaddr *)&peer->address, &peer->address_len,
                   SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/*
 * No descriptor is left, and the waiting newcomer would wake the worker without end. The spare one
 * is given up to accept it: it is refused, unless it is privileged. -1 if that did not help.
 */
static int
accept_with_spare(struct rpc_listener *listener, struct rpc_peer *peer)
{
    struct rpc_server *server = listener->server;

    if (server->spare_fd < 0)
        return -1;
    close(server->spare_fd);
    server->spare_fd = -1;
    return accept_one(listener, peer);
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
    if (event_add(listener->event, NULL) != 0)
        pause_accepting(listener);
}

static void
on_newcomer(evutil_socket_t fd, short what, void *context)
{
    struct rpc_listener *listener = context;
    struct rpc_server *server = listener->server;

    (void)fd;
    (void)what;
    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        struct rpc_peer peer = {.address_len = 0};
        bool spare = false;
        int newcomer;

        if (server->spare_fd < 0)
            server->spare_fd = open_spare();
        newcomer = accept_one(listener, &peer);
        if (newcomer < 0 && (errno == EMFILE || errno == ENFILE)) {
            newcomer = accept_with_spare(listener, &peer);
            spare = true;
        }
        if (newcomer >= 0) {
            hand_over(listener, newcomer, &peer, spare);
            continue;
        }
        if (spare || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(listener);
            break;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            break;
        /* Anything else was the newcomer's own trouble (accept(2)): it has gone already. */
    }
    if (server->spare_fd < 0)
        server->spare_fd = open_spare();
    rpc_worker_settle(server->workers[0]);
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
