/*
 * A call under way. It begins with the SVCXPRT that rpcgen's dispatcher and libtirpc's
 * svc_sendreply() and svcerr_*() use. Each call has an object of its own, so that replies may be
 * sent at any time and in any order.
 *
 * A connection has its requests that are deferred in a list, and those that are answered and not
 * yet written in its output. Everything here is for the connection's worker.
 */
#ifndef SUNPROXY_RPC_TRANSPORT_H
#define SUNPROXY_RPC_TRANSPORT_H

#include <rpc/rpc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "net/connection.h"
#include "rpc/call.h"
#include "rpc/gather.h"
#include "rpc/limits.h"
#include "rpc/program.h"
#include "rpc/record.h"

/* Kept by a worker for reuse, and not charged: 900 of 6,100 instructions per hit less, and -6 % CPU
 * per hit with four calls outstanding on each of 32 connections. */
enum { RPC_POOLED_REQUESTS = 256 };

struct rpc_request {
    SVCXPRT transport; /* first: rpc_request_of() */
    struct rpc_connection *connection;
    union {
        LIST_ENTRY(rpc_request) link;  /* deferred: the connection's */
        SLIST_ENTRY(rpc_request) free; /* the worker's pool */
    };
    void (*release)(void *held);
    void *held;
    const struct rpc_keeper *keeper; /* NULL: not kept */
    LIST_ENTRY(rpc_request) kept;    /* the connection's */
    struct span arguments;
    int64_t arrived_us;
    uint32_t xid;
    unsigned references; /* the dispatcher's, and the answer's */
    bool deferred;
    bool answered;
    bool ended;   /* the net does not count it any more: it was kept, and its answer is out */
    bool charged; /* to the account: it is not one of the first of its worker */
    struct rpc_reply reply;
    _Alignas(max_align_t) unsigned char data[]; /* limits.request_data bytes */
};

/* What is served; constant while workers run. */
struct rpc_service {
    struct rpc_limits limits;
    struct rpc_program *programs;
    size_t program_count;
    void *context;
    struct rpc_worker *workers; /* by the numbers of the net's */
};

/* What a worker keeps for all of its connections. */
struct rpc_worker {
    const struct rpc_service *service;
    SLIST_HEAD(, rpc_request) pool;
    unsigned uncharged; /* requests there are, pooled or not, that the account does not count */
    net_counter calls;
    net_counter calls_bad;
    struct rpc_cooked cooked; /* of the call that is being dispatched */
};

struct rpc_connection {
    struct net_connection net; /* first */
    struct rpc_worker *worker;
    LIST_HEAD(, rpc_request) waiting;
    LIST_HEAD(, rpc_request) kept;
    struct rpc_record record;
    bool may_call; /* other procedures than NULL */
};

/* Bytes of a request, its data included. */
static inline size_t
rpc_service_request_bytes(const struct rpc_service *service)
{
    return sizeof(struct rpc_request) + service->limits.request_data;
}

/* A request with the dispatcher's reference; NULL without memory. */
struct rpc_request *rpc_request_create(struct rpc_connection *connection);

/* The answer of a kept request is out, or will never be. */
void rpc_request_note_written(struct rpc_request *request);

/* Drops a reference; the last one releases what is held. */
void rpc_request_unref(struct rpc_request *request);

/* Frees the requests that a worker has pooled. */
void rpc_worker_free_pool(struct rpc_worker *worker);

#endif
