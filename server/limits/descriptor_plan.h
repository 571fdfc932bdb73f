/*
 * How many descriptors the daemon's limits need, and what the limits are lowered to when the
 * process may not have as many (RLIMIT_NOFILE). Pure arithmetic.
 *
 * What the daemon itself and the reserve of administrators need is set aside first. Of the rest,
 * clients' connections have at least half, and tunnels have at most an eighth. Fetches have at most
 * what tunnels leave of the other half. So there are more connections than fetches and tunnels
 * together, each of which serves a client's connection. And a client that opens connections until
 * there is no more descriptor leaves fetches and tunnels theirs. What one of the three does not
 * want is for the others, connections first.
 *
 * The bound of one client's connections stays if it is a quarter of all connections or less.
 * Otherwise it is lowered in proportion to them, but not below that quarter.
 */
#ifndef SUNPROXY_SERVER_LIMITS_DESCRIPTOR_PLAN_H
#define SUNPROXY_SERVER_LIMITS_DESCRIPTOR_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The reserve of administrators: connections, and descriptors. */
#define DESCRIPTOR_PLAN_RESERVE 16u

struct descriptor_plan {
    uint32_t connections;
    uint32_t connections_per_client; /* 0: not bounded */
    uint32_t fetches;
    uint32_t tunnels;
    uint64_t need;  /* descriptors, for what was wanted */
    uint64_t limit; /* that the process may have */
    uint64_t files; /* of the store, in both; descriptor_plan_make() knows none */
};

/*
 * What becomes of the wanted connections and fetches (1 and more) and tunnels with `limit`
 * descriptors and `workers` threads. All stay as they are if that is enough; otherwise they are
 * lowered by the rule above, but connections, fetches and a bound of one client not below 1.
 */
struct descriptor_plan descriptor_plan_make(uint32_t connections, uint32_t connections_per_client,
                                            uint32_t fetches, uint32_t tunnels, uint32_t workers,
                                            uint64_t limit);

/* Had anything to be lowered? */
bool descriptor_plan_is_short(const struct descriptor_plan *plan);

/*
 * The connections that a store has to leave, 64 of `connections` wanted; or half of those that
 * there would be without it, if these are fewer: `without` is the plan with no files.
 */
uint32_t descriptor_plan_least(const struct descriptor_plan *without, uint32_t connections);

/* Raises the soft limit of the process to the hard one; returns it, UINT64_MAX if there is none. */
uint64_t descriptor_plan_raise_limit(void);

#endif
