#include "net/listener.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <unistd.h>

#include "net/connection.h"
#include "net/protocol.h"

enum {
    ACCEPT_AT_ONCE = 64, /* then it is the others' turn */
    PAUSE_US = 100000    /* when there is nothing that accept could take */
};

struct net_listener {
    SLIST_ENTRY(net_listener) link;
    struct net_acceptor *acceptor;
    const struct net_protocol *protocol;
    void *context;
    int fd;
    sa_family_t family;
    struct event *event;
    struct event *retry; /* a timer: accept again after a pause */
};

/* ---- which worker ---------------------------------------------------------------------------- */

static unsigned
connections_of(struct net_connections *set)
{
    return atomic_load_explicit(&set->count, memory_order_relaxed);
}

/* The one with the fewest connections; in turn where that is equal. */
static struct net_connections *
choose_set(struct net_acceptor *acceptor, uint64_t *open)
{
    struct net_connections *best = NULL;

    *open = 0;
    for (unsigned i = 0; i < acceptor->set_count; i++) {
        struct net_connections *set = acceptor->sets[(acceptor->next + i) % acceptor->set_count];
        unsigned connections = connections_of(set);

        *open += connections;
        if (!best || connections < connections_of(best))
            best = set;
    }
    acceptor->next = (net_worker_number(best->worker) + 1) % acceptor->set_count;
    return best;
}

/* Closes connections that linger if the newcomer is one of the last that can be admitted, beside
 * `open` connections. */
static void
make_room(struct net_acceptor *acceptor, int fd, uint64_t open)
{
    if (!net_admission_is_scarce(acceptor->admission, fd, open))
        return;
    for (unsigned i = 0; i < acceptor->set_count; i++)
        acceptor->sets[i]->hooks->close_lingering(acceptor->sets[i]->owner);
}

/* `spare`: the descriptor is the spare one, and there is no other. */
static void
hand_over(struct net_listener *listener, int fd, struct net_peer *peer, bool spare)
{
    struct net_acceptor *acceptor = listener->acceptor;
    uint64_t open;
    struct net_connections *set = choose_set(acceptor, &open);
    struct client *client;
    struct net_connection *c;
    enum net_refusal admitted;

    peer->address.ss_family = listener->family;
    client = net_admission_identify(acceptor->admission, fd, peer);
    peer->for_others =
        listener->protocol->for_others && listener->protocol->for_others(listener->context, peer);
    admitted = net_admission_admit(acceptor->admission, fd, peer, client, open, spare);
    if (admitted != NET_REFUSED_CLIENT)
        make_room(acceptor, fd, open);
    if (admitted != NET_ADMITTED) {
        client_release(&client);
        close(fd);
        return;
    }
    c = net_connection_create(set, fd, peer, listener->protocol, listener->context);
    if (!c) {
        net_admission_give_up(acceptor->admission, peer, client);
        client_release(&client);
        close(fd);
        return;
    }
    c->client = client;
    c->bounded = net_admission_is_bounded(peer);
    net_counter_add(&acceptor->accepted, 1);
    atomic_fetch_add(&set->count, 1);
    if (net_worker_number(set->worker) == 0)
        net_connection_adopt(c);
    else
        net_worker_post(set->worker, &c->adopt);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static int
open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int
accept_one(struct net_listener *listener, struct net_peer *peer)
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
accept_with_spare(struct net_listener *listener, struct net_peer *peer)
{
    struct net_acceptor *acceptor = listener->acceptor;

    if (acceptor->spare_fd < 0)
        return -1;
    close(acceptor->spare_fd);
    acceptor->spare_fd = -1;
    return accept_one(listener, peer);
}

static void
pause_accepting(struct net_listener *listener)
{
    struct timeval pause = {.tv_usec = PAUSE_US};

    if (event_add(listener->retry, &pause) == 0)
        event_del(listener->event);
}

static void
on_retry(evutil_socket_t fd, short what, void *context)
{
    struct net_listener *listener = context;

    (void)fd;
    (void)what;
    if (event_add(listener->event, NULL) != 0)
        pause_accepting(listener);
}

/* False: none waits, or none can be accepted now. */
static bool
accept_some(struct net_listener *listener)
{
    struct net_acceptor *acceptor = listener->acceptor;

    for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
        struct net_peer peer = {.address_len = 0};
        bool spare = false;
        int newcomer;

        if (acceptor->spare_fd < 0)
            acceptor->spare_fd = open_spare();
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
            return false;
        }
        if (errno == EAGAIN || errno == EWOULDBLOCK)
            return false;
        /* Anything else was the newcomer's own trouble (accept(2)): it has gone already. */
    }
    return true;
}

