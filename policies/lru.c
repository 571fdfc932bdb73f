/*
 * LRU: the least recently requested page leaves first. The paper orders by a timeval of the last
 * request; a logical clock stands for it here, so that two requests are never at the same time.
 */
#include "policies/heap_policy.h"

struct lru_node {
    struct heap_node heap;
    uint64_t requested; /* time of the last request */
};

static int
lru_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct lru_node *x = (const struct lru_node *)a, *y = (const struct lru_node *)b;

    return x->requested < y->requested ? -1 : x->requested > y->requested;
}

static void
lru_link_and_initialize(struct heap_policy_state *state, struct heap_node *node)
{
    ((struct lru_node *)node)->requested = state->now;
}

static enum heap_change
lru_update_metadata(struct heap_policy_state *state, struct heap_node *node)
{
    ((struct lru_node *)node)->requested = state->now;
    return HEAP_LATER;
}

static const struct heap_policy_ops hooks = {
    .compare = lru_compare,
    .link_and_initialize = lru_link_and_initialize,
    .update_metadata = lru_update_metadata,
};

const struct policy_ops policy_lru =
    HEAP_POLICY("lru", "the least recently requested page leaves first",
                "RPC-Based Web Proxy Server, Table 2 (LRU)", sizeof(struct lru_node), &hooks);
