/*
 * Admission: which newcomer gets a connection. Bounds on all connections and on those of one
 * client, and a reserve of connections and descriptors that only privileged peers may use
 * (rpc_limits in server.h), so that no client keeps an administrator out. Part of the server.
 */
#ifndef SUNPROXY_RPC_ADMISSION_H
#define SUNPROXY_RPC_ADMISSION_H

#include "rpc/internal.h"

struct rpc_admission;

/* NULL without memory. */
struct rpc_admission *rpc_admission_create(const struct rpc_limits *limits);

/* All connections must have left. NULL is harmless. */
void rpc_admission_destroy(struct rpc_admission *admission);

/*
 * Judges a newcomer on `fd`, whose peer has its address: completes the peer, and says whether it
 * may stay beside `open` connections. If so, it counts until rpc_admission_leave(), and *client is
 * for its rpc_connection; otherwise the refusal is counted, and the descriptor is the caller's.
 * `scarce`: no descriptor was left for it. [worker 0]
 */
bool rpc_admission_judge(struct rpc_server *server, int fd, struct rpc_peer *peer, uint64_t open,
                         bool scarce, struct client_entry **client);

/* There was no memory for a connection that was admitted: it counts as refused. [worker 0] */
void rpc_admission_give_up(struct rpc_server *server, const struct rpc_peer *peer,
                           struct client_entry *client);

/* A connection ends. [its worker] */
void rpc_admission_leave(struct rpc_connection *connection);

/* Fills in the fields that are counted here. [any] */
void rpc_admission_get_stats(struct rpc_admission *admission, struct rpc_stats *stats);

#endif