static void
end_accepting(struct net_acceptor *acceptor)
{
    if (acceptor->spare_fd < 0)
        acceptor->spare_fd = open_spare();
    net_connections_settle(acceptor->sets[0]);
}

static void
on_newcomer(evutil_socket_t fd, short what, void *context)
{
    struct net_listener *listener = context;

    (void)fd;
    (void)what;
    (void)accept_some(listener);
    end_accepting(listener->acceptor);
}

/* ---- opening and closing --------------------------------------------------------------------- */

static void
free_listener(struct net_listener *listener)
{
    if (listener->event)
        event_free(listener->event);
    if (listener->retry)
        event_free(listener->retry);
    free(listener);
}

int
net_acceptor_listen(struct net_acceptor *acceptor, int fd, const struct net_protocol *protocol,
                    void *context)
{
    struct event_base *base = acceptor->sets[0]->worker->base;
    struct net_listener *listener;
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    int flags = fcntl(fd, F_GETFL), one = 1;

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        getsockname(fd, (struct sockaddr *)&address, &len) != 0)
        return errno;
    /* Output is written whole. Connections inherit it; a failure costs time, nothing else. */
    if (address.ss_family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    if (acceptor->spare_fd < 0)
        acceptor->spare_fd = open_spare();
    if (acceptor->spare_fd < 0)
        return errno;
    listener = calloc(1, sizeof(*listener));
    if (!listener)
        return ENOMEM;
    listener->acceptor = acceptor;
    listener->protocol = protocol;
    listener->context = context;
    listener->fd = fd;
    listener->family = address.ss_family;
    listener->event = event_new(base, fd, EV_READ | EV_PERSIST, on_newcomer, listener);
    listener->retry = event_new(base, -1, 0, on_retry, listener);
    if (!listener->event || !listener->retry || event_add(listener->event, NULL) != 0) {
        free_listener(listener);
        return ENOMEM;
    }
    SLIST_INSERT_HEAD(&acceptor->listeners, listener, link);
    return 0;
}

void
net_acceptor_init(struct net_acceptor *acceptor, struct net_admission *admission,
                  struct net_connections **sets)
{
    acceptor->admission = admission;
    acceptor->sets = sets;
    acceptor->spare_fd = -1;
    SLIST_INIT(&acceptor->listeners);
}

void
net_acceptor_unlisten(struct net_acceptor *acceptor, int fd)
{
    struct net_listener *listener;

    SLIST_FOREACH(listener, &acceptor->listeners, link)
    if (listener->fd == fd)
        break;
    if (!listener)
        return;
    while (accept_some(listener))
        continue;
    end_accepting(acceptor);
    SLIST_REMOVE(&acceptor->listeners, listener, net_listener, link);
    free_listener(listener);
    close(fd);
}

void
net_acceptor_close(struct net_acceptor *acceptor)
{
    struct net_listener *listener;

    while ((listener = SLIST_FIRST(&acceptor->listeners))) {
        int fd = listener->fd;

        SLIST_REMOVE_HEAD(&acceptor->listeners, link);
        /* Its events go first: epoll must not meet a closed descriptor. */
        free_listener(listener);
        close(fd);
    }
}

void
net_acceptor_destroy(struct net_acceptor *acceptor)
{
    net_acceptor_close(acceptor);
    if (acceptor->spare_fd >= 0)
        close(acceptor->spare_fd);
}
