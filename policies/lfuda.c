/*
 * LFUDA (Arlitt, Cherkasova, Dilley, Friedrich, Jin 1999, "Evaluating Content Management Techniques
 * for Web Proxy Caches"): LFU with dynamic aging. A page's value is L plus its requests; see
 * greedy_dual.h. The count begins at 1 and is forgotten when the page leaves.
 */
#include "policies/greedy_dual.h"

static void
lfuda_enter(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    (void)page;
    (void)params;
    node->rank.word = 1;
}

static void
lfuda_count(struct greedy_dual_node *node)
{
    if (node->rank.word != UINT32_MAX)
        node->rank.word++;
}

static double
lfuda_worth(const struct greedy_dual_node *node)
{
    return (double)node->rank.word;
}

static const struct greedy_dual_ops hooks = {
    .enter = lfuda_enter,
    .count = lfuda_count,
    .worth = lfuda_worth,
};

const struct policy_ops policy_lfuda = {
    .name = "lfuda",
    .summary = "the page with the fewest requests leaves first, older ones sooner",
    .source = "Arlitt et al. 1999, Evaluating Content Management Techniques for Web Proxy Caches, "
              "section 4 (LFU-DA)",
    .sizes = "Sizes are ignored: large pages that are asked for often stay, good for bytes.",
    .cost = GREEDY_DUAL_COST,
    .node_size = sizeof(struct greedy_dual_node),
    .hooks = &hooks,
    GREEDY_DUAL_FUNCTIONS,
};
