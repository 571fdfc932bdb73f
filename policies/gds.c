/*
 * GDS (Cao, Irani 1997, "Cost-Aware WWW Proxy Caching Algorithms"): a page's value is L plus its
 * cost divided by its size, set again at each request; see greedy_dual.h. With cost=1 it favours
 * the hit ratio (their GD-Size(1)); with cost=time, the microseconds that fetching took, it saves
 * waiting; with cost=bytes all pages are worth the same and it becomes LRU.
 */
#include "policies/greedy_dual.h"

enum gds_cost {
    GDS_ONE,
    GDS_TIME,
    GDS_BYTES,
};

struct gds_node {
    struct greedy_dual_node base;
    double worth;
};

static void
gds_enter(struct greedy_dual_node *node, const struct policy_page *page, const double *params)
{
    double bytes = page->bytes ? (double)page->bytes : 1.0, cost = 1.0;

    switch ((enum gds_cost)params[0]) {
    case GDS_ONE:
        break;
    case GDS_TIME:
        /* Unknown is the least that there is, not nothing: small pages still stay longer. */
        cost = page->cost_us ? (double)page->cost_us : 1.0;
        break;
    case GDS_BYTES:
        cost = bytes;
        break;
    }
    ((struct gds_node *)node)->worth = cost * 1e6 / bytes;
}

static double
gds_worth(const struct greedy_dual_node *node)
{
    return ((const struct gds_node *)node)->worth;
}

static const struct greedy_dual_ops hooks = {
    .enter = gds_enter,
    .worth = gds_worth,
};

static const char *const costs[] = {"1", "time", "bytes", NULL};

static const struct policy_param params[] = {
    {.name = "cost",
     .start = GDS_ONE,
     .low = GDS_ONE,
     .high = GDS_BYTES,
     .whole = true,
     .words = costs,
     .meaning = "what a miss costs: 1, the microseconds that fetching took (1 where they are "
                "unknown, as in most traces), or the page's bytes"},
    {.name = NULL},
};

const struct policy_ops policy_gds = {
    .name = "gds",
    .aliases = (const char *const[]){"gd-size", NULL},
    .summary =
        "the page that is cheapest to fetch again for its size leaves first, older ones sooner",
    .source = "Cao, Irani 1997, Cost-Aware WWW Proxy Caching Algorithms, section 4",
    .sizes =
        "A page's cost is divided by its bytes: small pages stay longer (not with cost=bytes).",
    .cost = GREEDY_DUAL_COST,
    .params = params,
    .node_size = sizeof(struct gds_node),
    .hooks = &hooks,
    GREEDY_DUAL_FUNCTIONS,
};
