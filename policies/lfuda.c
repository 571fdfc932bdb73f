/*
 * LFUDA (Arlitt, Cherkasova, Dilley, Friedrich, Jin 1999, "Evaluating Content Management Techniques
 * for Web Proxy Caches"): LFU with dynamic aging. A page's value is L plus its requests; see
 * greedy_dual.h. The count begins at 1 and is dropped on eviction.
 */
#include "policies/greedy_dual.h"

static void
lfuda_initialize(struct greedy_dual_node *node, const struct policy_page *page,
                 const double *params)
{
    (void)page;
    (void)params;
    node->rank.word = 1;
}

static double
lfuda_worth(const struct greedy_dual_node *node)
{
    return (double)node->rank.word;
}

static const struct greedy_dual_ops hooks = {
    .initialize = lfuda_initialize,
    .count = greedy_dual_count,
    .worth = lfuda_worth,
};

const struct policy_ops policy_lfuda = {
    .name = "lfuda",
    .summary = "Evicts the page with the fewest requests, with aging.",
    .source = "Arlitt et al. 1999, Evaluating Content Management Techniques for Web Proxy Caches, "
              "section 4 (LFU-DA)",
    .sizes = "Ignores sizes: large pages that are requested often stay, which favours the byte hit "
             "ratio.",
    .cost = GREEDY_DUAL_COST,
    .node_size = sizeof(struct greedy_dual_node),
    .hooks = &hooks,
    GREEDY_DUAL_FUNCTIONS,
};
