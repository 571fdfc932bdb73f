#include "server/service.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/units.h"

#define FEWEST_PAGES_A_SHARD 4096u
#define FEWEST_BYTES_A_SHARD ((uint64_t)64 << 20)

struct service *
service_of(const struct rpc_request *request)
{
    struct service *service = rpc_request_context(request);

    assert(service->magic == SERVICE_MAGIC);
    return service;
}

bool
service_is_admin(const struct service *service, const struct net_peer *peer)
{
    if (!peer->has_uid)
        return false;
    if (peer->uid == 0 || peer->uid == geteuid())
        return true;
    for (size_t i = 0; i < service->admin_count; i++)
        if (service->admins[i] == peer->uid)
            return true;
    return false;
}

bool
service_parse_policy(const char *text, struct policy_spec *spec, char *why, size_t why_size)
{
    if (!policy_parse(text, spec, why, why_size))
        return false;
    if (!spec->ops || !spec->ops->needs_future)
        return true;
    snprintf(why, why_size,
             "policy %s needs to know every request to come, which only a simulation does",
             spec->ops->name);
    return false;
}

const char *
service_describe_cache(const struct cache_config *config, char *text, size_t size)
{
    char policy[POLICY_MAX_TEXT], bytes[32];
    struct buf phrase;

    if (!config->policy.ops) {
        snprintf(text, size, "none, every request goes to its origin");
        return text;
    }
    buf_init(&phrase, size - 1);
    buf_printf(&phrase, "policy %s", policy_format(&config->policy, policy, sizeof(policy)));
    if (config->capacity_pages)
        buf_printf(&phrase, ", %llu URLs", (unsigned long long)config->capacity_pages);
    if (config->capacity_bytes)
        buf_printf(&phrase, ", %s",
                   units_format_bytes(config->capacity_bytes, bytes, sizeof(bytes)));
    buf_printf(&phrase, ", %u shard%s", config->shards, config->shards == 1 ? "" : "s");
    snprintf(text, size, "%s", buf_str(&phrase));
    buf_free(&phrase);
    return text;
}

unsigned
service_suitable_shards(unsigned workers, uint64_t capacity_urls, uint64_t capacity_bytes)
{
    uint64_t shards = workers < CACHE_MAX_SHARDS ? workers : CACHE_MAX_SHARDS;

    if (capacity_urls && capacity_urls / FEWEST_PAGES_A_SHARD < shards)
        shards = capacity_urls / FEWEST_PAGES_A_SHARD;
    if (capacity_bytes && capacity_bytes / FEWEST_BYTES_A_SHARD < shards)
        shards = capacity_bytes / FEWEST_BYTES_A_SHARD;
    return shards ? (unsigned)shards : 1;
}
