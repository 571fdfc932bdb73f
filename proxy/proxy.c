#include "proxy/proxy.h"

#include <stdlib.h>

#include "base/clock.h"
#include "http/storing.h"
#include "metrics/recent.h"
#include "proxy/proxy_rules.h"
#include "rules/rules.h"

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

uint64_t
proxy_largest_page(const struct proxy *proxy, const struct request *request)
{
    const struct proxy_config *config = &proxy->config;
    const struct proxy_rules *rules = proxy_rules_of(proxy, request);
    struct cache_config cache;
    uint64_t share;

    if (rules->max_page)
        return rules->max_page;
    if (!request_streams(request))
        return config->max_body;
    cache_get_config(config->cache, &cache);
    share = cache.capacity_bytes / 8;
    /* Those that version 1 of RPC can carry are stored in small caches, too: studies replay traces
     * of any pages. */
    if (request->flags & REQUEST_PAGE_ONLY && share < config->max_body)
        return config->max_body;
    return share ? share : config->max_body;
}

struct http_storing_rules
proxy_storing_rules(const struct proxy *proxy, const struct request *request,
                    const struct rules_response *response)
{
    const struct proxy_rules *in_force = proxy_rules_of(proxy, request);
    struct http_storing_rules rules;

    http_storing_rules_init(&rules);
    if (in_force->storing)
        rules = *in_force->storing;
    if (in_force->table)
        rules_set_storing(in_force->table, response, &rules);
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
    proxy->recent = recent_create(config->workers);
    if (!proxy->scratch || !proxy->recent ||
        pthread_mutex_init(&proxy->configuring, NULL) != 0) {
        free(proxy->scratch);
        recent_free(proxy->recent);
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
    recent_free(proxy->recent);
    sketch_free(&proxy->at_peers);
    pthread_mutex_destroy(&proxy->configuring);
    shedding_free(&proxy->shedding);
}

size_t
proxy_shed(struct proxy *proxy, size_t bytes)
{
    return shedding_shed(&proxy->shedding, bytes, proxy_now_us(proxy));
}

/* ---- refreshes that fail --------------------------------------------------------------------- */

bool
proxy_backs_off(const struct proxy *proxy, uint64_t key)
{
    const unsigned i = key % BACKOFF_SLOTS;

    return atomic_load(&proxy->backoff.slots[i].delay_us) != 0 &&
           atomic_load(&proxy->backoff.slots[i].key) == key &&
           proxy_now_us(proxy) < atomic_load(&proxy->backoff.slots[i].until_us);
}

void
proxy_back_off(struct proxy *proxy, uint64_t key)
{
    const unsigned i = key % BACKOFF_SLOTS;
    int64_t delay_us = BACKOFF_FIRST_US;

    if (atomic_load(&proxy->backoff.slots[i].key) == key)
        delay_us = 2 * atomic_load(&proxy->backoff.slots[i].delay_us);
    if (delay_us < BACKOFF_FIRST_US)
        delay_us = BACKOFF_FIRST_US;
    if (delay_us > BACKOFF_LONGEST_US)
        delay_us = BACKOFF_LONGEST_US;
    atomic_store(&proxy->backoff.slots[i].key, key);
    atomic_store(&proxy->backoff.slots[i].until_us, proxy_now_us(proxy) + delay_us);
    atomic_store(&proxy->backoff.slots[i].delay_us, delay_us);
}

void
proxy_end_backoff(struct proxy *proxy, uint64_t key)
{
    const unsigned i = key % BACKOFF_SLOTS;

    if (atomic_load(&proxy->backoff.slots[i].key) == key)
        atomic_store(&proxy->backoff.slots[i].delay_us, 0);
}

/* ---- failures -------------------------------------------------------------------------------- */

enum failure
failure_of_fetch(enum fetch_error error)
{
    static const enum failure failures[] = {
        [FETCH_BAD_URL] = FAILURE_BAD_URL,
        [FETCH_BAD_HEADERS] = FAILURE_BAD_FIELDS,
        [FETCH_BAD_METHOD] = FAILURE_BAD_FIELDS,
        [FETCH_DENIED] = FAILURE_DENIED,
        [FETCH_RESOLVE_FAILED] = FAILURE_RESOLVE,
        [FETCH_CONNECT_FAILED] = FAILURE_CONNECT,
        [FETCH_TLS_FAILED] = FAILURE_TLS,
        [FETCH_TIMED_OUT] = FAILURE_TIMEOUT,
        [FETCH_CONNECT_TIMED_OUT] = FAILURE_CONNECT_TIMEOUT,
        [FETCH_ORIGIN_BROKE] = FAILURE_ORIGIN,
        [FETCH_TOO_LARGE] = FAILURE_TOO_LARGE,
        [FETCH_OVERLOADED] = FAILURE_OVERLOADED,
        [FETCH_DISPLACED] = FAILURE_OVERLOADED,
        [FETCH_STOPPING] = FAILURE_STOPPING,
        [FETCH_INTERNAL] = FAILURE_INTERNAL,
        [FETCH_BUSY] = FAILURE_OVERLOADED,
        [FETCH_DOWN] = FAILURE_DOWN,
        /* A body fails when its client has left, and a fetch that the proxy cancels has failed for
         * its waiters before. */
        [FETCH_BODY_FAILED] = FAILURE_INTERNAL,
        [FETCH_CANCELLED] = FAILURE_INTERNAL,
    };

    return failures[error];
}

static const struct {
    const char *word;
    const char *for_client; /* NULL: what is said about the failure */
} failures[] = {
    [FAILURE_BAD_URL] = {"bad_url", NULL},
    [FAILURE_BAD_FIELDS] = {"bad_headers", NULL},
    [FAILURE_DENIED] = {"denied", "the proxy may not fetch from this address or port (its operator "
                                  "allows it with --allow-net or --allow-port)"},
    [FAILURE_RESOLVE] = {"resolve_failed", "the name of the origin cannot be resolved"},
    [FAILURE_CONNECT] = {"connect_failed", "the origin does not accept connections"},
    [FAILURE_TLS] = {"tls_failed", "TLS with the origin has failed"},
    [FAILURE_TIMEOUT] = {"timed_out", "the origin took too long to respond"},
    [FAILURE_ORIGIN] = {"origin_broke", "the origin has not sent a valid response"},
    [FAILURE_TOO_LARGE] = {"too_large", "the response is larger than the proxy takes"},
    [FAILURE_OVERLOADED] = {"overloaded", NULL},
    [FAILURE_STOPPING] = {"stopping", NULL},
    [FAILURE_INTERNAL] = {"internal", NULL},
    [FAILURE_DOWN] = {"down", NULL},
    [FAILURE_CANCELLED] = {"cancelled", NULL},
    [FAILURE_NOT_CACHED] = {"not_cached", NULL},
    [FAILURE_CONNECT_TIMEOUT] = {"timed_out", "connecting to the origin took too long"},
    [FAILURE_REDIRECT] = {"bad_redirect",
                          "the origin redirects to where the proxy does not follow"},
};

struct span
failure_for_client(enum failure failure, struct span sentence)
{
    const char *instead = failures[failure].for_client;

    return instead ? span_str(instead) : sentence;
}

const char *
failure_word(enum failure failure)
{
    return failures[failure].word;
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
