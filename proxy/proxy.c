#include "proxy/proxy.h"

#include <stdlib.h>

#include "base/clock.h"
#include "fetch/fetch.h"
#include "http/storing.h"

static int64_t
monotonic_us(void *context)
{
    (void)context;
    return clock_monotonic_us();
}

static int64_t
wall_us(void *context)
{
    (void)context;
    return clock_wall_us();
}

const struct origin_ops origin_fetcher = {fetcher_submit, fetcher_resume, fetcher_cancel};

const struct proxy_clock proxy_clock_system = {.monotonic_us = monotonic_us, .wall_us = wall_us};

struct http_storing_rules
proxy_storing_rules(const struct proxy *proxy, const struct request *request)
{
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    if (proxy->config.storing)
        rules = *proxy->config.storing;
    rules.cdn_cache_control = request_is_owned(request);
    rules.keeps_unstated = request->flags & REQUEST_PAGE_ONLY;
    return rules;
}

bool
proxy_init(struct proxy *proxy, const struct proxy_config *config)
{
    *proxy = (struct proxy){.config = *config};
    shedding_init(&proxy->shedding);
    proxy->scratch = calloc(config->workers, sizeof(*proxy->scratch));
    client_share_init_memory(&proxy->waiting, CLIENT_WAITING, config->account, MEMORY_REQUESTS);
    if (!proxy->scratch || pthread_mutex_init(&proxy->configuring, NULL) != 0) {
        free(proxy->scratch);
        return false;
    }
    proxy->scratch_count = config->workers;
    for (unsigned i = 0; i < config->workers; i++)
        buf_init(&proxy->scratch[i], OBJECT_MAX_VARIANT);
    return true;
}

void
proxy_destroy(struct proxy *proxy)
{
    for (unsigned i = 0; i < proxy->scratch_count; i++)
        buf_free(&proxy->scratch[i]);
    free(proxy->scratch);
    pthread_mutex_destroy(&proxy->configuring);
    shedding_free(&proxy->shedding);
}

size_t
proxy_shed(struct proxy *proxy, size_t bytes)
{
    return shedding_shed(&proxy->shedding, bytes, proxy_now_us(proxy));
}

/* ---- URLs ------------------------------------------------------------------------------------ */

static _Thread_local char spelling[FETCH_NORMAL_SIZE];

struct span
proxy_normal_url(const struct proxy *proxy, struct span url)
{
    return proxy->config.follows_http ? fetch_normal_url(url, spelling, sizeof(spelling)) : url;
}

struct span
proxy_normal_prefix(const struct proxy *proxy, struct span prefix)
{
    return proxy->config.follows_http ? fetch_normal_prefix(prefix, spelling, sizeof(spelling))
                                      : prefix;
}
