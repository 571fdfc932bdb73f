#include "proxy/sharing.h"

#include "http/response_head.h"
#include "http/storing.h"
#include "proxy/proxy_rules.h"
#include "rules/rules.h"

void
sharing_init(struct sharing *sharing, bool any, int64_t max_age_us)
{
    *sharing = (struct sharing){
        .any = any,
        .max_age_us = max_age_us,
        .joinable = true,
        .fresh_until_us = INT64_MAX,
    };
}

/* A response that came now is not fresh for longer than the bound, from its arrival on. */
static void
bound_age(struct sharing *sharing, int64_t now_us)
{
    if (sharing->max_age_us && sharing->fresh_until_us - now_us > sharing->max_age_us)
        sharing->fresh_until_us = now_us + sharing->max_age_us;
}

/* Does what keeps a response from being stored make it one client's, rather than of no use? */
static bool
is_for_one(enum http_reason refusal)
{
    return refusal != HTTP_REASON_NONE && refusal != HTTP_REASON_STATUS &&
           refusal != HTTP_REASON_UNSTATED && refusal != HTTP_REASON_STALE;
}

bool
sharing_is_by_request(const struct sharing *sharing)
{
    return sharing->unshared == HTTP_REASON_REQUEST_NO_STORE ||
           sharing->unshared == HTTP_REASON_PARTIAL || http_is_for_credentials(sharing->unshared);
}

static unsigned
notes_of(const struct http_storing *storing)
{
    return (storing->made_for & HTTP_FOR_COOKIE ? (unsigned)HTTP_KNOWN_FOR_COOKIE : 0) |
           (storing->made_for & HTTP_FOR_AUTHORIZATION ? (unsigned)HTTP_KNOWN_FOR_AUTHORIZATION
                                                       : 0) |
           (storing->not_for & HTTP_FOR_COOKIE ? (unsigned)HTTP_KNOWN_NOT_FOR_COOKIE : 0) |
           (storing->not_for & HTTP_FOR_AUTHORIZATION ? (unsigned)HTTP_KNOWN_NOT_FOR_AUTHORIZATION
                                                      : 0) |
           (storing->lets_in_cookie && !storing->refusal ? (unsigned)HTTP_KNOWN_NO_SET_COOKIE : 0);
}

unsigned
sharing_made_for(unsigned notes)
{
    return (notes & HTTP_KNOWN_FOR_COOKIE ? (unsigned)HTTP_FOR_COOKIE : 0) |
           (notes & HTTP_KNOWN_FOR_AUTHORIZATION ? (unsigned)HTTP_FOR_AUTHORIZATION : 0);
}

/* May requests that wait for the response have it? */
static bool
is_joinable(const struct http_storing *storing)
{
    return !storing->refusal && !storing->always_validate &&
           storing->lifetime != HTTP_LIFETIME_UNSTATED && storing->lifetime_us > storing->age_us;
}

/* May those of clients that know nothing of freshness? They also have what is not stored because of
 * its status, or because it states no lifetime. */
static bool
is_joinable_unstated(const struct http_storing *storing)
{
    if (storing->always_validate)
        return false;
    if (storing->refusal == HTTP_REASON_NONE)
        return storing->lifetime_us > storing->age_us;
    return storing->refusal == HTTP_REASON_STATUS || storing->refusal == HTTP_REASON_UNSTATED;
}

void
sharing_evaluate(struct sharing *sharing, const struct http_received *received,
                 const struct http_storing_rules *rules, int64_t now_us)
{
    struct http_storing storing;

    sharing->born_us = now_us;
    sharing->refusal = received->status == 200 ? HTTP_REASON_NONE : HTTP_REASON_STATUS;
    sharing->fresh_until_us = INT64_MAX;
    /* The object is also that of where it leads: a request that comes there may not join it. */
    if (sharing->any && http_status_is_redirect(received->status))
        sharing->fresh_until_us = now_us;
    bound_age(sharing, now_us);
    if (sharing->any)
        return;
    http_evaluate_response(received, rules, &storing);
    sharing->joinable = is_joinable(&storing);
    sharing->unshared = is_for_one(storing.refusal) ? storing.refusal : HTTP_REASON_NONE;
    sharing->refusal = storing.refusal;
    sharing->notes = notes_of(&storing);
    if (!sharing->joinable && rules->keeps_unstated && is_joinable_unstated(&storing)) {
        sharing->joinable = true;
        sharing->notes |=
            HTTP_KNOWN_UNSTATED | (storing.lets_in_cookie ? (unsigned)HTTP_KNOWN_NO_SET_COOKIE : 0);
    }
    sharing->born_us = now_us - storing.age_us;
    if (storing.always_validate)
        sharing->fresh_until_us = sharing->born_us;
    else if (storing.lifetime_us != HTTP_UNLIMITED)
        sharing->fresh_until_us = sharing->born_us + storing.lifetime_us;
    bound_age(sharing, now_us);
    sharing->while_revalidate_us = sharing->max_age_us ? 0 : storing.stale_while_revalidate_us;
}

