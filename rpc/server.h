/*
 * The server's side of ONC RPC (RFC 5531) over record-marked streams: a protocol of the net
 * (net/server.h) in front of the dispatchers that rpcgen generates. What libtirpc offers for this
 * (svc_run) is neither thread-safe nor immune to a peer that sends half a record; see
 * docs/RPC.md, "Why not svc_run()".
 *
 * Everything here is for the thread that made the server, unless it says [any].
 */
#ifndef SUNPROXY_RPC_SERVER_H
#define SUNPROXY_RPC_SERVER_H

#include <stdint.h>

#include "net/server.h"
#include "rpc/limits.h"
#include "rpc/program.h"
#include "rpc/request.h"

struct rpc_server;
struct rpc_service;

/* Counters, each the sum over workers; read at any time, exact once the server has stopped. */
struct rpc_stats {
    struct net_stats net;
    uint64_t calls;     /* records that were calls */
    uint64_t calls_bad; /* answered with an RPC error, or no call at all: the connection is read no
                           further */
};

/*
 * Makes a server with its workers' loops, not yet running. `programs` is copied. `context` is what
 * rpc_request_context() gives the procedures. NULL with errno set on failure; EINVAL for no workers
 * or limits that would let no call in.
 */
struct rpc_server *rpc_server_create(const struct rpc_limits *limits, unsigned workers,
                                     const struct rpc_program *programs, size_t program_count,
                                     void *context);

/*
 * Takes over a bound, listening stream socket (TCP or AF_UNIX), made non-blocking here; closed by
 * the server. Before rpc_server_start(). 0 or an errno.
 */
int rpc_server_listen(struct rpc_server *server, int fd);

/* Starts the worker threads, with all signals blocked in them. 0 or an errno. */
int rpc_server_start(struct rpc_server *server);

/*
 * Stops in two steps. _stop_accepting: listeners close, calls that are in flight go on, a
 * connection with nothing in flight is closed, and new calls on the others are no longer read; when
 * it returns, no worker dispatches any call.
 * _stop: does that if it has not been done, waits until every connection has closed or `timeout_us`
 * has passed, then closes what is left, ends and joins the workers. Returns the connections cut
 * off.
 *
 * Requests still deferred then have been abandoned: no answer can be sent, what they hold is
 * released by rpc_server_destroy(), on the thread that calls it. A task that answers one and is
 * posted before the return is run, and is harmless; one that is posted later is never run.
 */
void rpc_server_stop_accepting(struct rpc_server *server);
unsigned rpc_server_stop(struct rpc_server *server, int64_t timeout_us);

/* As net_server_set_limits(), with the context of the server's. */
void rpc_server_set_limits(struct rpc_server *server, const struct net_limits *limits);

/* As net_server_leave(): other processes accept from the same listening sockets. */
void rpc_server_leave(struct rpc_server *server);

/* After rpc_server_stop(), or without a start. NULL is harmless. */
void rpc_server_destroy(struct rpc_server *server);

/*
 * When what waits to be read by slow peers takes too much memory: has each worker close the one
 * connection whose next reply has waited longest to be read whole, if that is a second and more.
 * Returns at once. [any]
 */
void rpc_server_relieve(struct rpc_server *server);

/* [any] */
void rpc_server_get_stats(struct rpc_server *server, struct rpc_stats *stats);

/* What it runs on: other protocols can be listened for there, on the same workers. [any] */
struct net_server *rpc_server_net(struct rpc_server *server);

/* The context of a connection that speaks rpc_protocol (protocol.h). [any] */
struct rpc_service *rpc_server_service(struct rpc_server *server);

#endif
