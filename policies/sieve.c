/*
 * SIEVE: pages are in order of insertion, each with a bit that a hit sets. A hand moves from the
 * oldest page towards the newest, clears set bits, and stops at the first page whose bit is clear,
 * the victim; the next search begins there. After the newest page the hand continues at the oldest.
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"

struct sieve_node {
    struct list_node links;
    bool requested; /* since its insertion or the last pass of the hand */
};

struct policy {
    struct list pages;       /* the oldest first */
    struct sieve_node *hand; /* the next page to look at; NULL: the oldest */
};

static struct policy *
sieve_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    (void)ops, (void)config;
    if (policy) {
        list_init(&policy->pages);
        policy->hand = NULL;
    }
    return policy;
}

static void
sieve_destroy(struct policy *policy)
{
    free(policy);
}

static int
sieve_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct sieve_node *inserted = node;

    (void)page;
    inserted->requested = false;
    list_add_last(&policy->pages, inserted, 0);
    return 0;
}

static void
sieve_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct sieve_node *requested = node;

    (void)policy, (void)page;
    requested->requested = true;
}

static void *
sieve_victim(struct policy *policy)
{
    struct sieve_node *node = policy->hand ? policy->hand : list_first(&policy->pages);

    while (node && node->requested) {
        node->requested = false;
        node = list_next(&policy->pages, node);
        if (!node)
            node = list_first(&policy->pages);
    }
    policy->hand = node;
    return node;
}

static void
sieve_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    if (policy->hand == node)
        policy->hand = list_next(&policy->pages, node);
    list_remove(&policy->pages, node, 0);
}

static bool
sieve_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    const struct sieve_node *node = list_first(&policy->pages);

    (void)bytes; /* it keeps no sum of them */
    if (policy->pages.pages != count || !list_is_valid(&policy->pages, NULL))
        return false;
    while (node && node != policy->hand)
        node = list_next(&policy->pages, node);
    return node == policy->hand; /* a cached page, or none */
}

const struct policy_ops policy_sieve = {
    .name = "sieve",
    .summary = "Evicts the next page from old to new that was not requested.",
    .source = "Y. Zhang et al., SIEVE is Simpler than LRU, NSDI 2024, algorithm 1",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "A hit sets a bit; an eviction costs O(1), amortised over hits.",
    .usual = true,
    .node_size = sizeof(struct sieve_node),
    .create = sieve_create,
    .destroy = sieve_destroy,
    .insert = sieve_insert,
    .access = sieve_access,
    .victim = sieve_victim,
    .remove = sieve_remove,
    .is_valid = sieve_is_valid,
};
