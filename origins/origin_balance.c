#include "origins/origin_balance.h"

#include <math.h>

#include "base/hash.h"

#define PARTS 16 /* of a weight, which rises by one at a time */

static bool
has(unsigned members, unsigned i)
{
    return members >> i & 1;
}

/* In parts: at least one. */
static int64_t
weight_of(const struct origin_route *route, const struct origin_member *member, int64_t now_us)
{
    const int64_t whole = member->weight ? member->weight : 1;
    const int64_t since_us = now_us - atomic_load(&member->server->used_again_us);

    if (route->at_once || since_us >= ORIGIN_ROUTE_WARM_US ||
        !atomic_load(&member->server->used_again_us))
        return whole * PARTS;
    return whole * (since_us > 0 ? 1 + since_us * (PARTS - 1) / ORIGIN_ROUTE_WARM_US : 1);
}

/*
 * Each turn adds its weight to each member's account; the one with the most is chosen and pays all
 * that was added. Two threads at a time may both see the same accounts: then one turn is repeated.
 */
static unsigned
take_turn(struct origin_route *route, unsigned members, int64_t now_us)
{
    unsigned best = ORIGIN_ROUTE_MEMBERS;
    int64_t most = INT64_MIN, sum = 0;

    for (unsigned i = 0; i < route->count; i++) {
        struct origin_member *member = &route->members[i];
        int64_t weight, account;

        if (!has(members, i))
            continue;
        weight = weight_of(route, member, now_us);
        account = atomic_fetch_add(&member->account, weight) + weight;
        sum += weight;
        if (account > most) {
            most = account;
            best = i;
        }
    }
    atomic_fetch_sub(&route->members[best].account, sum);
    return best;
}

/* Those with the fewest requests in flight by weight, once they have this one. */
static unsigned
least_busy(const struct origin_route *route, unsigned members, int64_t now_us)
{
    double fewest = INFINITY;
    unsigned found = 0;

    for (unsigned i = 0; i < route->count; i++) {
        const struct origin_member *member = &route->members[i];
        double load;

        if (!has(members, i))
            continue;
        load = (double)(atomic_load(&member->server->in_flight) + 1) /
               (double)weight_of(route, member, now_us);
        if (load < fewest)
            found = 0;
        if (load <= fewest) {
            fewest = load;
            found |= 1u << i;
        }
    }
    return found;
}

double
origin_balance_score(uint64_t key, struct span name, double weight)
{
    const double u = ((double)(hash64_uint(key ^ hash64_bytes(name)) >> 11) + 0.5) * 0x1p-53;

    return weight / -log(u);
}

/* The highest score wins. */
static unsigned
rendezvous(const struct origin_route *route, unsigned members, uint64_t key, int64_t now_us)
{
    unsigned best = 0;
    double highest = -1;

    for (unsigned i = 0; i < route->count; i++) {
        const struct origin_member *member = &route->members[i];
        double score;

        if (!has(members, i))
            continue;
        score = origin_balance_score(key, member->url, (double)weight_of(route, member, now_us));
        if (score > highest) {
            highest = score;
            best = i;
        }
    }
    return best;
}

unsigned
origin_balance_pick(struct origin_route *route, unsigned members,
                    const struct origin_choice *choice, int64_t now_us)
{
    switch (route->balance) {
    case ORIGIN_BALANCE_FIRST:
        break;
    case ORIGIN_BALANCE_ROUND_ROBIN:
        return take_turn(route, members, now_us);
    case ORIGIN_BALANCE_LEAST:
        return take_turn(route, least_busy(route, members, now_us), now_us);
    case ORIGIN_BALANCE_HASH:
        return rendezvous(route, members, choice->key, now_us);
    }
    return (unsigned)__builtin_ctz(members);
}
