#include "policies/heap_policy.h"

#include <stdlib.h>

struct policy {
    const struct heap_policy_ops *hooks;
    struct heap heap;
    struct heap_policy_state state;
};

/* Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators" (2014), figure 16. */
uint64_t
heap_policy_random(struct heap_policy_state *state)
{
    uint64_t z = state->rng += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct policy *
heap_policy_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    policy->hooks = ops->hooks;
    heap_init(&policy->heap, policy->hooks->compare);
    policy->state = (struct heap_policy_state){.rng = config->seed};
    return policy;
}

void
heap_policy_destroy(struct policy *policy)
{
    if (!policy)
        return;
    heap_free(&policy->heap);
    free(policy);
}

int
heap_policy_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct heap_policy_state before = policy->state;

    policy->state.now++;
    if (policy->hooks->new_node)
        policy->hooks->new_node(&policy->state, node, page);
    policy->hooks->link_and_initialize(&policy->state, node);
    if (heap_insert(&policy->heap, node))
        return 0;
    policy->state = before; /* a drawn key, too, was not drawn */
    return -1;
}

void
heap_policy_access(struct policy *policy, void *node)
{
    policy->state.now++;
    if (!policy->hooks->update_metadata)
        return;
    switch (policy->hooks->update_metadata(&policy->state, node)) {
    case HEAP_SAME:
        break;
    case HEAP_LATER:
        heap_sink(&policy->heap, node);
        break;
    case HEAP_MOVED:
        heap_update(&policy->heap, node);
        break;
    }
}

void *
heap_policy_victim(struct policy *policy)
{
    return heap_first(&policy->heap);
}

void
heap_policy_remove(struct policy *policy, void *node)
{
    heap_remove(&policy->heap, node);
}

bool
heap_policy_is_valid(const struct policy *policy, uint64_t count)
{
    return policy->heap.count == count && heap_is_valid(&policy->heap);
}
