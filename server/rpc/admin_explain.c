/* PROXY_EXPLAIN: what would be done with a request, and why. */
#include <stdlib.h>
#include <string.h>

#include "proxy.h"
#include "server/explain/explain_text.h"
#include "server/rpc/admin_caller.h"

/* An answer with its text. */
struct explained_text {
    proxy_explain_result result;
    struct buf text;
};

static void
free_text(void *held)
{
    struct explained_text *explained = held;

    buf_free(&explained->text);
    free(explained);
}

static void
explain(struct service *service, unsigned worker, const proxy_explain_args *args,
        struct explained_text *explained)
{
    const struct explain_request request = {
        .method = span_str(args->method),
        .url = span_of(args->url.proxy_url_val, args->url.proxy_url_len),
        .lines = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len),
        .last = args->last,
    };

    buf_init(&explained->text, PROXY_MAX_LINES - 1);
    explained->result.status =
        explain_write(service, worker, &request, &explained->text) ? PROXY_OK : PROXY_BAD_VALUE;
    explained->result.text = explained->text.data ? explained->text.data : "";
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
    explained = calloc(1, sizeof(*explained));
    if (!explained) {
        rpc_request_error(request, RPC_ERROR_SYSTEM_ERR);
        return FALSE;
    }
    explain(service, net_worker_number(rpc_request_worker(request)), args, explained);
    rpc_request_hold(request, free_text, explained);
    rpc_request_defer(request);
    rpc_request_reply(request, (xdrproc_t)xdr_proxy_explain_result, &explained->result);
    return FALSE;
}
