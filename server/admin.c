/*
 * The procedures of version 2 for administrators, over the socket only: purging and setting.
 */
#include <string.h>

#include "proxy.h"
#include "server/log.h"
#include "server/service.h"

static char not_for_you[] =
    "only root, the daemon's own user and its --admin-uid may do this, over the AF_UNIX socket";

static char *
unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Answers are encoded on the thread that made them, before it makes another. */
static _Thread_local char policy_sentence[256];

/* ---- PROXY_PURGE ----------------------------------------------------------------------------- */

bool_t
proxy_purge_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *call)
{
    const struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(rpc);
    struct span url = span_of(args->url.proxy_url_val, args->url.proxy_url_len);

    memset(result, 0, sizeof(*result));
    if (!service_is_admin(service, rpc_request_peer(rpc))) {
        result->status = PROXY_DENIED;
        result->proxy_purge_result_u.sentence = not_for_you;
        return TRUE;
    }
    result->status = PROXY_OK;
    /* What is on its way first: it then either is in the cache, or does not get there. */
    switch (args->kind) {
    case PROXY_PURGE_URL:
        flights_call_off(service->flights, url);
        result->proxy_purge_result_u.purged = cache_purge(service->cache, url);
        return TRUE;
    case PROXY_PURGE_PREFIX:
        flights_call_off_prefix(service->flights, url);
        result->proxy_purge_result_u.purged = cache_purge_prefix(service->cache, url);
        return TRUE;
    case PROXY_PURGE_ALL:
        flights_call_off_prefix(service->flights, span_of(NULL, 0));
        result->proxy_purge_result_u.purged = cache_purge_all(service->cache);
        return TRUE;
    }
    result->status = PROXY_BAD_VALUE;
    result->proxy_purge_result_u.sentence = unconst("there is no such kind of purge");
    return TRUE;
}

/* ---- PROXY_SET ------------------------------------------------------------------------------- */

static proxy_status
refuse(const char **why, const char *sentence)
{
    *why = sentence;
    return PROXY_BAD_VALUE;
}

/* Under service->configuring. */
static proxy_status
apply(struct service *service, const proxy_set_args *args, const char **why)
{
    bool shards_are_ours = service->shards_are_ours && args->shards == 0;
    struct cache_config config;
    char text[SERVICE_CACHE_TEXT];

    cache_get_config(service->cache, &config);
    if (args->policy[0] != '\0' && !service_parse_policy(args->policy, &config.policy,
                                                         policy_sentence, sizeof(policy_sentence)))
        return refuse(why, policy_sentence);
    if (args->set_capacity) {
        config.capacity_pages = args->capacity_urls;
        config.capacity_bytes = args->capacity_bytes;
        if (config.capacity_pages == 0 && config.capacity_bytes == 0)
            return refuse(why, "a capacity in URLs or in bytes must be more than 0");
    }
    if (args->shards > CACHE_MAX_SHARDS)
        return refuse(why, "a cache has at most 64 shards");
    if (args->shards)
        config.shards = args->shards;
    else if (shards_are_ours)
        config.shards =
            service_suitable_shards(service->workers, config.capacity_pages, config.capacity_bytes);
    switch (cache_configure(service->cache, &config)) {
    case CACHE_OK:
        break;
    case CACHE_BAD_CONFIG:
        return refuse(why, "the capacity is smaller than the number of shards");
    case CACHE_NO_MEMORY:
        *why = "out of memory; nothing has changed";
        return PROXY_INTERNAL;
    }
    service->shards_are_ours = shards_are_ours;
    if (args->cold) {
        flights_call_off_prefix(service->flights, span_of(NULL, 0));
        cache_purge_all(service->cache);
        cache_reset_stats(service->cache);
        metrics_rebase(service->metrics);
    }
    log_info("the cache is now: %s%s", service_describe_cache(&config, text, sizeof(text)),
             args->cold ? "; emptied" : "");
    return PROXY_OK;
}

bool_t
proxy_set_2_svc(proxy_set_args *args, proxy_set_result *result, struct svc_req *call)
{
    const struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(rpc);
    const char *why = not_for_you;
    struct cache_stats stats;

    memset(result, 0, sizeof(*result));
    result->status = PROXY_DENIED;
    if (service_is_admin(service, rpc_request_peer(rpc))) {
        pthread_mutex_lock(&service->configuring);
        result->status = apply(service, args, &why);
        pthread_mutex_unlock(&service->configuring);
    }
    if (result->status == PROXY_OK) {
        cache_get_stats(service->cache, &stats);
        result->proxy_set_result_u.kept = stats.pages;
    } else {
        result->proxy_set_result_u.sentence = unconst(why);
    }
    return TRUE;
}
