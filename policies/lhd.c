/*
 * LHD, least hit density (Beckmann, Chen, Cidon 2018): evicts the page that is expected to give the
 * fewest hits for the space and time that it takes, of some pages drawn at random.
 *
 * A page's class follows from its ages at its last two requests: the sooner they came, the higher
 * the class. For each class and age the policy counts hits and evictions, and derives from them the
 * hit density: the probability that a page of that age will be hit, divided by the time that it is
 * expected to stay until its hit or eviction. The rank of a page is this density divided by its
 * bytes. Ages are counted in requests, in AGES steps that span AGE_SPAN requests for each cached
 * page. A page of the last age has the lowest rank.
 *
 * After every `period` requests for each cached page the densities are derived anew, and the counts
 * are multiplied by DECAY. Until the first time densities fall with age and rise with the class.
 * Besides the drawn pages the last ADMISSIONS new pages whose rank is below the average of victims
 * are candidates, so that large new pages are found. One page in EXPLORE_ONE_IN is an explorer, as
 * long as explorers take less than a hundredth of the capacity: it is not evicted before the last
 * age, and gives counts of ages that pages of its class would not reach.
 *
 * Our choices: the paper derives densities every 2^20 requests or so and has 20,000 ages, for
 * caches of millions of pages; here the period follows the number of cached pages, and an instance
 * takes 123 KiB. Of equal ranks the page that was found first is evicted.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "policies/pool.h"

#define AGES 1024u
#define AGE_BITS 10u /* of AGES */
#define CLASSES (AGE_BITS + 2)
#define AGE_SPAN 32u
#define MAX_AGE_SHIFT 40u
#define DECAY 0.9
#define ADMISSIONS 8u
#define EXPLORE_ONE_IN 32u
#define EXPLORER_SHARE 0.01
#define LEAST_PERIOD 512.0 /* requests */

struct lhd_node {
    struct pool_node pool;
    bool is_explorer;
    bool is_old;         /* it was requested since its insertion */
    uint64_t requested;  /* the time of the last request */
    uint64_t last_age;   /* at the last request; 0 if that was the insertion */
    uint64_t age_before; /* at the request before it, likewise */
    uint64_t bytes;      /* at least 1 */
};

struct lhd_class {
    float hits[AGES], evictions[AGES], densities[AGES];
};

struct policy {
    struct pool pool;
    uint64_t now;            /* the number of this insert or access, from 1 */
    uint64_t next_update;    /* of the densities; a time */
    unsigned age_shift;      /* an age step is 2^this requests */
    struct lhd_node *victim; /* found, and nothing has changed since; or NULL */
    double victim_rank;      /* of the last victims, a moving average */
    double explorers;        /* their size */
    double explorer_budget;  /* the size that they may have */
    bool by_bytes;
    uint32_t sample;
    double period; /* requests for each cached page */
    struct lhd_node *admissions[ADMISSIONS];
    uint32_t admission; /* the next of them to be overwritten */
    struct lhd_class classes[CLASSES];
};

enum { PARAM_SAMPLE, PARAM_PERIOD };

/* ---- ages, classes, ranks -------------------------------------------------------------------- */

static uint32_t
lhd_age(const struct policy *policy, const struct lhd_node *node)
{
    uint64_t age = (policy->now - node->requested) >> policy->age_shift;

    return age < AGES ? (uint32_t)age : AGES - 1;
}

/* 0: not requested yet, or at ages beyond the last; one more for each half of that; highest: 0. */
static struct lhd_class *
lhd_class(struct policy *policy, const struct lhd_node *node)
{
    uint64_t age = (node->last_age + node->age_before) >> policy->age_shift;
    uint32_t class = 0;

    if (node->is_old)
        while (class < CLASSES - 1 && age << class < AGES)
            class ++;
    return &policy->classes[class];
}

static double
lhd_rank(struct policy *policy, const struct lhd_node *node)
{
    uint32_t age = lhd_age(policy, node);

    if (age == AGES - 1)
        return -1;
    if (node->is_explorer)
        return DBL_MAX;
    return (double)lhd_class(policy, node)->densities[age] / (double)node->bytes;
}

/* ---- densities ------------------------------------------------------------------------------- */

/* From the last age back: sums of what happens to a page from that age on. */
static void
lhd_derive(struct lhd_class *class)
{
    float hits = 0, events = 0, lifetime = 0;

    for (uint32_t age = AGES; age-- > 0;) {
        hits += class->hits[age];
        events += class->hits[age] + class->evictions[age];
        lifetime += events;
        class->densities[age] = events > 1e-5F ? hits / lifetime : 0;
    }
}

