#include "proxy/staleness.h"

#include "http/storing.h"

enum http_reason
staleness_reason(enum staleness why)
{
    static const enum http_reason reasons[] = {
        [STALENESS_ACCEPTED] = HTTP_REASON_MAX_STALE,
        [STALENESS_WHILE_REVALIDATE] = HTTP_REASON_WHILE_REVALIDATE,
        [STALENESS_IF_ERROR] = HTTP_REASON_IF_ERROR,
        [STALENESS_DISCONNECTED] = HTTP_REASON_DISCONNECTED,
    };

    return reasons[why];
}

/* Is the object used although no fetch has been tried? */
static bool
is_hit(enum staleness why)
{
    return why == STALENESS_ACCEPTED || why == STALENESS_WHILE_REVALIDATE;
}

static bool
is_too_old(const struct proxy *proxy, const struct object *object, int64_t now_us)
{
    const int64_t bound_us = proxy->config.max_age_us;

    return bound_us && object_age(object, now_us) > bound_us;
}

bool
staleness_permits(const struct proxy *proxy, const struct object *object, bool owned,
                  enum staleness why, int64_t accepted_us, int64_t now_us)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .status = object->status,
        .lines = object_fields(object),
        .arrival.wall_s = proxy_wall_s(proxy),
    };
    const struct http_storing_rules rules = proxy_storing_rules(proxy, owned);
    struct http_storing storing;
    int64_t permitted_us = 0, lifetime_us = object_lifetime(object);

    if (lifetime_us == INT64_MAX || (is_hit(why) && is_too_old(proxy, object, now_us)))
        return false;
    http_evaluate_response(&received, &rules, &storing);
    switch (why) {
    case STALENESS_ACCEPTED:
        permitted_us = storing.may_be_stale ? accepted_us : 0;
        break;
    case STALENESS_WHILE_REVALIDATE:
        permitted_us = storing.stale_while_revalidate_us;
        break;
    case STALENESS_IF_ERROR:
        permitted_us = storing.stale_if_error_us;
        break;
    case STALENESS_DISCONNECTED:
        permitted_us = storing.may_be_stale ? STALENESS_DISCONNECTED_US : 0;
        if (storing.stale_if_error_us)
            permitted_us = storing.stale_if_error_us;
        break;
    }
    return permitted_us > 0 && object_age(object, now_us) - lifetime_us <= permitted_us;
}
