/*
 * MAXS (SIZE in Williams et al., "Removal Policies in Network Caches for World-Wide Web Documents",
 * SIGCOMM 1996): evicts the largest page; hits change nothing. Of pages of one size the one that
 * was inserted first is evicted.
 */
#include "policies/heap_policy.h"

struct maxs_node {
    struct heap_node heap;
    uint64_t bytes;
    uint64_t inserted;
};

static int
maxs_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct maxs_node *x = (const struct maxs_node *)a, *y = (const struct maxs_node *)b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->inserted < y->inserted ? -1 : x->inserted > y->inserted;
}

static void
maxs_new_node(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    (void)state;
    ((struct maxs_node *)node)->bytes = page->bytes;
}

static void
maxs_link_and_initialize(struct heap_policy_state *state, void *node)
{
    ((struct maxs_node *)node)->inserted = state->now;
}

static const struct heap_policy_ops hooks = {
    .compare = maxs_compare,
    .new_node = maxs_new_node,
    .link_and_initialize = maxs_link_and_initialize,
};

const struct policy_ops policy_maxs = {
    .name = "maxs",
    .aliases = (const char *const[]){"size", NULL},
    .summary = "Evicts the largest page.",
    .source = "RPC-Based Web Proxy Server, Table 2 (MAXS)",
    .sizes = "Only sizes count: the largest page is evicted, however often it is requested.",
    .cost = "O(log n) for an insertion and an eviction; a hit costs nothing.",
    .usual = true,
    .node_size = sizeof(struct maxs_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
