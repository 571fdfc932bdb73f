/*
 * GDSF (Cherkasova 1998, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching
 * Policy"): a page's value is L plus its requests, times its cost, divided by its size; see
 * greedy_dual.h. The count begins at 1 and is dropped on eviction. With cost=1
 * many popular small pages are kept rather than one large page, which favours the hit ratio;
 * cost=packets favours the byte hit ratio. With cost=bytes it is LFUDA. By the report a page that
 * would be a victim at once is not inserted and changes nothing: newcomer=compared.
 *
 * Values are per million bytes, as in libCacheSim, so that rounding breaks the same ties.
 */
#include "policies/greedy_dual.h"

struct gdsf_node {
    struct greedy_dual_node base; /* rank.word is the count */
    double size;                  /* divided by its cost */
    uint64_t bytes;
};

static void
gdsf_initialize(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    node->rank.word = 1;
    ((struct gdsf_node *)node)->size = greedy_dual_size(page) / greedy_dual_cost(page, params);
    ((struct gdsf_node *)node)->bytes = page->bytes;
}

static uint64_t
gdsf_bytes(const struct rank_node *node)
{
    return ((const struct gdsf_node *)node)->bytes;
}

static double
gdsf_worth(const struct greedy_dual_node *node)
{
    return (double)node->rank.word * 1e6 / ((const struct gdsf_node *)node)->size;
}

static const struct greedy_dual_ops hooks = {
    .initialize = gdsf_initialize,
    .count = greedy_dual_count,
    .bytes = gdsf_bytes,
    .worth = gdsf_worth,
};

static const struct policy_param params[] = {
    GREEDY_DUAL_PARAM_COST,
    GREEDY_DUAL_PARAM_NEWCOMER,
    {.name = NULL},
};

const struct policy_ops policy_gdsf = {
    .name = "gdsf",
    .summary = "Evicts the page with the fewest requests per byte, with aging.",
    .source = "Cherkasova 1998, Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency "
              "Caching Policy",
    .sizes = "Requests, times the cost, are divided by bytes: small pages stay longer (not with "
             "cost=bytes).",
    .cost = GREEDY_DUAL_COST,
    .params = params,
    .looks_at_cost = greedy_dual_looks_at_cost,
    .usual = true,
    .node_size = sizeof(struct gdsf_node),
    .hooks = &hooks,
    GREEDY_DUAL_NEWCOMER_FUNCTIONS,
};
