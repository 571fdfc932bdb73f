/*
 * GDS (Cao, Irani 1997, "Cost-Aware WWW Proxy Caching Algorithms"): a page's value is L plus its
 * cost divided by its size, set again at each request; see greedy_dual.h. With cost=1 it favours
 * the hit ratio (their GD-Size(1)); with cost=packets (their GD-Size(packets)) the network is
 * spared; with cost=time, the microseconds that the fetch took, delays are reduced; with cost=bytes
 * all pages are worth the same and it becomes LRU. By the paper victims are chosen before the new
 * page is inserted: newcomer=enters.
 */
#include "policies/greedy_dual.h"

struct gds_node {
    struct greedy_dual_node base;
    double worth;
    uint64_t bytes;
};

static void
gds_initialize(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    ((struct gds_node *)node)->worth =
        greedy_dual_cost(page, params) * 1e6 / greedy_dual_size(page);
    ((struct gds_node *)node)->bytes = page->bytes;
}

static uint64_t
gds_bytes(const struct rank_node *node)
{
    return ((const struct gds_node *)node)->bytes;
}

static double
gds_worth(const struct greedy_dual_node *node)
{
    return ((const struct gds_node *)node)->worth;
}

static const struct greedy_dual_ops hooks = {
    .initialize = gds_initialize,
    .bytes = gds_bytes,
    .worth = gds_worth,
};

static const struct policy_param params[] = {
    GREEDY_DUAL_PARAM_COST,
    GREEDY_DUAL_PARAM_NEWCOMER,
    {.name = NULL},
};

const struct policy_ops policy_gds = {
    .name = "gds",
    .aliases = (const char *const[]){"gd-size", NULL},
    .summary = "Evicts the page with the lowest fetch cost per byte, with aging.",
    .source = "Cao, Irani 1997, Cost-Aware WWW Proxy Caching Algorithms, section 4",
    .sizes = "The cost is divided by bytes: small pages stay longer (not with cost=bytes).",
    .cost = GREEDY_DUAL_COST,
    .params = params,
    .looks_at_cost = greedy_dual_looks_at_cost,
    .node_size = sizeof(struct gds_node),
    .hooks = &hooks,
    GREEDY_DUAL_NEWCOMER_FUNCTIONS,
};
