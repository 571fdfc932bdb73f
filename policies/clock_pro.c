/*
 * CLOCK-Pro (Jiang, Chen, Zhang 2005): LIRS approximated by a clock. Pages are hot or cold, and a
 * victim is a cold page. A cold page begins a test period when it is inserted; a request within it
 * makes it hot. When a page in its test period is evicted its key stays in the clock until the
 * period ends (a ghost). The share of cold pages adapts: it grows when a page is requested within
 * its test period, and shrinks when a period ends without a request.
 *
 * All pages and ghosts are in one ring, in which three hands move:
 *   the hot hand seeks a hot page without a request since it last passed, and makes it cold; it
 *     ends the test periods of the cold pages on its way;
 *   the cold hand seeks a cold page without a request, the victim; requested ones on its way become
 *     hot if they are in their test period, and begin a new one otherwise;
 *   the test hand ends the oldest test periods while there are more ghosts than the capacity.
 * New entries, and those that a hand moves, go to the place behind the hot hand, which it reaches
 * last.
 *
 * Our choices: sizes count in bytes where the cache is bounded in bytes, else each page counts 1.
 * Until the first eviction new pages are hot while there is space in the hot share. A hot page that
 * becomes cold is in no test period. Where no cold page is cached the hot hand makes one.
 *
 * The paper states neither where the cold share begins nor a lower bound of it. It begins at a half
 * here, and stays between a hundredth of the capacity, at least one page, and all of it. The
 * authors' simulator and Caffeine's begin at their lower bound (1 % in Caffeine's), as cold=0.01
 * does. Without a lower bound the share falls to one page where most test periods end without a
 * request, and pages are then evicted before they can be requested again: 380,300 misses of a
 * million on the key-value trace of docs/POLICIES.md instead of 351,212.
 *
 * The paper chooses the victim first, and then makes the page of a ghost hot; here that page's test
 * period ends first.
 */
#include <stdlib.h>

#include "policies/ghost.h"
#include "policies/list.h"
#include "policies/policy.h"

#define CLOCK_PRO_BYTES (UINT64_MAX >> 4)
#define LEAST_COLD_SHARE 0.01

/* A page, in its node, or a ghost, which the policy allocates. */
struct clock_pro_node {
    struct list_node ring;
    uint64_t key;
    uint64_t bytes : 60;
    uint64_t is_hot : 1;
    uint64_t is_ghost : 1;
    uint64_t is_tested : 1;    /* cold, in its test period; so is every ghost */
    uint64_t is_requested : 1; /* since it was inserted or a hand last cleared it */
};

struct policy {
    struct list ring;                         /* the hot hand is at the first */
    struct clock_pro_node *cold_hand;         /* NULL: at the first */
    struct clock_pro_node *test_hand;         /* likewise */
    struct ghost ghosts;                      /* words: the address of its entry in the ring */
    uint64_t hot_pages, hot_size, cold_pages; /* cached */
    uint64_t capacity, cold_share;            /* m and m_c; the rest is the hot share */
    double start;                             /* m_c at first, as a fraction of m */
    bool by_bytes;
    bool has_evicted;
    bool was_ghost; /* the page of the last admit() was one */
};

enum { PARAM_COLD };

static uint64_t
clock_pro_size(const struct policy *policy, const struct clock_pro_node *node)
{
    return policy->by_bytes ? node->bytes : 1;
}

static uint64_t
clock_pro_hot_share(const struct policy *policy)
{
    return policy->capacity - policy->cold_share;
}

/* ---- the ring -------------------------------------------------------------------------------- */

static struct clock_pro_node *
clock_pro_next(const struct policy *policy, const struct clock_pro_node *node)
{
    struct clock_pro_node *next = list_next(&policy->ring, node);

    return next ? next : list_first(&policy->ring);
}

/* Hands that are at the entry move on. */
static void
clock_pro_leave_ring(struct policy *policy, struct clock_pro_node *node)
{
    struct clock_pro_node *next = clock_pro_next(policy, node);

    if (policy->cold_hand == node)
        policy->cold_hand = next == node ? NULL : next;
    if (policy->test_hand == node)
        policy->test_hand = next == node ? NULL : next;
    list_remove(&policy->ring, node, 0);
}

