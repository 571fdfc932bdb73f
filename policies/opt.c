/*
 * OPT, MIN (Belady 1966, "A study of replacement algorithms for a virtual-storage computer"):
 * evicts the page whose next request is farthest in the future. With pages of one size no policy
 * that inserts every page it misses has fewer misses; one that does not admit every page (TinyLFU)
 * may. It is the reference of other policies. Only a simulation knows the future.
 *
 * Of pages that are never requested again the one that was requested first is evicted.
 */
#include "policies/policy.h"
#include "policies/rank.h"

#include <stdlib.h>

struct opt_node {
    struct rank_node rank; /* major falls as the next request is farther away */
};

struct policy {
    struct rank_heap heap;
    uint64_t now; /* the number of this insert or access, from 1 */
};

static struct policy *
opt_create(const struct policy_ops *ops, const struct policy_config *config)
{
    (void)ops;
    (void)config;
    return calloc(1, sizeof(struct policy));
}

static void
opt_destroy(struct policy *policy)
{
    rank_free(&policy->heap);
    free(policy);
}

static int
opt_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct opt_node *opt = node;

    opt->rank.major = POLICY_NEVER - page->next;
    opt->rank.minor = policy->now + 1;
    if (!rank_insert(&policy->heap, &opt->rank))
        return -1;
    policy->now++;
    return 0;
}

static void
opt_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct opt_node *opt = node;
    uint64_t major = POLICY_NEVER - page->next;
    bool lower = major < opt->rank.major;

    opt->rank.major = major;
    opt->rank.minor = ++policy->now;
    if (lower)
        rank_lowered(&policy->heap, &opt->rank);
}

static void *
opt_victim(struct policy *policy)
{
    return rank_first(&policy->heap);
}

static void
opt_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    rank_remove(&policy->heap, &((struct opt_node *)node)->rank);
}

static bool
opt_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->heap.count == count && rank_is_valid(&policy->heap);
}

const struct policy_ops policy_opt = {
    .name = "opt",
    .aliases = (const char *const[]){"belady", "min", NULL},
    .summary = "Evicts the page with the farthest next request.",
    .source = "Belady 1966, A study of replacement algorithms for a virtual-storage computer",
    .sizes = "Ignores sizes. With pages of one size no policy that admits every page has fewer "
             "misses; one that does not admit every page can do better.",
    .cost = "O(log n), less for pages that are requested again soon.",
    .usual = true,
    .node_size = sizeof(struct opt_node),
    .needs_future = true,
    .create = opt_create,
    .destroy = opt_destroy,
    .insert = opt_insert,
    .access = opt_access,
    .victim = opt_victim,
    .remove = opt_remove,
    .is_valid = opt_is_valid,
};
