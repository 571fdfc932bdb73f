/*
 * LRU: evicts the least recently requested page. The paper orders pages by a timeval of the last
 * request. A requested page is always the latest of all, so the order is a list to whose end it is
 * moved, and no time is stored.
 */
#include "policies/heap_policy.h"

struct lru_node {
    struct list_node links;
};

static enum heap_change
lru_update_metadata(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    (void)state, (void)node, (void)page;
    return HEAP_LAST;
}

static const struct heap_policy_ops hooks = {.update_metadata = lru_update_metadata};

const struct policy_ops policy_lru = {
    .name = "lru",
    .summary = "Evicts the least recently requested page.",
    .source = "RPC-Based Web Proxy Server, Table 2 (LRU)",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(1): a page moves to the end of a list.",
    .usual = true,
    .node_size = sizeof(struct lru_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
