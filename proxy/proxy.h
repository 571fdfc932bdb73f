/*
 * The proxy: what handles requests from their lookup in the cache to the response, whatever
 * protocol clients speak. Requests are exchanges (exchange.h); objects that are not in the cache
 * are filled from an origin (origin_fill.h); control.h changes the cache while it runs.
 *
 * There is no state outside of struct proxy, and none of its own clock, network or log: the owner
 * gives them, a test scripts them.
 */
#ifndef SUNPROXY_PROXY_PROXY_H
#define SUNPROXY_PROXY_PROXY_H

#include <pthread.h>

#include "base/buf.h"
#include "base/client_share.h"
#include "base/memory_account.h"
#include "cache/cache.h"
#include "http/reason.h"
#include "proxy/backoff.h"
#include "proxy/failure.h"
#include "proxy/metrics.h"
#include "proxy/origin.h"
#include "proxy/shedding.h"

/* Both clocks in microseconds. [any thread] */
struct proxy_clock {
    int64_t (*monotonic_us)(void *context);
    int64_t (*wall_us)(void *context);
    void *context;
};

/* That of base/clock.h. */
extern const struct proxy_clock proxy_clock_system;

/* A fetch that has ended, for a log. Spans and text are valid during the call. */
struct proxy_fetched {
    struct span url;
    struct span member; /* the URL of the row's member that it was fetched from; empty: no row */
    int64_t total_us;
    enum failure failure; /* 0: none */
    const char *sentence; /* about the failure */
    bool repeated;        /* another member of the row is tried: origin_route.changed() says why */
    enum http_reason reason; /* why the response is not stored, or an expired one is used */
};

struct http_storing_rules;
struct tag_rules;

/* None of the parts is owned; all outlive the proxy. */
struct proxy_config {
    struct cache *cache;
    struct memory_account *account;
    struct metrics *metrics;
    struct origin origin;
    struct proxy_clock clock;
    bool follows_http;  /* responses are shared and stored as their origins allow (--freshness) */
    int64_t max_age_us; /* how long a page is a hit after its fetch; 0: not bounded */
    const struct http_storing_rules *storing; /* not owned. NULL: those of
                                                 http_storing_rules_init() */
    const char *const *tag_fields; /* names of fields with the tags of responses, NULL-ended;
                                      not owned. NULL: tags_default_fields */
    const struct tag_rules *tag_rules;   /* give tags to objects by their paths; NULL: none */
    const struct tag_rules *write_rules; /* name what else a write invalidates; NULL: nothing.
                                            Neither is owned */
    bool invalidates_early; /* writes invalidate before they are forwarded, too, also where no rule
                               concerns them: invalidation.h */
    uint64_t max_body; /* bytes of a body for a front that does not stream; a larger one fails */
    /*
     * Bytes of a body that is stored; larger ones are passed on. 0: for fronts that stream an
     * eighth of the cache's capacity if that is bounded in bytes, but at least max_body for
     * requests with REQUEST_PAGE_ONLY; otherwise max_body.
     */
    uint64_t max_page;
    uint64_t range_fill;   /* bytes of a body that is stored for a request for a part of it; 0: the
                              request is passed on, unless the whole is there */
    unsigned max_waiters;  /* requests that may wait for one object */
    unsigned workers;      /* threads that run exchanges: for control_suitable_shards() */
    bool shards_automatic; /* the number of shards follows the capacity */
    void (*fetched)(void *context, const struct proxy_fetched *fetched); /* NULL: not wanted.
                                                                            [fetcher's thread] */
    void *fetched_context;
};

struct proxy {
    struct proxy_config
        config; /* constant but for shards_automatic, which `configuring` protects */
    struct client_share waiting; /* the memory of waiting requests; any thread */
    struct shedding shedding;    /* the fetcher's thread's */
    struct backoff backoff;      /* of refreshes in the background; any thread */
    struct buf *scratch;         /* one for each worker: proxy_scratch() */
    unsigned scratch_count;
    pthread_mutex_t configuring; /* one change of the cache's configuration at a time */
};

/* False without memory. */
bool proxy_init(struct proxy *proxy, const struct proxy_config *config);

/* All exchanges and fetches have ended. */
void proxy_destroy(struct proxy *proxy);

/*
 * A buffer of the worker's for one computation on its thread, so that a hit allocates nothing;
 * holds at most OBJECT_MAX_VARIANT bytes.
 */
static inline struct buf *
proxy_scratch(struct proxy *proxy, unsigned worker)
{
    return &proxy->scratch[worker];
}

/*
 * The spelling of a URL, or of what URLs begin with, under which objects are cached:
 * fetch_normal_url() and fetch_normal_prefix(). It may be in memory of this thread until the next
 * call. With --freshness off it is the text as it was sent, as for a simulator, which compares URLs
 * byte by byte; the HTTP front, which makes URLs of their parts, has one spelling all the same.
 */
struct span proxy_normal_url(const struct proxy *proxy, struct span url);
struct span proxy_normal_prefix(const struct proxy *proxy, struct span prefix);

/* The rules for responses to a request. */
struct http_storing_rules proxy_storing_rules(const struct proxy *proxy,
                                              const struct request *request);

static inline int64_t
proxy_now_us(const struct proxy *proxy)
{
    return proxy->config.clock.monotonic_us(proxy->config.clock.context);
}

static inline int64_t
proxy_wall_s(const struct proxy *proxy)
{
    return proxy->config.clock.wall_us(proxy->config.clock.context) / 1000000;
}

/*
 * The account's hook for a charge that does not fit, where it is for pages or fetches: gives up
 * bodies (shedding.h). Returns the bytes given up. [fetcher's thread]
 */
size_t proxy_shed(struct proxy *proxy, size_t bytes);

#endif
