#include "policies/heap_policy.h"

#include <stdlib.h>

struct policy {
    const struct heap_policy_ops *hooks;
    struct heap_policy_state state;
    struct heap heap; /* where pages are compared */
    struct list list; /* where they are not */
};

struct policy *
heap_policy_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    policy->hooks = ops->hooks;
    heap_init(&policy->heap, policy->hooks->compare);
    list_init(&policy->list);
    policy->state = (struct heap_policy_state){0};
    for (size_t i = 0; i < policy_param_count(ops); i++)
        policy->state.params[i] = policy_param_value(ops, config, i);
    return policy;
}

void
heap_policy_destroy(struct policy *policy)
{
    heap_free(&policy->heap);
    free(policy);
}

int
heap_policy_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    const struct heap_policy_ops *hooks = policy->hooks;

    policy->state.now++;
    if (hooks->new_node)
        hooks->new_node(&policy->state, node, page);
    if (hooks->link_and_initialize)
        hooks->link_and_initialize(&policy->state, node);
    if (!hooks->compare) {
        list_add_last(&policy->list, node, 0);
        return 0;
    }
    if (heap_insert(&policy->heap, node))
        return 0;
    policy->state.now--;
    return -1;
}

void
heap_policy_access(struct policy *policy, void *node, const struct policy_page *page)
{
    policy->state.now++;
    if (!policy->hooks->update_metadata)
        return;
    switch (policy->hooks->update_metadata(&policy->state, node, page)) {
    case HEAP_SAME:
        break;
    case HEAP_LAST:
        if (!policy->hooks->compare)
            list_move_last(&policy->list, node);
        else
            heap_sink(&policy->heap, node);
        break;
    case HEAP_LATER:
        heap_sink(&policy->heap, node);
        break;
    }
}

void *
heap_policy_victim(struct policy *policy)
{
    return policy->hooks->compare ? heap_first(&policy->heap) : list_first(&policy->list);
}

void
heap_policy_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    if (policy->hooks->compare)
        heap_remove(&policy->heap, node);
    else
        list_remove(&policy->list, node, 0);
}

bool
heap_policy_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    return policy->heap.count + policy->list.pages == count && heap_is_valid(&policy->heap) &&
           list_is_valid(&policy->list, NULL);
}
