/*
 * The listening sockets in the server: those that it has from its start on, and their change while
 * it runs.
 *
 * The main thread's.
 */
#ifndef SUNPROXY_SERVER_LISTEN_SERVE_H
#define SUNPROXY_SERVER_LISTEN_SERVE_H

#include "net/server.h"
#include "server/listen/listen.h"

/* How the sockets of a role are served. */
struct listen_service {
    const struct net_protocol *protocol; /* NULL: not by the server */
    void *context;
    const char *says; /* format of a line in the log, with the address and a phrase; NULL: none */
};

/* Has the server, which takes ownership, serve all sockets. `services` is by role. 0 or an errno.
 */
int serve_begin(struct net_server *server, struct listening *listening,
                const struct listen_service *services);

/*
 * Has the server that runs serve `opened`, the sockets that are wanted from now on, and no others.
 * Those that it has already, as `offer` describes, stay as they are. `opened` gives its sockets
 * up, and `offer` describes the new ones then. 0; or an errno, and nothing has changed.
 */
int serve_change(struct net_server *server, struct listening *listening,
                 struct taken_sockets *offer, struct taken_sockets *opened,
                 const struct listen_service *services);

#endif
