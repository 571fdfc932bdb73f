/*
 * A call under way, dressed as the SVCXPRT that rpcgen's dispatcher and libtirpc's svc_sendreply()
 * and svcerr_*() expect. One object a call, so that an answer may come at any time, in any order.
 */
#include "rpc/internal.h"

#include <limits.h>
#include <stdlib.h>

#define RPC_VERSION 2

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

    /* The reply's own buffer has room for any header. */
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

    /* What nobody holds may be gone before it is sent, so then it is copied. */
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
        rpc_counter_add(&request->connection->worker->calls_bad, 1);
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
    rpc_connection_queue(request->connection, request);
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

/* The first ones of a worker are not charged; they are what its pool keeps. NULL without memory. */
static struct rpc_request *
allocate_request(struct rpc_worker *worker)
{
    struct memory_account *memory = worker->server->limits.memory;
    struct rpc_request *request = memory_realloc(memory, NULL, sizeof(*request));

    if (!request)
        return NULL;
    memset(&request->transport, 0, sizeof(request->transport));
    request->transport.xp_ops = &request_ops;
    request->transport.xp_ops2 = &request_ops2;
    rpc_reply_init(&request->reply, memory);
    request->charged = worker->uncharged >= RPC_POOLED_REQUESTS;
    /* Beyond the limit, too, since it may be answered at once: see is_over_bound(). */
    if (request->charged)
        memory_charge_anyway(memory, MEMORY_REQUESTS, sizeof(*request));
    else
        worker->uncharged++;
    return request;
}

static struct rpc_request *
create_request(struct rpc_connection *connection)
{
    struct rpc_worker *worker = connection->worker;
    struct rpc_request *request = SLIST_FIRST(&worker->pool);

    if (request) {
        SLIST_REMOVE_HEAD(&worker->pool, free);
        worker->pooled--;
    } else {
        request = allocate_request(worker);
        if (!request)
            return NULL;
    }
    request->transport.xp_fd = connection->fd;
    request->transport.xp_rtaddr.buf = &connection->peer.address;
    request->transport.xp_rtaddr.len = connection->peer.address_len;
    request->transport.xp_rtaddr.maxlen = sizeof(connection->peer.address);
    request->connection = connection;
    request->release = NULL;
    request->held = NULL;
    request->arrived_us = connection->read_us;
    request->references = 1;
    request->deferred = false;
    request->answered = false;
    connection->requests++;
    return request;
}

