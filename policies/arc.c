/*
 * ARC: two LRU lists, T1 of pages that were requested once and T2 of pages that were requested more
 * often. The keys of pages evicted from T1 are kept in B1, of those from T2 in B2 (ghosts). A
 * request for a ghost adapts the target size p of T1: up for one of B1, down for one of B2.
 *
 * The paper has pages of one size. Here the lists are measured in bytes where the cache is bounded
 * in bytes, else in pages; p is a real number, and its step is that of the paper's figure 4.
 *
 * With pages of one size the paper's rules bound the four lists together to twice the capacity.
 * With sizes in bytes they do not: case IV drops one ghost for each victim, whatever their sizes.
 * As in libCacheSim the bytes of ghosts are not bounded besides; measured, they exceed 100
 * capacities on logs whose largest pages are half of a small cache. Memory is bounded by number
 * instead: each list holds at most MIN_GHOSTS keys, and GHOSTS_PER_PAGE more for each cached page.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"

/* Three times the most that a list held on any trace of docs/POLICIES.md, and half of one page. */
#define MIN_GHOSTS 65536u
#define GHOSTS_PER_PAGE 8u
#define ARC_BYTES ((UINT64_C(1) << 63) - 1)

struct arc_node {
    struct list_node links;
    uint64_t key;
    uint64_t bytes : 63;
    uint64_t is_often : 1; /* in T2 */
};

/* Which list had the key of the page of the last admit(). */
enum arc_memory { NOWHERE, GHOST_ONCE, GHOST_OFTEN };

/* Which ghost is dropped with an eviction; VICTIM: the evicted page gets none. */
enum arc_drop { NOTHING, OLDEST_ONCE, OLDEST_OFTEN, VICTIM };

struct policy {
    struct list once, often;              /* T1, T2, the least recently requested first */
    struct ghost ghost_once, ghost_often; /* B1, B2 */
    double target;                        /* p, the target size of T1 */
    double capacity;                      /* c */
    bool by_bytes;

    /* of the page of the last admit(), until it is inserted */
    enum arc_memory memory;
    double incoming; /* its size */
};

static uint64_t
arc_bytes(const void *node)
{
    return ((const struct arc_node *)node)->bytes;
}

static double
list_size(const struct policy *policy, const struct list *list)
{
    return (double)(policy->by_bytes ? list->bytes : list->pages);
}

static double
ghost_size(const struct policy *policy, const struct ghost *ghost)
{
    return (double)(policy->by_bytes ? ghost->bytes : ghost->pages);
}

static void
arc_resize(struct policy *policy, const struct policy_config *config)
{
    policy->by_bytes = config->capacity_bytes != 0;
    policy->capacity = (double)(policy->by_bytes ? config->capacity_bytes : config->capacity_pages);
    if (policy->target > policy->capacity)
        policy->target = policy->capacity;
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
    ghost_init(&policy->ghost_once, 0, 0);
    ghost_init(&policy->ghost_often, 0, 0);
    policy->memory = NOWHERE;
    arc_resize(policy, config);
    return policy;
}

static void
arc_destroy(struct policy *policy)
{
    ghost_free(&policy->ghost_once);
    ghost_free(&policy->ghost_often);
    free(policy);
}

/* The step of the target for a ghost of the list of size `here`; `there` is the other's size. */
static double
arc_step(double here, double there)
{
    return there > here ? there / here : 1;
}

/* Cases II to IV of the paper begin here; every page is admitted. */
static bool
arc_admit(struct policy *policy, const struct policy_page *page)
{
    double once = ghost_size(policy, &policy->ghost_once);
    double often = ghost_size(policy, &policy->ghost_often);

    policy->memory = NOWHERE;
    policy->incoming = policy->by_bytes ? (double)page->bytes : 1;
    if (ghost_take(&policy->ghost_once, page->key)) {
        policy->memory = GHOST_ONCE;
        policy->target += arc_step(once, often);
        if (policy->target > policy->capacity)
            policy->target = policy->capacity;
    } else if (ghost_take(&policy->ghost_often, page->key)) {
        policy->memory = GHOST_OFTEN;
        policy->target -= arc_step(often, once);
        if (policy->target < 0)
            policy->target = 0;
    }
    return true;
}

