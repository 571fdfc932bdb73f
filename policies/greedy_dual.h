/*
 * The part that GDS, GDSF and LFUDA share. Each page has a value H, set at its insertion and at
 * each hit to L plus the page's worth. The page of the lowest H is evicted, and L, which begins at
 * 0, is set to its H: L rises above the H of pages that are not requested. Of equal values the page
 * that was requested least recently is evicted. A new page is inserted before victims are chosen
 * and may be one.
 *
 * L and H are doubles. H never falls while a page is cached, so that a hit stores it and moves
 * nothing (rank.h).
 */
#ifndef SUNPROXY_POLICIES_GREEDY_DUAL_H
#define SUNPROXY_POLICIES_GREEDY_DUAL_H

#include "policies/policy.h"
#include "policies/rank.h"

/* The first member of a policy's node. H is rank.major, the time of the last request rank.minor. */
struct greedy_dual_node {
    struct rank_node rank;
};

struct greedy_dual_ops {
    /* Sets the fields of a new page. `params` are the instance's. */
    void (*initialize)(struct greedy_dual_node *node, const struct policy_page *page,
                       const double *params);

    /* Counts a hit. NULL if hits do not change the worth. */
    void (*count)(struct greedy_dual_node *node);

    /* The bytes that the page was inserted with. NULL where no parameter newcomer is. */
    uint64_t (*bytes)(const struct rank_node *node);

    /* The worth now: finite, not below 0, and not less than at the last request. */
    double (*worth)(const struct greedy_dual_node *node);
};

/*
 * What a miss costs, the first parameter of GDS and GDSF. Packets are as both papers count them: 2
 * and one for each 536 bytes.
 */
enum greedy_dual_cost {
    GREEDY_DUAL_ONE,
    GREEDY_DUAL_TIME,
    GREEDY_DUAL_BYTES,
    GREEDY_DUAL_PACKETS,
};

extern const char *const greedy_dual_costs[]; /* the words for them, ended by NULL */

#define GREEDY_DUAL_PARAM_COST                                                                \
    {                                                                                         \
        .name = "cost", .start = GREEDY_DUAL_ONE, .low = GREEDY_DUAL_ONE,                     \
        .high = GREEDY_DUAL_PACKETS, .whole = true, .words = greedy_dual_costs,               \
        .meaning = "what a miss costs: 1, the microseconds that fetching took (known to the " \
                   "daemon alone; 1 in a simulation), the page's bytes, or its packets, 2 + " \
                   "bytes / 536"                                                              \
    }

/* How a new page is treated, the second parameter of GDS and GDSF. */
enum greedy_dual_newcomer {
    GREEDY_DUAL_COMPETES,
    GREEDY_DUAL_COMPARED,
    GREEDY_DUAL_ENTERS,
};

extern const char *const greedy_dual_newcomers[]; /* the words for them, ended by NULL */

#define GREEDY_DUAL_PARAM_NEWCOMER                                                               \
    {                                                                                            \
        .name = "newcomer", .start = GREEDY_DUAL_COMPETES, .low = GREEDY_DUAL_COMPETES,          \
        .high = GREEDY_DUAL_ENTERS, .whole = true, .words = greedy_dual_newcomers,               \
        .meaning = "competes: a new page may be evicted at once, after others; compared: it is " \
                   "not admitted if it would be a victim, and nothing else changes; enters: "    \
                   "only others are victims"                                                     \
    }

/* A page's size, at least 1; and its cost, above 0, by an instance's parameters. */
double greedy_dual_size(const struct policy_page *page);
double greedy_dual_cost(const struct policy_page *page, const double *params);

/* For greedy_dual_ops.count: rank.word is the number of requests, up to UINT32_MAX. */
void greedy_dual_count(struct greedy_dual_node *node);

/* For policy_ops.looks_at_cost. */
bool greedy_dual_looks_at_cost(const double *params);

struct policy *greedy_dual_create(const struct policy_ops *ops, const struct policy_config *config);
void greedy_dual_destroy(struct policy *policy);
bool greedy_dual_admit(struct policy *policy, const struct policy_page *page);
int greedy_dual_insert(struct policy *policy, void *node, const struct policy_page *page);
void greedy_dual_access(struct policy *policy, void *node, const struct policy_page *page);
void *greedy_dual_victim(struct policy *policy);
void greedy_dual_remove(struct policy *policy, void *node, bool evicted);
void greedy_dual_resize(struct policy *policy, const struct policy_config *config);
bool greedy_dual_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes);

/* The cost of a request, the same for all. */
#define GREEDY_DUAL_COST \
    "O(1) for a hit, and one O(log n) at most later; O(log n) for an insertion and an eviction."

#define GREEDY_DUAL_FUNCTIONS                                                                 \
    .enters_first = true, .create = greedy_dual_create, .destroy = greedy_dual_destroy,       \
    .insert = greedy_dual_insert, .access = greedy_dual_access, .victim = greedy_dual_victim, \
    .remove = greedy_dual_remove, .is_valid = greedy_dual_is_valid

/* Those of a policy that has both parameters, cost and newcomer. */
#define GREEDY_DUAL_NEWCOMER_FUNCTIONS                                           \
    GREEDY_DUAL_FUNCTIONS, .admits_what_fits = true, .admit = greedy_dual_admit, \
                           .resize = greedy_dual_resize

#endif
