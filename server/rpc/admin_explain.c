/* PROXY_EXPLAIN: what would be done with a request, and why. */
#include <stdlib.h>
#include <string.h>

#include "proxy.h"
#include "server/explain/explain_text.h"
#include "server/rpc/admin_caller.h"

/* An answer with its text. */
struct explained_text {
    struct explain_call call; /* first */
    struct rpc_request *request;
    proxy_explain_result result;
};

static void
free_text(void *held)
{
    struct explained_text *explained = held;

    explain_end(&explained->call);
    free(explained);
}

static void
answer(struct explain_call *call)
{
    struct explained_text *explained = (struct explained_text *)call;

    explained->result.status = call->ok ? PROXY_OK : PROXY_BAD_VALUE;
    explained->result.text = call->out.data ? call->out.data : "";
    rpc_request_reply(explained->request, (xdrproc_t)xdr_proxy_explain_result, &explained->result);
}

static struct explained_text *
make_text(struct service *service, struct rpc_request *request)
{
    struct explained_text *explained = calloc(1, sizeof(*explained));

    if (!explained)
        return NULL;
    explained->request = request;
    explained->call.service = service;
    explained->call.worker = rpc_request_worker(request);
    explained->call.done = answer;
    buf_init(&explained->call.out, PROXY_MAX_LINES - 1);
    return explained;
}

bool_t
proxy_explain_2_svc(proxy_explain_args *args, proxy_explain_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = admin_service(call);
    struct explained_text *explained;

    memset(result, 0, sizeof(*result));
    if (!service) {
        result->status = PROXY_DENIED;
        result->text = admin_refusal;
        return TRUE;
    }
    explained = make_text(service, request);
    if (!explained) {
        rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        return FALSE;
    }
    rpc_request_hold(request, free_text, explained);
    rpc_request_defer(request);
    if (explain_begin(
            &explained->call,
            &(struct explain_request){
                .method = span_str(args->method),
                .url = span_of(args->url.proxy_url_val, args->url.proxy_url_len),
                .lines = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len),
                .last = args->last,
            }))
        answer(&explained->call);
    return FALSE;
}
