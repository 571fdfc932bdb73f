#include "proxy/request_rules.h"

#include "http/cache_control.h"
#include "http/conditional.h"
#include "http/request_head.h"

#define SECOND_US ((int64_t)1000000)

static bool
may_have(const struct exchange *x, uint32_t fields)
{
    return (x->lacks & fields) != fields;
}

/* The first reason stays. */
static void
set_way(struct request_rules *rules, enum request_way way, enum http_reason reason)
{
    rules->way = way;
    if (!rules->reason)
        rules->reason = reason;
}

static int64_t
microseconds(int64_t seconds)
{
    return seconds == HTTP_SECONDS_ANY ? INT64_MAX : seconds * SECOND_US;
}

static void
read_directives(struct request_rules *rules, const struct exchange *x)
{
    struct http_request_control control;

    http_request_control_read(&control, x->fields);
    if (control.no_store)
        set_way(rules, REQUEST_PASSES, HTTP_REASON_REQUEST_NO_STORE);
    rules->only_cached = control.only_if_cached;
    rules->max_stale_us = microseconds(control.max_stale);
    rules->conditions.no_cache = control.no_cache;
    if (control.max_age != HTTP_SECONDS_ABSENT)
        rules->conditions.max_age_us = microseconds(control.max_age);
    rules->conditions.min_fresh_us = microseconds(control.min_fresh);
    rules->demands =
        control.no_cache || control.max_age != HTTP_SECONDS_ABSENT || control.min_fresh > 0;
}

void
request_rules_read(struct request_rules *rules, const struct exchange *x)
{
    *rules = (struct request_rules){.way = REQUEST_SHARES, .conditions.max_age_us = INT64_MAX};
    if (x->method_id != HTTP_GET)
        set_way(rules, x->method_id == HTTP_HEAD ? REQUEST_USES : REQUEST_PASSES,
                HTTP_REASON_METHOD);
    if (!x->raw && x->fields.len)
        set_way(rules, REQUEST_PASSES, HTTP_REASON_REQUEST_FIELDS);
    if (x->raw) {
        if (x->proxy->config.follows_http && may_have(x, HTTP_HAS_CACHE_CONTROL | HTTP_HAS_PRAGMA))
            read_directives(rules, x);
        /* If-Match and If-Unmodified-Since are the origin's to evaluate: RFC 9111 section 4.3.2. */
        if (may_have(x, HTTP_HAS_IF_MATCH | HTTP_HAS_IF_UNMODIFIED_SINCE) &&
            http_has_origin_condition(x->fields))
            set_way(rules, REQUEST_PASSES, HTTP_REASON_REQUEST_CONDITION);
        if (rules->way == REQUEST_SHARES && may_have(x, HTTP_HAS_RANGE))
            rules->wanted = range_rules_wanted(x->fields);
        /* Nothing is filled for a part: what is not there is the origin's. */
        if (rules->wanted == RANGE_PART && x->proxy->config.range_fill == 0)
            set_way(rules, REQUEST_USES, HTTP_REASON_REQUEST_RANGE);
    }
    if (x->no_store)
        set_way(rules, REQUEST_PASSES, HTTP_REASON_REQUEST_NO_STORE);
    if (x->has_body)
        set_way(rules, REQUEST_PASSES, HTTP_REASON_REQUEST_BODY);
}
