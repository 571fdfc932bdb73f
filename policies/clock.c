/*
 * CLOCK, or second chance: pages stand in a ring, each with a bit that a request sets. A hand goes
 * round from the oldest; who has the bit loses it and is passed by, and the first without it
 * leaves. The ring is a list here: to be passed by is to go from its old end to its young end.
 *
 * With more bits than one it is a generalised CLOCK (A. J. Smith, "Sequentiality and Prefetching in
 * Database Systems", TODS 1978): each request adds one, as far as the bits go, and each pass of the
 * hand takes one off.
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"

struct clock_node {
    struct list_node links;
    uint8_t count; /* of requests since it entered, less those that the hand took off */
};

struct policy {
    struct list ring; /* the oldest first: there the hand is */
    uint8_t most;     /* that a page's count can be */
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
    struct clock_node *entering = node;

    (void)page;
    entering->count = 0;
    list_add_last(&policy->ring, entering, 0);
    return 0;
}

static void
clock_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct clock_node *requested = node;

    (void)page;
    /* Without a branch, which nobody could foresee. */
    requested->count = (uint8_t)(requested->count + (requested->count < policy->most));
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
         .meaning = "how far a page's requests are counted, in bits; each pass of the hand takes "
                    "one off"},
    {.name = NULL},
};

const struct policy_ops policy_clock = {
    .name = "clock",
    .aliases = (const char *const[]){"second-chance", NULL},
    .summary = "the oldest page that was not requested since the hand last passed leaves first",
    .source = "F. Corbato, A Paging Experiment with the Multics System, MIT 1968",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost =
        "A hit counts, as far as the bits go; a victim costs O(1), amortised over the hits before.",
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
