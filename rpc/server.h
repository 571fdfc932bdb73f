/*
 * The server's side of ONC RPC (RFC 5531) over record-marked streams: TCP and AF_UNIX connections
 * on event loops of our own, in front of the dispatchers that rpcgen generates. What libtirpc
 * offers for this (svc_run) is neither thread-safe nor immune to a peer that sends half a record;
 * see docs/DESIGN.md, "Why not svc_run()".
 *
 * Threads: a server has N workers, each a thread with an event loop. A connection belongs to one
 * worker for life, so nothing of it is locked. A request is dispatched on its connection's worker;
 * everything marked [worker] below must be called there. Everything else is for the thread that
 * made the server, unless it says [any].
 */
#ifndef SUNPROXY_RPC_SERVER_H
#define SUNPROXY_RPC_SERVER_H

#include <rpc/rpc.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/client_key.h"
#include "base/client_table.h"
#include "base/memory_account.h"
#include "base/span.h"

struct rpc_server;
struct rpc_worker;
struct rpc_request; /* its first member is the SVCXPRT that the dispatcher sees */
struct rpc_peer;

/* Bounds on what a peer may ask of us; RPC_LIMITS_DEFAULT has the values that fit a proxy's calls.
 */
struct rpc_limits {
    uint32_t max_record;       /* bytes of a call, all fragments together */
    uint32_t max_fragments;    /* of a record, empty ones included */
    uint32_t max_requests;     /* in flight per connection; over it the connection is not read */
    uint32_t max_queued_bytes; /* of replies per connection not yet written; likewise */
    uint32_t max_connections;  /* in all; over it a new one is closed at once */
    int64_t idle_timeout_us;   /* without a byte either way and no request in flight; 0: none */
    int64_t record_timeout_us; /* from a record's first byte to its last; 0: none */

    /* Privileged peers, judged when they connect, on worker 0; NULL: there are none. They may have
       `reserved` connections beyond max_connections, the last `reserved` descriptors are theirs
       alone, and what bounds a client does not bound them. */
    bool (*is_privileged)(void *context, const struct rpc_peer *peer);
    uint32_t reserved;

    /* Of one client (client_key.h). */
    uint32_t max_connections_per_client; /* 0: not bounded */
    uint8_t inet_prefix;                 /* bits of an IPv4 address that make a client, */
    uint8_t inet6_prefix;                /* and of an IPv6 address */
    struct client_rates rates;           /* over them the client's connections are not read */

    /*
     * Charged for records that come in pieces, requests in flight and replies; not owned; NULL:
     * none. Not charged: RPC_POOLED_REQUESTS requests a worker and the connections themselves.
     */
    struct memory_account *memory;
};

#define RPC_LIMITS_DEFAULT                                           \
    ((struct rpc_limits){.max_record = 131072,                       \
                         .max_fragments = 64,                        \
                         .max_requests = 256,                        \
                         .max_queued_bytes = 32u << 20,              \
                         .max_connections = 16384,                   \
                         .idle_timeout_us = 300 * (int64_t)1000000,  \
                         .record_timeout_us = 60 * (int64_t)1000000, \
                         .inet_prefix = CLIENT_KEY_INET_BITS,        \
                         .inet6_prefix = CLIENT_KEY_INET6_BITS})

/* A version of a program and the dispatcher that rpcgen made for it. */
struct rpc_program {
    uint32_t program;
    uint32_t version;
    void (*dispatch)(struct svc_req *request, SVCXPRT *transport);
};

/* The caller, as the socket knows it. */
struct rpc_peer {
    struct sockaddr_storage address; /* AF_INET, AF_INET6 or AF_UNIX */
    socklen_t address_len;
    bool has_uid; /* an AF_UNIX peer; judged by SO_PEERCRED when it connected */
    uid_t uid;
    pid_t pid;
    struct client_key client; /* the uid if there is one, otherwise the address's prefix */
    bool is_privileged;       /* by rpc_limits.is_privileged, when it connected */
};

/* Why a connection was refused. */
enum rpc_refusal {
    RPC_REFUSED_FULL,        /* over max_connections, or its reserve */
    RPC_REFUSED_CLIENT,      /* over max_connections_per_client */
    RPC_REFUSED_DESCRIPTORS, /* none left but those in reserve */
    RPC_REFUSED_MEMORY,
    RPC_REFUSALS
};

/* Counters, each the sum over workers; read at any time, exact once the server has stopped. */
struct rpc_stats {
    uint64_t connections;       /* open now */
    uint64_t connections_total; /* ever accepted */
    uint64_t connections_refused[RPC_REFUSALS];
    uint64_t connections_timed_out; /* and those closed by rpc_server_relieve() */
    uint64_t calls;                 /* records that were calls */
    uint64_t calls_bad; /* answered with an RPC error, or no call at all: the connection is read no
                           further */
    uint64_t bytes_in;
    uint64_t bytes_out;
    struct client_table_stats clients; /* zeros where nothing bounds a client */
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
 * Requests still deferred then have been abandoned: nobody can be answered, what they hold is
 * released by rpc_server_destroy(), on the thread that calls it. A task that answers one and is
 * posted before the return is run, and is harmless; one that is posted later is never run.
 */
void rpc_server_stop_accepting(struct rpc_server *server);
unsigned rpc_server_stop(struct rpc_server *server, int64_t timeout_us);

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

/* ---- inside a procedure ---------------------------------------------------------------------- */

/* The request behind the transport of a svc_req. [worker] */
struct rpc_request *rpc_request_of(SVCXPRT *transport);

/* What was given to rpc_server_create(). [any] */
void *rpc_request_context(const struct rpc_request *request);

/* The worker that this request belongs to, and its number from 0. [any] */
struct rpc_worker *rpc_request_worker(const struct rpc_request *request);
unsigned rpc_worker_number(const struct rpc_worker *worker);

/*
 * What the server knows of the caller's client (client_table.h); NULL where nothing bounds it, for
 * a privileged peer, and when the connection has gone. Valid until the procedure returns. [worker]
 */
struct client_entry *rpc_request_client(const struct rpc_request *request);

/* Valid as long as the request. */
const struct rpc_peer *rpc_request_peer(const struct rpc_request *request);

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

/* The RPC errors that a procedure may end in, deferred or not (RFC 5531, accept_stat). In a
 * procedure that is not deferred, it then returns FALSE. [worker] */
enum rpc_error { RPC_ERROR_GARBAGE_ARGS, RPC_ERROR_SYSTEM_ERR };
void rpc_request_error(struct rpc_request *request, enum rpc_error error);

/* ---- work for a worker ----------------------------------------------------------------------- */

/* Something to be done on a worker's thread; the memory is the poster's. */
struct rpc_task {
    struct rpc_task *next; /* the worker's, while posted */
    void (*run)(struct rpc_task *task);
};

/*
 * Runs task->run(task) on the worker's thread soon, in the order of posting. The task must stay
 * until then; run may free it. Never fails. Tasks posted before rpc_server_stop() has returned are
 * run. [any]
 */
void rpc_worker_post(struct rpc_worker *worker, struct rpc_task *task);

#endif
