/*
 * ARC: two LRU lists, T1 of pages that were requested once, T2 of those that were more often, and
 * what has left of each is remembered, in B1 and B2. A request for a remembered page moves the
 * target p of what T1 may weigh: towards recency if B1 knew it, towards frequency if B2 did.
 *
 * The paper has pages of one size. Here everything is weighed in bytes where the cache is bounded
 * in bytes, else in pages; p is a real number, and the step is that of the paper's figure 4.
 *
 * With one size the paper's rules keep all four lists together within twice the cache. With many
 * they do not: case IV forgets one page of B1 for a victim whatever the two weigh, and B2 grows
 * meanwhile. So there is a bound on B1 and B2 besides, wide enough to be met rarely.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"

#define MEMORY_BOUND 16u /* of B1 and of B2, in capacities */
#define ARC_BYTES ((UINT64_C(1) << 63) - 1)

struct arc_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes : 63;
    uint64_t is_often : 1; /* in T2 */
};

/* Where the page that was last asked about was remembered. */
enum arc_memory { NOWHERE, GONE_ONCE, GONE_OFTEN };

/* What is forgotten when a victim leaves, besides its being remembered. */
enum arc_forget { NOTHING, OLDEST_ONCE, OLDEST_OFTEN, VICTIM };

struct policy {
    struct list once, often;            /* T1, T2, the least recently requested first */
    struct ghost gone_once, gone_often; /* B1, B2 */
    double target;                      /* p, of what T1 weighs */
    double capacity;                    /* c */
    bool by_bytes;

    /* of the page that was last asked about, until it enters */
    enum arc_memory memory;
    double incoming; /* what it weighs */
};

static uint64_t
arc_bytes(const void *node)
{
    return ((const struct arc_node *)node)->bytes;
}

static double
list_weight(const struct policy *policy, const struct list *list)
{
    return (double)(policy->by_bytes ? list->bytes : list->pages);
}

static double
ghost_weight(const struct policy *policy, const struct ghost *ghost)
{
    return (double)(policy->by_bytes ? ghost->bytes : ghost->pages);
}

static void
arc_resize(struct policy *policy, const struct policy_config *config)
{
    uint64_t capacity = config->capacity_bytes ? config->capacity_bytes : config->capacity_pages;
    uint64_t bound = capacity > UINT64_MAX / MEMORY_BOUND ? UINT64_MAX : MEMORY_BOUND * capacity;

    policy->by_bytes = config->capacity_bytes != 0;
    policy->capacity = (double)capacity;
    if (policy->target > policy->capacity)
        policy->target = policy->capacity;
    ghost_limit(&policy->gone_once, policy->by_bytes ? UINT64_MAX : bound,
                policy->by_bytes ? bound : UINT64_MAX);
    ghost_limit(&policy->gone_often, policy->by_bytes ? UINT64_MAX : bound,
                policy->by_bytes ? bound : UINT64_MAX);
}

static struct policy *
arc_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    (void)ops;
    if (!policy)
        return NULL;
    list_init(&policy->once);
    list_init(&policy->often);
    ghost_init(&policy->gone_once, 0, 0);
    ghost_init(&policy->gone_often, 0, 0);
    policy->memory = NOWHERE;
    arc_resize(policy, config);
    return policy;
}

static void
arc_destroy(struct policy *policy)
{
    ghost_free(&policy->gone_once);
    ghost_free(&policy->gone_often);
    free(policy);
}

/* How far the target moves for a page that was remembered among `here`, not `there`; at least 1. */
static double
arc_step(double here, double there)
{
    return there > here ? there / here : 1;
}

/* Cases II to IV of the paper begin here; all pages may enter. */
static bool
arc_admit(struct policy *policy, const struct policy_page *page)
{
    double once = ghost_weight(policy, &policy->gone_once);
    double often = ghost_weight(policy, &policy->gone_often);

    policy->memory = NOWHERE;
    policy->incoming = policy->by_bytes ? (double)page->bytes : 1;
    if (ghost_take(&policy->gone_once, page->key)) {
        policy->memory = GONE_ONCE;
        policy->target += arc_step(once, often);
        if (policy->target > policy->capacity)
            policy->target = policy->capacity;
    } else if (ghost_take(&policy->gone_often, page->key)) {
        policy->memory = GONE_OFTEN;
        policy->target -= arc_step(often, once);
        if (policy->target < 0)
            policy->target = 0;
    }
    return true;
}

