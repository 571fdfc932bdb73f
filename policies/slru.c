/*
 * SLRU, segmented LRU: LRU lists, four by default, each with an equal share of the capacity. A hit
 * moves a page to the next higher segment; pages that exceed the share there are moved down one, to
 * its recent end. The victim is the oldest page of the lowest segment that has any.
 *
 * By enter=free a page is inserted into the lowest segment in which it fits, else into the lowest,
 * as in libCacheSim. When sizes differ, pages that are moved down may be larger than the one that
 * was moved up. The lowest segment then exceeds its share, and its oldest pages are evicted with
 * the hit.
 *
 * By enter=lowest a page is always inserted into the lowest segment, which has what the others
 * leave of the capacity. This is the rule of Karedla et al., who have two segments (segments=2):
 * pages are protected only by a second request. Four segments of equal size are those of Huang et
 * al., "An Analysis of Facebook Photo Caching" (SOSP 2013).
 */
#include <stdlib.h>

#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

#define MAX_SEGMENTS 16
#define SLRU_BYTES ((UINT64_C(1) << 60) - 1)

struct slru_node {
    struct list_node links;
    uint64_t bytes : 60;
    uint64_t segment : 4;
};

struct policy {
    unsigned highest;                   /* segment */
    bool enters_lowest;                 /* enter=lowest */
    bool was_pushed;                    /* the last request pushed a page into the lowest */
    struct share share;                 /* of each */
    struct list segments[MAX_SEGMENTS]; /* the oldest first */
};

enum { PARAM_SEGMENTS, PARAM_ENTER };

enum slru_enter { ENTER_FREE, ENTER_LOWEST };

static uint64_t
slru_bytes(const void *node)
{
    return ((const struct slru_node *)node)->bytes;
}

static void
slru_move(struct policy *policy, struct slru_node *node, unsigned to)
{
    list_remove(&policy->segments[node->segment], node, node->bytes);
    list_add_last(&policy->segments[to], node, node->bytes);
    node->segment = to & (MAX_SEGMENTS - 1);
}

/* From a segment downwards: pages beyond a share are moved down one. */
static void
slru_settle(struct policy *policy, unsigned from)
{
    uint64_t lowest = policy->segments[0].pages;

    for (unsigned i = from; i > 0; i--) {
        while (share_is_exceeded(&policy->share, &policy->segments[i]))
            slru_move(policy, list_first(&policy->segments[i]), i - 1);
    }
    policy->was_pushed = policy->segments[0].pages > lowest;
}

static void
slru_resize(struct policy *policy, const struct policy_config *config)
{
    policy->share = share_of(config, 1.0 / (policy->highest + 1));
    slru_settle(policy, policy->highest);
    policy->was_pushed = false; /* the cache evicts after this */
}

static struct policy *
slru_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = malloc(sizeof(*policy));

    if (!policy)
        return NULL;
    policy->highest = (unsigned)policy_param_value(ops, config, PARAM_SEGMENTS) - 1;
    policy->enters_lowest =
        (enum slru_enter)policy_param_value(ops, config, PARAM_ENTER) == ENTER_LOWEST;
    for (unsigned i = 0; i <= policy->highest; i++)
        list_init(&policy->segments[i]);
    slru_resize(policy, config);
    return policy;
}

static void
slru_destroy(struct policy *policy)
{
    free(policy);
}

static bool
slru_admit(struct policy *policy, const struct policy_page *page)
{
    return share_can_hold(&policy->share, page->bytes);
}

static int
slru_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct slru_node *inserted = node;
    unsigned i = 0;

    if (!policy->enters_lowest)
        while (i <= policy->highest &&
               !share_fits(&policy->share, &policy->segments[i], page->bytes))
            i++;
    if (i > policy->highest)
        i = 0;
    inserted->bytes = page->bytes & SLRU_BYTES;
    inserted->segment = i & (MAX_SEGMENTS - 1);
    list_add_last(&policy->segments[i], inserted, inserted->bytes);
    policy->was_pushed = false;
    return 0;
}

static void
slru_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct slru_node *requested = node;

    (void)page;
    if (requested->segment == policy->highest) {
        list_move_last(&policy->segments[policy->highest], requested);
        policy->was_pushed = false;
        return;
    }
    slru_move(policy, requested, requested->segment + 1u);
    slru_settle(policy, requested->segment);
}

static bool
slru_has_surplus(const struct policy *policy)
{
    return policy->was_pushed && !policy->enters_lowest &&
           share_is_exceeded(&policy->share, &policy->segments[0]);
}

static void *
slru_victim(struct policy *policy)
{
    for (unsigned i = 0; i <= policy->highest; i++) {
        void *node = list_first(&policy->segments[i]);

        if (node)
            return node;
    }
    return NULL;
}

static void
slru_remove(struct policy *policy, void *node, bool evicted)
{
    struct slru_node *removed = node;

    (void)evicted;
    list_remove(&policy->segments[removed->segment], removed, removed->bytes);
}

static bool
slru_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    for (unsigned i = 0; i <= policy->highest; i++) {
        const struct list *segment = &policy->segments[i];

        if (!list_is_valid(segment, slru_bytes) || segment->pages > count)
            return false;
        if (i > 0 && share_is_exceeded(&policy->share, segment))
            return false;
        for (const struct slru_node *node = list_first(segment); node;
             node = list_next(segment, node)) {
            if (node->segment != i)
                return false;
        }
        count -= segment->pages;
        bytes -= segment->bytes;
    }
    return count == 0 && bytes == 0;
}

static const char *const enters[] = {[ENTER_FREE] = "free", [ENTER_LOWEST] = "lowest", NULL};

static const struct policy_param params[] = {
    [PARAM_SEGMENTS] = {.name = "segments",
                        .start = 4,
                        .low = 1,
                        .high = MAX_SEGMENTS,
                        .whole = true,
                        .meaning = "segments, each with an equal share of the capacity; 1 is LRU"},
    [PARAM_ENTER] = {.name = "enter",
                     .start = ENTER_FREE,
                     .low = ENTER_FREE,
                     .high = ENTER_LOWEST,
                     .whole = true,
                     .words = enters,
                     .meaning = "where new pages go: free, the lowest segment with free capacity, "
                                "as in libCacheSim, or always the lowest, as in the paper"},
    {.name = NULL},
};

const struct policy_ops policy_slru = {
    .name = "slru",
    .summary = "Evicts by LRU from the lowest of four segments; hits promote pages.",
    .source =
        "R. Karedla, J. S. Love, B. G. Wherry, IEEE Computer 27/3, 1994; Q. Huang et al., SOSP "
        "2013",
    .sizes = "Each segment has an equal share of the bytes; a larger page is not admitted.",
    .cost = "O(1) for pages of one size; a large page may demote several.",
    .params = params,
    .node_size = sizeof(struct slru_node),
    .create = slru_create,
    .destroy = slru_destroy,
    .admit = slru_admit,
    .insert = slru_insert,
    .access = slru_access,
    .hit_has_surplus = slru_has_surplus,
    .victim = slru_victim,
    .remove = slru_remove,
    .resize = slru_resize,
    .is_valid = slru_is_valid,
};
