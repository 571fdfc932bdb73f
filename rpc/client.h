/*
 * The client's side: calls pipelined over one connection, answered in any order. (A libtirpc CLIENT
 * allows one call at a time, and waits 25 s for it.) Uses the XDR routines that rpcgen generates.
 *
 * Threads: a client is used by one thread; different clients are independent.
 */
#ifndef SUNPROXY_RPC_CLIENT_H
#define SUNPROXY_RPC_CLIENT_H

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

struct rpc_client;

enum rpc_client_status {
    RPC_CLIENT_OK = 0,
    RPC_CLIENT_NO_MEMORY,
    RPC_CLIENT_UNREACHABLE, /* no connection could be made */
    RPC_CLIENT_LOST,        /* the connection broke before the answer */
    RPC_CLIENT_TIMED_OUT,
    RPC_CLIENT_PROG_UNAVAIL,
    RPC_CLIENT_PROG_MISMATCH,
    RPC_CLIENT_PROC_UNAVAIL,
    RPC_CLIENT_GARBAGE_ARGS, /* the server cannot decode the arguments */
    RPC_CLIENT_SYSTEM_ERR,   /* the server failed */
    RPC_CLIENT_DENIED,       /* RPC_MISMATCH or AUTH_ERROR: also a client outside --client-net */
    RPC_CLIENT_BAD_REPLY, /* not a reply that RFC 5531 knows, or over the limit, or results that do
                             not decode */
};

/* A short sentence for a person. */
const char *rpc_client_strstatus(enum rpc_client_status status);

/*
 * Called once for each call, in the order of the answers. `result` points at the decoded result
 * (the caller's memory, given to rpc_client_call()) and is to be freed with xdr_free() by the
 * callee when status is RPC_CLIENT_OK; otherwise there is nothing to free.
 */
typedef void rpc_client_done(void *context, enum rpc_client_status status, void *result);

/*
 * Connects to a stream address (AF_INET, AF_INET6, AF_UNIX) within `timeout_us`. `max_reply` bounds
 * a reply in bytes. NULL with errno set on failure.
 */
struct rpc_client *rpc_client_connect(const struct sockaddr *address, socklen_t len,
                                      int64_t timeout_us, uint32_t max_reply);

/* Closes; calls still unanswered are done with RPC_CLIENT_LOST. NULL is harmless. */
void rpc_client_close(struct rpc_client *client);

/*
 * Queues a call. `args` is encoded before this returns (NULL for encode_args: none, and likewise
 * for decode_result); `result` must be zeroed memory that stays until `done` is called, from
 * rpc_client_run() or rpc_client_close(), never from here. `timeout_us` is for this call, from now.
 * RPC_CLIENT_OK if it is queued; otherwise `done` is never called for it.
 */
enum rpc_client_status rpc_client_call(struct rpc_client *client, uint32_t program,
                                       uint32_t version, uint32_t procedure, xdrproc_t encode_args,
                                       void *args, xdrproc_t decode_result, void *result,
                                       int64_t timeout_us, rpc_client_done *done, void *context);

/* Calls not yet done. */
unsigned rpc_client_pending(const struct rpc_client *client);

/*
 * Writes what is queued and reads what has come until at least one call is done, or nothing is
 * pending, or `timeout_us` has passed (INT64_MAX: no bound), or a signal was caught. False when the
 * connection is lost (all calls are done then). `done` may make calls, but neither run nor close.
 *
 * A reply over `max_reply`, or a record too short to be a message, ends the connection: what was
 * pending is done with RPC_CLIENT_BAD_REPLY. An answer that comes after its call timed out is
 * dropped.
 */
bool rpc_client_run(struct rpc_client *client, int64_t timeout_us);

/* One call and its answer, for callers that have nothing else under way. */
enum rpc_client_status rpc_client_call_wait(struct rpc_client *client, uint32_t program,
                                            uint32_t version, uint32_t procedure,
                                            xdrproc_t encode_args, void *args,
                                            xdrproc_t decode_result, void *result,
                                            int64_t timeout_us);

#endif
