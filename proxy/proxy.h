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
#include "fetch/fetch.h"
#include "http/reason.h"
#include "metrics/metrics.h"
#include "policies/sketch.h"
#include "proxy/shedding.h"

/* ---- failures -------------------------------------------------------------------------------- */

/*
 * Why a request gets no response from an origin. The numbers are this header's own: each front
 * translates them to its protocol.
 */
enum failure {
    FAILURE_BAD_URL = 1,
    FAILURE_BAD_FIELDS, /* of the request, or its method */
    FAILURE_DENIED,
    FAILURE_RESOLVE,
    FAILURE_CONNECT,
    FAILURE_TLS,
    FAILURE_TIMEOUT,
    FAILURE_ORIGIN,
    FAILURE_TOO_LARGE,
    FAILURE_OVERLOADED, /* a limit of the proxy; the request may be repeated */
    FAILURE_STOPPING,
    FAILURE_INTERNAL,
    FAILURE_DOWN,            /* all members of the row are down; the request may be repeated */
    FAILURE_CANCELLED,       /* exchange_cancel(); of a fetch: no request waited for it any more */
    FAILURE_NOT_CACHED,      /* the request may not cause a fetch: RFC 9111 section 5.2.1.7 */
    FAILURE_CONNECT_TIMEOUT, /* a FAILURE_TIMEOUT before there was a connection */
    FAILURE_REDIRECT,        /* of a front that follows redirects; no fetch ends with it */
};

/* A sentence for people about a failure is shorter than this. */
#define FAILURE_SENTENCE 384

/* The failure of a fetch that ended with `error`, which is not FETCH_OK. */
enum failure failure_of_fetch(enum fetch_error error);

/*
 * The sentence for a client about a failure. What is said about an origin may name hosts and
 * addresses of the inside, or those that a name has there: it is for logs, and a client gets a
 * sentence on the kind of failure. What concerns the client's own request or the proxy's limits is
 * `sentence` itself.
 */
struct span failure_for_client(enum failure failure, struct span sentence);

/* The word for logs: "denied", "timed_out", as in the JSON of the client. */
const char *failure_word(enum failure failure);

/* ---- what it works with ---------------------------------------------------------------------- */

/*
 * Where objects are fetched from: the fetcher, or a script in tests. The contract of the functions
 * is that of the fetcher's functions of the same names; call-backs of all fetches come on one
 * thread, here called the fetcher's.
 */
struct origin_ops {
    bool (*submit)(struct fetcher *fetcher, const struct request *request,
                   const struct fetch_sink *sink, void *context, uint64_t *id);
    void (*resume)(struct fetcher *fetcher, uint64_t id);
    void (*cancel)(struct fetcher *fetcher, uint64_t id);
};

struct origin {
    const struct origin_ops *ops;
    struct fetcher *context; /* of a script any address */
};

/* The fetcher's functions. */
extern const struct origin_ops origin_fetcher;

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
    bool repeated;        /* another member of the row is tried */
    unsigned status;      /* of the response; 0: none has come */
    enum http_reason reason; /* why the response is not stored, or an expired one is used */
};

/* What a write has purged, for other caches with the same pages. Spans last as long as the call. */
struct proxy_purged {
    enum cache_by by;
    struct span name;
    struct span scope; /* the origin whose URLs its tags concern, with a slash; empty: all */
};

struct http_storing_rules;
struct proxy_rules;
struct recent;
struct rules_response;
struct source;

#define PROXY_SOURCES 2u

