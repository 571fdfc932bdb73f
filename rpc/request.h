/*
 * Requests as procedures see them: the caller, answers now or later, and what must live until an
 * answer has been written. A request is dispatched on its connection's worker; everything marked
 * [worker] must be called there.
 */
#ifndef SUNPROXY_RPC_REQUEST_H
#define SUNPROXY_RPC_REQUEST_H

#include <rpc/rpc.h>
#include <stdint.h>

#include "base/clients.h"
#include "base/span.h"
#include "net/peer.h"
#include "net/worker.h"

struct rpc_request; /* its first member is the SVCXPRT that the dispatcher sees */

/* The request behind the transport of a svc_req. [worker] */
struct rpc_request *rpc_request_of(SVCXPRT *transport);

/* What was given to rpc_server_create(). [any] */
void *rpc_request_context(const struct rpc_request *request);

/* The worker that this request belongs to: for net_worker_post() and net_worker_number(). [any] */
struct net_worker *rpc_request_worker(const struct rpc_request *request);

/* The caller's client, as long as the request. [worker] */
struct client *rpc_request_client(const struct rpc_request *request);

/* Do the client's rates hold for the caller? Not for one that is privileged or gone. [worker] */
bool rpc_request_is_bounded(const struct rpc_request *request);

/* Bytes that a request takes while it waits, whatever it asks for. [any] */
size_t rpc_request_bytes(const struct rpc_request *request);

/*
 * Memory for the procedure's own use: limits.request_data bytes, aligned for any type, with
 * whatever bytes are in it. It lives until what the request holds has been released. And the
 * request that such memory belongs to. [worker]
 */
void *rpc_request_data(struct rpc_request *request);
struct rpc_request *rpc_request_of_data(void *data);

/* Valid as long as the request. */
const struct net_peer *rpc_request_peer(const struct rpc_request *request);

/* The raw arguments of the call, as they stood in the record; valid until the dispatcher returns.
 * [worker] */
struct span rpc_request_arguments(const struct rpc_request *request);

/* When the call's last byte was read, or, over the client's rate, when its turn came; monotonic
 * microseconds. */
int64_t rpc_request_arrived_us(const struct rpc_request *request);

/*
 * Hands something over that must live until the last byte of the reply is written or the
 * connection is gone: release(held) is called then, once, on the worker. With something held, byte
 * runs of 512 bytes or more in the result are sent from where they stand, so all of them must stand
 * in what is held; with nothing held they are copied. To be called before the reply, once per
 * request. [worker]
 */
void rpc_request_hold(struct rpc_request *request, void (*release)(void *held), void *held);

/*
 * Answers later: the procedure calls this and returns FALSE. (A procedure that returns FALSE
 * without it, or an error, sends no answer at all: a batched call.) The request then stays until
 * exactly one of rpc_request_reply() and rpc_request_error() is called for it, on its worker, also
 * when the peer has gone (nothing is sent then). [worker]
 */
void rpc_request_defer(struct rpc_request *request);

/* Encodes and queues the reply of a deferred request; the request is gone when this returns, what
 * it holds is released when the bytes are out. `result` is not used after the return, but for byte
 * runs sent in place. If the result cannot be encoded, SYSTEM_ERR is sent. [worker] */
void rpc_request_reply(struct rpc_request *request, xdrproc_t encode, void *result);

/*
 * Keeps a deferred request beyond its answer, which must not have been given yet: its data and what
 * it holds stay until rpc_request_unkeep(), and its connection's later calls find it.
 *
 * written(): the last byte of the answer is written, or it will never be. stopped(): no further
 * call of the connection will come; called once or more, unless the request is not kept any more by
 * then. Either may call rpc_request_unkeep() for this request, and for no other. Where the server
 * is destroyed before that, the request is released all the same. [worker]
 */
struct rpc_keeper {
    void (*written)(struct rpc_request *request);
    void (*stopped)(struct rpc_request *request);
};
void rpc_request_keep(struct rpc_request *request, const struct rpc_keeper *keeper);
void rpc_request_unkeep(struct rpc_request *request);

/* The requests that are kept on the connection of `request`, one after the other, the latest first:
 * the one behind `previous`, or the first for NULL. NULL: no more. [worker] */
struct rpc_request *rpc_request_next_kept(const struct rpc_request *request,
                                          const struct rpc_request *previous);

/*
 * Closes the connection if an answer on it waits to be read for `us` or longer; counted as a
 * time-out. Not within a procedure. [worker]
 */
void rpc_request_close_unread(struct rpc_request *request, int64_t us);

/* False when the connection has gone: no answer can be sent. [worker] */
bool rpc_request_is_open(const struct rpc_request *request);

/* The RPC errors that a procedure may end in, deferred or not (RFC 5531, accept_stat). In a
 * procedure that is not deferred, it then returns FALSE. [worker] */
enum rpc_error { RPC_ERROR_GARBAGE_ARGS, RPC_ERROR_SYSTEM_ERR };
void rpc_request_error(struct rpc_request *request, enum rpc_error error);

#endif
