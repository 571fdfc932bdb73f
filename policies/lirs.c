/*
 * LIRS (Jiang, Zhang 2002, "LIRS: An Efficient Low Inter-reference Recency Set Replacement Policy
 * to Improve Buffer Cache Performance", section 3). Pages whose last two requests were close
 * together (LIR) have nearly all of the capacity; the others (HIR) share the rest, and the victim
 * is the HIR page that has been HIR for longest.
 *
 * The paper's stack S has every page requested since the oldest LIR page was last requested, the
 * most recent on top, evicted pages (ghosts) included; its bottom is a LIR page. A page that is
 * requested while it is in S was requested twice within that time: it becomes LIR, and the LIR page
 * at the bottom becomes HIR for it. The queue Q has the cached HIR pages.
 *
 * S is kept in two lists, of cached pages and of ghosts, with the time of the last request in each
 * entry: HIR pages are evicted in the order of their last requests, so both are in order.
 *
 * Our choices: sizes count as bytes in both shares, the paper having pages of one size. A page
 * larger than the LIR share stays HIR. After a purge new pages fill the LIR share as in a new
 * cache. When there is no HIR page the bottom of S is evicted. S is bounded: there are at most
 * `history` ghosts for each cached page; beyond that the oldest is dropped.
 */
#include "base/container_of.h"
#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

#include <stdlib.h>

struct lirs_node {
    struct list_node stack;
    struct list_node queue;
    uint64_t key;
    uint64_t requested; /* time of the last request */
    uint64_t bytes : 62;
    uint64_t is_lir : 1;
    uint64_t is_stacked : 1; /* in S */
};

#define MAX_BYTES (UINT64_MAX >> 2)

struct policy {
    struct list stack;   /* S without its ghosts, bottom first */
    struct list queue;   /* Q, the next victim first */
    struct list lirs;    /* the sums of the LIR pages, no list */
    struct ghost ghosts; /* the rest of S; each has the time of its last request as its bytes */
    struct share lir_share;
    double hir_fraction;
    double history;
    uint64_t now; /* the number of this insert or access, from 1 */
};

enum { PARAM_HIR, PARAM_HISTORY };

static struct lirs_node *
lirs_of_queue(void *links)
{
    return links ? container_of(links, struct lirs_node, queue) : NULL;
}

static void
lirs_stack(struct policy *policy, struct lirs_node *node)
{
    if (node->is_stacked)
        list_move_last(&policy->stack, node);
    else
        list_add_last(&policy->stack, node, node->bytes);
    node->is_stacked = 1;
    node->requested = policy->now;
}

static void
lirs_unstack(struct policy *policy, struct lirs_node *node)
{
    if (node->is_stacked)
        list_remove(&policy->stack, node, node->bytes);
    node->is_stacked = 0;
}

/* The paper's stack pruning: nothing is below the LIR page at the bottom. */
static void
lirs_prune(struct policy *policy)
{
    struct lirs_node *bottom;

    while ((bottom = list_first(&policy->stack)) && !bottom->is_lir)
        lirs_unstack(policy, bottom);
    while (policy->ghosts.pages &&
           (!bottom || ghost_oldest_bytes(&policy->ghosts) < bottom->requested))
        ghost_drop_oldest(&policy->ghosts);
}

static void
lirs_become_hir(struct policy *policy, struct lirs_node *node)
{
    node->is_lir = 0;
    policy->lirs.pages--;
    policy->lirs.bytes -= node->bytes;
    list_add_last(&policy->queue, &node->queue, node->bytes);
}

/* LIR pages beyond the share become HIR, from the bottom of S. */
static void
lirs_trim(struct policy *policy)
{
    while (share_is_exceeded(&policy->lir_share, &policy->lirs)) {
        struct lirs_node *bottom = list_first(&policy->stack);

        lirs_become_hir(policy, bottom);
        lirs_unstack(policy, bottom);
        lirs_prune(policy);
    }
}

static bool
lirs_can_be_lir(const struct policy *policy, const struct lirs_node *node)
{
    return policy->lir_share.pages > 0 && share_can_hold(&policy->lir_share, node->bytes);
}

/* A page that is in neither list, or in S alone. */
static void
lirs_become_lir(struct policy *policy, struct lirs_node *node)
{
    node->is_lir = 1;
    policy->lirs.pages++;
    policy->lirs.bytes += node->bytes;
    lirs_stack(policy, node);
    lirs_trim(policy);
}

static void
lirs_resize(struct policy *policy, const struct policy_config *config)
{
    policy->lir_share = share_rest(config, share_of(config, policy->hir_fraction));
    lirs_trim(policy);
}

static struct policy *
lirs_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->stack);
    list_init(&policy->queue);
    list_init(&policy->lirs);
    ghost_init(&policy->ghosts, 0, UINT64_MAX);
    policy->hir_fraction = policy_param_value(ops, config, PARAM_HIR);
    policy->history = policy_param_value(ops, config, PARAM_HISTORY);
    lirs_resize(policy, config);
    return policy;
}

static void
lirs_destroy(struct policy *policy)
{
    ghost_free(&policy->ghosts);
    free(policy);
}

