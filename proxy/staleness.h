/*
 * May an object that is not fresh be used without asking its origin (RFC 9111 section 4.2.4, RFC
 * 5861)? The response's directives are read from the object, which only requests for objects that
 * have expired do. Safe on any thread.
 */
#ifndef SUNPROXY_PROXY_STALENESS_H
#define SUNPROXY_PROXY_STALENESS_H

#include "cache/object.h"
#include "http/known_fields.h"
#include "http/reason.h"
#include "http/request_head.h"
#include "proxy/proxy.h"

/* How long after its lifetime an object is used without its origin, if it states nothing. */
#define STALENESS_DISCONNECTED_US ((int64_t)86400 * 1000000)

/* Why it may be used. */
enum staleness {
    STALENESS_ACCEPTED,         /* the request has max-stale: `accepted_us` */
    STALENESS_WHILE_REVALIDATE, /* its successor is being fetched */
    STALENESS_IF_ERROR,         /* the origin fails */
    STALENESS_DISCONNECTED,     /* the origin cannot be reached: RFC 9111 section 4.2.4 */
};

enum http_reason staleness_reason(enum staleness why);

/*
 * The notes of objects that have expired for a request as soon as they are there: what states no
 * lifetime is fresh to clients that know nothing of freshness, and to no others.
 */
static inline unsigned
staleness_notes(const struct request *request)
{
    return request->flags & REQUEST_PAGE_ONLY ? 0 : (unsigned)HTTP_KNOWN_UNSTATED;
}

/*
 * For a ready object, at `now_us`; `accepted_us` is how long after its lifetime the request accepts
 * it, for STALENESS_ACCEPTED only. Where the age of pages is bounded (max_age_us in struct
 * proxy_config), an object over the bound is only used if its origin fails.
 */
bool staleness_permits(const struct proxy *proxy, const struct object *object,
                       const struct request *request, enum staleness why, int64_t accepted_us,
                       int64_t now_us);

/* ---- users ----------------------------------------------------------------------------------- */

/*
 * Which stored responses a request with Cookie or Authorization may get. Such a request says which
 * user sends it, and an origin may answer it for that user alone without saying so. So it does not
 * get a response that would not be stored if it were the one to this request (http/storing.h): not
 * by a heuristic, not after a 304, and not stale. It is passed on instead.
 */
/* The fields that name a user: a request that lacks them is no user's. */
#define USER_RULES_FIELDS ((uint32_t)HTTP_HAS_COOKIE | (uint32_t)HTTP_HAS_AUTHORIZATION)

/* For an object that is fresh, which one with a lifetime that the origin has stated remains. */
static inline bool
user_rules_permit_fresh(const struct object *object)
{
    return !(object->notes & HTTP_KNOWN_HEURISTIC);
}

/* For a ready object that is not fresh enough. */
bool user_rules_permit_stale(const struct proxy *proxy, const struct object *object,
                             const struct request *request, struct span request_lines);

#endif
