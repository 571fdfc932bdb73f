/*
 * RAND: evicts a random page, in one of two ways. As in the Sun RPC paper, each page gets a random
 * key on insertion, and the page with the lowest key is evicted; of equal keys the one inserted
 * first. As in the Thrift study (draw=each), each eviction draws one of all cached pages. Hits
 * change nothing. The generator is seeded, so that a run can be repeated.
 */
#include <stdlib.h>

#include "policies/heap.h"
#include "policies/policy.h"
#include "policies/pool.h"

enum draw { DRAW_ONCE, DRAW_EACH };

struct rand_node {
    union {
        struct heap_node heap; /* DRAW_ONCE */
        struct pool_node pool; /* DRAW_EACH */
    };
    uint32_t key;
    uint64_t inserted;
};

struct policy {
    enum draw draw;
    uint64_t inserted;        /* pages so far */
    struct pool pool;         /* the generator; with DRAW_EACH the pages */
    struct heap heap;         /* DRAW_ONCE: the pages by key */
    struct pool_node *victim; /* DRAW_EACH: drawn, and nothing has changed since; or NULL */
};

static int
rand_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct rand_node *x = (const struct rand_node *)a, *y = (const struct rand_node *)b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->inserted < y->inserted ? -1 : x->inserted > y->inserted;
}

static struct policy *
rand_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->draw = policy_param_value(ops, config, 0) > 0 ? DRAW_EACH : DRAW_ONCE;
    pool_init(&policy->pool, config->seed);
    heap_init(&policy->heap, rand_compare);
    return policy;
}

static void
rand_destroy(struct policy *policy)
{
    heap_free(&policy->heap);
    pool_free(&policy->pool);
    free(policy);
}

static int
rand_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct rand_node *inserted = node;
    uint64_t random = policy->pool.random;

    (void)page;
    if (policy->draw == DRAW_EACH) {
        if (!pool_add(&policy->pool, &inserted->pool))
            return -1;
        policy->victim = NULL;
        return 0;
    }
    inserted->key = (uint32_t)(splitmix64_next(&random) >> 32);
    inserted->inserted = policy->inserted + 1;
    if (!heap_insert(&policy->heap, &inserted->heap))
        return -1;
    policy->pool.random = random;
    policy->inserted++;
    return 0;
}

static void
rand_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)policy, (void)node, (void)page;
}

static void *
rand_victim(struct policy *policy)
{
    if (policy->draw == DRAW_ONCE)
        return heap_first(&policy->heap);
    if (!policy->victim && policy->pool.count > 0)
        policy->victim = pool_draw(&policy->pool);
    return policy->victim;
}

static void
rand_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    if (policy->draw == DRAW_ONCE) {
        heap_remove(&policy->heap, node);
        return;
    }
    pool_remove(&policy->pool, &((struct rand_node *)node)->pool);
    policy->victim = NULL;
}

static bool
rand_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->heap.count + policy->pool.count == count && heap_is_valid(&policy->heap) &&
           pool_is_valid(&policy->pool) &&
           (!policy->victim || policy->pool.nodes[policy->victim->slot] == policy->victim);
}

static const char *const draws[] = {[DRAW_ONCE] = "once", [DRAW_EACH] = "each", NULL};

static const struct policy_param params[] = {
    {.name = "draw",
     .start = DRAW_ONCE,
     .low = DRAW_ONCE,
     .high = DRAW_EACH,
     .whole = true,
     .words = draws,
     .meaning = "a random key for each page on insertion, or a random page for each eviction"},
    {.name = NULL},
};

const struct policy_ops policy_rand = {
    .name = "rand",
    .aliases = (const char *const[]){"random", NULL},
    .summary = "Evicts the page with the lowest random key, assigned on insertion.",
    .source =
        "RPC-Based Web Proxy Server, Table 2 (RAND); draw=each: the Thrift study of the same proxy",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(log n) for an insertion and an eviction, O(1) with draw=each; a hit costs nothing.",
    .params = params,
    .usual = true,
    .draws = true,
    .node_size = sizeof(struct rand_node),
    .create = rand_create,
    .destroy = rand_destroy,
    .insert = rand_insert,
    .access = rand_access,
    .victim = rand_victim,
    .remove = rand_remove,
    .is_valid = rand_is_valid,
};
