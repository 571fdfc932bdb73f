/*
 * The model of policies/templates/sampling.c, and the template of a test: copy it to
 * tests/unit/policies/test_NAME.c and replace "sampling" by NAME, as in the policy. Then write the
 * rule anew, from its source and not from the policy. The pages are in an array as policies/pool.h
 * has them, and are drawn from the same generator. naive.h gives both the same requests and
 * compares hits and victims.
 */
#include "base/hash.h"
#include "tests/unit/policies/naive.h"

extern const struct policy_ops policy_sampling;

enum { PARAM_SAMPLE };

static struct {
    uint32_t pool[NAIVE_IDS], count; /* the last takes the place of a removed one */
    uint64_t random;
    uint64_t requested[NAIVE_IDS];
} model;

static void
sampling_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
    model.random = 1; /* the seed of driven.h */
}

static void
sampling_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.requested[id] = n->now;
}

static void
sampling_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.pool[model.count++] = id;
    sampling_hit(n, id, page);
}

/* The i-th candidate: drawn, or each page if there are no more of them than are drawn. */
static uint32_t
candidate(const struct naive *n, uint32_t i)
{
    if (model.count > n->params[PARAM_SAMPLE])
        i = (uint32_t)((splitmix64_next(&model.random) >> 32) * model.count >> 32);
    return model.pool[i];
}

static uint32_t
sampling_victim(struct naive *n)
{
    uint32_t victim = candidate(n, 0);

    for (uint32_t i = 1; i < model.count && i < n->params[PARAM_SAMPLE]; i++) {
        uint32_t id = candidate(n, i);

        if (model.requested[id] < model.requested[victim])
            victim = id;
    }
    return victim;
}

static void
sampling_leave(struct naive *n, uint32_t id, bool evicted)
{
    uint32_t i = 0;

    (void)n, (void)evicted;
    while (model.pool[i] != id)
        i++;
    model.pool[i] = model.pool[--model.count];
}

static const struct naive_rule sampling_rule = {.begin = sampling_begin,
                                                .enter = sampling_enter,
                                                .hit = sampling_hit,
                                                .victim = sampling_victim,
                                                .leave = sampling_leave};

/* For a policy of the registry: naive_compare_all("NAME:sample=9", &rule, NULL). */
START_TEST(it_is_its_rule)
{
    static const double samples[] = {5, 1, 1024};
    struct policy_spec spec = policy_spec_of(&policy_sampling);

    spec.params[PARAM_SAMPLE] = samples[_i];
    naive_compare_spec(&spec, "sampling", &sampling_rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/sampling");
    TCase *tc = tcase_create("sampling");

    tcase_add_loop_test(tc, it_is_its_rule, 0, 3);
    suite_add_tcase(suite, tc);
    return suite;
}
