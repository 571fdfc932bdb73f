/*
 * What a replacement policy is to a cache: something that is told of every page that enters, is
 * requested and leaves, and names the page that should leave next. A policy does no I/O, takes no
 * lock and knows no URL. Any structure can stand behind it; one that is simply an order on pages
 * is written with four hooks over the shared heap (heap_policy.h).
 *
 * For each page the cache keeps a node of the size that the policy states, zeroed and aligned to 8
 * bytes, and hands its address to each call. The node belongs to the policy from insert to remove
 * and stays at its address for that time; what a policy needs beyond nodes (a heap's array, say) it
 * allocates itself.
 *
 * Threads: an instance is used under one lock, that of the cache's shard. Instances are independent.
 */
#ifndef SUNPROXY_POLICIES_POLICY_H
#define SUNPROXY_POLICIES_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy; /* one instance; each policy defines its own */

struct policy_config {
    uint64_t capacity_pages; /* 0: not bounded in pages */
    uint64_t capacity_bytes; /* 0: not bounded in bytes */
    uint64_t seed;           /* of the generator, for policies that draw; the same seed repeats a run */
};

/* What a policy may know of a page when it enters. */
struct policy_page {
    uint64_t bytes; /* as the cache counts them; 1 where every page counts the same */
};

struct policy_ops {
    const char *name;    /* as it is typed after --policy, in lower case */
    const char *summary; /* one line for people: which page leaves first */
    const char *source;  /* paper and section of the rule */
    size_t node_size;    /* bytes of a node */
    const void *hooks;   /* what a shared implementation needs, e.g. struct heap_policy_ops */

    /* A new instance, or NULL when there is no memory. */
    struct policy *(*create)(const struct policy_ops *ops, const struct policy_config *config);

    /* Frees the instance; nodes still inside are forgotten, not touched. */
    void (*destroy)(struct policy *policy);

    /*
     * A page enters. 0, or -1 without memory, in which case nothing has changed. Right after a
     * remove it cannot fail: what one page leaves behind is enough for the next, so that a cache
     * never evicts for a page that then cannot enter. Memory for anything else (ghosts, history) is
     * done without where there is none.
     */
    int (*insert)(struct policy *policy, void *node, const struct policy_page *page);

    /* A page that is inside was requested. Cannot fail. */
    void (*access)(struct policy *policy, void *node);

    /*
     * The node that should leave next, or NULL if none is inside. Does not take it out: the cache
     * calls remove. Asked twice without a change between, it gives the same answer.
     */
    void *(*victim)(struct policy *policy);

    /* A page leaves, as victim or for any other reason. Cannot fail. */
    void (*remove)(struct policy *policy, void *node);

    /*
     * The cache's capacity is from now on that of `config`; pages may still be inside beyond it and
     * leave next. Cannot fail. NULL for a policy that does not look at the capacity.
     */
    void (*resize)(struct policy *policy, const struct policy_config *config);

    /* True if exactly `count` nodes are inside and all structures agree. For tests; O(n). */
    bool (*is_valid)(const struct policy *policy, uint64_t count);
};

/* The registry: every policy there is, in the order in which people are shown them, ended by NULL. */
extern const struct policy_ops *const policies[];

/* The policy of that name, in any case ("LRU", "lru"), or NULL. */
const struct policy_ops *policy_find(const char *name);

#endif
