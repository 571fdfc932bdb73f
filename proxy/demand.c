#include "proxy/demand.h"

#include "http/cache_control.h"
#include "http/conditional.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "http/request_head.h"
#include "http/storing.h"
#include "http/variant.h"
#include "proxy/proxy_rules.h"
#include "proxy/sharing.h"

#define SECOND_US ((int64_t)1000000)

/* A range that begins this far behind what has come of an object is not waited for. */
#define RANGE_NEAR ((uint64_t)1 << 20)

struct span
demand_fields(struct exchange *x)
{
    if (!x->request->fields.ptr && x->front->fields)
        x->front->fields(x);
    return x->request->fields;
}

unsigned
demand_credentials(struct exchange *x)
{
    if (!x->proxy->config.follows_http ||
        (x->request->lacks & USER_RULES_FIELDS) == USER_RULES_FIELDS)
        return 0;
    return http_credentials_of(demand_fields(x));
}

bool
demand_begins_soon(struct span request_lines, const struct object *object)
{
    const struct span fields = object_fields(object);
    struct http_ranges requested, ranges;
    uint64_t length;

    if (object->status != 200 || !http_ranges_read(&requested, request_lines) ||
        !http_accepts_ranges(fields) || !http_known_length(fields, &length) ||
        http_ranges_resolve(&requested, (int64_t)length, &ranges) != HTTP_RANGE_PARTIAL)
        return true;
    return ranges.count == 1 && (uint64_t)ranges.of[0].first <= object_length(object) + RANGE_NEAR;
}

static bool
may_have(const struct exchange *x, uint32_t fields)
{
    return (x->request->lacks & fields) != fields;
}

/* The first reason stays. */
static void
set_way(struct demand *demand, enum request_way way, enum http_reason reason)
{
    demand->way = way;
    if (!demand->reason)
        demand->reason = reason;
}

static int64_t
microseconds(int64_t seconds)
{
    return seconds == HTTP_SECONDS_ANY ? INT64_MAX : seconds * SECOND_US;
}

static void
read_directives(struct demand *demand, const struct exchange *x)
{
    struct http_request_control control;

    http_request_control_read(&control, x->request->fields);
    if (control.no_store)
        set_way(demand, REQUEST_PASSES, HTTP_REASON_REQUEST_NO_STORE);
    demand->only_cached = control.only_if_cached;
    demand->max_stale_us = microseconds(control.max_stale);
    demand->conditions.no_cache = control.no_cache;
    if (control.max_age != HTTP_SECONDS_ABSENT)
        demand->conditions.max_age_us = microseconds(control.max_age);
    demand->conditions.min_fresh_us = microseconds(control.min_fresh);
    demand->demands =
        control.no_cache || control.max_age != HTTP_SECONDS_ABSENT || control.min_fresh > 0;
}

void
demand_read(struct demand *demand, const struct exchange *x)
{
    *demand = (struct demand){.way = REQUEST_SHARES, .conditions.max_age_us = INT64_MAX};
    if (x->request->method != HTTP_GET)
        set_way(demand, x->request->method == HTTP_HEAD ? REQUEST_USES : REQUEST_PASSES,
                HTTP_REASON_METHOD);
    if (x->request->flags & REQUEST_OWN_FIELDS)
        set_way(demand, REQUEST_PASSES, HTTP_REASON_REQUEST_FIELDS);
    else if (x->proxy->config.follows_http && may_have(x, HTTP_HAS_CACHE_CONTROL | HTTP_HAS_PRAGMA))
        read_directives(demand, x);
    /* If-Match and If-Unmodified-Since are the origin's to evaluate: RFC 9111 section 4.3.2. */
    if (may_have(x, HTTP_HAS_IF_MATCH | HTTP_HAS_IF_UNMODIFIED_SINCE) &&
        http_has_origin_condition(x->request->fields))
        set_way(demand, REQUEST_PASSES, HTTP_REASON_REQUEST_CONDITION);
    if (demand->way == REQUEST_SHARES && may_have(x, HTTP_HAS_RANGE))
        demand->wanted = http_wanted_read(x->request->fields, RANGE_NEAR);
    /* Nothing is filled for a part: what is not there is the origin's. */
    if (demand->wanted == HTTP_WANTS_PART && proxy_rules_of(x->proxy, x->request)->range_fill == 0)
        set_way(demand, REQUEST_USES, HTTP_REASON_REQUEST_RANGE);
    if (x->request->passes)
        set_way(demand, REQUEST_PASSES, x->request->passes);
    if (request_has_body(x->request))
        set_way(demand, REQUEST_PASSES, HTTP_REASON_REQUEST_BODY);
    if (proxy_rules_are_replaced(x->proxy, x->request))
        set_way(demand, REQUEST_PASSES, HTTP_REASON_PURGED);
}

bool
demand_select_variant(struct exchange *x, struct span names, struct buf *variant)
{
    struct http_vary vary;

    buf_reset(variant);
    return http_vary_parse(&vary, names) == HTTP_VARY_FIELDS &&
           http_variant_key(&vary, demand_fields(x), variant);
}

/* ---- users ----------------------------------------------------------------------------------- */

bool
demand_suits_fresh(struct exchange *x, const struct object *object)
{
    const unsigned kept = HTTP_KNOWN_NOT_FOR_COOKIE | HTTP_KNOWN_NOT_FOR_AUTHORIZATION;

    return !(object->notes & kept) || user_rules_permit_fresh(object, demand_credentials(x));
}

bool
demand_suits_stale(struct exchange *x, const struct object *object)
{
    return !demand_is_of_user(x) ||
           user_rules_permit_stale(x->proxy, object, x->request, demand_fields(x));
}

/* ---- stale objects --------------------------------------------------------------------------- */

bool
demand_accepts(struct exchange *x, const struct demand *demand, const struct object *object)
{
    const struct cache_conditions *conditions = &demand->conditions;

    return !conditions->no_cache && conditions->min_fresh_us == 0 &&
           object_age(object, x->as_of_us) <= conditions->max_age_us &&
           staleness_permits(x->proxy, object, x->request, demand_credentials(x),
                             STALENESS_ACCEPTED, demand->max_stale_us, x->as_of_us);
}

bool
demand_may_refresh_later(struct exchange *x, const struct demand *demand,
                         const struct object *object)
{
    return !demand->demands && staleness_permits(x->proxy, object, x->request,
                                                 demand_credentials(x),
                                                 STALENESS_WHILE_REVALIDATE, 0, x->as_of_us);
}