int64_t
sharing_lifetime(const struct sharing *sharing, int64_t fetched_us)
{
    int64_t lifetime_us = sharing->fresh_until_us - fetched_us;

    if (sharing->fresh_until_us == INT64_MAX)
        return INT64_MAX;
    return lifetime_us > 0 ? lifetime_us : 0;
}

/* ---- stale objects --------------------------------------------------------------------------- */

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

/* By the rules, as what the origin has sent at that time of the wall clock. */
static void
evaluate(const struct source_head *head, unsigned made_for, int64_t wall_s,
         const struct http_storing_rules *rules, struct http_storing *storing)
{
    struct http_received received = {
        .method = HTTP_GET,
        .status = head->status,
        .lines = head->fields,
        .arrival.wall_s = wall_s,
        .made_for = made_for | sharing_made_for(head->notes),
    };
    struct buf restored;

    buf_init(&restored, (size_t)1 << 20);
    if (head->notes & HTTP_KNOWN_ORIGIN_CONTROL &&
        rules_restore_response(received.lines, &restored))
        received.lines = buf_span(&restored);
    http_evaluate_response(&received, rules, storing);
    /* Without memory nothing is known of what forbids its use. */
    if (buf_failed(&restored))
        *storing = (struct http_storing){.refusal = HTTP_REASON_MEMORY};
    storing->vary_names.count = 0;
    buf_free(&restored);
}

static struct http_storing_rules
rules_of(const struct proxy *proxy, const struct request *request, const struct source_head *head)
{
    return proxy_storing_rules(
        proxy, request,
        &(struct rules_response){.url = head->url, .status = head->status, .lines = head->fields});
}

void
sharing_evaluate_stored(const struct proxy *proxy, const struct object *object,
                        const struct request *request, unsigned made_for,
                        struct http_storing *storing)
{
    const struct source_head head = sharing_head_of(object);
    const struct http_storing_rules rules = rules_of(proxy, request, &head);

    evaluate(&head, made_for, proxy_wall_s(proxy), &rules, storing);
}

/* By whom its lifetime is set, and how long it is from the age 0 on. */
static int64_t
lifetime_of(const struct http_storing *storing, const struct http_storing_rules *rules)
{
    if (rules->decided & HTTP_DECIDED_LIFETIME || storing->lifetime == HTTP_LIFETIME_RULE)
        return INT64_MAX;
    return storing->always_validate ? 0 : storing->lifetime_us;
}

enum http_reason
sharing_review(const struct proxy *proxy, const struct request *request, struct source_head *head)
{
    const int64_t bound_us = proxy_rules_of(proxy, request)->max_age_us;
    struct http_storing_rules rules = rules_of(proxy, request, head);
    struct http_storing storing = {.lifetime_us = INT64_MAX};
    int64_t most_us;

    /* It is of a client that knows nothing of freshness, or not. */
    rules.keeps_unstated = head->notes & HTTP_KNOWN_UNSTATED;
    if (proxy->config.follows_http)
        evaluate(head, 0,
                 proxy_wall_s(proxy) - (proxy_now_us(proxy) - head->born_us) / 1000000, &rules,
                 &storing);
    most_us = lifetime_of(&storing, &rules);
    /* From its arrival on, when it had the age that it states. */
    if (bound_us && most_us - bound_us > storing.age_us + head->fetch_us)
        most_us = bound_us + storing.age_us + head->fetch_us;
    if (head->lifetime_us > most_us)
        head->lifetime_us = most_us;
    return is_for_one(storing.refusal) || storing.refusal == HTTP_REASON_STATUS ? storing.refusal
                                                                               : HTTP_REASON_NONE;
}

/* Is the object used although no fetch has been tried? */
static bool
is_hit(enum staleness why)
{
    return why == STALENESS_ACCEPTED || why == STALENESS_WHILE_REVALIDATE;
}

static bool
is_too_old(const struct proxy *proxy, const struct object *object, const struct request *request,
           int64_t now_us)
{
    const int64_t bound_us = proxy_rules_of(proxy, request)->max_age_us;

    return bound_us && object_age(object, now_us) > bound_us;
}

bool
staleness_permits(const struct proxy *proxy, const struct object *object,
                  const struct request *request, unsigned credentials, enum staleness why,
                  int64_t accepted_us, int64_t now_us)
{
    struct http_storing storing;
    int64_t permitted_us = 0;
    int64_t lifetime_us = object->notes & staleness_notes(request) ? 0 : object_lifetime(object);

    if (lifetime_us == INT64_MAX || (is_hit(why) && is_too_old(proxy, object, request, now_us)))
        return false;
    sharing_evaluate_stored(proxy, object, request, credentials, &storing);
    if (is_for_one(storing.refusal))
        return false;
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

    sharing_evaluate_stored(proxy, object, request, http_credentials_of(request_lines), &storing);
    return !http_is_for_credentials(storing.refusal);
}