/* The counts of steps that are twice as long. */
static void
lhd_halve_ages(float *counts)
{
    for (uint32_t i = 0; i < AGES / 2; i++)
        counts[i] = counts[2 * i] + counts[2 * i + 1];
    memset(counts + AGES / 2, 0, AGES / 2 * sizeof(*counts));
}

/* Of steps that are half as long; what is beyond the last age goes to it. */
static void
lhd_double_ages(float *counts)
{
    float beyond = 0;

    for (uint32_t i = AGES / 2; i < AGES; i++)
        beyond += counts[i];
    for (uint32_t i = AGES; i-- > 0;)
        counts[i] = counts[i / 2] / 2;
    counts[AGES - 1] += beyond;
}

static void
lhd_set_age_shift(struct policy *policy)
{
    uint64_t span = (uint64_t)AGE_SPAN * policy->pool.count;
    unsigned shift = 0;

    while (shift < MAX_AGE_SHIFT && (uint64_t)AGES << shift < span)
        shift++;
    for (; policy->age_shift != shift; policy->age_shift += policy->age_shift < shift ? 1u : -1u) {
        void (*rescale)(float *counts) =
            policy->age_shift < shift ? lhd_halve_ages : lhd_double_ages;

        for (uint32_t c = 0; c < CLASSES; c++) {
            rescale(policy->classes[c].hits);
            rescale(policy->classes[c].evictions);
        }
    }
}

static void
lhd_update(struct policy *policy)
{
    double period = policy->period * policy->pool.count;

    policy->next_update = policy->now + (uint64_t)(period > LEAST_PERIOD ? period : LEAST_PERIOD);
    for (uint32_t c = 0; c < CLASSES; c++) {
        for (uint32_t age = 0; age < AGES; age++) {
            policy->classes[c].hits[age] *= (float)DECAY;
            policy->classes[c].evictions[age] *= (float)DECAY;
        }
    }
    lhd_set_age_shift(policy);
    for (uint32_t c = 0; c < CLASSES; c++)
        lhd_derive(&policy->classes[c]);
}

/* ---- the policy ------------------------------------------------------------------------------ */

static double
lhd_size(const struct policy *policy, const struct lhd_node *node)
{
    return policy->by_bytes ? (double)node->bytes : 1;
}

static void
lhd_resize(struct policy *policy, const struct policy_config *config)
{
    bool by_bytes = config->capacity_bytes != 0;

    if (by_bytes != policy->by_bytes) {
        policy->by_bytes = by_bytes;
        policy->explorers = 0;
        for (uint32_t i = 0; i < policy->pool.count; i++) {
            const struct lhd_node *node = (const struct lhd_node *)policy->pool.nodes[i];

            policy->explorers += node->is_explorer ? lhd_size(policy, node) : 0;
        }
    }
    policy->explorer_budget =
        EXPLORER_SHARE * (double)(by_bytes ? config->capacity_bytes : config->capacity_pages);
}

static struct policy *
lhd_create(const struct policy_ops *ops, const struct policy_config *config)
{
    struct policy *policy = calloc(1, sizeof(*policy));

    if (!policy)
        return NULL;
    pool_init(&policy->pool, config->seed);
    policy->sample = (uint32_t)policy_param_value(ops, config, PARAM_SAMPLE);
    policy->period = policy_param_value(ops, config, PARAM_PERIOD);
    policy->next_update = (uint64_t)LEAST_PERIOD;
    for (uint32_t c = 0; c < CLASSES; c++)
        for (uint32_t age = 0; age < AGES; age++)
            policy->classes[c].densities[age] = (float)(c + 1) / (float)(age + 1);
    lhd_resize(policy, config);
    return policy;
}

static void
lhd_destroy(struct policy *policy)
{
    pool_free(&policy->pool);
    free(policy);
}

static void
lhd_stop_exploring(struct policy *policy, struct lhd_node *node)
{
    if (node->is_explorer)
        policy->explorers -= lhd_size(policy, node);
    node->is_explorer = false;
}

/* After a request: the page may become an explorer, and the densities may be due. */
static void
lhd_request(struct policy *policy, struct lhd_node *node)
{
    double size = lhd_size(policy, node);

    node->requested = policy->now;
    if (pool_random(&policy->pool, EXPLORE_ONE_IN) == 0 &&
        policy->explorers + size <= policy->explorer_budget) {
        node->is_explorer = true;
        policy->explorers += size;
    }
    policy->victim = NULL;
    if (policy->now >= policy->next_update)
        lhd_update(policy);
}

