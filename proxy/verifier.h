/*
 * Compares a share of the hits with their origins (--verify): after a hit the URL is fetched once
 * more, past the cache and with the same request fields, and the response is compared with the
 * object that was sent. What is found is counted and reported; nothing that is stored changes.
 *
 * Hits that are verified are those of GET for an object with status 200, without Authorization and
 * Cookie. The fetch counts to no client, and only a few are under way at a time, of all origins and
 * of each; hits beyond that are skipped.
 *
 * A response differs if its status is another one or its body has other bytes; where both have the
 * same weak ETag the bytes need not be equal. The origin may have changed after the hit: an object
 * that the cache does not store any more, or that has expired, is reported as changed, and not as
 * stale. While a write is under way, a hit may be reported as stale that is so for that time only.
 * A resource whose responses differ each time is stale whenever it is looked at.
 */
#ifndef SUNPROXY_PROXY_VERIFIER_H
#define SUNPROXY_PROXY_VERIFIER_H

#include "base/memory_account.h"
#include "cache/cache.h"
#include "proxy/metrics.h"
#include "proxy/origin.h"
#include "proxy/origin_route.h"
#include "proxy/shedding.h"

#define VERIFIER_MOST 4u           /* fetches under way, */
#define VERIFIER_MOST_OF_ORIGIN 2u /* and of one origin */

/* A fetch takes no longer; more of a body would prove nothing. */
#define VERIFIER_LONGEST_US ((int64_t)60 * 1000000)

/* In the order of the metrics' rows. */
enum verdict {
    VERDICT_SAME,
    VERDICT_STALE,   /* the cache stores it still, and would send it again */
    VERDICT_CHANGED, /* the cache does not, since the hit */
    VERDICT_FAILED,  /* the origin fails, or it cannot be asked */
};

/* Spans and text are valid during the call. */
struct verified {
    struct span url;
    int64_t age_us;  /* of the response at the hit */
    int64_t took_us; /* from the hit to the end of the comparison */
    enum verdict verdict;
    const char *cause; /* a phrase; "" for VERDICT_SAME */
};

/* None of the parts is owned; all outlive the verifier. */
struct verifier_config {
    struct cache *cache;
    struct memory_account *account; /* charged (MEMORY_REQUESTS) */
    struct metrics *metrics;
    struct origin origin;
    struct shedding *shedding;
    int64_t (*monotonic_us)(void *context);
    void *clock_context;
    double share; /* of the hits: above 0, at most 1 */
    unsigned workers;
    void (*verified)(const struct verified *verified); /* NULL: not wanted. [fetcher's thread] */
};

struct verifier;

/* NULL without memory. */
struct verifier *verifier_create(const struct verifier_config *config);

/* No fetch of it is under way. NULL is harmless. */
void verifier_destroy(struct verifier *verifier);

/* A hit. */
struct verifier_hit {
    struct object *object;
    struct span fields; /* of the request; read during the call */
    bool raw;           /* as in struct exchange */
    struct origin_route *route; /* likewise */
    int64_t arrived_us;
    unsigned worker; /* this thread's number */
};

/* Verifies the hit, if it is one of the share and there is memory. [a worker] */
void verifier_offer(struct verifier *verifier, const struct verifier_hit *hit);

#endif