static void
clock_pro_move_behind_hot_hand(struct policy *policy, struct clock_pro_node *node)
{
    clock_pro_leave_ring(policy, node);
    list_add_last(&policy->ring, node, 0);
}

static uint64_t
clock_pro_least_cold_share(const struct policy *policy)
{
    uint64_t least = (uint64_t)((double)policy->capacity * LEAST_COLD_SHARE);

    return least > 0 ? least : 1;
}

static void
clock_pro_adapt(struct policy *policy, const struct clock_pro_node *node, bool grows)
{
    uint64_t step = clock_pro_size(policy, node), least = clock_pro_least_cold_share(policy);

    if (grows)
        policy->cold_share =
            step < clock_pro_hot_share(policy) ? policy->cold_share + step : policy->capacity;
    else
        policy->cold_share = policy->cold_share > least && step < policy->cold_share - least
                                 ? policy->cold_share - step
                                 : least;
}

static void
clock_pro_free_ghost(struct policy *policy, struct clock_pro_node *node)
{
    ghost_take(&policy->ghosts, node->key);
    clock_pro_leave_ring(policy, node);
    free(node);
}

/*
 * Ends the test period of a cold page or ghost; a ghost is freed. A page that was requested in its
 * period keeps it until the cold hand comes to it.
 */
static void
clock_pro_end_test(struct policy *policy, struct clock_pro_node *node)
{
    if (!node->is_tested || node->is_requested)
        return;
    clock_pro_adapt(policy, node, false);
    node->is_tested = 0;
    if (node->is_ghost)
        clock_pro_free_ghost(policy, node);
}

static void
clock_pro_become_hot(struct policy *policy, struct clock_pro_node *node)
{
    node->is_hot = 1;
    node->is_tested = 0;
    policy->hot_pages++;
    policy->hot_size += clock_pro_size(policy, node);
}

static void
clock_pro_stop_being_hot(struct policy *policy, struct clock_pro_node *node)
{
    node->is_hot = 0;
    policy->hot_pages--;
    policy->hot_size -= clock_pro_size(policy, node);
}

/* ---- the hands ------------------------------------------------------------------------------- */

/* Makes one hot page cold; there is one. */
static void
clock_pro_run_hot_hand(struct policy *policy)
{
    for (;;) {
        struct clock_pro_node *node = list_first(&policy->ring);
        bool found = node->is_hot && !node->is_requested;

        /* The hand moves past an entry by a rotation of the list. */
        if (node->is_ghost) {
            clock_pro_end_test(policy, node);
            continue;
        }
        if (found) {
            clock_pro_stop_being_hot(policy, node);
            policy->cold_pages++;
        } else if (node->is_hot) {
            node->is_requested = 0;
        } else {
            clock_pro_end_test(policy, node);
        }
        list_move_last(&policy->ring, node);
        if (found)
            return;
    }
}

static void
clock_pro_trim_hot(struct policy *policy)
{
    while (policy->hot_size > clock_pro_hot_share(policy) && policy->hot_pages)
        clock_pro_run_hot_hand(policy);
}

/* Until there are no more ghosts than the capacity. */
static void
clock_pro_run_test_hand(struct policy *policy)
{
    while ((policy->by_bytes ? policy->ghosts.bytes : policy->ghosts.pages) > policy->capacity) {
        struct clock_pro_node *node =
            policy->test_hand ? policy->test_hand : list_first(&policy->ring);

        policy->test_hand = clock_pro_next(policy, node);
        if (!node->is_hot)
            clock_pro_end_test(policy, node);
    }
}

