/*
 * The procedures of version 2 beside fetching: statistics for anyone; purging and setting for
 * administrators, over the socket only.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
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
static _Thread_local char policy_text[POLICY_MAX_TEXT];
static _Thread_local char policy_sentence[256];

/* ---- PROXY_STAT ------------------------------------------------------------------------------ */

bool_t
proxy_stat_2_svc(void *args, proxy_stats *result, struct svc_req *call)
{
    struct service *service = service_of(rpc_request_of(call->rq_xprt));
    uint64_t sums[COUNTERS];
    struct cache_config config;
    struct cache_stats cache;
    struct rpc_stats rpc;
    struct fetch_stats fetch;

    (void)args;
    memset(result, 0, sizeof(*result));
    counters_read(service->counters, sums);
    cache_get_config(service->cache, &config);
    cache_get_stats(service->cache, &cache);
    rpc_server_get_stats(service->rpc, &rpc);
    fetcher_get_stats(service->fetcher, &fetch);

    result->software = unconst("sunproxyd " SUNPROXY_VERSION);
    result->policy = unconst(policy_format(&config.policy, policy_text, sizeof(policy_text)));
    result->workers = service->workers;
    result->shards = config.shards;
    result->uptime_us = (uint64_t)(clock_monotonic_us() - service->started_us);
    result->capacity_urls = config.capacity_pages;
    result->capacity_bytes = config.capacity_bytes;
    result->pages = cache.pages;
    result->bytes = cache.bytes;
    result->requests = sums[COUNT_REQUESTS];
    result->hits = sums[COUNT_HITS];
    result->misses = sums[COUNT_MISSES];
    result->coalesced = sums[COUNT_COALESCED];
    result->bypasses = sums[COUNT_BYPASSES];
    result->failures = sums[COUNT_FAILURES];
    result->bytes_served = sums[COUNT_BYTES_SERVED];
    result->bytes_hit = sums[COUNT_BYTES_HIT];
    result->bytes_fetched = fetch.bytes;
    result->insertions = cache.insertions;
    result->evictions = cache.evictions;
    result->connections = rpc.net.connections;
    result->connections_total = rpc.net.connections_total;
    result->clients = rpc.net.clients.clients;
    result->calls_delayed = rpc.net.clients.calls_delayed;
    result->fetches_refused = rpc.net.clients.fetches_refused;
    result->refused_full = rpc.net.connections_refused[NET_REFUSED_FULL];
    result->refused_client = rpc.net.connections_refused[NET_REFUSED_CLIENT];
    result->refused_descriptors = rpc.net.connections_refused[NET_REFUSED_DESCRIPTORS];
    result->refused_memory = rpc.net.connections_refused[NET_REFUSED_MEMORY];
    result->connections_refused = result->refused_full + result->refused_client +
                                  result->refused_descriptors + result->refused_memory;
    result->calls = rpc.calls;
    result->calls_bad = rpc.calls_bad;
    result->fetches_active = fetch.active;
    result->fetches_waiting = fetch.waiting;
    result->fetches_queued = fetch.queued;
    result->fetches_displaced = fetch.displaced;
    result->log_lines_lost = service->access_log ? access_log_lost(service->access_log) : 0;
    result->memory_limit = service->memory.limit;
    result->memory_pages = memory_used(&service->memory, MEMORY_PAGES);
    result->memory_fetches = memory_used(&service->memory, MEMORY_FETCHES);
    result->memory_records = memory_used(&service->memory, MEMORY_RECORDS);
    result->memory_requests = memory_used(&service->memory, MEMORY_REQUESTS);
    result->memory_replies = memory_used(&service->memory, MEMORY_REPLIES);
    result->memory_refusals = memory_refusals(&service->memory);
    result->memory_reclaimed = atomic_load(&service->reclaimed.bytes);
    return TRUE;
}

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
        counters_rebase(service->counters);
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
