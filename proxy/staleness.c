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

/* What the object is, as a response that was made for these credentials. */
static void
evaluate(const struct proxy *proxy, const struct object *object, const struct request *request,
         unsigned made_for, struct http_storing *storing)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .status = object->status,
        .lines = object_fields(object),
        .arrival.wall_s = proxy_wall_s(proxy),
        .made_for = made_for,
    };
    const struct http_storing_rules rules = proxy_storing_rules(proxy, request);

    http_evaluate_response(&received, &rules, storing);
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
staleness_permits(const struct proxy *proxy, const struct object *object,
                  const struct request *request, enum staleness why, int64_t accepted_us,
                  int64_t now_us)
{
    struct http_storing storing;
    int64_t permitted_us = 0;
    int64_t lifetime_us = object->notes & staleness_notes(request) ? 0 : object_lifetime(object);

    if (lifetime_us == INT64_MAX || (is_hit(why) && is_too_old(proxy, object, now_us)))
        return false;
    evaluate(proxy, object, request, 0, &storing);
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

bool
user_rules_permit_stale(const struct proxy *proxy, const struct object *object,
                        const struct request *request, struct span request_lines)
{
    struct http_storing storing;

    evaluate(proxy, object, request, http_credentials_of(request_lines), &storing);
    return !http_is_for_credentials(storing.refusal);
}
