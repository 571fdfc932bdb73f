/*
 * TinyLFU (Einziger, Friedman, Manes 2017, "TinyLFU: A Highly Efficient Cache Admission Policy"):
 * LRU with admission by frequency. A page for which others would be evicted is admitted only if it
 * was requested more often, by the sketch's estimates, than each of them. Every request counts, hit
 * or miss, including those for pages that are not admitted.
 */
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/sketch.h"

#include <stdlib.h>

struct tinylfu_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes;
};

struct policy {
    struct list pages; /* least recently requested first */
    struct sketch sketch;
    uint64_t capacity_pages;
    uint64_t capacity_bytes;
};

enum { PARAM_WIDTH, PARAM_SAMPLE };

static void
tinylfu_resize(struct policy *policy, const struct policy_config *config)
{
    policy->capacity_pages = config->capacity_pages;
    policy->capacity_bytes = config->capacity_bytes;
}

static struct policy *
tinylfu_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    if (!sketch_init(&policy->sketch, policy_param_value(ops, config, PARAM_WIDTH),
                     policy_param_value(ops, config, PARAM_SAMPLE))) {
        free(policy);
        return NULL;
    }
    list_init(&policy->pages);
    tinylfu_resize(policy, config);
    return policy;
}

static void
tinylfu_destroy(struct policy *policy)
{
    sketch_free(&policy->sketch);
    free(policy);
}

static bool
tinylfu_admit(struct policy *policy, const struct policy_page *page)
{
    const struct tinylfu_node *victim = list_first(&policy->pages), *old = page->old;
    uint64_t pages = policy->pages.pages + !old;
    uint64_t bytes = policy->pages.bytes + page->bytes - (old ? old->bytes : 0);
    unsigned count;

    sketch_fit(&policy->sketch, pages);
    sketch_count(&policy->sketch, page->key);
    count = sketch_estimate(&policy->sketch, page->key);
    while (victim && ((policy->capacity_pages && pages > policy->capacity_pages) ||
                      (policy->capacity_bytes && bytes > policy->capacity_bytes))) {
        if (victim != old) {
            if (sketch_estimate(&policy->sketch, victim->key) >= count)
                return false;
            pages--;
            bytes -= victim->bytes;
        }
        victim = list_next(&policy->pages, victim);
    }
    return true;
}

static int
tinylfu_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct tinylfu_node *tinylfu = node;

    tinylfu->key = page->key;
    tinylfu->bytes = page->bytes;
    list_add_last(&policy->pages, node, page->bytes);
    return 0;
}

static void
tinylfu_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    sketch_count(&policy->sketch, ((struct tinylfu_node *)node)->key);
    list_move_last(&policy->pages, node);
}

static void *
tinylfu_victim(struct policy *policy)
{
    return list_first(&policy->pages);
}

static void
tinylfu_remove(struct policy *policy, void *node, bool evicted)
{
    (void)evicted;
    list_remove(&policy->pages, node, ((struct tinylfu_node *)node)->bytes);
}

static uint64_t
tinylfu_bytes(const void *node)
{
    return ((const struct tinylfu_node *)node)->bytes;
}

static bool
tinylfu_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->pages.pages == count && policy->pages.bytes == bytes &&
           list_is_valid(&policy->pages, tinylfu_bytes) && sketch_is_valid(&policy->sketch);
}

static const struct policy_param params[] = {
    [PARAM_WIDTH] = SKETCH_PARAM_WIDTH,
    [PARAM_SAMPLE] = SKETCH_PARAM_SAMPLE,
    {.name = NULL},
};

const struct policy_ops policy_tinylfu = {
    .name = "tinylfu",
    .summary = "Evicts by LRU; admits pages requested more often than the victims.",
    .source = "Einziger, Friedman, Manes 2017, TinyLFU: A Highly Efficient Cache Admission Policy",
    .sizes =
        "The capacity is in bytes, frequency per page; a page must be requested more often than "
        "each page that would be evicted for it.",
    .cost = "O(1), and one estimate of the sketch for each page that would be evicted.",
    .params = params,
    .node_size = sizeof(struct tinylfu_node),
    .create = tinylfu_create,
    .destroy = tinylfu_destroy,
    .insert = tinylfu_insert,
    .admit = tinylfu_admit,
    .access = tinylfu_access,
    .victim = tinylfu_victim,
    .remove = tinylfu_remove,
    .resize = tinylfu_resize,
    .is_valid = tinylfu_is_valid,
};
