/*
 * CLOCK, or second chance: pages are in a ring, each with a bit that a hit sets. A hand moves from
 * the oldest page on, clears set bits, and stops at the first page whose bit is clear, the victim.
 * The ring is a list here: a page that the hand passes is moved from its old end to its new end.
 *
 * With more than one bit it is a generalised CLOCK (A. J. Smith, "Sequentiality and Prefetching in
 * Database Systems", TODS 1978): each hit adds one, up to the maximum of the bits, and the hand
 * subtracts one when it passes.
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"

struct clock_node {
    struct list_node links;
    uint8_t count; /* of hits, less those that the hand subtracted */
};

struct policy {
    struct list ring; /* the oldest first; the hand is there */
    uint8_t most;     /* maximum of a count */
};

enum { PARAM_BITS };

static struct policy *
clock_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->ring);
    policy->most = (uint8_t)((1u << (unsigned)policy_param_value(ops, config, PARAM_BITS)) - 1);
    return policy;
}

static void
clock_destroy(struct policy *policy)
{
    free(policy);
}

static int
clock_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct clock_node *inserted = node;

    (void)page;
    inserted->count = 0;
    list_add_last(&policy->ring, inserted, 0);
    return 0;
}

static void
clock_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct clock_node *requested = node;

    (void)page;
    if (requested->count < policy->most)
        requested->count++;
}

static void *
clock_victim(struct policy *policy)
{
    struct clock_node *node;

    while ((node = list_first(&policy->ring)) && node->count) {
        node->count--;
        list_move_last(&policy->ring, node);
    }
    return node;
}

static void
clock_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    list_remove(&policy->ring, node, 0);
}

static bool
clock_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    for (const struct clock_node *node = list_first(&policy->ring); node;
         node = list_next(&policy->ring, node)) {
        if (node->count > policy->most)
            return false;
    }
    return policy->ring.pages == count && list_is_valid(&policy->ring, NULL);
}

static const struct policy_param params[] = {
    [PARAM_BITS] =
        {.name = "bits",
         .start = 1,
         .low = 1,
         .high = 8,
         .whole = true,
         .meaning =
             "bits of the count of a page's requests; the hand subtracts one when it passes"},
    {.name = NULL},
};

const struct policy_ops policy_clock = {
    .name = "clock",
    .aliases = (const char *const[]){"second-chance", NULL},
    .summary = "Evicts the oldest page not requested since the hand last passed it.",
    .source = "F. Corbato, A Paging Experiment with the Multics System, MIT 1968",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "A hit counts, up to the bits' maximum; an eviction costs O(1), amortised over hits.",
    .params = params,
    .node_size = sizeof(struct clock_node),
    .create = clock_create,
    .destroy = clock_destroy,
    .insert = clock_insert,
    .access = clock_access,
    .victim = clock_victim,
    .remove = clock_remove,
    .is_valid = clock_is_valid,
};
