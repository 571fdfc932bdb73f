/*
 * GDSF (Cherkasova 1998, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching
 * Policy"): a page's value is L plus its requests, times its cost, divided by its size; see
 * greedy_dual.h. The count begins at 1 and is forgotten when the page leaves. With cost=1
 * many small pages that are asked for often stay before one large one: good for the hit ratio, less
 * so for bytes, which cost=packets favours. With cost=bytes it is LFUDA.
 *
 * Values are counted per million bytes, as others do, so that rounding breaks no ties differently.
 */
#include "policies/greedy_dual.h"

struct gdsf_node {
    struct greedy_dual_node base; /* rank.word is the count */
    double size;                  /* divided by its cost */
};

static void
gdsf_enter(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    node->rank.word = 1;
    ((struct gdsf_node *)node)->size = greedy_dual_size(page) / greedy_dual_cost(page, params);
}

static void
gdsf_count(struct greedy_dual_node *node)
{
    if (node->rank.word != UINT32_MAX)
        node->rank.word++;
}

static double
gdsf_worth(const struct greedy_dual_node *node)
{
    return (double)node->rank.word * 1e6 / ((const struct gdsf_node *)node)->size;
}

static const struct greedy_dual_ops hooks = {
    .enter = gdsf_enter,
    .count = gdsf_count,
    .worth = gdsf_worth,
};

static const struct policy_param params[] = {
    GREEDY_DUAL_PARAM_COST,
    {.name = NULL},
};

const struct policy_ops policy_gdsf = {
    .name = "gdsf",
    .summary = "the page with the fewest requests for its size leaves first, older ones sooner",
    .source = "Cherkasova 1998, Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency "
              "Caching Policy",
    .sizes =
        "A page's requests, times their cost, are divided by its bytes: small pages stay longer "
        "(not with cost=bytes).",
    .cost = GREEDY_DUAL_COST,
    .params = params,
    .looks_at_cost = greedy_dual_looks_at_cost,
    .usual = true,
    .node_size = sizeof(struct gdsf_node),
    .hooks = &hooks,
    GREEDY_DUAL_FUNCTIONS,
};
