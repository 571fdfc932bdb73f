/*
 * RAND: each page draws a random key when it enters, and the lowest key leaves first; requests
 * change nothing. The generator is seeded, so that a run can be repeated. Of equal keys the page
 * that entered first leaves first.
 */
#include "policies/heap_policy.h"

struct rand_node {
    struct heap_node heap;
    uint32_t key;
    uint64_t entered;
};

static int
rand_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct rand_node *x = (const struct rand_node *)a, *y = (const struct rand_node *)b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->entered < y->entered ? -1 : x->entered > y->entered;
}

static void
rand_new_node(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    (void)page;
    ((struct rand_node *)node)->key = (uint32_t)(heap_policy_random(state) >> 32);
}

static void
rand_link_and_initialize(struct heap_policy_state *state, void *node)
{
    ((struct rand_node *)node)->entered = state->now;
}

static const struct heap_policy_ops hooks = {
    .compare = rand_compare,
    .new_node = rand_new_node,
    .link_and_initialize = rand_link_and_initialize,
};

const struct policy_ops policy_rand = {
    .name = "rand",
    .summary = "the page with the lowest key, drawn when it entered, leaves first",
    .source = "RPC-Based Web Proxy Server, Table 2 (RAND)",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "O(log n) to enter and to leave; a hit costs nothing.",
    .node_size = sizeof(struct rand_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
