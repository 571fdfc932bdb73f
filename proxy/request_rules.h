/*
 * How a request is answered, as far as the request itself decides it: from the cache, from an
 * origin past the cache, or either (RFC 9110 section 9, RFC 9111 sections 3, 4 and 5.2.1).
 */
#ifndef SUNPROXY_PROXY_REQUEST_RULES_H
#define SUNPROXY_PROXY_REQUEST_RULES_H

#include "http/request_head.h"
#include "proxy/exchange.h"
#include "proxy/range_rules.h"

enum request_way {
    REQUEST_SHARES, /* looks up; joins a fetch, or is fetched for others and the cache, too */
    REQUEST_USES,   /* looks up; what is not there is fetched past the cache */
    REQUEST_PASSES, /* is fetched past the cache */
};

struct request_rules {
    enum request_way way;
    enum http_reason reason; /* why it does not share; HTTP_REASON_NONE: it shares */
    bool only_cached; /* what is not in the cache is not fetched */
    bool demands;     /* not any fresh object will do: `conditions` */
    struct cache_conditions conditions;
    enum range_wanted wanted; /* of GET */
    int64_t max_stale_us; /* how long after its lifetime an object will do; INT64_MAX: any time */
};

/* The fields that decide: exchange->fields is not used for a request that lacks them. */
#define REQUEST_RULES_FIELDS                                                                       \
    (HTTP_HAS_CACHE_CONTROL | HTTP_HAS_PRAGMA | HTTP_HAS_IF_MATCH | HTTP_HAS_IF_UNMODIFIED_SINCE | \
     HTTP_HAS_RANGE)

/* Reads the request, and of that only the fields that it may have (exchange->lacks). */
void request_rules_read(struct request_rules *rules, const struct exchange *exchange);

#endif
