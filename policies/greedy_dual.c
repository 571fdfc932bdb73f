#include "policies/greedy_dual.h"

#include <stdlib.h>
#include <string.h>

#include "policies/admission.h"

#define PARAM_NEWCOMER 1u
#define LARGEST_NODE 64u

struct policy {
    const struct greedy_dual_ops *hooks;
    struct rank_heap heap;
    double level; /* L */
    uint64_t now; /* the number of this insert or access, from 1 */
    double params[POLICY_MAX_PARAMS];
    enum greedy_dual_newcomer newcomer;
    struct admission admission;       /* kept where a new page is compared */
    struct greedy_dual_node *entered; /* a new page whose H is not computed yet; or NULL */
};

const char *const greedy_dual_costs[] = {
    [GREEDY_DUAL_ONE] = "1",
    [GREEDY_DUAL_TIME] = "time",
    [GREEDY_DUAL_BYTES] = "bytes",
    [GREEDY_DUAL_PACKETS] = "packets",
    NULL,
};

const char *const greedy_dual_newcomers[] = {
    [GREEDY_DUAL_COMPETES] = "competes",
    [GREEDY_DUAL_COMPARED] = "compared",
    [GREEDY_DUAL_ENTERS] = "enters",
    NULL,
};

double
greedy_dual_size(const struct policy_page *page)
{
    return page->bytes ? (double)page->bytes : 1.0;
}

double
greedy_dual_cost(const struct policy_page *page, const double *params)
{
    switch ((enum greedy_dual_cost)params[0]) {
    case GREEDY_DUAL_ONE:
        break;
    case GREEDY_DUAL_TIME:
        /* An unknown time counts as 1, not as 0: small pages still stay longer. */
        return page->cost_us ? (double)page->cost_us : 1.0;
    case GREEDY_DUAL_BYTES:
        return greedy_dual_size(page);
    case GREEDY_DUAL_PACKETS:
        return 2.0 + greedy_dual_size(page) / 536.0;
    }
    return 1.0;
}

void
greedy_dual_count(struct greedy_dual_node *node)
{
    if (node->rank.word != UINT32_MAX)
        node->rank.word++;
}

bool
greedy_dual_looks_at_cost(const double *params)
{
    return (enum greedy_dual_cost)params[0] == GREEDY_DUAL_TIME;
}

struct policy *
greedy_dual_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    policy->hooks = ops->hooks;
    rank_init(&policy->heap);
    for (size_t i = 0; i < policy_param_count(ops); i++)
        policy->params[i] = policy_param_value(ops, config, i);
    if (policy_param_count(ops) > PARAM_NEWCOMER)
        policy->newcomer = (enum greedy_dual_newcomer)policy->params[PARAM_NEWCOMER];
    admission_resize(&policy->admission, config);
    return policy;
}

void
greedy_dual_destroy(struct policy *policy)
{
    rank_free(&policy->heap);
    free(policy);
}

static inline uint64_t
greedy_dual_value(const struct policy *policy, const struct greedy_dual_node *node)
{
    return rank_of_double(policy->level + policy->hooks->worth(node));
}

static inline void
greedy_dual_revalue(struct policy *policy, struct greedy_dual_node *node)
{
    node->rank.major = greedy_dual_value(policy, node);
    node->rank.minor = ++policy->now;
}

/* By newcomer=enters: the victims for the last new page are evicted, and its H can be computed. */
static inline void
greedy_dual_settle(struct policy *policy)
{
    struct greedy_dual_node *node = policy->entered;

    if (!node)
        return;
    policy->entered = NULL;
    node->rank.major = greedy_dual_value(policy, node);
    rank_lowered(&policy->heap, &node->rank);
}

static inline uint64_t
greedy_dual_bytes(const struct policy *policy, const struct greedy_dual_node *node)
{
    return policy->hooks->bytes ? policy->hooks->bytes(&node->rank) : 0;
}

bool
greedy_dual_admit(struct policy *policy, const struct policy_page *page)
{
    _Alignas(struct greedy_dual_node) unsigned char memory[LARGEST_NODE];
    struct greedy_dual_node *node = (struct greedy_dual_node *)(void *)memory;

    if (policy->newcomer != GREEDY_DUAL_COMPARED)
        return true;
    memset(memory, 0, sizeof(memory));
    policy->hooks->initialize(node, page, policy->params);
    node->rank.major = greedy_dual_value(policy, node);
    node->rank.minor = policy->now + 1;
    return admission_is_won(&policy->admission, &policy->heap, &node->rank, page,
                            policy->hooks->bytes);
}

int
greedy_dual_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    struct greedy_dual_node *page_node = node;

    greedy_dual_settle(policy);
    policy->hooks->initialize(page_node, page, policy->params);
    greedy_dual_revalue(policy, page_node);
    if (policy->newcomer == GREEDY_DUAL_ENTERS)
        page_node->rank.major = UINT64_MAX; /* above every other page, until it is settled */
    if (!rank_insert(&policy->heap, &page_node->rank)) {
        policy->now--;
        return -1;
    }
    if (policy->newcomer == GREEDY_DUAL_ENTERS)
        policy->entered = page_node;
    policy->admission.bytes += greedy_dual_bytes(policy, page_node);
    return 0;
}

void
greedy_dual_access(struct policy *policy, void *node, const struct policy_page *page)
{
    (void)page;
    greedy_dual_settle(policy);
    if (policy->hooks->count)
        policy->hooks->count(node);
    greedy_dual_revalue(policy, node);
}

void *
greedy_dual_victim(struct policy *policy)
{
    return rank_first(&policy->heap);
}

void
greedy_dual_remove(struct policy *policy, void *node, bool evicted)
{
    struct greedy_dual_node *page_node = node;

    if (page_node == policy->entered)
        greedy_dual_settle(policy);
    policy->admission.bytes -= greedy_dual_bytes(policy, page_node);
    /* L rises to the H of a victim, and not to that of a page evicted for another reason. */
    if (evicted && rank_first(&policy->heap) == &page_node->rank)
        policy->level = rank_to_double(page_node->rank.major);
    rank_remove(&policy->heap, &page_node->rank);
}

void
greedy_dual_resize(struct policy *policy, const struct policy_config *config)
{
    greedy_dual_settle(policy);
    admission_resize(&policy->admission, config);
}

bool
greedy_dual_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    uint64_t lowest = rank_of_double(policy->level);

    if (policy->heap.count != count || !rank_is_valid(&policy->heap))
        return false;
    if (policy->hooks->bytes && policy->admission.bytes != bytes)
        return false;
    for (size_t i = 0; i < policy->heap.count; i++) {
        const struct rank_node *node = policy->heap.slots[i].node;

        if (node->major < lowest || node->minor > policy->now)
            return false;
    }
    return true;
}
