#include "proxy/user_rules.h"

#include "http/storing.h"

bool
user_rules_permit_stale(const struct proxy *proxy, const struct object *object, bool owned,
                        struct span request_lines)
{
    const struct http_received received = {
        .method = HTTP_GET,
        .request_lines = span_str(""),
        .status = object->status,
        .lines = object_fields(object),
        .arrival.wall_s = proxy_wall_s(proxy),
        .made_for = http_credentials_of(request_lines),
    };
    const struct http_storing_rules rules = proxy_storing_rules(proxy, owned);
    struct http_storing storing;

    http_evaluate_response(&received, &rules, &storing);
    return !http_is_for_credentials(storing.refusal);
}
