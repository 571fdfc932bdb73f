/*
 * What a request demands: how it may be answered as far as the request itself decides it, and which
 * objects are good enough for it (RFC 9110 section 9, RFC 9111 sections 3, 4 and 5.2.1). On the
 * thread of its exchange.
 */
#ifndef SUNPROXY_PROXY_DEMAND_H
#define SUNPROXY_PROXY_DEMAND_H

#include "http/range.h"
#include "proxy/exchange.h"

/*
 * How a request is answered, as far as the request itself decides it: from the cache, from an
 * origin past the cache, or either (RFC 9110 section 9, RFC 9111 sections 3, 4 and 5.2.1).
 */
enum request_way {
    REQUEST_SHARES, /* looks up; joins a fetch, or is fetched for others and the cache, too */
    REQUEST_USES,   /* looks up; what is not there is fetched past the cache */
    REQUEST_PASSES, /* is fetched past the cache */
};

struct demand {
    enum request_way way;
    enum http_reason reason; /* why it does not share; HTTP_REASON_NONE: it shares */
    bool only_cached;        /* what is not in the cache is not fetched */
    bool demands;            /* not any fresh object will do: `conditions` */
    struct cache_conditions conditions;
    enum http_wanted wanted; /* of GET */
    int64_t max_stale_us; /* how long after its lifetime an object will do; INT64_MAX: any time */
};

/* The fields that decide: those of a request that lacks them are not made for it. */
#define DEMAND_FIELDS                                                                              \
    (HTTP_HAS_CACHE_CONTROL | HTTP_HAS_PRAGMA | HTTP_HAS_IF_MATCH | HTTP_HAS_IF_UNMODIFIED_SINCE | \
     HTTP_HAS_RANGE)

/* The fields of the request, made where they were left for later. */
struct span demand_fields(struct exchange *x);

/* What of the request says which user sends it (sharing.h): of enum http_credentials. */
unsigned demand_credentials(struct exchange *x);

static inline bool
demand_is_of_user(struct exchange *x)
{
    return demand_credentials(x) != 0;
}

/* Reads the request, and of that only the fields that it may have (request->lacks). */
void demand_read(struct demand *demand, const struct exchange *x);

/* The variant that the request selects of what varies by these names. False: none can be found. */
bool demand_select_variant(struct exchange *x, struct span names, struct buf *variant);

/* May the request have this object, which is fresh? */
bool demand_suits_fresh(struct exchange *x, const struct object *object);

/* May the object be validated for this request, or be used stale? */
bool demand_suits_stale(struct exchange *x, const struct object *object);

/* Does the request accept this object, which is not fresh enough for it? */
bool demand_accepts(struct exchange *x, const struct demand *demand,
                    const struct object *object);

/* May the object be used while its successor is fetched? */
bool demand_may_refresh_later(struct exchange *x, const struct demand *demand,
                              const struct object *object);

/*
 * Does the response begin in what has come of the object, which grows, or little behind that? True
 * also where the response is not a part of it: its status is another than 200, its length is not
 * known, or the range cannot be satisfied. False for several ranges, which need all of it.
 */
bool demand_begins_soon(struct span request_lines, const struct object *object);

#endif
