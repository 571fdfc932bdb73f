#include "proxy/sharing.h"

#include "http/known_fields.h"
#include "http/response_head.h"
#include "http/storing.h"

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
           (storing->lifetime == HTTP_LIFETIME_HEURISTIC ? (unsigned)HTTP_KNOWN_HEURISTIC : 0);
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
        sharing->notes |= HTTP_KNOWN_UNSTATED;
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
