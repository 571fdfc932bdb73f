#include "server/sharing.h"

#include "base/clock.h"
#include "http/freshness.h"

void
sharing_init(struct sharing *sharing, bool any)
{
    *sharing = (struct sharing){.any = any, .fresh_until_us = INT64_MAX};
}

void
sharing_take(struct sharing *sharing, const struct fetch_hop *hop)
{
    const struct http_arrival arrival = {
        .wall_s = clock_wall_us() / 1000000,
        .waited_us = hop->waited_us,
    };
    enum http_sharing verdict;
    int64_t fresh_us;

    if (sharing->any || sharing->unshared)
        return;
    verdict = http_judge_sharing(hop->lines, &arrival, &fresh_us);
    if (verdict != HTTP_SHARED) {
        sharing->unshared = http_sharing_text(verdict);
    } else if (hop->has_user) {
        sharing->unshared = "user information in the URL";
    } else if (fresh_us != HTTP_FRESH_UNSTATED) {
        int64_t until_us = clock_monotonic_us() + fresh_us;

        if (until_us < sharing->fresh_until_us)
            sharing->fresh_until_us = until_us;
    }
}

void
sharing_limit(struct sharing *sharing, struct page *page)
{
    if (sharing->unshared || sharing->fresh_until_us == INT64_MAX)
        return;
    page_limit(page, sharing->fresh_until_us - page->fetched_us);
    if (!page_is_fresh(page, page->fetched_us))
        sharing->unshared = http_sharing_text(HTTP_STALE);
}