static int
arc_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct arc_node *entering = node;

    entering->key = page->key;
    entering->bytes = page->bytes & ARC_BYTES;
    entering->is_often = policy->memory != NOWHERE;
    list_add_last(entering->is_often ? &policy->often : &policy->once, entering, entering->bytes);
    policy->memory = NOWHERE;
    policy->incoming = 0;
    return 0;
}

static void
arc_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct arc_node *requested = node;

    (void)page;
    if (requested->is_often) {
        list_move_last(&policy->often, requested);
        return;
    }
    list_remove(&policy->once, requested, requested->bytes);
    list_add_last(&policy->often, requested, requested->bytes);
    requested->is_often = 1;
}

/* The paper's REPLACE. */
static struct arc_node *
arc_replace(const struct policy *policy)
{
    struct arc_node *once = list_first(&policy->once), *often = list_first(&policy->often);
    double weight = list_weight(policy, &policy->once);

    if (!often)
        return once;
    if (once &&
        (weight > policy->target || (weight >= policy->target && policy->memory == GONE_OFTEN)))
        return once;
    return often;
}

/* Who leaves for the page that was last asked about, and who is forgotten with it (case IV). */
static struct arc_node *
arc_choose(const struct policy *policy, enum arc_forget *forget)
{
    double known_once =
        list_weight(policy, &policy->once) + ghost_weight(policy, &policy->gone_once);
    double known_often =
        list_weight(policy, &policy->often) + ghost_weight(policy, &policy->gone_often);

    *forget = NOTHING;
    if (policy->memory != NOWHERE)
        return arc_replace(policy);
    if (known_once + policy->incoming > policy->capacity) {
        if (policy->gone_once.pages == 0 && policy->once.pages) {
            *forget = VICTIM;
            return list_first(&policy->once);
        }
        *forget = OLDEST_ONCE;
    } else if (known_once + known_often >= 2 * policy->capacity) {
        *forget = OLDEST_OFTEN;
    }
    return arc_replace(policy);
}

static void *
arc_victim(struct policy *policy)
{
    enum arc_forget forget;

    return arc_choose(policy, &forget);
}

static void
arc_remove(struct policy *policy, void *node, bool evicted)
{
    struct arc_node *leaving = node;
    enum arc_forget forget = NOTHING;

    if (evicted)
        arc_choose(policy, &forget);
    list_remove(leaving->is_often ? &policy->often : &policy->once, leaving, leaving->bytes);
    if (forget == OLDEST_ONCE)
        ghost_drop_oldest(&policy->gone_once);
    else if (forget == OLDEST_OFTEN)
        ghost_drop_oldest(&policy->gone_often);
    if (evicted && forget != VICTIM)
        ghost_add(leaving->is_often ? &policy->gone_often : &policy->gone_once, leaving->key,
                  leaving->bytes);
}

static bool
arc_list_is_valid(const struct policy *policy, const struct list *list, bool is_often)
{
    for (const struct arc_node *node = list_first(list); node; node = list_next(list, node)) {
        if (node->is_often != is_often || ghost_has(&policy->gone_once, node->key) ||
            ghost_has(&policy->gone_often, node->key))
            return false;
    }
    return list_is_valid(list, arc_bytes);
}

static bool
arc_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->once.pages + policy->often.pages == count &&
           policy->once.bytes + policy->often.bytes == bytes &&
           arc_list_is_valid(policy, &policy->once, false) &&
           arc_list_is_valid(policy, &policy->often, true) && ghost_is_valid(&policy->gone_once) &&
           ghost_is_valid(&policy->gone_often) && policy->target >= 0 &&
           policy->target <= policy->capacity;
}

const struct policy_ops policy_arc = {
    .name = "arc",
    .summary =
        "balances LRU of pages seen once and LRU of those seen more by what it should have kept",
    .source =
        "N. Megiddo, D. S. Modha, ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003, "
        "figure 4",
    .sizes =
        "Lists and what is remembered are weighed in bytes; its target moves in steps made for "
        "pages of one size.",
    .cost = "O(1): a page moves to the end of a list.",
    .usual = true,
    .node_size = sizeof(struct arc_node),
    .create = arc_create,
    .destroy = arc_destroy,
    .admit = arc_admit,
    .insert = arc_insert,
    .access = arc_access,
    .victim = arc_victim,
    .remove = arc_remove,
    .resize = arc_resize,
    .is_valid = arc_is_valid,
};
