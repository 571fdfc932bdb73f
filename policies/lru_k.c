/*
 * LRU-K: evicts the page whose K-th last request is the oldest. Pages with fewer than K known
 * requests are evicted before all others, in the order of their oldest known request.
 *
 * The paper keeps the request times of evicted pages for a while ("retained information"). Without
 * it a page must be requested K times within one stay in the cache, so that LRU-2 is weaker than
 * the paper's. libCacheSim keeps none, and neither does the default here. With history=H the times
 * of the last evicted pages are kept: at most H for each page of the largest number of pages that
 * were cached together since the last change of the capacity.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/ghost.h"
#include "policies/heap.h"
#include "policies/policy.h"

#define MAX_K 4

struct lru_k_node {
    struct heap_node heap;
    uint16_t count;        /* of known requests; at most K */
    bool is_complete;      /* the count is K */
    uint64_t times[MAX_K]; /* of the last requests, the oldest first */
    uint64_t key;
};

struct policy {
    struct heap heap;
    struct ghost history; /* words: the count, and the last K - 1 times */
    uint64_t now;         /* the number of this insert or access, from 1 */
    uint64_t most_pages;  /* cached together since the last resize */
    double history_factor;
    uint16_t k;
};

enum { PARAM_K, PARAM_HISTORY };

static int
lru_k_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct lru_k_node *x = (const struct lru_k_node *)a, *y = (const struct lru_k_node *)b;

    if (x->is_complete != y->is_complete)
        return x->is_complete ? 1 : -1;
    return x->times[0] < y->times[0] ? -1 : x->times[0] > y->times[0];
}

static struct policy *
lru_k_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->k = (uint16_t)policy_param_value(ops, config, PARAM_K);
    policy->history_factor = policy_param_value(ops, config, PARAM_HISTORY);
    heap_init(&policy->heap, lru_k_compare);
    ghost_init_with_words(&policy->history, 0, UINT64_MAX, policy->k);
    return policy;
}

static void
lru_k_destroy(struct policy *policy)
{
    heap_free(&policy->heap);
    ghost_free(&policy->history);
    free(policy);
}

static void
lru_k_record(const struct policy *policy, struct lru_k_node *node)
{
    if (node->count == policy->k)
        memmove(node->times, node->times + 1, (policy->k - 1u) * sizeof(node->times[0]));
    else
        node->count++;
    node->times[node->count - 1u] = policy->now;
    node->is_complete = node->count == policy->k;
}

static int
lru_k_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lru_k_node *node = opaque;
    const uint64_t *words = ghost_words(&policy->history, page->key);

    policy->now++;
    node->key = page->key;
    node->count = 0;
    if (words) {
        node->count = (uint16_t)words[0];
        memcpy(node->times, words + 1, node->count * sizeof(node->times[0]));
    }
    lru_k_record(policy, node);
    if (!heap_insert(&policy->heap, &node->heap)) {
        policy->now--;
        return -1;
    }
    ghost_take(&policy->history, page->key);
    if (policy->heap.count > policy->most_pages)
        policy->most_pages = policy->heap.count;
    return 0;
}

static void
lru_k_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct lru_k_node *requested = node;

    (void)page;
    policy->now++;
    lru_k_record(policy, requested);
    if (requested->is_complete)
        heap_sink(&policy->heap, &requested->heap);
}

static void *
lru_k_victim(struct policy *policy)
{
    return heap_first(&policy->heap);
}

static void
lru_k_remember(struct policy *policy, const struct lru_k_node *node)
{
    uint16_t kept = node->count < policy->k ? node->count : (uint16_t)(policy->k - 1);
    uint64_t *words;

    ghost_limit(&policy->history, (uint64_t)((double)policy->most_pages * policy->history_factor),
                UINT64_MAX);
    ghost_add(&policy->history, node->key, 1);
    words = ghost_words(&policy->history, node->key);
    if (!words)
        return;
    words[0] = kept;
    memcpy(words + 1, node->times + (node->count - kept), kept * sizeof(node->times[0]));
}

static void
lru_k_remove(struct policy *policy, void *node, bool evicted)
{
    struct lru_k_node *removed = node;

    heap_remove(&policy->heap, &removed->heap);
    if (evicted && policy->history_factor > 0)
        lru_k_remember(policy, removed);
}

static void
lru_k_resize(struct policy *policy, const struct policy_config *config)
{
    (void)config;
    policy->most_pages = policy->heap.count;
}

static bool
lru_k_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    (void)bytes; /* it keeps no sum of them */
    for (uint32_t i = 0; i < policy->heap.count; i++) {
        const struct lru_k_node *node = (const struct lru_k_node *)policy->heap.slots[i];

        if (node->count == 0 || node->count > policy->k ||
            node->is_complete != (node->count == policy->k) ||
            node->times[node->count - 1u] > policy->now || ghost_has(&policy->history, node->key))
            return false;
    }
    return policy->heap.count == count && heap_is_valid(&policy->heap) &&
           ghost_is_valid(&policy->history);
}

static const struct policy_param params[] = {
    [PARAM_K] = {.name = "k",
                 .start = 2,
                 .low = 1,
                 .high = MAX_K,
                 .whole = true,
                 .meaning = "which of the last requests counts; 1 is LRU"},
    [PARAM_HISTORY] = {.name = "history",
                       .start = 0,
                       .low = 0,
                       .high = 100,
                       .meaning =
                           "evicted pages whose request times are kept, per cached page (the "
                           "paper's retained information)"},
    {.name = NULL},
};

const struct policy_ops policy_lru_k = {
    .name = "lru-k",
    .summary = "Evicts the page whose K-th last request is the oldest.",
    .source = "E. J. O'Neil, P. E. O'Neil, G. Weikum, The LRU-K Page Replacement Algorithm, SIGMOD "
              "1993, section 2",
    .sizes = "Ignores sizes: several small pages may be evicted for a large one.",
    .cost = "O(log n) per request: a page moves in a heap.",
    .params = params,
    .node_size = sizeof(struct lru_k_node),
    .create = lru_k_create,
    .destroy = lru_k_destroy,
    .insert = lru_k_insert,
    .access = lru_k_access,
    .victim = lru_k_victim,
    .remove = lru_k_remove,
    .resize = lru_k_resize,
    .is_valid = lru_k_is_valid,
};
