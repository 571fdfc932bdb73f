/*
 * LRU-K: the page whose K-th last request is longest ago leaves first. Pages that were requested
 * fewer than K times have none: they leave before all others, in the order in which they entered.
 * What is known of a page is forgotten when it leaves; the paper's retained information is left
 * out.
 */
#include <string.h>

#include "policies/heap_policy.h"

#define MAX_K 4

struct lru_k_node {
    struct heap_node heap;
    uint16_t count;        /* of requests; stays at K */
    bool is_known;         /* the count is K */
    uint64_t times[MAX_K]; /* of the last K requests, the oldest first */
};

static int
lru_k_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct lru_k_node *x = (const struct lru_k_node *)a, *y = (const struct lru_k_node *)b;

    if (x->is_known != y->is_known)
        return x->is_known ? 1 : -1;
    return x->times[0] < y->times[0] ? -1 : x->times[0] > y->times[0];
}

static void
lru_k_note(const struct heap_policy_state *state, struct lru_k_node *lru_k)
{
    uint16_t k = (uint16_t)state->params[0];

    if (lru_k->count == k)
        memmove(lru_k->times, lru_k->times + 1, (k - 1u) * sizeof(lru_k->times[0]));
    else
        lru_k->count++;
    lru_k->times[lru_k->count - 1u] = state->now;
    lru_k->is_known = lru_k->count == k;
}

static void
lru_k_link_and_initialize(struct heap_policy_state *state, void *node)
{
    struct lru_k_node *lru_k = node;

    lru_k->count = 0;
    lru_k_note(state, lru_k);
}

static enum heap_change
lru_k_update_metadata(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    struct lru_k_node *lru_k = node;

    (void)page;
    lru_k_note(state, lru_k);
    return lru_k->is_known ? HEAP_LATER : HEAP_SAME;
}

static const struct heap_policy_ops hooks = {
    .compare = lru_k_compare,
    .link_and_initialize = lru_k_link_and_initialize,
    .update_metadata = lru_k_update_metadata,
};

static const struct policy_param params[] = {
    {.name = "k",
     .start = 2,
     .low = 1,
     .high = MAX_K,
     .whole = true,
     .meaning = "which of the last requests counts; 1 is LRU"},
    {.name = NULL},
};

const struct policy_ops policy_lru_k = {
    .name = "lru-k",
    .summary = "the page whose K-th last request is longest ago leaves first",
    .source = "E. J. O'Neil, P. E. O'Neil, G. Weikum, The LRU-K Page Replacement Algorithm, SIGMOD "
              "1993, section 2",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "O(log n): a page sinks in a heap.",
    .params = params,
    .node_size = sizeof(struct lru_k_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