/* Finds the victim; the hand stays at it. */
static struct clock_pro_node *
clock_pro_run_cold_hand(struct policy *policy)
{
    for (;;) {
        struct clock_pro_node *node =
            policy->cold_hand ? policy->cold_hand : list_first(&policy->ring);

        policy->cold_hand = node;
        if (node->is_hot || node->is_ghost) {
            policy->cold_hand = clock_pro_next(policy, node);
            continue;
        }
        if (!node->is_requested)
            return node;
        node->is_requested = 0;
        clock_pro_move_behind_hot_hand(policy, node);
        if (!node->is_tested) {
            node->is_tested = 1;
            continue;
        }
        clock_pro_adapt(policy, node, true);
        policy->cold_pages--;
        clock_pro_become_hot(policy, node);
        clock_pro_trim_hot(policy);
        if (!policy->cold_pages)
            clock_pro_run_hot_hand(policy);
    }
}

/* ---- the policy ------------------------------------------------------------------------------ */

static void
clock_pro_resize(struct policy *policy, const struct policy_config *config)
{
    double fraction =
        policy->capacity ? (double)policy->cold_share / (double)policy->capacity : policy->start;
    bool by_bytes = config->capacity_bytes != 0;

    if (by_bytes != policy->by_bytes) {
        policy->by_bytes = by_bytes;
        policy->hot_size = 0;
        for (const struct clock_pro_node *node = list_first(&policy->ring); node;
             node = list_next(&policy->ring, node))
            policy->hot_size += node->is_hot ? clock_pro_size(policy, node) : 0;
    }
    policy->capacity = by_bytes ? config->capacity_bytes : config->capacity_pages;
    policy->cold_share = (uint64_t)((double)policy->capacity * fraction);
    if (policy->cold_share < clock_pro_least_cold_share(policy))
        policy->cold_share = clock_pro_least_cold_share(policy);
    if (policy->cold_share > policy->capacity)
        policy->cold_share = policy->capacity;
    clock_pro_trim_hot(policy);
    clock_pro_run_test_hand(policy);
}

static struct policy *
clock_pro_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->ring);
    ghost_init_with_words(&policy->ghosts, UINT64_MAX, UINT64_MAX, 1);
    policy->start = policy_param_value(ops, config, PARAM_COLD);
    clock_pro_resize(policy, config);
    return policy;
}

/* Nodes of cached pages may be freed by now, so the ring is not walked. */
static void
clock_pro_destroy(struct policy *policy)
{
    const uint64_t *words;

    while ((words = ghost_oldest_words(&policy->ghosts))) {
        free((void *)(uintptr_t)words[0]);
        ghost_drop_oldest(&policy->ghosts);
    }
    ghost_free(&policy->ghosts);
    free(policy);
}

/* A ghost that is requested: its test period ends with success, and the page will be hot. */
static bool
clock_pro_admit(struct policy *policy, const struct policy_page *page)
{
    const uint64_t *words = ghost_words(&policy->ghosts, page->key);

    policy->was_ghost = words != NULL;
    if (words) {
        struct clock_pro_node *ghost = (struct clock_pro_node *)(uintptr_t)words[0];

        clock_pro_adapt(policy, ghost, true);
        clock_pro_free_ghost(policy, ghost);
        clock_pro_trim_hot(policy);
    }
    return true;
}

static int
clock_pro_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct clock_pro_node *node = opaque;
    uint64_t hot_share = clock_pro_hot_share(policy), size;

    node->key = page->key;
    node->bytes = (page->bytes < CLOCK_PRO_BYTES ? page->bytes : CLOCK_PRO_BYTES) & CLOCK_PRO_BYTES;
    node->is_hot = node->is_ghost = node->is_requested = 0;
    node->is_tested = 1;
    size = clock_pro_size(policy, node);
    list_add_last(&policy->ring, node, 0);
    if (policy->was_ghost || (!policy->has_evicted && policy->hot_size <= hot_share &&
                              size <= hot_share - policy->hot_size)) {
        clock_pro_become_hot(policy, node);
        clock_pro_trim_hot(policy);
    } else {
        policy->cold_pages++;
    }
    policy->was_ghost = false;
    return 0;
}

static void
clock_pro_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)policy, (void)page;
    ((struct clock_pro_node *)node)->is_requested = 1;
}

