/*
 * LRU: the least recently requested page leaves first. The paper orders by a timeval of the last
 * request. A page that is requested is then always the latest of all, so that the order is a list
 * in which it goes to the end, and no time needs to be kept.
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
    .summary = "the least recently requested page leaves first",
    .source = "RPC-Based Web Proxy Server, Table 2 (LRU)",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "O(1): a page moves to the end of a list.",
    .usual = true,
    .node_size = sizeof(struct lru_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
