#include "server/descriptor_plan.h"

#include <sys/resource.h>

enum {
    /* Standard streams, listeners (16 of RPC and a socket, 16 of HTTP, 16 of the metrics), logs,
       the locks of the sockets, the fetcher's loop, spare. */
    FOR_THE_DAEMON = 96,
    /* An event loop and what wakes it. */
    PER_WORKER = 2,
    /* Two while a name is looked up or connections over IPv4 and IPv6 race, and one that is kept
       for the next request to the same origin. */
    PER_FETCH = 3,
};

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
        .need = fixed + connections + tunnels + (uint64_t)fetches * PER_FETCH,
        .limit = limit,
    };
    uint64_t left;

    if (!descriptor_plan_is_short(&plan))
        return plan;
    left = limit > fixed ? limit - fixed : 0;
    if ((uint64_t)fetches * PER_FETCH > left / 2)
        plan.fetches = (uint32_t)(left / 2 / PER_FETCH);
    if (plan.fetches == 0)
        plan.fetches = 1;
    left =
        left > (uint64_t)plan.fetches * PER_FETCH ? left - (uint64_t)plan.fetches * PER_FETCH : 0;
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
