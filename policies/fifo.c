/*
 * FIFO (LRC, "least recently created", in reports on caching proxies): the page that entered first
 * leaves first; requests change nothing. The order is that of a list at whose end pages enter.
 */
#include "policies/heap_policy.h"

struct fifo_node {
    struct list_node links;
};

static const struct heap_policy_ops hooks = {0};

const struct policy_ops policy_fifo = {
    .name = "fifo",
    .aliases = (const char *const[]){"lrc", NULL},
    .summary = "the page that entered first leaves first",
    .source = "RPC-Based Web Proxy Server, Table 2 (FIFO)",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "O(1); a hit costs nothing.",
    .usual = true,
    .node_size = sizeof(struct fifo_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