/* None of the parts is owned; all outlive the proxy. */
struct proxy_config {
    struct cache *cache;
    struct source *sources[PROXY_SOURCES + 1]; /* behind the cache (store/source.h), in the order
                                                  in which they are asked, and NULL */
    struct memory_account *account;
    struct metrics *metrics;
    struct origin origin;
    struct proxy_clock clock;
    bool follows_http;  /* responses are shared and stored as their origins allow (--freshness) */
    const struct proxy_rules *rules; /* of requests that have none of their own; not owned. NULL:
                                        there are none */
    uint64_t max_body; /* bytes of a body for a front that does not stream; a larger one fails */
    unsigned workers;      /* threads that run exchanges: for control_suitable_shards() */
    bool shards_automatic; /* the number of shards follows the capacity */
    void (*fetched)(void *context, const struct proxy_fetched *fetched); /* NULL: not wanted.
                                                                            [fetcher's thread] */
    void *fetched_context;
    void (*purged)(void *context, const struct proxy_purged *purged); /* NULL: not wanted. [any
                                                                         thread] */
    void *purged_context;
};

#define BACKOFF_SLOTS 256u
#define BACKOFF_FIRST_US ((int64_t)1000000)
#define BACKOFF_LONGEST_US ((int64_t)64 * 1000000)

/*
 * Which URLs are not refreshed in the background for a while, because that has failed: a second
 * after the first failure, twice as long after each further one, up to a minute. A table of fixed
 * size that forgets URLs whose slots collide, which costs a refresh too many or too few. All zero:
 * nothing has failed.
 */
struct backoff {
    struct {
        _Atomic uint64_t key;
        _Atomic int64_t until_us; /* monotonic clock */
        _Atomic int64_t delay_us; /* the last one; 0: the slot is free */
    } slots[BACKOFF_SLOTS];
};

struct proxy {
    struct proxy_config
        config; /* constant but for shards_automatic, which `configuring` protects */
    struct client_share waiting; /* the memory of waiting requests; any thread */
    struct shedding shedding;    /* the fetcher's thread's */
    struct backoff backoff;      /* of refreshes in the background; any thread */
    /*
     * One for each worker, for a computation on its thread, so that a hit allocates nothing; of
     * at most OBJECT_MAX_VARIANT bytes.
     */
    struct buf *scratch;
    unsigned scratch_count;
    struct sketch at_peers;      /* of URLs that were fetched from peers; the fetcher's thread's;
                                    all zero before the first */
    struct recent *recent;       /* misses */
    _Atomic unsigned generation; /* of the rules in force: set by their owner */
    pthread_mutex_t configuring; /* one change of the cache's configuration at a time */
};

/* False without memory. */
bool proxy_init(struct proxy *proxy, const struct proxy_config *config);

/* All exchanges and fetches have ended. */
void proxy_destroy(struct proxy *proxy);

/*
 * The spelling of a URL, or of what URLs begin with, under which objects are cached:
 * fetch_normal_url() and fetch_normal_prefix(). It may be in memory of this thread until the next
 * call. With --freshness off it is the text as it was sent, as for a simulator, which compares URLs
 * byte by byte; the HTTP front, which makes URLs of their parts, has one spelling all the same.
 */
struct span proxy_normal_url(const struct proxy *proxy, struct span url);
struct span proxy_normal_prefix(const struct proxy *proxy, struct span prefix);

/* The largest body that is stored for a request; larger ones are passed on. */
uint64_t proxy_largest_page(const struct proxy *proxy, const struct request *request);

/* How the response is stored, as the operator has decided. */
struct http_storing_rules proxy_storing_rules(const struct proxy *proxy,
                                              const struct request *request,
                                              const struct rules_response *response);

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
 * Is the URL with this key (struct cache_key) not to be refreshed in the background now; and its
 * refresh has failed, or has not. Without a lock. [any thread]
 */
bool proxy_backs_off(const struct proxy *proxy, uint64_t key);
void proxy_back_off(struct proxy *proxy, uint64_t key);
void proxy_end_backoff(struct proxy *proxy, uint64_t key);

/*
 * The account's hook for a charge that does not fit, where it is for pages or fetches: gives up
 * bodies (shedding.h). Returns the bytes given up. [fetcher's thread]
 */
size_t proxy_shed(struct proxy *proxy, size_t bytes);

#endif