static void *
clock_pro_victim(struct policy *policy)
{
    if (!policy->cold_pages && policy->hot_pages)
        clock_pro_run_hot_hand(policy);
    return policy->cold_pages ? clock_pro_run_cold_hand(policy) : NULL;
}

/* The evicted page's place in the ring goes to a ghost, if there is memory for one. */
static void
clock_pro_leave_ghost(struct policy *policy, struct clock_pro_node *evicted)
{
    struct clock_pro_node *ghost = malloc(sizeof(*ghost));

    if (!ghost)
        return;
    *ghost = *evicted;
    ghost->is_ghost = 1;
    ghost->is_requested = 0;
    if (!ghost_add(&policy->ghosts, ghost->key, ghost->bytes)) {
        free(ghost);
        return;
    }
    ghost_words(&policy->ghosts, ghost->key)[0] = (uintptr_t)ghost;
    list_insert_before(&policy->ring, ghost, evicted, 0);
}

static void
clock_pro_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct clock_pro_node *node = opaque;

    if (node->is_hot)
        clock_pro_stop_being_hot(policy, node);
    else
        policy->cold_pages--;
    policy->has_evicted |= evicted;
    if (evicted && node->is_tested)
        clock_pro_leave_ghost(policy, node);
    clock_pro_leave_ring(policy, node);
    clock_pro_run_test_hand(policy);
}

static bool
clock_pro_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    unsigned set_hands = (policy->cold_hand ? 1u : 0) + (policy->test_hand ? 1u : 0), hands = 0;
    uint64_t hot_pages = 0, hot_size = 0, ghosts = 0;

    (void)bytes; /* it keeps no sum of those of cold pages */
    for (const struct clock_pro_node *node = list_first(&policy->ring); node;
         node = list_next(&policy->ring, node)) {
        const uint64_t *words = ghost_words(&policy->ghosts, node->key);

        if (node->is_ghost ? !words || words[0] != (uintptr_t)node : words != NULL)
            return false;
        if ((node->is_hot && node->is_tested) || (node->is_ghost && !node->is_tested))
            return false;
        hot_pages += node->is_hot;
        hot_size += node->is_hot ? clock_pro_size(policy, node) : 0;
        ghosts += node->is_ghost;
        hands += node == policy->cold_hand;
        hands += node == policy->test_hand;
    }
    return list_is_valid(&policy->ring, NULL) && ghost_is_valid(&policy->ghosts) &&
           hands == set_hands && ghosts == policy->ghosts.pages &&
           policy->ring.pages == count + ghosts && hot_pages == policy->hot_pages &&
           hot_size == policy->hot_size && hot_pages + policy->cold_pages == count &&
           policy->cold_share <= policy->capacity && hot_size <= clock_pro_hot_share(policy);
}

static const struct policy_param params[] = {
    [PARAM_COLD] = {.name = "cold",
                    .start = 0.5,
                    .low = LEAST_COLD_SHARE,
                    .high = 1,
                    .meaning = "initial share of the capacity of cold pages; it adapts"},
    {.name = NULL},
};

const struct policy_ops policy_clock_pro = {
    .name = "clock-pro",
    .summary = "Evicts pages not requested twice within a short time, by a clock.",
    .source = "S. Jiang, F. Chen, X. Zhang, CLOCK-Pro: An Effective Improvement of the CLOCK "
              "Replacement, ATC 2005, section 3",
    .sizes = "Both shares are in bytes; a page larger than the hot share stays cold.",
    .cost = "A hit sets a bit; an eviction costs O(1), amortised over the hits before.",
    .params = params,
    .node_size = sizeof(struct clock_pro_node),
    .create = clock_pro_create,
    .destroy = clock_pro_destroy,
    .admit = clock_pro_admit,
    .insert = clock_pro_insert,
    .access = clock_pro_access,
    .victim = clock_pro_victim,
    .remove = clock_pro_remove,
    .resize = clock_pro_resize,
    .is_valid = clock_pro_is_valid,
};
