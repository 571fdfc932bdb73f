#include "server/descriptor_plan.h"

#include <sys/resource.h>

enum {
    /* Standard streams, listeners (16 of RPC and a socket, 16 of HTTP, 16 of the metrics), logs,
       the locks of the sockets, the fetcher's loop, spare. */
    FOR_THE_DAEMON = 96,
    /* An event loop, its poller, and what wakes it. */
    PER_WORKER = 3,
    /* The threads that look up names (256), and as many races of connections. */
    MOST_SPARE = 512,
};

/*
 * A connection for each fetch; the fetcher has hardly more, kept ones included. And spare ones, for
 * every second fetch up to a bound: a name is being looked up, or connections over IPv4 and IPv6
 * race. A race for which there is no descriptor is not begun.
 */
static uint64_t
for_fetches(uint64_t fetches)
{
    uint64_t spare = (fetches + 1) / 2;

    return fetches + (spare < MOST_SPARE ? spare : MOST_SPARE);
}

/* The most fetches for which that many descriptors are enough; at least 1. */
static uint32_t
fetches_of(uint64_t descriptors)
{
    uint64_t fetches =
        descriptors < 3 * MOST_SPARE ? descriptors * 2 / 3 : descriptors - MOST_SPARE;

    return fetches ? (uint32_t)fetches : 1;
}

struct descriptor_plan
descriptor_plan_make(uint32_t connections, uint32_t connections_per_client, uint32_t fetches,
                     uint32_t tunnels, uint32_t workers, uint64_t limit)
{
    uint64_t fixed = FOR_THE_DAEMON + (uint64_t)workers * PER_WORKER + DESCRIPTOR_PLAN_RESERVE;
    struct descriptor_plan plan = {
        .connections = connections,
        .connections_per_client = connections_per_client,
        .fetches = fetches,
        .tunnels = tunnels,
        .need = fixed + connections + tunnels + for_fetches(fetches),
        .limit = limit,
    };
    uint64_t left, others = (uint64_t)connections + tunnels, most;

    if (!descriptor_plan_is_short(&plan))
        return plan;
    left = limit > fixed ? limit - fixed : 0;
    most = left > 2 * others ? left - others : left / 2;
    if (for_fetches(fetches) > most)
        plan.fetches = fetches_of(most);
    left = left > for_fetches(plan.fetches) ? left - for_fetches(plan.fetches) : 0;
    if (left < (uint64_t)plan.connections + tunnels && tunnels > left / 4)
        plan.tunnels = (uint32_t)(left / 4);
    left -= plan.tunnels;
    if (left < plan.connections)
        plan.connections = left ? (uint32_t)left : 1;
    if (connections_per_client) {
        uint64_t share = (uint64_t)connections_per_client * plan.connections / connections;

        plan.connections_per_client = share ? (uint32_t)share : 1;
    }
    return plan;
}

bool
descriptor_plan_is_short(const struct descriptor_plan *plan)
{
    return plan->limit < plan->need;
}

uint64_t
descriptor_plan_raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return UINT64_MAX;
    if (limit.rlim_cur < limit.rlim_max) {
        struct rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};

        /* RLIM_INFINITY may be more than the system gives a process (fs.nr_open). */
        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            limit = raised;
    }
    return limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : (uint64_t)limit.rlim_cur;
}
