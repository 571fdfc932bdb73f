/*
 * RAND: the victim is random, in one of two ways. As in the Sun RPC paper, each page draws a
 * key when it enters, and the lowest leaves; of equal ones the page that entered first. As in the
 * Thrift study, the victim is drawn anew each time, all pages alike. Requests change nothing. The
 * generator is seeded, so that a run can be repeated.
 */
#include <stdlib.h>

#include "base/hash.h"
#include "policies/heap.h"
#include "policies/policy.h"
#include "policies/slots.h"

enum draw { DRAW_ONCE, DRAW_EACH };

struct rand_node {
    struct heap_node heap;
    uint32_t key;
    uint64_t entered;
};

struct policy {
    enum draw draw;
    uint64_t random;  /* state of SplitMix64 */
    uint64_t entered; /* pages so far */
    struct heap heap; /* DRAW_ONCE: by key */

    /* DRAW_EACH: an array in no order, whose nodes have their places in it as in a heap. */
    struct heap_node **nodes;
    uint32_t count, room;
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

static struct policy *
rand_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->draw = policy_param_value(ops, config, 0) > 0 ? DRAW_EACH : DRAW_ONCE;
    policy->random = config->seed;
    heap_init(&policy->heap, rand_compare);
    return policy;
}

static void
rand_destroy(struct policy *policy)
{
    heap_free(&policy->heap);
    free(policy->nodes);
    free(policy);
}

/* Puts a node at the end of the array; false without memory. */
static bool
rand_append(struct policy *policy, struct heap_node *node)
{
    if (policy->count == policy->room) {
        struct heap_node **nodes = policy->count < UINT32_MAX
                                       ? slots_grow(policy->nodes, &policy->room, sizeof(*nodes))
                                       : NULL;

        if (!nodes)
            return false;
        policy->nodes = nodes;
    }
    node->slot = policy->count;
    policy->nodes[policy->count++] = node;
    return true;
}

/* The last node of the array takes the place of one that leaves. */
static void
rand_take_out(struct policy *policy, const struct heap_node *node)
{
    struct heap_node *last = policy->nodes[--policy->count];

    last->slot = node->slot;
    policy->nodes[last->slot] = last;
    policy->nodes =
        slots_shrink(policy->nodes, &policy->room, policy->count, sizeof(struct heap_node *));
}

static int
rand_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct rand_node *entering = node;
    uint64_t random = policy->random;

    (void)page;
    if (policy->draw == DRAW_EACH) {
        if (!rand_append(policy, &entering->heap))
            return -1;
        policy->victim = NULL;
        return 0;
    }
    entering->key = (uint32_t)(splitmix64_next(&random) >> 32);
    entering->entered = policy->entered + 1;
    if (!heap_insert(&policy->heap, &entering->heap))
        return -1;
    policy->random = random;
    policy->entered++;
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
    if (!policy->victim && policy->count > 0) {
        uint64_t high = splitmix64_next(&policy->random) >> 32;

        /* 32 random bits as a fraction of the count: off by at most count / 2^32. */
        policy->victim = policy->nodes[high * policy->count >> 32];
    }
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
    rand_take_out(policy, node);
    policy->victim = NULL;
}

static bool
rand_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    for (uint32_t i = 0; i < policy->count; i++)
        if (policy->nodes[i]->slot != i)
            return false;
    return policy->heap.count + policy->count == count && heap_is_valid(&policy->heap) &&
           policy->count <= policy->room &&
           (!policy->victim || policy->nodes[policy->victim->slot] == policy->victim);
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
