#include "server/limits/descriptor_plan.h"

#include <sys/resource.h>

enum {
    /* Standard streams, listeners (16 of RPC and a socket, 16 of HTTP, 16 of the metrics), logs,
       the locks of the sockets, the fetcher's loop, spare. */
    FOR_THE_DAEMON = 96,
    /* An event loop, its poller, and what wakes it. */
    PER_WORKER = 3,
    /* The threads that look up names (256), and as many races of connections. */
    MOST_SPARE = 512,
    /* That a store has to leave. */
    LEAST_CONNECTIONS = 64,
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

static uint64_t
smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* all - used, 0 if that is negative. */
static uint64_t
rest(uint64_t all, uint64_t used)
{
    return all > used ? all - used : 0;
}

/* The bound of one client's connections when all are lowered to `connections`; 0 stays. */
static uint32_t
lower_per_client(uint32_t per_client, uint32_t connections, uint32_t wanted_connections)
{
    uint64_t share = (uint64_t)per_client * connections / wanted_connections;
    uint64_t lowered = smaller(per_client, larger(share, connections / 4));

    return per_client && lowered == 0 ? 1 : (uint32_t)lowered;
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
    uint64_t left = rest(limit, fixed), most;

    if (!descriptor_plan_is_short(&plan))
        return plan;
    most = larger(left / 8, rest(left, connections + for_fetches(fetches)));
    plan.tunnels = (uint32_t)smaller(tunnels, most);
    most = larger(rest(left / 2, plan.tunnels), rest(left, (uint64_t)connections + plan.tunnels));
    if (for_fetches(fetches) > most)
        plan.fetches = fetches_of(most);
    most = rest(left, plan.tunnels + for_fetches(plan.fetches));
    plan.connections = most ? (uint32_t)smaller(connections, most) : 1;
    plan.connections_per_client =
        lower_per_client(connections_per_client, plan.connections, connections);
    return plan;
}

uint32_t
descriptor_plan_least(const struct descriptor_plan *without, uint32_t connections)
{
    uint32_t least = connections < LEAST_CONNECTIONS ? connections : LEAST_CONNECTIONS;

    return without->connections < least ? (without->connections + 1) / 2 : least;
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
