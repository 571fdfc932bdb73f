/*
 * LeCaR (Vietri et al. 2018): each eviction is decided by one of two policies, LRU or LFU, drawn at
 * random with adaptive weights. Evicted pages are remembered in the history of the policy that
 * chose them. A request for a page of a history shows that its eviction was a mistake: the weight
 * of that policy is multiplied by exp(-rate * d^t), where t is the number of requests since then,
 * and the weights are normalised. Where both policies choose the same page neither is held
 * responsible.
 *
 * d is 0.005^(1/N), with N the number of cached pages: an eviction that is N requests old has
 * 0.005 of the weight of one just made. (libCacheSim takes the capacity for N; with a capacity in
 * bytes nothing is discounted there.) Each history has half of the capacity, as in libCacheSim and
 * in the authors' program.
 *
 * The paper leaves three choices open, which parameter rule decides. By rule=plain the count of a
 * page begins at 1 with each insertion, of equal counts LFU evicts the page that reached it first,
 * which is the least recently requested, and the weights are not bounded. By rule=authors, the
 * program of the authors (sylab/cacheus), the count of a page in a history goes on, of equal counts
 * LFU evicts the page of the lowest key (there the number of a block), and weights are between 0.01
 * and 0.99. On a cycle that is larger than the cache all counts are equal, and only the second rule
 * differs from LRU.
 */
#include <math.h>
#include <stdlib.h>

#include "base/container_of.h"
#include "base/hash.h"
#include "policies/ghost.h"
#include "policies/heap.h"
#include "policies/list.h"
#include "policies/policy.h"
#include "policies/share.h"

#define DISCOUNT 0.005
#define LEAST_WEIGHT 1e-10 /* no policy is ruled out for good */
#define LEAST_WEIGHT_OF_AUTHORS 0.01

enum expert { EXPERT_LRU, EXPERT_LFU, EXPERTS, EXPERT_BOTH = EXPERTS };

struct lecar_node {
    struct list_node links; /* in order of the last request */
    struct heap_node heap;  /* in order of counts */
    uint32_t count;         /* of requests; stays at its maximum */
    uint64_t order;         /* among equal counts: the time at which it was reached, or the key */
    uint64_t key;
    uint64_t bytes;
};

struct policy {
    struct list pages; /* the least recently requested first */
    struct heap heap;
    struct ghost histories[EXPERTS]; /* words: the time of the eviction, the count */
    double weights[EXPERTS];         /* their sum is 1 */
    uint64_t now;                    /* the number of this request, from 1 */
    uint64_t random;                 /* state of SplitMix64 */
    struct lecar_node *victim;       /* chosen, and nothing has changed since; or NULL */
    enum expert expert;              /* that chose it */
    double rate;
    double history_fraction;
    bool by_authors;       /* rule=authors */
    uint32_t count_so_far; /* of the page of the last admit() */
};

enum { PARAM_RATE, PARAM_HISTORY, PARAM_RULE };

enum word { WORD_EVICTED, WORD_COUNT, WORDS };

static struct lecar_node *
lecar_of_heap(struct heap_node *node)
{
    return container_of(node, struct lecar_node, heap);
}

static int
lecar_compare(const struct heap_node *a, const struct heap_node *b)
{
    const struct lecar_node *x = container_of(a, const struct lecar_node, heap);
    const struct lecar_node *y = container_of(b, const struct lecar_node, heap);

    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static void
lecar_resize(struct policy *policy, const struct policy_config *config)
{
    struct share share = share_of(config, policy->history_fraction);

    for (int i = 0; i < EXPERTS; i++)
        ghost_limit(&policy->histories[i], share.pages, share.bytes);
}

static struct policy *
lecar_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    list_init(&policy->pages);
    heap_init(&policy->heap, lecar_compare);
    for (int i = 0; i < EXPERTS; i++) {
        ghost_init_with_words(&policy->histories[i], 0, 0, WORDS);
        policy->weights[i] = 1.0 / (double)EXPERTS;
    }
    policy->random = config->seed;
    policy->rate = policy_param_value(ops, config, PARAM_RATE);
    policy->history_fraction = policy_param_value(ops, config, PARAM_HISTORY);
    policy->by_authors = policy_param_value(ops, config, PARAM_RULE) > 0;
    lecar_resize(policy, config);
    return policy;
}

static void
lecar_destroy(struct policy *policy)
{
    for (int i = 0; i < EXPERTS; i++)
        ghost_free(&policy->histories[i]);
    heap_free(&policy->heap);
    free(policy);
}

/* A page that this policy evicted at that time is requested again. */
static void
lecar_penalise(struct policy *policy, enum expert expert, uint64_t evicted_at)
{
    double pages = policy->pages.pages ? (double)policy->pages.pages : 1.0;
    double discount = pow(DISCOUNT, (double)(policy->now - evicted_at) / pages);
    double sum = 0;

    policy->weights[expert] *= exp(-policy->rate * discount);
    for (int i = 0; i < EXPERTS; i++) {
        policy->weights[i] += LEAST_WEIGHT;
        sum += policy->weights[i];
    }
    for (int i = 0; i < EXPERTS; i++)
        policy->weights[i] /= sum;
    if (!policy->by_authors)
        return;
    for (int i = 0; i < EXPERTS; i++) {
        policy->weights[i] = fmax(policy->weights[i], LEAST_WEIGHT_OF_AUTHORS);
        policy->weights[i] = fmin(policy->weights[i], 1 - LEAST_WEIGHT_OF_AUTHORS);
    }
}

