/*
 * Template of an ordering: a policy that evicts the first page of a total order. It writes four
 * hooks; the heap, insertion, eviction and purges are shared (policies/heap_policy.h). Copy it to
 * policies/NAME.c, replace "ordering" by NAME, and add row(NAME) to policies/registry.c.
 * Its test has a template, too: tests/unit/policies/test_template_ordering.c.
 *
 * This one evicts the page with the fewest requests; of equal counts the largest page, and of equal
 * sizes the one whose count was reached first.
 */
#include "policies/heap_policy.h"

/* Beside each cached page, zeroed before insertion. heap comes first. */
struct ordering_node {
    struct heap_node heap;
    uint32_t count;   /* of requests; stays at its maximum */
    uint64_t bytes;   /* as it was inserted */
    uint64_t reached; /* the time at which the count became what it is */
};

/* Negative if a is evicted before b. Ends with something that no two pages share. */
static int
ordering_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct ordering_node *x = (const struct ordering_node *)a;
    const struct ordering_node *y = (const struct ordering_node *)b;

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->reached < y->reached ? -1 : x->reached > y->reached;
}

/* Sets what stays as it is while the page is cached. */
static void
ordering_new_node(struct heap_policy_state *state, void *node, const struct policy_page *page)
{
    (void)state;
    ((struct ordering_node *)node)->bytes = page->bytes;
}

/* Sets what requests change. state->now counts insertions and hits; state->params are there too. */
static void
ordering_link_and_initialize(struct heap_policy_state *state, void *node)
{
    struct ordering_node *inserted = node;

    inserted->count = 1;
    inserted->reached = state->now;
}

/* A hit. It may only move a page away from eviction; HEAP_SAME if it moves nothing. */
static enum heap_change
ordering_update_metadata(struct heap_policy_state *state, void *node,
                         const struct policy_page *page)
{
    struct ordering_node *requested = node;

    (void)page;
    if (requested->count == UINT32_MAX)
        return HEAP_SAME;
    requested->count++;
    requested->reached = state->now;
    return HEAP_LATER;
}

static const struct heap_policy_ops hooks = {
    .compare = ordering_compare,
    .new_node = ordering_new_node,
    .link_and_initialize = ordering_link_and_initialize,
    .update_metadata = ordering_update_metadata,
};

/* The sentences appear in `sunproxy policies` and `sunproxyd --policy help`. */
const struct policy_ops policy_ordering = {
    .name = "ordering",
    .summary = "Evicts the page with the fewest requests, of those the largest.",
    .source = "policies/templates/ordering.c",
    .sizes = "Of pages with equal counts the largest is evicted.",
    .cost = "O(log n) per request: a page moves in a heap.",
    .node_size = sizeof(struct ordering_node),
    .hooks = &hooks,
    HEAP_POLICY_FUNCTIONS,
};
