/*
 * CLOCK, or second chance: pages stand in a ring, each with a bit that a request sets. A hand goes
 * round from the oldest; who has the bit loses it and is passed by, and the first without it
 * leaves. The ring is a list here: to be passed by is to go from its old end to its young end.
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"

struct clock_node {
    struct list_node links;
    bool requested; /* since it entered or was passed by */
};

struct policy {
    struct list ring; /* the oldest first: there the hand is */
};

static struct policy *
clock_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    (void)ops, (void)config;
    if (policy)
        list_init(&policy->ring);
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
    struct clock_node *entering = node;

    (void)page;
    entering->requested = false;
    list_add_last(&policy->ring, entering, 0);
    return 0;
}

static void
clock_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct clock_node *requested = node;

    (void)policy, (void)page;
    requested->requested = true;
}

static void *
clock_victim(struct policy *policy)
{
    struct clock_node *node;

    while ((node = list_first(&policy->ring)) && node->requested) {
        node->requested = false;
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
clock_is_valid(const struct policy *policy, uint64_t count)
{
    return policy->ring.pages == count && list_is_valid(&policy->ring, NULL);
}

const struct policy_ops policy_clock = {
    .name = "clock",
    .summary = "the oldest page that was not requested since the hand last passed leaves first",
    .source = "F. Corbato, A Paging Experiment with the Multics System, MIT 1968",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "A hit sets a bit; a victim costs O(1), amortised over the hits before.",
    .node_size = sizeof(struct clock_node),
    .create = clock_create,
    .destroy = clock_destroy,
    .insert = clock_insert,
    .access = clock_access,
    .victim = clock_victim,
    .remove = clock_remove,
    .is_valid = clock_is_valid,
};
