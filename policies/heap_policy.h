/*
 * The paper's function-pointer interface ("RPC-Based Web Proxy Server", section on replacement
 * policies): a policy that is an order on pages writes the four hooks below and has everything else
 * from the shared heap. The page at the top of the heap is the next victim; O(log n) a change.
 *
 * Such a policy's file is: a node whose first member is a struct heap_node, the hooks, and
 *     const struct policy_ops policy_lfu = {
 *         .name = "lfu", ..., .node_size = sizeof(struct lfu_node), .hooks = &hooks,
 *         HEAP_POLICY_FUNCTIONS,
 *     };
 *
 * Where insertions and hits move pages to the end of the order only, no two need to be compared:
 * the order is then a linked list, and a change costs O(1). Such a policy has no compare, and its
 * nodes begin with a struct list_node instead.
 */
#ifndef SUNPROXY_POLICIES_HEAP_POLICY_H
#define SUNPROXY_POLICIES_HEAP_POLICY_H

#include "policies/heap.h"
#include "policies/list.h"
#include "policies/policy.h"

/* What the hooks may use of the instance. */
struct heap_policy_state {
    uint64_t now; /* logical clock: the number of this insert or access, from 1 */

    double params[POLICY_MAX_PARAMS];
};

/* What a request did to a page's place in the order. */
enum heap_change {
    HEAP_SAME,  /* nothing */
    HEAP_LATER, /* its eviction is later than before, or at the same place; never earlier */
    HEAP_LAST, /* it is the last in the order; a policy without compare returns this or HEAP_SAME */
};

struct heap_policy_ops {
    /*
     * Negative when a is evicted before b. A total order, so that every run can be repeated. NULL:
     * the order is that of insertions and of moves to the end (HEAP_LAST).
     */
    heap_compare *compare;

    /*
     * Sets the fields of a new page that stay as they are (its size, say). NULL if there are none.
     */
    void (*new_node)(struct heap_policy_state *state, void *node, const struct policy_page *page);

    /* Sets the fields that hits change to their first values. NULL if there are none. */
    void (*link_and_initialize)(struct heap_policy_state *state, void *node);

    /* A hit; `page` describes it. NULL if hits change nothing. */
    enum heap_change (*update_metadata)(struct heap_policy_state *state, void *node,
                                        const struct policy_page *page);
};

/* The policy_ops functions; `hooks` of the ops is a struct heap_policy_ops. */
struct policy *heap_policy_create(const struct policy_ops *ops, const struct policy_config *config);
void heap_policy_destroy(struct policy *policy);
int heap_policy_insert(struct policy *policy, void *node, const struct policy_page *page);
void heap_policy_access(struct policy *policy, void *node, const struct policy_page *page);
void *heap_policy_victim(struct policy *policy);
void heap_policy_remove(struct policy *policy, void *node, bool evicted);
bool heap_policy_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes);

#define HEAP_POLICY_FUNCTIONS                                                                   \
    .create = heap_policy_create, .destroy = heap_policy_destroy, .insert = heap_policy_insert, \
    .access = heap_policy_access, .victim = heap_policy_victim, .remove = heap_policy_remove,   \
    .is_valid = heap_policy_is_valid

#endif