static void
lecar_set_count(const struct policy *policy, struct lecar_node *node, uint32_t count)
{
    node->count = count;
    node->order = policy->by_authors ? node->key : policy->now;
}

static bool
lecar_admit(struct policy *policy, const struct policy_page *page)
{
    policy->now++;
    policy->victim = NULL;
    policy->count_so_far = 0;
    for (int i = 0; i < EXPERTS; i++) {
        const uint64_t *words = ghost_words(&policy->histories[i], page->key);

        if (!words)
            continue;
        lecar_penalise(policy, (enum expert)i, words[WORD_EVICTED]);
        if (policy->by_authors)
            policy->count_so_far = (uint32_t)words[WORD_COUNT];
        ghost_take(&policy->histories[i], page->key);
    }
    return true;
}

static int
lecar_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lecar_node *node = opaque;

    node->key = page->key;
    node->bytes = page->bytes;
    lecar_set_count(policy, node, policy->count_so_far + (policy->count_so_far < UINT32_MAX));
    if (!heap_insert(&policy->heap, &node->heap))
        return -1;
    list_add_last(&policy->pages, node, 0);
    policy->victim = NULL;
    return 0;
}

static void
lecar_access(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lecar_node *node = opaque;

    (void)page;
    policy->now++;
    policy->victim = NULL;
    list_move_last(&policy->pages, node);
    if (node->count == UINT32_MAX)
        return;
    lecar_set_count(policy, node, node->count + 1);
    heap_sink(&policy->heap, &node->heap);
}

static void *
lecar_victim(struct policy *policy)
{
    struct lecar_node *lru = list_first(&policy->pages);

    if (policy->victim || !lru)
        return policy->victim;
    policy->victim = lecar_of_heap(heap_first(&policy->heap));
    policy->expert = EXPERT_LFU;
    if (policy->victim == lru) {
        policy->expert = EXPERT_BOTH;
    } else if ((double)(splitmix64_next(&policy->random) >> 11) * 0x1p-53 <
               policy->weights[EXPERT_LRU]) {
        policy->victim = lru;
        policy->expert = EXPERT_LRU;
    }
    return policy->victim;
}

static void
lecar_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct lecar_node *node = opaque;

    if (evicted && node == policy->victim && policy->expert != EXPERT_BOTH) {
        struct ghost *history = &policy->histories[policy->expert];

        if (ghost_add(history, node->key, node->bytes)) {
            uint64_t *words = ghost_words(history, node->key);

            words[WORD_EVICTED] = policy->now;
            words[WORD_COUNT] = node->count;
        }
    }
    heap_remove(&policy->heap, &node->heap);
    list_remove(&policy->pages, node, 0);
    policy->victim = NULL;
}

static bool
lecar_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    double sum = policy->weights[EXPERT_LRU] + policy->weights[EXPERT_LFU];

    (void)bytes; /* it keeps no sum of them */
    for (const struct lecar_node *node = list_first(&policy->pages); node;
         node = list_next(&policy->pages, node)) {
        if ((policy->by_authors ? node->order != node->key : node->order > policy->now) ||
            ghost_has(&policy->histories[EXPERT_LRU], node->key) ||
            ghost_has(&policy->histories[EXPERT_LFU], node->key))
            return false;
    }
    return policy->pages.pages == count && policy->heap.count == count &&
           heap_is_valid(&policy->heap) && list_is_valid(&policy->pages, NULL) &&
           ghost_is_valid(&policy->histories[EXPERT_LRU]) &&
           ghost_is_valid(&policy->histories[EXPERT_LFU]) && sum > 0.999 && sum < 1.001;
}

static const char *const rules[] = {"plain", "authors", NULL};

static const struct policy_param params[] = {
    [PARAM_RATE] = {.name = "rate",
                    .start = 0.45,
                    .low = 0,
                    .high = 10,
                    .meaning = "learning rate of the weights; 0 keeps them at a half"},
    [PARAM_HISTORY] = {.name = "history",
                       .start = 0.5,
                       .low = 0,
                       .high = 16,
                       .meaning = "evicted pages remembered for each of the two policies, as a "
                                  "multiple of the capacity"},
    [PARAM_RULE] = {.name = "rule",
                    .start = 0,
                    .low = 0,
                    .high = 1,
                    .whole = true,
                    .words = rules,
                    .meaning = "plain: counts begin at 1 with each insertion, ties go to the least "
                               "recently requested page; authors: as in the authors' program, "
                               "counts go on after a return from a history, ties go to the lowest "
                               "key, and weights are between 0.01 and 0.99"},
    {.name = NULL},
};

const struct policy_ops policy_lecar = {
    .name = "lecar",
    .summary = "Evicts by LRU or LFU, at random with weights adapted to mistakes.",
    .source = "G. Vietri et al., Driving Cache Replacement with ML-based LeCaR, HotStorage 2018",
    .sizes = "Ignores sizes when it chooses; its histories are bounded in bytes.",
    .cost = "O(log n) per request: a page moves in a heap.",
    .params = params,
    .draws = true,
    .node_size = sizeof(struct lecar_node),
    .create = lecar_create,
    .destroy = lecar_destroy,
    .admit = lecar_admit,
    .insert = lecar_insert,
    .access = lecar_access,
    .victim = lecar_victim,
    .remove = lecar_remove,
    .resize = lecar_resize,
    .is_valid = lecar_is_valid,
};
