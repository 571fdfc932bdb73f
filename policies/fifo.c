/*
 * FIFO (LRC, "least recently created", in reports on caching proxies): evicts the page that was
 * inserted first; hits change nothing. The order is a list to whose end pages are added.
 */
#include "policies/heap_policy.h"

struct fifo_node {
    struct list_node links;
};

static const struct heap_policy_ops hooks = {0};

const struct policy_ops policy_fifo = {
    .name = "fifo",
    .aliases = (const char *const[]){"lrc", NULL},
    .summary = "Evicts the page that was inserted first.",
    .source = "RPC-Based Web Proxy Server, Table 2 (FIFO)",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(1); a hit costs nothing.",
    .usual = true,
    .node_size = sizeof(struct fifo_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
