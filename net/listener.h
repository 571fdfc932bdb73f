/*
 * Listening sockets: connections are accepted on worker 0, admitted (admission.h) and handed to the
 * worker with the fewest.
 *
 * Before the workers run, everything here is for the owner; then for worker 0.
 */
#ifndef SUNPROXY_NET_LISTENER_H
#define SUNPROXY_NET_LISTENER_H

#include <sys/queue.h>

#include "net/counter.h"

struct net_admission;
struct net_connections;
struct net_listener;
struct net_protocol;

/* What the listeners of a server share. */
struct net_acceptor {
    struct net_admission *admission;
    struct net_connections **sets; /* of the workers, by their numbers; not owned */
    unsigned set_count;
    unsigned next; /* worker, where numbers of connections are equal */
    int spare_fd;  /* given up to accept, and refuse, when there is no other; -1: lost */
    SLIST_HEAD(, net_listener) listeners;
    net_counter accepted;
};

/* `sets` is filled in and counted by the owner before the first listener. */
void net_acceptor_init(struct net_acceptor *acceptor, struct net_admission *admission,
                       struct net_connections **sets);

/* Takes over the descriptor, unless it fails: 0 or an errno. Its connections speak `protocol`. */
int net_acceptor_listen(struct net_acceptor *acceptor, int fd, const struct net_protocol *protocol,
                        void *context);

/* Accepts what waits at the listener of this descriptor, and closes it. Harmless for another one.
 */
void net_acceptor_unlisten(struct net_acceptor *acceptor, int fd);

/* Closes all listeners. */
void net_acceptor_close(struct net_acceptor *acceptor);

/* Closes what is left. */
void net_acceptor_destroy(struct net_acceptor *acceptor);

#endif
