#include "client/replay/replay_cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/capacity.h"
#include "cli/output.h"
#include "client/admin.h"
#include "client/server_stats.h"

/* At the end of a replay, perhaps after Ctrl-C, a user waits for this. */
#define LONGEST_RESTORE_US ((int64_t)10 * 1000000)

static int
ask(const struct replay_cache *cache, struct rpc_client *client, struct replay_cache_state *state)
{
    proxy_stats stats;
    int status = admin_stat(client, cache->timeout_us, &stats);

    if (status != EX_OK)
        return status;
    snprintf(state->policy, sizeof(state->policy), "%s", server_stats_fact(&stats, "policy"));
    state->capacity_urls = server_stats_value(&stats, "cache_capacity_pages");
    state->capacity_bytes = server_stats_value(&stats, "cache_capacity_bytes");
    state->shards = (unsigned)server_stats_value(&stats, "cache_shards");
    state->automatic = strcmp(server_stats_fact(&stats, "shard_choice"), "automatic") == 0;
    admin_free_stats(&stats);
    return EX_OK;
}

static int
refuse_connection(const struct replay_cache *cache)
{
    output_complain("%s: %s", cache->server->name, strerror(errno));
    return EX_UNAVAILABLE;
}

static int
set(struct replay_cache *cache, struct rpc_client *client)
{
    static char as_it_is[] = "";
    proxy_set_args args = {
        .policy = cache->policy ? (char *)(uintptr_t)cache->policy : as_it_is,
        .set_capacity = cache->set_capacity,
        .capacity_urls = cache->capacity_urls,
        .capacity_bytes = cache->capacity_bytes,
        .shards = 1,
        .cold = TRUE,
    };
    uint64_t kept;
    int status = cache->changed ? EX_OK : ask(cache, client, &cache->before);

    if (status != EX_OK)
        return status;
    status = admin_set(client, cache->timeout_us, &args, &kept);
    /* A call without an answer may have been carried out; one that was refused was not. */
    if (status != EX_NOPERM && status != EX_USAGE)
        cache->changed = true;
    return status;
}

int
replay_cache_set(struct replay_cache *cache)
{
    struct rpc_client *client;
    int status;

    if (!cache->change)
        return EX_OK;
    client = server_connect(cache->server, cache->timeout_us);
    if (!client)
        return refuse_connection(cache);
    status = set(cache, client);
    rpc_client_close(client);
    return status;
}

int
replay_cache_describe(const struct replay_cache *cache, struct replay_subject *subject)
{
    struct rpc_client *client = server_connect(cache->server, cache->timeout_us);
    struct replay_cache_state now = {.shards = 0};
    int status;

    if (!client)
        return refuse_connection(cache);
    status = ask(cache, client, &now);
    rpc_client_close(client);
    memcpy(subject->policy, now.policy, sizeof(subject->policy));
    subject->capacity_urls = now.capacity_urls;
    subject->capacity_bytes = now.capacity_bytes;
    return status;
}

int
replay_cache_restore(struct replay_cache *cache)
{
    struct replay_cache_state *before = &cache->before;
    int64_t timeout_us =
        cache->timeout_us < LONGEST_RESTORE_US ? cache->timeout_us : LONGEST_RESTORE_US;
    proxy_set_args args = {
        .policy = before->policy,
        .set_capacity = TRUE,
        .capacity_urls = before->capacity_urls,
        .capacity_bytes = before->capacity_bytes,
        .shards = before->automatic ? PROXY_SHARDS_AUTOMATIC : before->shards,
    };
    struct rpc_client *client;
    char capacity[64];
    uint64_t kept;
    int status = EX_UNAVAILABLE;

    if (!cache->changed)
        return EX_OK;
    client = server_connect(cache->server, timeout_us);
    if (client)
        status = admin_set(client, timeout_us, &args, &kept);
    else
        refuse_connection(cache);
    rpc_client_close(client);
    if (status == EX_OK)
        cache->changed = false;
    else
        output_complain("%s was not restored: it had policy %s, %s, shards: %u",
                        cache->server->name, before->policy,
                        capacity_format(before->capacity_urls, before->capacity_bytes, capacity,
                                        sizeof(capacity)),
                        before->shards);
    return status;
}
