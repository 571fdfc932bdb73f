/*
 * OPT, MIN (Belady 1966, "A study of replacement algorithms for a virtual-storage computer"):
 * evicts the page whose next request is farthest in the future. With pages of one size no policy
 * that inserts every page it misses has fewer misses; one that does not admit every page (TinyLFU)
 * may. It is the reference of other policies. Only a simulation knows the future.
 *
 * Of pages that are never requested again the one that was requested first is evicted.
 *
 * Belady's programs cannot run without a page in memory, so every page is inserted. A cache may
 * pass a page on: by bypass=yes a page whose own next request is farther than those of the pages
 * that would be evicted for it is not inserted. With pages of one size no policy at all has fewer
 * misses than that.
 */
#include "policies/admission.h"

#include <stdlib.h>

struct opt_node {
    struct rank_node rank; /* major falls as the next request is farther away */
    uint64_t bytes;
};

struct policy {
    struct rank_heap heap;
    uint64_t now; /* the number of this insert or access, from 1 */
    bool bypasses;
    struct admission admission;
};

enum { PARAM_BYPASS };

static struct policy *
opt_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->bypasses = policy_param_value(ops, config, PARAM_BYPASS) > 0;
    admission_resize(&policy->admission, config);
    return policy;
}

static void
opt_destroy(struct policy *policy)
{
    rank_free(&policy->heap);
    free(policy);
}

static void
opt_resize(struct policy *policy, const struct policy_config *config)
{
    admission_resize(&policy->admission, config);
}

static uint64_t
opt_bytes(const struct rank_node *node)
{
    return ((const struct opt_node *)node)->bytes;
}

static bool
opt_admit(struct policy *policy, const struct policy_page *page)
{
    struct rank_node rank = {.major = POLICY_NEVER - page->next, .minor = policy->now + 1};

    return !policy->bypasses ||
           admission_is_won(&policy->admission, &policy->heap, &rank, page, opt_bytes);
}

static int
opt_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct opt_node *opt = node;

    opt->rank.major = POLICY_NEVER - page->next;
    opt->rank.minor = policy->now + 1;
    opt->bytes = page->bytes;
    if (!rank_insert(&policy->heap, &opt->rank))
        return -1;
    policy->now++;
    policy->admission.bytes += opt->bytes;
    return 0;
}

static void
opt_access(struct policy *policy, void *node, const struct policy_page *page)
{
    struct opt_node *opt = node;
    uint64_t major = POLICY_NEVER - page->next;
    bool lower = major < opt->rank.major;

    opt->rank.major = major;
    opt->rank.minor = ++policy->now;
    if (lower)
        rank_lowered(&policy->heap, &opt->rank);
}

static void *
opt_victim(struct policy *policy)
{
    return rank_first(&policy->heap);
}

static void
opt_remove(struct policy *policy, void *node, bool evicted)
{
    struct opt_node *opt = node;

    (void)evicted;
    policy->admission.bytes -= opt->bytes;
    rank_remove(&policy->heap, &opt->rank);
}

static bool
opt_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    return policy->heap.count == count && policy->admission.bytes == bytes &&
           rank_is_valid(&policy->heap);
}

static const char *const words[] = {"no", "yes", NULL};

static const struct policy_param params[] = {
    [PARAM_BYPASS] = {.name = "bypass",
                      .start = 0,
                      .low = 0,
                      .high = 1,
                      .whole = true,
                      .words = words,
                      .meaning = "yes: a page whose next request is farther than those of the "
                                 "pages that would be evicted for it is not inserted"},
    {.name = NULL},
};

const struct policy_ops policy_opt = {
    .name = "opt",
    .aliases = (const char *const[]){"belady", "min", NULL},
    .summary = "Evicts the page with the farthest next request.",
    .source = "Belady 1966, A study of replacement algorithms for a virtual-storage computer",
    .sizes = "Ignores sizes. With pages of one size no policy that admits every page has fewer "
             "misses, and with bypass=yes no policy at all.",
    .cost = "O(log n), less for pages that are requested again soon.",
    .params = params,
    .usual = true,
    .node_size = sizeof(struct opt_node),
    .needs_future = true,
    .admits_what_fits = true,
    .create = opt_create,
    .destroy = opt_destroy,
    .admit = opt_admit,
    .insert = opt_insert,
    .access = opt_access,
    .victim = opt_victim,
    .remove = opt_remove,
    .resize = opt_resize,
    .is_valid = opt_is_valid,
};
