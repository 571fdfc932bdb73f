/*
 * FIFO (LRC, "least recently created", in reports on caching proxies): the page that entered first
 * leaves first; requests change nothing.
 */
#include "policies/heap_policy.h"

struct fifo_node {
    struct heap_node heap;
    uint64_t entered;
};

static int
fifo_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct fifo_node *x = (const struct fifo_node *)a, *y = (const struct fifo_node *)b;

    return x->entered < y->entered ? -1 : x->entered > y->entered;
}

static void
fifo_link_and_initialize(struct heap_policy_state *state, struct heap_node *node)
{
    ((struct fifo_node *)node)->entered = state->now;
}

static const struct heap_policy_ops hooks = {
    .compare = fifo_compare,
    .link_and_initialize = fifo_link_and_initialize,
};

const struct policy_ops policy_fifo =
    HEAP_POLICY("fifo", "the page that entered first leaves first",
                "RPC-Based Web Proxy Server, Table 2 (FIFO)", sizeof(struct fifo_node), &hooks);
