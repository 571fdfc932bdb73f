#include "proxy/control.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/units.h"
#include "proxy/purging.h"

#define FEWEST_PAGES_A_SHARD 4096u
#define FEWEST_BYTES_A_SHARD ((uint64_t)64 << 20)

/*
 * What a purge names, in the spelling under which objects are cached; a tag is no URL. False:
 * nothing.
 */
static bool
find_names(const struct proxy *proxy, enum control_purge kind, struct span url, enum cache_by *by,
           struct span *name)
{
    switch (kind) {
    case CONTROL_PURGE_URL:
        *by = CACHE_BY_URL;
        *name = proxy_normal_url(proxy, url);
        return true;
    case CONTROL_PURGE_PREFIX:
        *by = CACHE_BY_PREFIX;
        *name = proxy_normal_prefix(proxy, url);
        return name->len > 0;
    case CONTROL_PURGE_TAG:
        *by = CACHE_BY_TAG;
        *name = url;
        return true;
    case CONTROL_PURGE_ALL:
        break;
    }
    *by = CACHE_BY_PREFIX;
    *name = span_of(NULL, 0);
    return true;
}

uint64_t
control_purge_marked(struct proxy *proxy, enum control_purge kind, bool soft, struct span url,
                     struct purging_marks *marks)
{
    struct purging purging = {.fate = soft ? CACHE_EXPIRED : CACHE_REMOVED, .marks = marks};

    if (kind == CONTROL_PURGE_ALL)
        return soft ? 0 : purging_remove_all(proxy, marks);
    if (!find_names(proxy, kind, url, &purging.by, &purging.name))
        return 0;
    return purging_apply(proxy, &purging);
}

uint64_t
control_purge(struct proxy *proxy, enum control_purge kind, struct span url)
{
    return control_purge_marked(proxy, kind, false, url, NULL);
}

uint64_t
control_expire(struct proxy *proxy, enum control_purge kind, struct span url)
{
    return control_purge_marked(proxy, kind, true, url, NULL);
}

uint64_t
control_count(struct proxy *proxy, enum control_purge kind, struct span url)
{
    struct span name;
    enum cache_by by;

    if (!find_names(proxy, kind, url, &by, &name))
        return 0;
    return cache_purge(proxy->config.cache,
                       &(struct cache_purge){.by = by, .name = name, .fate = CACHE_COUNTED});
}

bool
control_parse_policy(const char *text, struct policy_spec *spec, char *why, size_t why_size)
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

unsigned
control_suitable_shards(unsigned workers, uint64_t capacity_pages, uint64_t capacity_bytes)
{
    uint64_t shards = workers < CACHE_MAX_SHARDS ? workers : CACHE_MAX_SHARDS;

    if (capacity_pages && capacity_pages / FEWEST_PAGES_A_SHARD < shards)
        shards = capacity_pages / FEWEST_PAGES_A_SHARD;
    if (capacity_bytes && capacity_bytes / FEWEST_BYTES_A_SHARD < shards)
        shards = capacity_bytes / FEWEST_BYTES_A_SHARD;
    return shards ? (unsigned)shards : 1;
}

const char *
control_describe_cache(const struct cache_config *config, char *text, size_t size)
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

/* ---- changing the configuration -------------------------------------------------------------- */

static enum control_status
refuse(enum control_status status, const char *sentence, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s", sentence);
    return status;
}

/* The configuration after the change. Under proxy->configuring. */
static enum control_status
plan(struct proxy *proxy, const struct control_change *change, struct cache_config *config,
     char *why, size_t why_size)
{
    cache_get_config(proxy->config.cache, config);
    if (change->policy && change->policy[0] != '\0' &&
        !control_parse_policy(change->policy, &config->policy, why, why_size))
        return CONTROL_BAD_VALUE;
    if (change->set_capacity) {
        config->capacity_pages = change->capacity_pages;
        config->capacity_bytes = change->capacity_bytes;
        if (config->capacity_pages == 0 && config->capacity_bytes == 0)
            return refuse(CONTROL_BAD_VALUE, "a capacity in URLs or in bytes must be more than 0",
                          why, why_size);
    }
    if (change->shards > CACHE_MAX_SHARDS && change->shards != CONTROL_SHARDS_AUTOMATIC)
        return refuse(CONTROL_BAD_VALUE, "a cache has at most 64 shards", why, why_size);
    if (change->shards && change->shards != CONTROL_SHARDS_AUTOMATIC)
        config->shards = change->shards;
    else if (change->shards || proxy->config.shards_automatic)
        config->shards = control_suitable_shards(proxy->config.workers, config->capacity_pages,
                                                 config->capacity_bytes);
    if (!cache_config_is_valid(config))
        return refuse(CONTROL_BAD_VALUE, "the capacity is smaller than the number of shards", why,
                      why_size);
    return CONTROL_OK;
}

/* Under proxy->configuring. */
static enum control_status
configure(struct proxy *proxy, const struct control_change *change, struct cache_config *config,
          char *why, size_t why_size)
{
    struct cache *cache = proxy->config.cache;
    enum control_status status = plan(proxy, change, config, why, why_size);

    if (status != CONTROL_OK)
        return status;
    if (cache_configure(cache, config) != CACHE_OK)
        return refuse(CONTROL_NO_MEMORY, "out of memory; nothing has changed", why, why_size);
    if (change->shards)
        proxy->config.shards_automatic = change->shards == CONTROL_SHARDS_AUTOMATIC;
    if (change->cold) {
        purging_remove_all(proxy, NULL);
        cache_reset_stats(cache);
        metrics_rebase(proxy->config.metrics);
    }
    return CONTROL_OK;
}

enum control_status
control_configure(struct proxy *proxy, const struct control_change *change,
                  struct cache_config *config, char *why, size_t why_size)
{
    enum control_status status;

    pthread_mutex_lock(&proxy->configuring);
    status = configure(proxy, change, config, why, why_size);
    pthread_mutex_unlock(&proxy->configuring);
    return status;
}

enum control_status
control_preview(struct proxy *proxy, const struct control_change *change,
                struct cache_config *config, char *why, size_t why_size)
{
    enum control_status status;

    pthread_mutex_lock(&proxy->configuring);
    status = plan(proxy, change, config, why, why_size);
    pthread_mutex_unlock(&proxy->configuring);
    return status;
}

bool
control_shards_are_automatic(struct proxy *proxy)
{
    bool automatic;

    pthread_mutex_lock(&proxy->configuring);
    automatic = proxy->config.shards_automatic;
    pthread_mutex_unlock(&proxy->configuring);
    return automatic;
}
