/*
 * Template of a policy that samples: each eviction compares some pages drawn at random
 * (policies/pool.h), so that their rank may change with time. Copy it to policies/NAME.c, replace
 * "sampling" by NAME, and add row(NAME) to policies/registry.c.
 * Its test has a template, too: tests/unit/policies/test_template_sampling.c.
 *
 * This one evicts the page with the oldest request of those that were drawn: an approximation of
 * LRU in which a hit writes one word.
 */
#include <stdlib.h>

#include "policies/policy.h"
#include "policies/pool.h"

/* Beside each cached page, zeroed before insertion. pool comes first. */
struct sampling_node {
    struct pool_node pool;
    uint64_t requested; /* the time of the last request */
};

struct policy {
    struct pool pool;
    uint64_t now;                 /* the number of this insert or access, from 1 */
    struct sampling_node *victim; /* found, and nothing has changed since; or NULL */
    uint32_t sample;
};

enum { PARAM_SAMPLE };

static struct policy *
sampling_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    pool_init(&policy->pool, config->seed);
    policy->sample = (uint32_t)policy_param_value(ops, config, PARAM_SAMPLE);
    return policy;
}

static void
sampling_destroy(struct policy *policy)
{
    pool_free(&policy->pool);
    free(policy);
}

/* Without memory nothing has changed, and no random number was drawn. */
static int
sampling_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct sampling_node *inserted = node;

    (void)page;
    if (!pool_add(&policy->pool, &inserted->pool))
        return -1;
    inserted->requested = ++policy->now;
    policy->victim = NULL;
    return 0;
}

static void
sampling_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    ((struct sampling_node *)node)->requested = ++policy->now;
    policy->victim = NULL;
}

/* Is kept, because the same answer is due twice if nothing changes between. */
static void *
sampling_victim(struct policy *policy)
{
    bool all = policy->pool.count <= policy->sample;
    uint32_t candidates = all ? policy->pool.count : policy->sample;

    if (policy->victim)
        return policy->victim;
    for (uint32_t i = 0; i < candidates; i++) {
        struct sampling_node *node =
            (struct sampling_node *)(all ? policy->pool.nodes[i] : pool_draw(&policy->pool));

        if (!policy->victim || node->requested < policy->victim->requested)
            policy->victim = node;
    }
    return policy->victim;
}

static void
sampling_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    pool_remove(&policy->pool, &((struct sampling_node *)node)->pool);
    policy->victim = NULL;
}

/* For tests: everything that must hold between two calls. */
static bool
sampling_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->pool.count == count && pool_is_valid(&policy->pool);
}

static const struct policy_param params[] = {
    [PARAM_SAMPLE] = {.name = "sample",
                      .start = 5,
                      .low = 1,
                      .high = 1024,
                      .whole = true,
                      .meaning = "pages drawn for each eviction"},
    {.name = NULL},
};

/* .draws: a simulation repeats it with several seeds. */
const struct policy_ops policy_sampling = {
    .name = "sampling",
    .summary = "Evicts the least recently requested of 5 random pages.",
    .source = "policies/templates/sampling.c",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(1) for a hit, 5 comparisons for an eviction.",
    .params = params,
    .draws = true,
    .node_size = sizeof(struct sampling_node),
    .create = sampling_create,
    .destroy = sampling_destroy,
    .insert = sampling_insert,
    .access = sampling_access,
    .victim = sampling_victim,
    .remove = sampling_remove,
    .is_valid = sampling_is_valid,
};