static int
lirs_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lirs_node *node = opaque;
    bool was_in_stack = ghost_take(&policy->ghosts, page->key);

    policy->now++;
    node->key = page->key;
    node->bytes = (page->bytes < MAX_BYTES ? page->bytes : MAX_BYTES) & MAX_BYTES;
    node->is_lir = 0;
    node->is_stacked = 0;
    if ((was_in_stack && lirs_can_be_lir(policy, node)) ||
        share_fits(&policy->lir_share, &policy->lirs, node->bytes)) {
        lirs_become_lir(policy, node);
    } else {
        lirs_stack(policy, node);
        list_add_last(&policy->queue, &node->queue, node->bytes);
    }
    lirs_prune(policy);
    return 0;
}

static void
lirs_access(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lirs_node *node = opaque;

    (void)page;
    policy->now++;
    if (node->is_lir) {
        lirs_stack(policy, node);
    } else if (node->is_stacked && lirs_can_be_lir(policy, node)) {
        list_remove(&policy->queue, &node->queue, node->bytes);
        lirs_become_lir(policy, node);
    } else {
        lirs_stack(policy, node);
        list_move_last(&policy->queue, &node->queue);
    }
    lirs_prune(policy);
}

static void *
lirs_victim(struct policy *policy)
{
    struct lirs_node *hir = lirs_of_queue(list_first(&policy->queue));

    return hir ? hir : list_first(&policy->stack);
}

static void
lirs_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct lirs_node *node = opaque;
    uint64_t pages = policy->lirs.pages + policy->queue.pages;
    bool leaves_ghost = evicted && !node->is_lir && node->is_stacked;

    if (node->is_lir) {
        policy->lirs.pages--;
        policy->lirs.bytes -= node->bytes;
    } else {
        list_remove(&policy->queue, &node->queue, node->bytes);
    }
    lirs_unstack(policy, node);
    lirs_prune(policy);
    ghost_limit(&policy->ghosts, (uint64_t)((double)pages * policy->history), UINT64_MAX);
    if (leaves_ghost)
        ghost_add(&policy->ghosts, node->key, node->requested);
}

static uint64_t
lirs_stack_bytes(const void *node)
{
    return ((const struct lirs_node *)node)->bytes;
}

static uint64_t
lirs_queue_bytes(const void *links)
{
    return container_of(links, const struct lirs_node, queue)->bytes;
}

static bool
lirs_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    const struct lirs_node *bottom = list_first(&policy->stack);
    uint64_t lir_pages = 0, lir_bytes = 0, stacked_hirs = 0, requested = 0;

    if (!list_is_valid(&policy->stack, lirs_stack_bytes) ||
        !list_is_valid(&policy->queue, lirs_queue_bytes) || !ghost_is_valid(&policy->ghosts))
        return false;
    for (const struct lirs_node *node = bottom; node; node = list_next(&policy->stack, node)) {
        if (!node->is_stacked || node->requested <= requested)
            return false;
        requested = node->requested;
        lir_pages += node->is_lir;
        lir_bytes += node->is_lir ? node->bytes : 0;
        stacked_hirs += !node->is_lir;
    }
    for (void *links = list_first(&policy->queue); links;
         links = list_next(&policy->queue, links)) {
        const struct lirs_node *node = lirs_of_queue(links);

        if (node->is_lir)
            return false;
        stacked_hirs -= node->is_stacked;
    }
    if (policy->ghosts.pages &&
        (!bottom || ghost_oldest_bytes(&policy->ghosts) <= bottom->requested))
        return false;
    return stacked_hirs == 0 && (!bottom || bottom->is_lir) && requested <= policy->now &&
           lir_pages == policy->lirs.pages && lir_bytes == policy->lirs.bytes &&
           !share_is_exceeded(&policy->lir_share, &policy->lirs) &&
           lir_pages + policy->queue.pages == count && lir_bytes + policy->queue.bytes == bytes;
}

static const struct policy_param params[] = {
    [PARAM_HIR] = {.name = "hir",
                   .start = 0.01,
                   .low = 0.0001,
                   .high = 1,
                   .meaning =
                       "share of the capacity of HIR pages, those of high inter-reference recency"},
    [PARAM_HISTORY] = {.name = "history",
                       .start = 2,
                       .low = 0,
                       .high = 100,
                       .meaning = "evicted pages remembered for each cached page"},
    {.name = NULL},
};

const struct policy_ops policy_lirs = {
    .name = "lirs",
    .summary = "Evicts pages that were not requested twice within a short time.",
    .source = "Jiang, Zhang 2002, LIRS: An Efficient Low Inter-reference Recency Set Replacement "
              "Policy to Improve Buffer Cache Performance, section 3",
    .sizes = "Both shares are in bytes; a page larger than the LIR share stays HIR.",
    .cost = "O(1), amortised.",
    .params = params,
    .usual = true,
    .node_size = sizeof(struct lirs_node),
    .create = lirs_create,
    .destroy = lirs_destroy,
    .insert = lirs_insert,
    .access = lirs_access,
    .victim = lirs_victim,
    .remove = lirs_remove,
    .resize = lirs_resize,
    .is_valid = lirs_is_valid,
};
