#include "rpc/transport.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "rpc/decode.h"
#include "rpc/request.h"
#include "rpc/words.h"

static struct rpc_request *
request_of(SVCXPRT *transport)
{
    return (struct rpc_request *)transport;
}

/* ---- the transport's operations -------------------------------------------------------------- */

static bool_t
no_recv(SVCXPRT *transport, struct rpc_msg *message)
{
    (void)transport;
    (void)message;
    return FALSE;
}

static enum xprt_stat
stat_idle(SVCXPRT *transport)
{
    (void)transport;
    return XPRT_IDLE;
}

/*
 * xdr_wrapstring has no bound but 4 GiB, and allocates what the peer announces: no string is longer
 * than the arguments that it stands in.
 */
static bool
is_plausible(struct span arguments, xdrproc_t decode)
{
    return decode != (xdrproc_t)xdr_wrapstring ||
           (arguments.len >= sizeof(uint32_t) &&
            rpc_load_u32(arguments.ptr) <= arguments.len - sizeof(uint32_t));
}

/* The dispatcher does not free what a failed decoding has allocated, so that is done here. */
static bool_t
get_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    struct rpc_request *request = request_of(transport);
    XDR xdr;

    if (!is_plausible(request->arguments, decode))
        return FALSE;
    rpc_decode_begin(&xdr, request->arguments);
    if (decode(&xdr, arguments, 0))
        return TRUE;
    xdr_free(decode, arguments);
    return FALSE;
}

/* TRUE always: the dispatcher ends the process otherwise. */
static bool_t
free_arguments(SVCXPRT *transport, xdrproc_t decode, void *arguments)
{
    (void)transport;
    xdr_free(decode, arguments);
    return TRUE;
}

static void
put_u32(XDR *xdr, uint32_t value)
{
    long word = (long)value;

    /* Any header fits the reply's own buffer. */
    (void)XDR_PUTLONG(xdr, &word);
}

static void
put_accepted(XDR *xdr, const struct accepted_reply *accepted)
{
    put_u32(xdr, MSG_ACCEPTED);
    put_u32(xdr, AUTH_NONE);
    put_u32(xdr, 0);
    put_u32(xdr, accepted->ar_stat);
    if (accepted->ar_stat == PROG_MISMATCH) {
        put_u32(xdr, accepted->ar_vers.low);
        put_u32(xdr, accepted->ar_vers.high);
    }
}

static void
put_rejected(XDR *xdr, const struct rejected_reply *rejected)
{
    put_u32(xdr, MSG_DENIED);
    put_u32(xdr, rejected->rj_stat);
    if (rejected->rj_stat == RPC_MISMATCH) {
        put_u32(xdr, rejected->rj_vers.low);
        put_u32(xdr, rejected->rj_vers.high);
    } else {
        put_u32(xdr, rejected->rj_why);
    }
}

/* RFC 5531, section 9. */
static bool
encode_reply(struct rpc_request *request, const struct reply_body *body)
{
    struct rpc_gather gather;
    bool success = body->rp_stat == MSG_ACCEPTED && body->rp_acpt.ar_stat == SUCCESS;

    /* Without a hold the bytes may be freed before they are sent, so they are copied. */
    rpc_gather_begin(&gather, &request->reply, request->release != NULL);
    put_u32(&gather.xdr, request->xid);
    put_u32(&gather.xdr, REPLY);
    if (body->rp_stat == MSG_ACCEPTED)
        put_accepted(&gather.xdr, &body->rp_acpt);
    else
        put_rejected(&gather.xdr, &body->rp_rjct);
    if (success && !body->rp_acpt.ar_results.proc(&gather.xdr, body->rp_acpt.ar_results.where, 0))
        return false;
    if (!rpc_gather_end(&gather))
        return false;
    if (!success)
        net_counter_add(&request->connection->worker->calls_bad, 1);
    return true;
}

/* FALSE makes the dispatcher send SYSTEM_ERR in place of a result that cannot be encoded. */
static bool_t
send_reply(SVCXPRT *transport, struct rpc_msg *message)
{
    struct rpc_request *request = request_of(transport);

    /* Only the first answer counts, and for a deferred request none but the one that it waits for.
     */
    if (request->answered || request->deferred)
        return TRUE;
    if (!encode_reply(request, &message->rm_reply)) {
        rpc_reply_free(&request->reply);
        return FALSE;
    }
    request->answered = true;
    request->references++;
    net_connection_send(&request->connection->net, &request->reply.output);
    return TRUE;
}

