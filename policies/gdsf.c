/*
 * GDSF (Cherkasova 1998, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching
 * Policy"): a page's value is L plus its requests divided by its size; see greedy_dual.h. The count
 * begins at 1 and is forgotten when the page leaves. Many small pages that are asked for often stay
 * before one large one: good for the hit ratio, less so for bytes.
 *
 * Values are counted per million bytes, as others do, so that rounding breaks no ties differently.
 */
#include "policies/greedy_dual.h"

struct gdsf_node {
    struct greedy_dual_node base; /* rank.word is the count */
    double bytes;
};

static void
gdsf_enter(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    (void)params;
    node->rank.word = 1;
    ((struct gdsf_node *)node)->bytes = page->bytes ? (double)page->bytes : 1.0;
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
    return (double)node->rank.word * 1e6 / ((const struct gdsf_node *)node)->bytes;
}

static const struct greedy_dual_ops hooks = {
    .enter = gdsf_enter,
    .count = gdsf_count,
    .worth = gdsf_worth,
};

const struct policy_ops policy_gdsf = {
    .name = "gdsf",
    .summary = "the page with the fewest requests for its size leaves first, older ones sooner",
    .source = "Cherkasova 1998, Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency "
              "Caching Policy",
    .sizes = "A page's requests are divided by its bytes: small pages stay longer.",
    .cost = GREEDY_DUAL_COST,
    .node_size = sizeof(struct gdsf_node),
    .hooks = &hooks,
    GREEDY_DUAL_FUNCTIONS,
};
