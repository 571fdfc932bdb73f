#include "client/admin.h"

#include <string.h>
#include <sysexits.h>

#include "client/exit_status.h"
#include "cli/output.h"

static int
call(struct rpc_client *client, int64_t timeout_us, uint32_t procedure, xdrproc_t encode,
     const void *args, xdrproc_t decode, void *result)
{
    enum rpc_client_status status =
        rpc_client_call_wait(client, PROXY_FETCHPROG, PROXY_VERS2, procedure, encode,
                             (void *)(uintptr_t)args, decode, result, timeout_us);

    if (status != RPC_CLIENT_OK)
        output_complain("%s", rpc_status_sentence(status));
    return exit_of_rpc(status);
}

int
admin_stat(struct rpc_client *client, int64_t timeout_us, proxy_stats *stats)
{
    memset(stats, 0, sizeof(*stats));
    return call(client, timeout_us, PROXY_STAT, NULL, NULL, (xdrproc_t)xdr_proxy_stats, stats);
}

void
admin_free_stats(proxy_stats *stats)
{
    xdr_free((xdrproc_t)xdr_proxy_stats, stats);
    memset(stats, 0, sizeof(*stats));
}

int
admin_purge(struct rpc_client *client, int64_t timeout_us, const proxy_purge_args *args,
            bool preview, struct admin_purged *purged)
{
    proxy_purge_result result = {.status = PROXY_OK};
    int status =
        call(client, timeout_us, preview ? PROXY_PURGE_PREVIEW : PROXY_PURGE,
             (xdrproc_t)xdr_proxy_purge_args, args, (xdrproc_t)xdr_proxy_purge_result, &result);

    if (status != EX_OK)
        return status;
    *purged = (struct admin_purged){.here = result.status == PROXY_PURGED_HERE,
                                    .more = result.status == PROXY_PURGED_MORE};
    if (result.status == PROXY_OK || purged->more)
        purged->count = result.proxy_purge_result_u.purged;
    else
        output_complain("%s", result.proxy_purge_result_u.sentence);
    status = purged->here ? EX_OK : exit_of_proxy(result.status);
    xdr_free((xdrproc_t)xdr_proxy_purge_result, &result);
    return status;
}

int
admin_reload(struct rpc_client *client, int64_t timeout_us, char **text)
{
    proxy_reload_result result = {.status = PROXY_OK};
    int status = call(client, timeout_us, PROXY_RELOAD, NULL, NULL,
                      (xdrproc_t)xdr_proxy_reload_result, &result);

    *text = NULL;
    if (status != EX_OK)
        return status;
    if (result.status == PROXY_OK) {
        *text = result.text;
        return EX_OK;
    }
    for (char *rest = result.text, *line; (line = strsep(&rest, "\n"));)
        output_complain("%s", line);
    status = result.status == PROXY_BAD_VALUE ? EX_CONFIG : exit_of_proxy(result.status);
    xdr_free((xdrproc_t)xdr_proxy_reload_result, &result);
    return status;
}

int
admin_origin(struct rpc_client *client, int64_t timeout_us, const proxy_origin_args *args,
             proxy_origin_result *result)
{
    int status;

    memset(result, 0, sizeof(*result));
    status = call(client, timeout_us, PROXY_ORIGIN, (xdrproc_t)xdr_proxy_origin_args, args,
                  (xdrproc_t)xdr_proxy_origin_result, result);
    if (status != EX_OK || result->status == PROXY_OK)
        return status;
    output_complain("%s", result->proxy_origin_result_u.sentence);
    status = exit_of_proxy(result->status);
    xdr_free((xdrproc_t)xdr_proxy_origin_result, result);
    return status;
}

int
admin_set(struct rpc_client *client, int64_t timeout_us, const proxy_set_args *args, uint64_t *kept)
{
    proxy_set_result result = {.status = PROXY_OK};
    int status = call(client, timeout_us, PROXY_SET, (xdrproc_t)xdr_proxy_set_args, args,
                      (xdrproc_t)xdr_proxy_set_result, &result);

    if (status != EX_OK)
        return status;
    if (result.status == PROXY_OK)
        *kept = result.proxy_set_result_u.kept;
    else
        output_complain("%s", result.proxy_set_result_u.sentence);
    status = exit_of_proxy(result.status);
    xdr_free((xdrproc_t)xdr_proxy_set_result, &result);
    return status;
}

int
admin_set_preview(struct rpc_client *client, int64_t timeout_us, const proxy_set_args *args,
                  proxy_set_state *state)
{
    proxy_set_preview_result result = {.status = PROXY_OK};
    int status = call(client, timeout_us, PROXY_SET_PREVIEW, (xdrproc_t)xdr_proxy_set_args, args,
                      (xdrproc_t)xdr_proxy_set_preview_result, &result);

    if (status != EX_OK)
        return status;
    if (result.status == PROXY_OK) {
        *state = result.proxy_set_preview_result_u.state;
        return EX_OK;
    }
    output_complain("%s", result.proxy_set_preview_result_u.sentence);
    status = exit_of_proxy(result.status);
    xdr_free((xdrproc_t)xdr_proxy_set_preview_result, &result);
    return status;
}

void
admin_free_state(proxy_set_state *state)
{
    xdr_free((xdrproc_t)xdr_proxy_set_state, state);
}

int
admin_explain(struct rpc_client *client, int64_t timeout_us, const proxy_explain_args *args,
              char **text)
{
    proxy_explain_result result = {.status = PROXY_OK};
    int status = call(client, timeout_us, PROXY_EXPLAIN, (xdrproc_t)xdr_proxy_explain_args, args,
                      (xdrproc_t)xdr_proxy_explain_result, &result);

    *text = NULL;
    if (status != EX_OK)
        return status;
    if (result.status == PROXY_OK) {
        *text = result.text;
        return EX_OK;
    }
    output_complain("%s", result.text);
    status = exit_of_proxy(result.status);
    xdr_free((xdrproc_t)xdr_proxy_explain_result, &result);
    return status;
}
