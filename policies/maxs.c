/*
 * MAXS (SIZE in Williams et al., "Removal Policies in Network Caches for World-Wide Web Documents",
 * SIGCOMM 1996): the largest page leaves first; requests change nothing. Of pages of one size the
 * one that entered first leaves first.
 */
#include "policies/heap_policy.h"

struct maxs_node {
    struct heap_node heap;
    uint64_t bytes;
    uint64_t entered;
};

static int
maxs_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct maxs_node *x = (const struct maxs_node *)a, *y = (const struct maxs_node *)b;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->entered < y->entered ? -1 : x->entered > y->entered;
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
    ((struct maxs_node *)node)->entered = state->now;
}

static const struct heap_policy_ops hooks = {
    .compare = maxs_compare,
    .new_node = maxs_new_node,
    .link_and_initialize = maxs_link_and_initialize,
};

const struct policy_ops policy_maxs = {
    .name = "maxs",
    .aliases = (const char *const[]){"size", NULL},
    .summary = "the largest page leaves first",
    .source = "RPC-Based Web Proxy Server, Table 2 (MAXS)",
    .sizes = "Sizes are all it looks at: the largest leaves, whatever it is worth.",
    .cost = "O(log n) to enter and to leave; a hit costs nothing.",
    .usual = true,
    .node_size = sizeof(struct maxs_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
