/*
 * Which of several members of an origin serves a request (origin_route.h): the rules of balance.
 * Safe on any thread.
 */
#ifndef SUNPROXY_ORIGINS_ORIGIN_BALANCE_H
#define SUNPROXY_ORIGINS_ORIGIN_BALANCE_H

#include "origins/origin_route.h"

/*
 * The member for a request among those whose bits are set, at least one.
 *
 * FIRST: the first one. ROUND_ROBIN: smooth weighted turns, so that of the next N requests, N being
 * the sum of the weights, each member gets as many as its weight. LEAST: the fewest requests in
 * flight by weight, and turns among equals. HASH: rendezvous hashing of choice->key (Thaler,
 * Ravishankar, IEEE/ACM Transactions on Networking 6/1, 1998) with weights, so that a member that
 * comes or goes changes the places of its own share of the keys only.
 *
 * A member that is used again counts with a part of its weight at first, which rises to the whole
 * over ORIGIN_ROUTE_WARM_US, unless the route has at_once.
 */
unsigned origin_balance_pick(struct origin_route *route, unsigned members,
                             const struct origin_choice *choice, int64_t now_us);

/* The score of a name for a key by that hash: weight / -ln(u), u being uniform between 0 and 1 by
 * both. The highest one wins. */
double origin_balance_score(uint64_t key, struct span name, double weight);

#endif
