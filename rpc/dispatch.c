#include "rpc/dispatch.h"

#include "rpc/transport.h"

#define RPC_VERSION 2

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
    (void)SVC_REPLY(&request->transport, &message);
}

static void
dispatch_call(struct rpc_request *request, const struct rpc_call *call, struct rpc_cooked *cooked)
{
    const struct rpc_service *service = request->connection->worker->service;
    uint32_t low = UINT32_MAX, high = 0;
    bool known = false;

    for (size_t i = 0; i < service->program_count; i++) {
        const struct rpc_program *program = &service->programs[i];

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
rpc_dispatch(struct rpc_connection *connection, struct span record)
{
    struct rpc_worker *worker = connection->worker;
    struct rpc_call call;
    enum rpc_call_status status = rpc_call_parse(record, &call, &worker->cooked);
    struct rpc_request *request;

    if (status == RPC_CALL_NONE) {
        net_counter_add(&worker->calls_bad, 1);
        return false;
    }
    net_counter_add(&worker->calls, 1);
    request = rpc_request_create(connection);
    if (!request) {
        net_counter_add(&worker->calls_bad, 1);
        return false;
    }
    request->xid = call.xid;
    switch (status) {
    case RPC_CALL_OK:
        if (!connection->may_call && call.procedure != NULLPROC) {
            net_counter_add(&worker->calls_bad, 1);
            deny(request, AUTH_TOOWEAK);
            break;
        }
        request->arguments = call.arguments;
        dispatch_call(request, &call, &worker->cooked);
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
