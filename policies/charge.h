/*
 * What a cache in bytes charges for a page beside the page's own bytes. The daemon's cache
 * (cache/cache.h) and the simulator charge the same by calling the same function: a capacity that a
 * simulation recommends holds as many pages in a daemon.
 */
#ifndef SUNPROXY_POLICIES_CHARGE_H
#define SUNPROXY_POLICIES_CHARGE_H

#include "policies/policy.h"

/*
 * sizeof(struct object) and sizeof(struct entry), and the least memory that an entry has for a
 * policy's node; cache/shard.c asserts that they are.
 */
#define CHARGE_OBJECT_STRUCT 64u
#define CHARGE_ENTRY_STRUCT 40u
#define CHARGE_LEAST_NODE 16u

/*
 * Bytes of bookkeeping for a page under a policy: what it costs in the arena (base/arena.h) where
 * its blocks fit, its entry with the policy's node included. What a policy keeps beside its nodes
 * (ranks, counters, ghosts) is not charged.
 */
uint64_t charge_page_overhead(const struct policy_ops *ops);

/* The largest overhead of all policies in the registry. */
uint64_t charge_largest_overhead(void);

#endif
