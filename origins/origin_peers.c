#include "origins/origin_peers.h"

#include "origins/origin_balance.h"

unsigned
origin_peers_find(const struct origin_peers *peers, struct span url)
{
    unsigned i = 0;

    while (i < peers->route->count && !span_equal(peers->route->members[i].url, url))
        i++;
    return i;
}

static bool
is_in_use(const struct origin_server *server)
{
    return !atomic_load(&server->left_until_us) && !atomic_load(&server->drained);
}

/* A bit for each peer in use that has too many requests of ours in flight. */
static unsigned
find_overloaded(const struct origin_peers *peers)
{
    const struct origin_route *route = peers->route;
    unsigned in_flight[ORIGIN_ROUTE_MEMBERS] = {0}, sum = 0, count = 0, found = 0, most;

    for (unsigned i = 0; i < route->count; i++) {
        if (i == peers->self || !is_in_use(route->members[i].server))
            continue;
        in_flight[i] = atomic_load(&route->members[i].server->in_flight);
        sum += in_flight[i];
        count++;
    }
    most = ORIGIN_PEERS_EXCESS + (count ? sum * ORIGIN_PEERS_BOUND / 100 / count : 0);
    for (unsigned i = 0; i < route->count; i++)
        if (in_flight[i] >= most)
            found |= 1u << i;
    return found;
}

bool
origin_peers_next(struct origin_peers *peers, struct origin_choice *choice, int64_t now_us)
{
    const unsigned overloaded = find_overloaded(peers);
    const unsigned asked = choice->tried & ~(1u << peers->self);
    struct origin_choice next = *choice;

    if (choice->tried >> peers->self & 1 ||
        (unsigned)__builtin_popcount(asked) >= ORIGIN_PEERS_ASKED)
        return false;
    /* One that is passed by has not failed, so the next one is no retry. */
    if (overloaded && !choice->tried)
        next.unsent = true;
    next.tried |= overloaded;
    if (!origin_route_next(peers->route, &next, now_us))
        return false;
    *choice = next;
    choice->tried = asked | 1u << next.member;
    choice->unsent = false;
    return next.member != peers->self;
}

unsigned
origin_peers_owner(struct origin_peers *peers, struct span url, int64_t now_us)
{
    struct origin_choice choice = {0};
    unsigned members = 1u << peers->self;

    for (unsigned i = 0; i < peers->route->count; i++)
        if (is_in_use(peers->route->members[i].server))
            members |= 1u << i;
    origin_route_set_key(peers->route, &choice, url);
    return origin_balance_pick(peers->route, members, &choice, now_us);
}