static int
arc_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct arc_node *inserted = node;

    inserted->key = page->key;
    inserted->bytes = page->bytes & ARC_BYTES;
    inserted->is_often = policy->memory != NOWHERE;
    list_add_last(inserted->is_often ? &policy->often : &policy->once, inserted, inserted->bytes);
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
    double size = list_size(policy, &policy->once);

    if (!often)
        return once;
    if (once &&
        (size > policy->target || (size >= policy->target && policy->memory == GHOST_OFTEN)))
        return once;
    return often;
}

/* The victim for the page of the last admit(), and the ghost to drop with it (case IV). */
static struct arc_node *
arc_choose(const struct policy *policy, enum arc_drop *drop)
{
    double known_once = list_size(policy, &policy->once) + ghost_size(policy, &policy->ghost_once);
    double known_often =
        list_size(policy, &policy->often) + ghost_size(policy, &policy->ghost_often);

    *drop = NOTHING;
    if (policy->memory != NOWHERE)
        return arc_replace(policy);
    if (known_once + policy->incoming > policy->capacity) {
        if (policy->ghost_once.pages == 0 && policy->once.pages) {
            *drop = VICTIM;
            return list_first(&policy->once);
        }
        *drop = OLDEST_ONCE;
    } else if (known_once + known_often >= 2 * policy->capacity) {
        *drop = OLDEST_OFTEN;
    }
    return arc_replace(policy);
}

static void *
arc_victim(struct policy *policy)
{
    enum arc_drop drop;

    return arc_choose(policy, &drop);
}

static void
arc_remember(struct policy *policy, const struct arc_node *evicted)
{
    struct ghost *ghost = evicted->is_often ? &policy->ghost_often : &policy->ghost_once;
    uint64_t pages = policy->once.pages + policy->often.pages;

    ghost_limit(ghost, MIN_GHOSTS + GHOSTS_PER_PAGE * pages, UINT64_MAX);
    ghost_add(ghost, evicted->key, evicted->bytes);
}

static void
arc_remove(struct policy *policy, void *node, bool evicted)
{
    struct arc_node *removed = node;
    enum arc_drop drop = NOTHING;

    if (evicted)
        arc_choose(policy, &drop);
    list_remove(removed->is_often ? &policy->often : &policy->once, removed, removed->bytes);
    if (drop == OLDEST_ONCE)
        ghost_drop_oldest(&policy->ghost_once);
    else if (drop == OLDEST_OFTEN)
        ghost_drop_oldest(&policy->ghost_often);
    if (evicted && drop != VICTIM)
        arc_remember(policy, removed);
}

static bool
arc_list_is_valid(const struct policy *policy, const struct list *list, bool is_often)
{
    for (const struct arc_node *node = list_first(list); node; node = list_next(list, node)) {
        if (node->is_often != is_often || ghost_has(&policy->ghost_once, node->key) ||
            ghost_has(&policy->ghost_often, node->key))
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
           arc_list_is_valid(policy, &policy->often, true) && ghost_is_valid(&policy->ghost_once) &&
           ghost_is_valid(&policy->ghost_often) && policy->target >= 0 &&
           policy->target <= policy->capacity;
}

const struct policy_ops policy_arc = {
    .name = "arc",
    .summary = "Evicts by LRU from pages requested once or often; adapts shares.",
    .source =
        "N. Megiddo, D. S. Modha, ARC: A Self-Tuning, Low Overhead Replacement Cache, FAST 2003, "
        "figure 4",
    .sizes =
        "Lists and ghosts are measured in bytes; the target moves in steps made for pages of one "
        "size.",
    .cost = "O(1); evicted pages are remembered: at most 65536, and 8 per cached page, in each of "
            "two lists.",
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
