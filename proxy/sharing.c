#include "proxy/sharing.h"

#include "http/freshness.h"

void
sharing_init(struct sharing *sharing, bool any)
{
    *sharing = (struct sharing){.any = any, .fresh_until_us = INT64_MAX};
}

void
sharing_add_hop(struct sharing *sharing, const struct fetch_hop *hop, int64_t now_us,
                int64_t wall_us)
{
    const struct http_arrival arrival = {.wall_s = wall_us / 1000000, .waited_us = hop->waited_us};
    enum http_sharing verdict;
    int64_t fresh_us;

    if (sharing->any || sharing->unshared)
        return;
    verdict = http_response_sharing(hop->lines, &arrival, &fresh_us);
    if (verdict != HTTP_SHARED)
        sharing->unshared = http_sharing_text(verdict);
    else if (hop->has_user)
        sharing->unshared = "user information in the URL";
    else if (fresh_us != HTTP_FRESH_UNSTATED && now_us + fresh_us < sharing->fresh_until_us)
        sharing->fresh_until_us = now_us + fresh_us;
}

int64_t
sharing_lifetime(struct sharing *sharing, int64_t fetched_us)
{
    int64_t lifetime_us;

    if (sharing->fresh_until_us == INT64_MAX)
        return INT64_MAX;
    lifetime_us = sharing->fresh_until_us - fetched_us;
    /* Lifetimes are kept in whole milliseconds (cache_fill_finish()). */
    if (lifetime_us < 1000 && !sharing->unshared)
        sharing->unshared = http_sharing_text(HTTP_STALE);
    return lifetime_us > 0 ? lifetime_us : 0;
}
