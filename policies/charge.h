/*
 * What a cache in bytes charges for a page beside the page's own bytes. The daemon's cache
 * (cache/cache.h) and the simulator charge the same by calling the same function: a capacity that a
 * simulation recommends holds as many pages in a daemon.
 */
#ifndef SUNPROXY_POLICIES_CHARGE_H
#define SUNPROXY_POLICIES_CHARGE_H

#include "policies/policy.h"

/* sizeof(struct page) and sizeof(struct entry); cache/shard.c asserts that they are. */
#define CHARGE_PAGE_STRUCT 48u
#define CHARGE_ENTRY_STRUCT 56u

/*
 * Bytes of bookkeeping for a page under a policy: the most that it costs in glibc's malloc, its
 * entry with the policy's node included. What a policy keeps beside its nodes (ranks, counters,
 * ghosts) is not charged.
 */
uint64_t charge_page_overhead(const struct policy_ops *ops);

/* The largest overhead of all policies in the registry. */
uint64_t charge_largest_overhead(void);

#endif
