/*
 * Which stored responses a request with Cookie or Authorization may get. Such a request says which
 * user sends it, and an origin may answer it for that user alone without saying so. So it does not
 * get a response that would not be stored if it were the one to this request (http/storing.h): not
 * by a heuristic, not after a 304, and not stale. It is passed on instead. Safe on any thread.
 */
#ifndef SUNPROXY_PROXY_USER_RULES_H
#define SUNPROXY_PROXY_USER_RULES_H

#include "cache/object.h"
#include "http/known_fields.h"
#include "http/request_head.h"
#include "proxy/proxy.h"

/* The fields that name a user: a request that lacks them is no user's. */
#define USER_RULES_FIELDS ((uint32_t)HTTP_HAS_COOKIE | (uint32_t)HTTP_HAS_AUTHORIZATION)

/* For an object that is fresh, which one with a lifetime that the origin has stated remains. */
static inline bool
user_rules_permit_fresh(const struct object *object)
{
    return !(object->notes & HTTP_KNOWN_HEURISTIC);
}

/* For an object, ready and raw, that is not fresh enough; `owned` as in struct exchange. */
bool user_rules_permit_stale(const struct proxy *proxy, const struct object *object, bool owned,
                             struct span request_lines);

#endif
