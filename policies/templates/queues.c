/*
 * Template of a policy of queues: intrusive lists (policies/list.h), shares of the capacity
 * (policies/share.h), keys of evicted pages (policies/ghost.h) and a parameter. Copy it to
 * policies/NAME.c, replace "queues" by NAME, and add row(NAME) to policies/registry.c.
 * Its test has a template, too: tests/unit/policies/test_template_queues.c.
 *
 * This one has a FIFO queue for new pages with a share of the capacity, and an LRU list. A hit
 * moves a page from the queue to the list; a page that is requested while its key is remembered is
 * inserted there. Victims come from the queue while it is over its share, or the list is empty.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

/* Beside each cached page, zeroed before insertion. links come first. */
struct queues_node {
    struct list_node links;
    uint64_t key; /* for ghosts */
    uint64_t bytes;
    bool is_main;
};

struct policy {
    struct list new, main; /* the next victim first */
    struct share new_share;
    struct ghost ghosts; /* of the new queue */
    bool was_ghost;      /* the page of the last admit() */
    double new_fraction;
};

enum { PARAM_NEW };

/* The capacity changed; pages beyond it are still there and are evicted after this. */
static void
queues_resize(struct policy *policy, const struct policy_config *config)
{
    struct share ghosts = share_of(config, 1);

    policy->new_share = share_of(config, policy->new_fraction);
    ghost_limit(&policy->ghosts, ghosts.pages, ghosts.bytes);
}

static struct policy *
queues_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->new);
    list_init(&policy->main);
    ghost_init(&policy->ghosts, 0, 0);
    policy->new_fraction = policy_param_value(ops, config, PARAM_NEW);
    queues_resize(policy, config);
    return policy;
}

static void
queues_destroy(struct policy *policy)
{
    ghost_free(&policy->ghosts);
    free(policy);
}

/* A miss, before victims are chosen. False would keep the page out of the cache. */
static bool
queues_admit(struct policy *policy, const struct policy_page *page)
{
    policy->was_ghost = ghost_take(&policy->ghosts, page->key);
    return true;
}

/* -1 if memory that this page alone needs cannot be allocated; lists need none. */
static int
queues_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct queues_node *inserted = node;

    inserted->key = page->key;
    inserted->bytes = page->bytes;
    inserted->is_main = policy->was_ghost;
    list_add_last(inserted->is_main ? &policy->main : &policy->new, inserted, inserted->bytes);
    policy->was_ghost = false;
    return 0;
}

static void
queues_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct queues_node *requested = node;

    (void)page;
    list_remove(requested->is_main ? &policy->main : &policy->new, requested, requested->bytes);
    list_add_last(&policy->main, requested, requested->bytes);
    requested->is_main = true;
}

/* The same answer twice if nothing changes between. Does not remove the page. */
static void *
queues_victim(struct policy *policy)
{
    if (share_is_exceeded(&policy->new_share, &policy->new) || !list_first(&policy->main))
        return list_first(&policy->new);
    return list_first(&policy->main);
}

/* Evicted, or else purged, replaced, or larger than a new capacity. */
static void
queues_remove(struct policy *policy, void *node, bool evicted)
{
    struct queues_node *removed = node;

    list_remove(removed->is_main ? &policy->main : &policy->new, removed, removed->bytes);
    if (evicted && !removed->is_main)
        ghost_add(&policy->ghosts, removed->key, removed->bytes);
}

static uint64_t
queues_bytes(const void *node)
{
    return ((const struct queues_node *)node)->bytes;
}

/* For tests: everything that must hold between two calls. */
static bool
queues_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->new.pages + policy->main.pages == count &&
           policy->new.bytes + policy->main.bytes ==
               bytes &&list_is_valid(&policy->new, queues_bytes) &&
           list_is_valid(&policy->main, queues_bytes) && ghost_is_valid(&policy->ghosts);
}

static const struct policy_param params[] = {
    [PARAM_NEW] = {.name = "new",
                   .start = 0.2,
                   .low = 0.001,
                   .high = 1,
                   .meaning = "share of the capacity of the queue of new pages"},
    {.name = NULL},
};

/* The sentences appear in `sunproxy policies` and `sunproxyd --policy help`. */
const struct policy_ops policy_queues = {
    .name = "queues",
    .summary = "Evicts new pages by FIFO, and pages that were requested again by LRU.",
    .source = "policies/templates/queues.c",
    .sizes = "The share of the queue is in bytes.",
    .cost = "O(1).",
    .params = params,
    .node_size = sizeof(struct queues_node),
    .create = queues_create,
    .destroy = queues_destroy,
    .admit = queues_admit,
    .insert = queues_insert,
    .access = queues_access,
    .victim = queues_victim,
    .remove = queues_remove,
    .resize = queues_resize,
    .is_valid = queues_is_valid,
};