static int
lhd_insert(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lhd_node *node = opaque;

    if (!pool_add(&policy->pool, &node->pool))
        return -1;
    policy->now++;
    node->is_explorer = node->is_old = false;
    node->last_age = node->age_before = 0;
    node->bytes = page->bytes ? page->bytes : 1;
    lhd_request(policy, node);
    if (lhd_rank(policy, node) < policy->victim_rank) {
        policy->admissions[policy->admission] = node;
        policy->admission = (policy->admission + 1) % ADMISSIONS;
    }
    return 0;
}

static void
lhd_access(struct policy *policy, void *opaque, const struct policy_page *page)
{
    struct lhd_node *node = opaque;

    (void)page;
    policy->now++;
    lhd_class(policy, node)->hits[lhd_age(policy, node)] += 1;
    lhd_stop_exploring(policy, node);
    node->age_before = node->last_age;
    node->last_age = policy->now - node->requested;
    node->is_old = true;
    lhd_request(policy, node);
}

static void
lhd_offer(struct policy *policy, struct lhd_node *node, double *lowest)
{
    double rank = lhd_rank(policy, node);

    if (policy->victim && rank >= *lowest)
        return;
    policy->victim = node;
    *lowest = rank;
}

static void *
lhd_victim(struct policy *policy)
{
    bool all = policy->pool.count <= policy->sample;
    uint32_t candidates = all ? policy->pool.count : policy->sample;
    double lowest = 0;

    if (policy->victim || !policy->pool.count)
        return policy->victim;
    for (uint32_t i = 0; i < candidates; i++)
        lhd_offer(policy,
                  (struct lhd_node *)(all ? policy->pool.nodes[i] : pool_draw(&policy->pool)),
                  &lowest);
    for (uint32_t i = 0; i < ADMISSIONS && !all; i++)
        if (policy->admissions[i])
            lhd_offer(policy, policy->admissions[i], &lowest);
    if (lowest >= 0 && lowest < DBL_MAX)
        policy->victim_rank = DECAY * policy->victim_rank + (1 - DECAY) * lowest;
    return policy->victim;
}

static void
lhd_remove(struct policy *policy, void *opaque, bool evicted)
{
    struct lhd_node *node = opaque;

    if (evicted)
        lhd_class(policy, node)->evictions[lhd_age(policy, node)] += 1;
    lhd_stop_exploring(policy, node);
    pool_remove(&policy->pool, &node->pool);
    for (uint32_t i = 0; i < ADMISSIONS; i++)
        if (policy->admissions[i] == node)
            policy->admissions[i] = NULL;
    policy->victim = NULL;
}

static bool
lhd_is_valid(const struct policy *policy, uint64_t count, uint64_t bytes)
{
    double explorers = 0;
    uint32_t found = 0, set = 0;

    (void)bytes; /* it keeps no sum of them */
    for (uint32_t i = 0; i < policy->pool.count; i++) {
        const struct lhd_node *node = (const struct lhd_node *)policy->pool.nodes[i];

        if (node->requested > policy->now || node->bytes == 0)
            return false;
        explorers += node->is_explorer ? lhd_size(policy, node) : 0;
        for (uint32_t a = 0; a < ADMISSIONS; a++)
            found += policy->admissions[a] == node;
    }
    for (uint32_t a = 0; a < ADMISSIONS; a++)
        set += policy->admissions[a] != NULL;
    /* Sizes are whole numbers: their sums are exact below 2^53. */
    return policy->pool.count == count && pool_is_valid(&policy->pool) && found == set &&
           explorers <= policy->explorers && explorers >= policy->explorers;
}

static const struct policy_param params[] = {
    [PARAM_SAMPLE] = {.name = "sample",
                      .start = 32,
                      .low = 1,
                      .high = 1024,
                      .whole = true,
                      .meaning = "pages drawn for each eviction"},
    [PARAM_PERIOD] = {.name = "period",
                      .start = 4,
                      .low = 0,
                      .high = 1000,
                      .meaning = "requests for each cached page after which hit densities are "
                                 "derived anew; at least 512 in all"},
    {.name = NULL},
};

const struct policy_ops policy_lhd = {
    .name = "lhd",
    .summary = "Evicts the page with the fewest expected hits per byte and time.",
    .source = "N. Beckmann, H. Chen, A. Cidon, LHD: Improving Cache Hit Rate by Maximizing Hit "
              "Density, NSDI 2018, sections 3 to 5",
    .sizes = "The expected hits are divided by the page's bytes: small pages stay longer.",
    .cost = "O(1) for a hit, 40 ranks for an eviction; 144 KiB for each shard.",
    .params = params,
    .draws = true,
    .node_size = sizeof(struct lhd_node),
    .create = lhd_create,
    .destroy = lhd_destroy,
    .insert = lhd_insert,
    .access = lhd_access,
    .victim = lhd_victim,
    .remove = lhd_remove,
    .resize = lhd_resize,
    .is_valid = lhd_is_valid,
};
