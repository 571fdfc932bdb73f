#include "origins/origin_probe.h"

bool
origin_probe_begin(struct origin_route *route, unsigned number, int64_t now_us)
{
    const struct origin_probes *probes = &route->probes;
    struct origin_member *member = &route->members[number];
    int64_t due_us = atomic_load(&member->probe_due_us);

    return probes->path.len && due_us <= now_us &&
           atomic_compare_exchange_strong(&member->probe_due_us, &due_us, INT64_MAX);
}

static void
fall(struct origin_route *route, unsigned number, const char *reason)
{
    struct origin_member *member = &route->members[number];

    origin_reason_set(&member->reason, reason);
    if (atomic_exchange(&member->left_until_us, ORIGIN_ROUTE_DOWN) != ORIGIN_ROUTE_DOWN &&
        route->changed)
        route->changed(&(struct origin_change){
            .url = member->url, .left_us = ORIGIN_ROUTE_DOWN, .reason = reason});
}

static void
rise(struct origin_route *route, unsigned number, int64_t now_us)
{
    struct origin_member *member = &route->members[number];
    int64_t down = ORIGIN_ROUTE_DOWN;

    if (atomic_load(&member->left_until_us) != down)
        return;
    atomic_store(&member->used_again_us, now_us);
    if (atomic_compare_exchange_strong(&member->left_until_us, &down, 0) && route->changed)
        route->changed(&(struct origin_change){.url = member->url, .reason = ""});
}

/* Counts a probe: how many have passed one behind the other, or, below 0, failed. */
static int
count_probe(struct origin_member *member, const struct origin_probes *probes, bool passed)
{
    int last = atomic_load(&member->probed), now;

    if (passed)
        now = last < 0 ? 1 : last < (int)probes->rise ? last + 1 : last;
    else
        now = last > 0 ? -1 : last > -(int)probes->fall ? last - 1 : last;
    atomic_store(&member->probed, now);
    return now;
}

void
origin_probe_end(struct origin_route *route, unsigned number, int64_t now_us,
                 enum origin_probe_result result, const char *reason)
{
    const struct origin_probes *probes = &route->probes;
    struct origin_member *member = &route->members[number];

    if (result != ORIGIN_PROBE_UNKNOWN) {
        int count = count_probe(member, probes, result == ORIGIN_PROBE_PASSED);

        if (count <= -(int)probes->fall)
            fall(route, number, reason);
        else if (count >= (int)probes->rise)
            rise(route, number, now_us);
    }
    atomic_store(&member->probe_due_us, now_us + probes->interval_us);
}

bool
origin_probe_accepts(const struct origin_route *route, unsigned status)
{
    return route->probes.status ? status == route->probes.status : status / 100 == 2;
}
