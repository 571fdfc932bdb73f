/*
 * The procedures of version 2 that change the server: purging and setting, for administrators,
 * over the AF_UNIX socket only.
 */
#include <string.h>

#include "proxy.h"
#include "proxy/control.h"
#include "server/log.h"
#include "server/service.h"

static char refusal[] =
    "only root, the daemon's own user and its --admin-uid may do this, over the AF_UNIX socket";

/* ---- PROXY_PURGE ----------------------------------------------------------------------------- */

static bool
purge_of(proxy_purge_kind wanted, enum control_purge *kind)
{
    switch (wanted) {
    case PROXY_PURGE_URL:
        *kind = CONTROL_PURGE_URL;
        return true;
    case PROXY_PURGE_PREFIX:
        *kind = CONTROL_PURGE_PREFIX;
        return true;
    case PROXY_PURGE_ALL:
        *kind = CONTROL_PURGE_ALL;
        return true;
    }
    return false;
}

bool_t
proxy_purge_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *call)
{
    static char unknown[] = "there is no such kind of purge";
    const struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(request);
    struct span url = span_of(args->url.proxy_url_val, args->url.proxy_url_len);
    enum control_purge kind;

    memset(result, 0, sizeof(*result));
    if (!service_is_admin(service, rpc_request_peer(request))) {
        result->status = PROXY_DENIED;
        result->proxy_purge_result_u.sentence = refusal;
    } else if (!purge_of(args->kind, &kind)) {
        result->status = PROXY_BAD_VALUE;
        result->proxy_purge_result_u.sentence = unknown;
    } else {
        result->status = PROXY_OK;
        result->proxy_purge_result_u.purged = control_purge(&service->proxy, kind, url);
    }
    return TRUE;
}

/* ---- PROXY_SET ------------------------------------------------------------------------------- */

bool_t
proxy_set_2_svc(proxy_set_args *args, proxy_set_result *result, struct svc_req *call)
{
    /* Encoded on this thread before it handles another call. */
    static _Thread_local char why[CONTROL_SENTENCE];
    const struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(request);
    const struct control_change change = {
        .policy = args->policy,
        .set_capacity = args->set_capacity,
        .capacity_pages = args->capacity_urls,
        .capacity_bytes = args->capacity_bytes,
        .shards = args->shards,
        .cold = args->cold,
    };
    char text[CONTROL_CACHE_TEXT];
    struct cache_config config;
    struct cache_stats stats;

    memset(result, 0, sizeof(*result));
    if (!service_is_admin(service, rpc_request_peer(request))) {
        result->status = PROXY_DENIED;
        result->proxy_set_result_u.sentence = refusal;
        return TRUE;
    }
    switch (control_configure(&service->proxy, &change, &config, why, sizeof(why))) {
    case CONTROL_OK:
        log_info("the cache is now: %s%s", control_describe_cache(&config, text, sizeof(text)),
                 args->cold ? "; emptied" : "");
        cache_get_stats(service->cache, &stats);
        result->status = PROXY_OK;
        result->proxy_set_result_u.kept = stats.pages;
        return TRUE;
    case CONTROL_BAD_VALUE:
        result->status = PROXY_BAD_VALUE;
        break;
    case CONTROL_NO_MEMORY:
        result->status = PROXY_INTERNAL;
        break;
    }
    result->proxy_set_result_u.sentence = why;
    return TRUE;
}
