/*
 * The procedures of version 2 for administrators, over the socket only: purging and setting, and
 * the previews of both, which change nothing.
 */
#include <string.h>

#include "proxy.h"
#include "server/log.h"
#include "server/service.h"

static char not_for_you[] =
    "only root, the daemon's own user and its --admin-uid may do this, over the AF_UNIX socket";

static const char no_such_kind[] = "there is no such kind of purge";

static char *
unconst(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Answers are encoded on the thread that made them, before it makes another. */
static _Thread_local char policy_sentence[256];
static _Thread_local char policy_text[POLICY_MAX_TEXT];

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
    result->proxy_purge_result_u.sentence = unconst(no_such_kind);
    return TRUE;
}

bool_t
proxy_purge_preview_2_svc(proxy_purge_args *args, proxy_purge_result *result, struct svc_req *call)
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
    switch (args->kind) {
    case PROXY_PURGE_URL:
        result->proxy_purge_result_u.purged = cache_count(service->cache, url);
        return TRUE;
    case PROXY_PURGE_PREFIX:
        result->proxy_purge_result_u.purged = cache_count_prefix(service->cache, url);
        return TRUE;
    case PROXY_PURGE_ALL:
        result->proxy_purge_result_u.purged = cache_count_prefix(service->cache, span_of(NULL, 0));
        return TRUE;
    }
    result->status = PROXY_BAD_VALUE;
    result->proxy_purge_result_u.sentence = unconst(no_such_kind);
    return TRUE;
}

/* ---- PROXY_SET ------------------------------------------------------------------------------- */

static proxy_status
refuse(const char **why, const char *sentence)
{
    *why = sentence;
    return PROXY_BAD_VALUE;
}

/* The configuration after a PROXY_SET with these arguments. Under service->configuring. */
static proxy_status
plan(struct service *service, const proxy_set_args *args, struct cache_config *config,
     const char **why)
{
    cache_get_config(service->cache, config);
    if (args->policy[0] != '\0' && !service_parse_policy(args->policy, &config->policy,
                                                         policy_sentence, sizeof(policy_sentence)))
        return refuse(why, policy_sentence);
    if (args->set_capacity) {
        config->capacity_pages = args->capacity_urls;
        config->capacity_bytes = args->capacity_bytes;
        if (config->capacity_pages == 0 && config->capacity_bytes == 0)
            return refuse(why, "a capacity in URLs or in bytes must be more than 0");
    }
    if (args->shards > CACHE_MAX_SHARDS)
        return refuse(why, "a cache has at most 64 shards");
    if (args->shards)
        config->shards = args->shards;
    else if (service->shards_are_ours)
        config->shards = service_suitable_shards(service->workers, config->capacity_pages,
                                                 config->capacity_bytes);
    if (!cache_config_is_valid(config))
        return refuse(why, "the capacity is smaller than the number of shards");
    return PROXY_OK;
}

/* Under service->configuring. */
static proxy_status
apply(struct service *service, const proxy_set_args *args, const char **why)
{
    struct cache_config config;
    char text[SERVICE_CACHE_TEXT];
    proxy_status status = plan(service, args, &config, why);

    if (status != PROXY_OK)
        return status;
    switch (cache_configure(service->cache, &config)) {
    case CACHE_OK:
        break;
    case CACHE_BAD_CONFIG: /* ruled out by plan() */
    case CACHE_NO_MEMORY:
        *why = "out of memory; nothing has changed";
        return PROXY_INTERNAL;
    }
    if (args->shards)
        service->shards_are_ours = false;
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

bool_t
proxy_set_preview_2_svc(proxy_set_args *args, proxy_set_preview_result *result,
                        struct svc_req *call)
{
    const struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct service *service = service_of(rpc);
    proxy_set_state *state = &result->proxy_set_preview_result_u.state;
    const char *why = not_for_you;
    struct cache_config config;

    memset(result, 0, sizeof(*result));
    result->status = PROXY_DENIED;
    if (service_is_admin(service, rpc_request_peer(rpc))) {
        pthread_mutex_lock(&service->configuring);
        result->status = plan(service, args, &config, &why);
        pthread_mutex_unlock(&service->configuring);
    }
    if (result->status != PROXY_OK) {
        result->proxy_set_preview_result_u.sentence = unconst(why);
        return TRUE;
    }
    state->policy = unconst(policy_format(&config.policy, policy_text, sizeof(policy_text)));
    state->capacity_urls = config.capacity_pages;
    state->capacity_bytes = config.capacity_bytes;
    state->shards = config.shards;
    return TRUE;
}