void
rpc_request_unref(struct rpc_request *request)
{
    struct rpc_connection *connection = request->connection;
    struct rpc_worker *worker = connection->worker;

    if (--request->references)
        return;
    if (request->release)
        request->release(request->held);
    rpc_reply_free(&request->reply);
    connection->requests--;
    if (request->charged) {
        memory_uncharge(worker->server->limits.memory, MEMORY_REQUESTS, sizeof(*request));
        free(request);
    } else {
        SLIST_INSERT_HEAD(&worker->pool, request, free);
        worker->pooled++;
    }
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static void
deny(struct rpc_request *request, enum auth_stat why)
{
    svcerr_auth(&request->transport, why);
}

static void
answer_rpc_mismatch(struct rpc_request *request)
{
    struct rpc_msg message = {.rm_direction = REPLY};

    message.rm_reply.rp_stat = MSG_DENIED;
    message.rm_reply.rp_rjct.rj_stat = RPC_MISMATCH;
    message.rm_reply.rp_rjct.rj_vers.low = RPC_VERSION;
    message.rm_reply.rp_rjct.rj_vers.high = RPC_VERSION;
    (void)send_reply(&request->transport, &message);
}

static void
dispatch(struct rpc_request *request, const struct rpc_call *call, struct rpc_cooked *cooked)
{
    const struct rpc_server *server = request->connection->worker->server;
    uint32_t low = UINT32_MAX, high = 0;
    bool known = false;

    for (size_t i = 0; i < server->program_count; i++) {
        const struct rpc_program *program = &server->programs[i];

        if (program->program != call->program)
            continue;
        if (program->version == call->version) {
            struct svc_req req = {
                .rq_prog = call->program,
                .rq_vers = call->version,
                .rq_proc = call->procedure,
                .rq_cred = call->credential,
                .rq_clntcred = call->cooked ? &cooked->parms : NULL,
                .rq_xprt = &request->transport,
            };

            program->dispatch(&req, &request->transport);
            return;
        }
        known = true;
        low = program->version < low ? program->version : low;
        high = program->version > high ? program->version : high;
    }
    if (known)
        svcerr_progvers(&request->transport, low, high);
    else
        svcerr_noprog(&request->transport);
}

bool
rpc_request_take(struct rpc_connection *connection, struct span record)
{
    struct rpc_worker *worker = connection->worker;
    struct rpc_call call;
    enum rpc_call_status status = rpc_call_parse(record, &call, &worker->cooked);
    struct rpc_request *request;

    if (status == RPC_CALL_NONE) {
        rpc_counter_add(&worker->calls_bad, 1);
        return false;
    }
    rpc_counter_add(&worker->calls, 1);
    request = create_request(connection);
    if (!request) {
        rpc_counter_add(&worker->calls_bad, 1);
        return false;
    }
    request->xid = call.xid;
    switch (status) {
    case RPC_CALL_OK:
        request->arguments = call.arguments;
        dispatch(request, &call, &worker->cooked);
        request->arguments = span_of(NULL, 0);
        break;
    case RPC_CALL_RPCVERS:
        answer_rpc_mismatch(request);
        break;
    case RPC_CALL_BAD_CRED:
        deny(request, AUTH_BADCRED);
        break;
    case RPC_CALL_BAD_VERF:
        deny(request, AUTH_BADVERF);
        break;
    default:
        deny(request, AUTH_REJECTEDCRED);
        break;
    }
    rpc_request_unref(request);
    return true;
}

/* ---- for procedures -------------------------------------------------------------------------- */

struct rpc_request *
rpc_request_of(SVCXPRT *transport)
{
    return request_of(transport);
}

void *
rpc_request_context(const struct rpc_request *request)
{
    return request->connection->worker->server->context;
}

struct rpc_worker *
rpc_request_worker(const struct rpc_request *request)
{
    return request->connection->worker;
}

struct client_entry *
rpc_request_client(const struct rpc_request *request)
{
    return request->connection->client;
}

const struct rpc_peer *
rpc_request_peer(const struct rpc_request *request)
{
    return &request->connection->peer;
}

struct span
rpc_request_arguments(const struct rpc_request *request)
{
    return request->arguments;
}

int64_t
rpc_request_arrived_us(const struct rpc_request *request)
{
    return request->arrived_us;
}

void
rpc_request_hold(struct rpc_request *request, void (*release)(void *held), void *held)
{
    request->release = release;
    request->held = held;
}

void
rpc_request_defer(struct rpc_request *request)
{
    if (request->deferred || request->answered)
        return;
    request->deferred = true;
    request->references++;
    request->connection->deferred++;
    LIST_INSERT_HEAD(&request->connection->waiting, request, link);
}

/* Ends the wait of a deferred request; false when there is nobody to answer. */
static bool
take_up(struct rpc_request *request)
{
    struct rpc_connection *connection = request->connection;

    LIST_REMOVE(request, link);
    request->deferred = false;
    connection->deferred--;
    rpc_connection_mark(connection);
    return connection->fd >= 0;
}

void
rpc_request_reply(struct rpc_request *request, xdrproc_t encode, void *result)
{
    if (take_up(request) && !svc_sendreply(&request->transport, encode, result))
        svcerr_systemerr(&request->transport);
    rpc_request_unref(request);
}

void
rpc_request_error(struct rpc_request *request, enum rpc_error error)
{
    bool deferred = request->deferred;

    if (!deferred || take_up(request)) {
        if (error == RPC_ERROR_GARBAGE_ARGS)
            svcerr_decode(&request->transport);
        else
            svcerr_systemerr(&request->transport);
    }
    if (deferred)
        rpc_request_unref(request);
}
