#include "proxy/sharing.h"

#include "http/known_fields.h"
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

void
sharing_add_hop(struct sharing *sharing, const struct fetch_hop *hop, int64_t now_us,
                int64_t wall_us)
{
    /* Which statuses and methods are stored is for the callers to say. */
    static const struct http_storing_rules rules = {.any_status = true};
    const struct http_received received = {
        .lines = hop->lines,
        .arrival = {.wall_s = wall_us / 1000000, .waited_us = hop->waited_us},
    };
    struct http_storing storing;
    int64_t fresh_us;

    bound_age(sharing, now_us);
    if (sharing->any || sharing->unshared)
        return;
    http_evaluate_response(&received, &rules, &storing);
    fresh_us = storing.lifetime_us - storing.age_us;
    if (storing.refusal != HTTP_REASON_NONE)
        sharing->unshared = storing.refusal;
    else if (hop->has_user)
        sharing->unshared = HTTP_REASON_USER_INFO;
    else if (storing.lifetime != HTTP_LIFETIME_UNSTATED &&
             now_us + fresh_us < sharing->fresh_until_us)
        sharing->fresh_until_us = now_us + fresh_us;
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

void
sharing_add_raw(struct sharing *sharing, const struct http_received *received,
                const struct http_storing_rules *rules, int64_t now_us)
{
    struct http_storing storing;

    sharing->validates = true;
    sharing->born_us = now_us;
    sharing->refusal = received->status == 200 ? HTTP_REASON_NONE : HTTP_REASON_STATUS;
    sharing->fresh_until_us = INT64_MAX;
    bound_age(sharing, now_us);
    if (sharing->any)
        return;
    http_evaluate_response(received, rules, &storing);
    sharing->joinable =
        !storing.refusal && !storing.always_validate && storing.lifetime_us > storing.age_us;
    sharing->unshared = is_for_one(storing.refusal) ? storing.refusal : HTTP_REASON_NONE;
    sharing->refusal = storing.refusal;
    sharing->notes = notes_of(&storing);
    sharing->born_us = now_us - storing.age_us;
    sharing->fresh_until_us =
        sharing->born_us + (storing.always_validate ? 0 : storing.lifetime_us);
    bound_age(sharing, now_us);
    sharing->while_revalidate_us = sharing->max_age_us ? 0 : storing.stale_while_revalidate_us;
}

int64_t
sharing_lifetime(struct sharing *sharing, int64_t fetched_us)
{
    int64_t lifetime_us;

    if (sharing->fresh_until_us == INT64_MAX)
        return INT64_MAX;
    lifetime_us = sharing->fresh_until_us - fetched_us;
    /* Lifetimes are kept in whole milliseconds (cache_fill_finish()). */
    if (lifetime_us < 1000 && !sharing->unshared && !sharing->validates && !sharing->any)
        sharing->unshared = HTTP_REASON_STALE;
    return lifetime_us > 0 ? lifetime_us : 0;
}
