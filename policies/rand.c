/*
 * RAND: somebody at random leaves, in one of two ways. As in the Sun RPC paper, each page draws a
 * key when it enters, and the lowest leaves; of equal ones the page that entered first. As in the
 * Thrift study, the victim is drawn anew each time, all pages alike. Requests change nothing. The
 * generator is seeded, so that a run can be repeated.
 */
#include <stdlib.h>

#include "policies/heap_policy.h"

enum draw { DRAW_ONCE, DRAW_EACH };

struct rand_node {
    struct heap_node heap;
    uint32_t key;
    uint64_t entered;
};

struct policy {
    enum draw draw;
    struct heap_policy_state state;
    struct heap heap;         /* with DRAW_EACH just the array that it is */
    struct heap_node *victim; /* that was drawn, until a page enters or leaves; NULL: none yet */
};

static int
rand_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct rand_node *x = (const struct rand_node *)a, *y = (const struct rand_node *)b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->entered < y->entered ? -1 : x->entered > y->entered;
}

/* Whoever is higher up may stay there: nodes enter at the end of the array and are never moved up.
 */
static int
rand_compare_nothing(const struct heap_node *a, const struct heap_node *b)
{
    (void)a, (void)b;
    return -1;
}

static struct policy *
rand_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    policy->draw = policy_param_value(ops, config, 0) > 0 ? DRAW_EACH : DRAW_ONCE;
    policy->state = (struct heap_policy_state){.rng = config->seed};
    policy->victim = NULL;
    heap_init(&policy->heap, policy->draw == DRAW_ONCE ? rand_compare : rand_compare_nothing);
    return policy;
}

static void
rand_destroy(struct policy *policy)
{
    heap_free(&policy->heap);
    free(policy);
}

static int
rand_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    uint64_t before = policy->state.rng;
    struct rand_node *entering = node;

    (void)page;
    if (policy->draw == DRAW_ONCE)
        entering->key = (uint32_t)(heap_policy_random(&policy->state) >> 32);
    entering->entered = ++policy->state.now;
    if (!heap_insert(&policy->heap, &entering->heap)) {
        policy->state.rng = before; /* as if it had not been asked for */
        return -1;
    }
    policy->victim = NULL;
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
    if (policy->draw == DRAW_ONCE || policy->heap.count == 0)
        return heap_first(&policy->heap);
    if (!policy->victim) {
        uint64_t high = heap_policy_random(&policy->state) >> 32;

        /* 32 random bits as a fraction of the count: off by at most count / 2^32. */
        policy->victim = policy->heap.slots[high * policy->heap.count >> 32];
    }
    return policy->victim;
}

static void
rand_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    heap_remove(&policy->heap, node);
    policy->victim = NULL;
}

static bool
rand_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->heap.count == count && heap_is_valid(&policy->heap) &&
           (!policy->victim || policy->heap.slots[policy->victim->slot] == policy->victim);
}

static const char *const draws[] = {[DRAW_ONCE] = "once", [DRAW_EACH] = "each", NULL};

static const struct policy_param params[] = {
    {.name = "draw",
     .start = DRAW_ONCE,
     .low = DRAW_ONCE,
     .high = DRAW_EACH,
     .whole = true,
     .words = draws,
     .meaning = "a key for each page when it enters, or a new victim each time"},
    {.name = NULL},
};

const struct policy_ops policy_rand = {
    .name = "rand",
    .aliases = (const char *const[]){"random", NULL},
    .summary = "the page with the lowest key, drawn when it entered, leaves first",
    .source =
        "RPC-Based Web Proxy Server, Table 2 (RAND); draw=each: the Thrift study of the same proxy",
    .sizes = "Does not look at sizes: several small pages may leave for a large one.",
    .cost = "O(log n) to enter and to leave, O(1) with draw=each; a hit costs nothing.",
    .params = params,
    .node_size = sizeof(struct rand_node),
    .create = rand_create,
    .destroy = rand_destroy,
    .insert = rand_insert,
    .access = rand_access,
    .victim = rand_victim,
    .remove = rand_remove,
    .is_valid = rand_is_valid,
};
