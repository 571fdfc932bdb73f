/*
 * MRU: evicts the most recently requested page. It suits requests that repeat in a cycle larger
 * than the cache, for which LRU evicts each page just before its next request.
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"

struct mru_node {
    struct list_node links;
};

struct policy {
    struct list pages; /* the most recently requested last */
};

static struct policy *
mru_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    (void)ops, (void)config;
    if (policy)
        list_init(&policy->pages);
    return policy;
}

static void
mru_destroy(struct policy *policy)
{
    free(policy);
}

static int
mru_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    list_add_last(&policy->pages, node, 0);
    return 0;
}

static void
mru_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    list_move_last(&policy->pages, node);
}

static void *
mru_victim(struct policy *policy)
{
    return list_last(&policy->pages);
}

static void
mru_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    list_remove(&policy->pages, node, 0);
}

static bool
mru_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->pages.pages == count && list_is_valid(&policy->pages, NULL);
}

const struct policy_ops policy_mru = {
    .name = "mru",
    .summary = "Evicts the most recently requested page.",
    .source = "H.-T. Chou, D. J. DeWitt, An Evaluation of Buffer Management Strategies for "
              "Relational Database Systems, VLDB 1985, section 2",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(1): a page moves to the end of a list.",
    .node_size = sizeof(struct mru_node),
    .create = mru_create,
    .destroy = mru_destroy,
    .insert = mru_insert,
    .access = mru_access,
    .victim = mru_victim,
    .remove = mru_remove,
    .is_valid = mru_is_valid,
};
