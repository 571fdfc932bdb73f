#include "origins/origin_probe.h"

#include <string.h>

#include "base/ascii.h"

bool
origin_probe_begin(struct origin_route *route, unsigned number, int64_t now_us)
{
    const struct origin_probes *probes = &route->probes;
    struct origin_server *server = route->members[number].server;
    int64_t due_us = atomic_load(&server->probe_due_us);

    if (!probes->path.len || due_us > now_us ||
        !atomic_compare_exchange_strong(&server->probe_due_us, &due_us, INT64_MAX))
        return false;
    atomic_store(&server->probed_us, now_us);
    return true;
}

/* Is the host of the authority a name, and no address? */
static bool
has_name(struct span authority)
{
    const char *host = memmem(authority.ptr, authority.len, "://", 3);
    const char *end = authority.ptr + authority.len;

    for (host = host ? host + 3 : end; host < end && *host != ':' && *host != '['; host++)
        if (*host != '.' && !ascii_is_digit(*host))
            return true;
    return false;
}

bool
origin_probe_look_up(struct origin_route *route, unsigned number)
{
    struct origin_server *server = route->members[number].server;

    return !atomic_load_explicit(&server->looked_up, memory_order_relaxed) &&
           !atomic_exchange(&server->looked_up, true) && has_name(server->authority);
}

void
origin_probe_unresolved(struct origin_route *route, unsigned number, int64_t now_us,
                        const char *reason)
{
    struct origin_server *server = route->members[number].server;
    int64_t in_use = 0;

    origin_reason_set(&server->reason, reason);
    if (!atomic_compare_exchange_strong(&server->left_until_us, &in_use,
                                        now_us + ORIGIN_ROUTE_LEFT_US))
        return;
    atomic_store(&server->failures, 1);
    if (route->changed)
        route->changed(&(struct origin_change){.url = route->members[number].url,
                                               .left_us = ORIGIN_ROUTE_LEFT_US,
                                               .reason = reason});
}

static void
fall(struct origin_route *route, unsigned number, const char *reason)
{
    struct origin_server *server = route->members[number].server;

    origin_reason_set(&server->reason, reason);
    if (atomic_exchange(&server->left_until_us, ORIGIN_SERVER_DOWN) != ORIGIN_SERVER_DOWN &&
        route->changed)
        route->changed(&(struct origin_change){
            .url = route->members[number].url, .left_us = ORIGIN_SERVER_DOWN, .reason = reason});
}

static void
rise(struct origin_route *route, unsigned number, int64_t now_us)
{
    struct origin_server *server = route->members[number].server;
    int64_t down = ORIGIN_SERVER_DOWN;

    if (atomic_load(&server->left_until_us) != down)
        return;
    atomic_store(&server->used_again_us, now_us);
    if (atomic_compare_exchange_strong(&server->left_until_us, &down, 0) && route->changed)
        route->changed(&(struct origin_change){.url = route->members[number].url, .reason = ""});
}

/* Counts a probe: how many have passed one behind the other, or, below 0, failed. */
static int
count_probe(struct origin_server *server, const struct origin_probes *probes, bool passed)
{
    int last = atomic_load(&server->probed), now;

    if (passed)
        now = last < 0 ? 1 : last < (int)probes->rise ? last + 1 : last;
    else if (!last)
        now = -(int)probes->fall;
    else
        now = last > 0 ? -1 : last > -(int)probes->fall ? last - 1 : last;
    atomic_store(&server->probed, now);
    return now;
}

/* When the next probe is due. */
static int64_t
find_due(const struct origin_server *server, const struct origin_probes *probes, int64_t now_us)
{
    const bool down = atomic_load(&server->left_until_us) == ORIGIN_SERVER_DOWN;
    const int count = atomic_load(&server->probed);
    const bool contradicts = down ? count > 0 : count < 0;
    const int64_t due_us = atomic_load(&server->probed_us) +
                           probes->interval_us / (contradicts ? ORIGIN_PROBE_HASTE : 1);

    return due_us > now_us ? due_us : now_us;
}

void
origin_probe_end(struct origin_route *route, unsigned number, int64_t now_us,
                 enum origin_probe_result result, const char *reason)
{
    const struct origin_probes *probes = &route->probes;
    struct origin_server *server = route->members[number].server;

    if (result != ORIGIN_PROBE_UNKNOWN) {
        int count = count_probe(server, probes, result == ORIGIN_PROBE_PASSED);

        if (count <= -(int)probes->fall)
            fall(route, number, reason);
        else if (count >= (int)probes->rise)
            rise(route, number, now_us);
    }
    atomic_store(&server->probe_due_us, find_due(server, probes, now_us));
}

bool
origin_probe_accepts(const struct origin_route *route, unsigned status)
{
    return route->probes.status ? status == route->probes.status : status / 100 == 2;
}
