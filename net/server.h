/*
 * A server of stream sockets, TCP and AF_UNIX: N workers, each a thread with an event loop, and
 * listeners, each of which names the protocol of its connections (protocol.h). A connection belongs
 * to one worker for life.
 *
 * Everything here is for the thread that made the server, unless it says [any].
 */
#ifndef SUNPROXY_NET_SERVER_H
#define SUNPROXY_NET_SERVER_H

#include <stdint.h>

#include "net/limits.h"
#include "net/stats.h"

struct net_connections;
struct net_protocol;
struct net_server;

/*
 * Makes a server with its workers' loops, not yet running. NULL with errno set on failure; EINVAL
 * for no workers or limits that would let no message in.
 */
struct net_server *net_server_create(const struct net_limits *limits, unsigned workers);

/*
 * Takes over a bound, listening stream socket, made non-blocking here; closed by the server. Before
 * net_server_start(), or while the workers run. `protocol` and `context` must stay. 0 or an errno.
 */
int net_server_listen(struct net_server *server, int fd, const struct net_protocol *protocol,
                      void *context);

/* Accepts the connections that wait at this socket, and closes it. While the workers run. */
void net_server_unlisten(struct net_server *server, int fd);

/* Starts the worker threads, with all signals blocked in them. 0 or an errno. */
int net_server_start(struct net_server *server);

/*
 * Stops in two steps. _stop_accepting: listeners close, messages in work go on, a connection with
 * none in work is closed, and new messages on the others are no longer read; when it returns, no
 * worker gives input to a protocol.
 * _stop: does that if it has not been done, waits until every connection has closed or `timeout_us`
 * has passed, then closes what is left, ends and joins the workers. Returns the connections cut
 * off. Tasks posted before the return are run; one that is posted later is never run.
 */
void net_server_stop_accepting(struct net_server *server);
unsigned net_server_stop(struct net_server *server, int64_t timeout_us);

/*
 * Another process accepts from the same listening sockets from now on: the listeners close here,
 * without a loss of connections that wait to be accepted. Connections go on, and are closed once
 * they are quiet for a while (net_limits.quiet_us); a protocol can end them earlier
 * (net_connections.leaving). Returns at once. Between net_server_start() and
 * net_server_stop_accepting().
 */
void net_server_leave(struct net_server *server);

/*
 * Waits until each worker has ended the callback that it is in. After that no worker uses what it
 * found in a place of which the content was replaced before. Between net_server_start() and
 * net_server_stop().
 */
void net_server_await_turn(struct net_server *server);

/*
 * Replaces the limits, of which `memory`, the functions, `reserved` and the prefixes stay as they
 * are. Connections in excess of a bound stay. Between net_server_start() and net_server_stop();
 * when it returns, all workers have the new ones.
 */
void net_server_set_limits(struct net_server *server, const struct net_limits *limits);

/* After net_server_stop(), or without a start. Connections with requests in work are freed here.
 * NULL is harmless. */
void net_server_destroy(struct net_server *server);

/* Has each worker close a slow reader (NET_RELIEF_READERS). Returns at once. [any] */
void net_server_relieve(struct net_server *server);

/* [any] */
void net_server_get_stats(struct net_server *server, struct net_stats *stats);

/* The connections of a worker, by its number from 0, which are for its thread. [any] */
struct net_connections *net_server_connections(struct net_server *server, unsigned number);

#endif
