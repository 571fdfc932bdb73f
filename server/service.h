/*
 * The service itself: what the procedures of both protocol versions work on. One per process, made
 * before the workers start and taken apart after they have ended; the parts are safe on any thread
 * by their own contracts.
 */
#ifndef SUNPROXY_SERVER_SERVICE_H
#define SUNPROXY_SERVER_SERVICE_H

#include <pthread.h>
#include <stdint.h>

#include "base/client_tally.h"
#include "cache/cache.h"
#include "fetch/fetch.h"
#include "fetch/flight.h"
#include "fetch/marks.h"
#include "proxy/metrics.h"
#include "rpc/server.h"
#include "server/access_log.h"
#include "server/intake.h"
#include "server/memory.h"
#include "server/options.h"

#define SERVICE_MAGIC 0x73756e70u /* "sunp" */

struct service {
    unsigned magic;

    /* read-only while workers run */
    const struct options *options;
    struct rpc_server *rpc;
    struct cache *cache;
    struct flights *flights;
    struct marks *marks; /* of URLs whose answers could not be shared */
    struct fetcher *fetcher;
    struct metrics *metrics;
    struct access_log *access_log; /* NULL: none */
    uid_t *admins;                 /* besides root and our own; owned */
    size_t admin_count;
    unsigned workers;
    int64_t started_us;

    struct memory_account memory; /* everything that is not in the cache; any thread */
    struct client_tally *waiting; /* what each client's waiting requests take; any thread */
    struct memory_reclaimed reclaimed;
    struct intake intake; /* the fetcher's thread's */

    /* one change of the cache's configuration at a time */
    pthread_mutex_t configuring;
    bool shards_are_ours; /* nobody asked for a number: it follows the capacity */
};

/* Are pages stored and shared as their origins allow (--freshness)? */
static inline bool
service_follows_http(const struct service *service)
{
    return service->options->freshness == FRESHNESS_ON;
}

/* The service behind a request. */
struct service *service_of(const struct rpc_request *request);

/* May this caller change the server, over the socket only (AUTH_SYS over TCP proves nothing)? */
bool service_is_admin(const struct service *service, const struct net_peer *peer);

/*
 * Reads a policy that a daemon can run, as policy_parse() does; false with a sentence in `why`,
 * also for one that needs the future.
 */
bool service_parse_policy(const char *text, struct policy_spec *spec, char *why, size_t why_size);

/*
 * A configuration of the cache as a phrase for people: "policy lru, 7 URLs, 1 shard". Returns text;
 * SERVICE_CACHE_TEXT bytes are enough.
 */
#define SERVICE_CACHE_TEXT (POLICY_MAX_TEXT + 128)
const char *service_describe_cache(const struct cache_config *config, char *text, size_t size);

/*
 * How many shards suit workers and capacity: one per worker, but none so small that its share of
 * pages says little (4,096) or could not hold the largest page thrice over (64 MiB).
 */
unsigned service_suitable_shards(unsigned workers, uint64_t capacity_urls, uint64_t capacity_bytes);

#endif
