/*
 * LFU: evicts the page with the fewest requests. The count begins at 1 with the request that
 * inserted the page and is dropped when it is evicted. Of equal counts the one reached first is
 * evicted.
 */
#include "policies/heap_policy.h"

struct lfu_node {
    struct heap_node heap;
    uint32_t count;   /* of requests; stays at its maximum */
    uint64_t reached; /* when the count became what it is */
};

static int
lfu_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct lfu_node *x = (const struct lfu_node *)a, *y = (const struct lfu_node *)b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->reached < y->reached ? -1 : x->reached > y->reached;
}

static void
lfu_link_and_initialize(struct heap_policy_state *state, void *node)
{
    struct lfu_node *lfu = node;

    lfu->count = 1;
    lfu->reached = state->now;
}

static enum heap_change
lfu_update_metadata(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    struct lfu_node *lfu = node;

    (void)page;
    if (lfu->count == UINT32_MAX)
        return HEAP_SAME;
    lfu->count++;
    lfu->reached = state->now;
    return HEAP_LATER;
}

static const struct heap_policy_ops hooks = {
    .compare = lfu_compare,
    .link_and_initialize = lfu_link_and_initialize,
    .update_metadata = lfu_update_metadata,
};

const struct policy_ops policy_lfu = {
    .name = "lfu",
    .summary = "Evicts the page with the fewest requests since its insertion.",
    .source = "RPC-Based Web Proxy Server, Table 2 (LFU)",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(log n) per request: a page moves in a heap.",
    .usual = true,
    .node_size = sizeof(struct lfu_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