static void
no_destroy(SVCXPRT *transport)
{
    (void)transport;
}

static bool_t
no_control(SVCXPRT *transport, const u_int what, void *info)
{
    (void)transport;
    (void)what;
    (void)info;
    return FALSE;
}

static const struct xp_ops request_ops = {
    .xp_recv = no_recv,
    .xp_stat = stat_idle,
    .xp_getargs = get_arguments,
    .xp_reply = send_reply,
    .xp_freeargs = free_arguments,
    .xp_destroy = no_destroy,
};

static const struct xp_ops2 request_ops2 = {
    .xp_control = no_control,
};

/* ---- a request's life ------------------------------------------------------------------------ */

static void
release_output(struct net_output *output)
{
    struct rpc_request *request = container_of(output, struct rpc_request, reply.output);

    rpc_request_note_written(request);
    rpc_request_unref(request);
}

/* The first ones of a worker are not charged; they are what its pool keeps. NULL without memory. */
static struct rpc_request *
allocate_request(struct rpc_worker *worker)
{
    struct memory_account *memory = worker->service->limits.net.memory;
    size_t size = rpc_service_request_bytes(worker->service);
    struct rpc_request *request = memory_realloc(memory, NULL, size);

    if (!request)
        return NULL;
    memset(&request->transport, 0, sizeof(request->transport));
    request->transport.xp_ops = &request_ops;
    request->transport.xp_ops2 = &request_ops2;
    rpc_reply_init(&request->reply, memory);
    request->reply.output.release = release_output;
    request->charged = worker->uncharged >= RPC_POOLED_REQUESTS;
    /* Beyond the limit, too, since it may be answered at once: see net/connection.c, is_too_slow().
     */
    if (request->charged)
        memory_charge_anyway(memory, MEMORY_REQUESTS, size);
    else
        worker->uncharged++;
    return request;
}

struct rpc_request *
rpc_request_create(struct rpc_connection *connection)
{
    struct rpc_worker *worker = connection->worker;
    struct rpc_request *request = SLIST_FIRST(&worker->pool);

    if (request) {
        SLIST_REMOVE_HEAD(&worker->pool, free);
    } else {
        request = allocate_request(worker);
        if (!request)
            return NULL;
    }
    request->transport.xp_fd = connection->net.fd;
    request->transport.xp_rtaddr.buf = &connection->net.peer.address;
    request->transport.xp_rtaddr.len = connection->net.peer.address_len;
    request->transport.xp_rtaddr.maxlen = sizeof(connection->net.peer.address);
    request->connection = connection;
    request->release = NULL;
    request->held = NULL;
    request->keeper = NULL;
    request->arrived_us = connection->net.read_us;
    request->references = 1;
    request->deferred = false;
    request->answered = false;
    request->ended = false;
    net_connection_begin_request(&connection->net);
    return request;
}

static void
end_request(struct rpc_request *request)
{
    if (!request->ended)
        net_connection_end_request(&request->connection->net);
    request->ended = true;
}

void
rpc_request_note_written(struct rpc_request *request)
{
    if (!request->keeper)
        return;
    end_request(request);
    request->keeper->written(request);
}

void
rpc_request_unref(struct rpc_request *request)
{
    struct rpc_worker *worker = request->connection->worker;

    if (--request->references)
        return;
    if (request->release)
        request->release(request->held);
    rpc_reply_free(&request->reply);
    end_request(request);
    if (request->charged) {
        memory_uncharge(worker->service->limits.net.memory, MEMORY_REQUESTS,
                        rpc_service_request_bytes(worker->service));
        free(request);
    } else {
        SLIST_INSERT_HEAD(&worker->pool, request, free);
    }
}

void
rpc_worker_free_pool(struct rpc_worker *worker)
{
    struct rpc_request *request;

    while ((request = SLIST_FIRST(&worker->pool))) {
        SLIST_REMOVE_HEAD(&worker->pool, free);
        free(request);
    }
}
