/*
 * Hyperbolic caching (Blankstein, Sen, Freedman 2017): a page's priority is its number of requests
 * divided by the time since it was inserted, so that priorities fall while pages are not requested
 * and their order changes without any event. No structure can hold such an order: a victim is the
 * page of the lowest priority among some pages drawn at random.
 *
 * Time is counted in requests that hit or insert. With size=divide the priority is divided by the
 * page's bytes (the paper's section 3.1), with size=ignore it is libCacheSim's. Where no more pages
 * are cached than are to be drawn, all are compared. Of equal priorities the page that was found
 * first is evicted.
 */
#include <stdlib.h>

#include "policies/policy.h"
#include "policies/pool.h"

enum size_rule { SIZE_IGNORE, SIZE_DIVIDE };

struct hyperbolic_node {
    struct pool_node pool;
    uint32_t count;    /* of requests; stays at its maximum */
    uint64_t inserted; /* the time */
    uint64_t bytes;    /* at least 1 */
};

struct policy {
    struct pool pool;
    uint64_t now;                   /* the number of this insert or access, from 1 */
    struct hyperbolic_node *victim; /* found, and nothing has changed since; or NULL */
    uint32_t sample;
    enum size_rule size_rule;
};

enum { PARAM_SAMPLE, PARAM_SIZE };

static struct policy *
hyperbolic_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    pool_init(&policy->pool, config->seed);
    policy->sample = (uint32_t)policy_param_value(ops, config, PARAM_SAMPLE);
    policy->size_rule = policy_param_value(ops, config, PARAM_SIZE) > 0 ? SIZE_DIVIDE : SIZE_IGNORE;
    return policy;
}

static void
hyperbolic_destroy(struct policy *policy)
{
    pool_free(&policy->pool);
    free(policy);
}

static int
hyperbolic_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct hyperbolic_node *node = opaque;

    node->count = 1;
    node->inserted = policy->now + 1;
    node->bytes = page->bytes ? page->bytes : 1;
    if (!pool_add(&policy->pool, &node->pool))
        return -1;
    policy->now++;
    policy->victim = NULL;
    return 0;
}

static void
hyperbolic_access(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct hyperbolic_node *node = opaque;

    (void)page;
    policy->now++;
    policy->victim = NULL;
    if (node->count != UINT32_MAX)
        node->count++;
}

/* The page that is to be inserted comes after `now`, so that no age is 0. */
static double
hyperbolic_priority(const struct policy *policy, const struct hyperbolic_node *node)
{
    double age = (double)(policy->now + 1 - node->inserted);

    return (double)node->count /
           (policy->size_rule == SIZE_DIVIDE ? age * (double)node->bytes : age);
}

static void *
hyperbolic_victim(struct policy *policy)
{
    bool all = policy->pool.count <= policy->sample;
    uint32_t candidates = all ? policy->pool.count : policy->sample;
    double lowest = 0;

    if (policy->victim)
        return policy->victim;
    for (uint32_t i = 0; i < candidates; i++) {
        struct hyperbolic_node *node =
            (struct hyperbolic_node *)(all ? policy->pool.nodes[i] : pool_draw(&policy->pool));
        double priority = hyperbolic_priority(policy, node);

        if (policy->victim && priority >= lowest)
            continue;
        policy->victim = node;
        lowest = priority;
    }
    return policy->victim;
}

static void
hyperbolic_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct hyperbolic_node *node = opaque;

    (void)evicted;
    pool_remove(&policy->pool, &node->pool);
    policy->victim = NULL;
}

static bool
hyperbolic_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    for (uint32_t i = 0; i < policy->pool.count; i++) {
        const struct hyperbolic_node *node = (const struct hyperbolic_node *)policy->pool.nodes[i];

        if (node->count == 0 || node->inserted > policy->now)
            return false;
    }
    return policy->pool.count == count && pool_is_valid(&policy->pool);
}

static const char *const size_rules[] = {[SIZE_IGNORE] = "ignore", [SIZE_DIVIDE] = "divide", NULL};

static const struct policy_param params[] = {
    [PARAM_SAMPLE] = {.name = "sample",
                      .start = 64,
                      .low = 1,
                      .high = 1024,
                      .whole = true,
                      .meaning = "pages drawn for each eviction"},
    [PARAM_SIZE] = {.name = "size",
                    .start = SIZE_IGNORE,
                    .low = SIZE_IGNORE,
                    .high = SIZE_DIVIDE,
                    .whole = true,
                    .words = size_rules,
                    .meaning = "whether priorities are divided by the page's bytes"},
    {.name = NULL},
};

const struct policy_ops policy_hyperbolic = {
    .name = "hyperbolic",
    .summary = "Evicts the least requested page for its age, of 64 at random.",
    .source = "A. Blankstein, S. Sen, M. J. Freedman, Hyperbolic Caching: Flexible Caching for Web "
              "Applications, ATC 2017, section 3",
    .sizes = "Ignores sizes, or divides priorities by them (size=divide): small pages stay longer.",
    .cost = "O(1) for a hit, 64 priorities for an eviction.",
    .params = params,
    .draws = true,
    .node_size = sizeof(struct hyperbolic_node),
    .create = hyperbolic_create,
    .destroy = hyperbolic_destroy,
    .insert = hyperbolic_insert,
    .access = hyperbolic_access,
    .victim = hyperbolic_victim,
    .remove = hyperbolic_remove,
    .is_valid = hyperbolic_is_valid,
};
