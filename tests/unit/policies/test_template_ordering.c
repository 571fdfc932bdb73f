/*
 * The model of policies/templates/ordering.c, and the template of a test: copy it to
 * tests/unit/policies/test_NAME.c and replace "ordering" by NAME, as in the policy. Then write the
 * rule anew, from its source and not from the policy, on arrays that are searched from end to end.
 * naive.h gives both the same requests and compares hits and victims.
 */
#include "tests/unit/policies/naive.h"

extern const struct policy_ops policy_ordering;

/* What the rule knows of pages. naive.h has n->inside, n->bytes, n->params and n->now. */
static struct {
    uint64_t count[NAIVE_IDS], reached[NAIVE_IDS];
} model;

static void
ordering_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)page;
    model.count[id]++;
    model.reached[id] = n->now;
}

static void
ordering_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    model.count[id] = 0;
    ordering_hit(n, id, page);
}

static bool
ordering_is_before(const struct naive *n, uint32_t a, uint32_t b)
{
    if (model.count[a] != model.count[b])
        return model.count[a] < model.count[b];
    if (n->bytes[a] != n->bytes[b])
        return n->bytes[a] > n->bytes[b];
    return model.reached[a] < model.reached[b];
}

static uint32_t
ordering_victim(struct naive *n)
{
    uint32_t victim = NAIVE_IDS;

    for (uint32_t id = 0; id < NAIVE_IDS; id++)
        if (n->inside[id] && (victim == NAIVE_IDS || ordering_is_before(n, id, victim)))
            victim = id;
    return victim;
}

static void
ordering_leave(struct naive *n, uint32_t id, bool evicted)
{
    (void)n, (void)id, (void)evicted;
}

static const struct naive_rule ordering_rule = {.enter = ordering_enter,
                                                .hit = ordering_hit,
                                                .victim = ordering_victim,
                                                .leave = ordering_leave};

/* With parameters, as typed after --policy: naive_compare_all("NAME:width=2", &rule, NULL). */
START_TEST(it_is_its_rule)
{
    struct policy_spec spec = policy_spec_of(&policy_ordering);

    naive_compare_spec(&spec, "ordering", &ordering_rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/ordering");
    TCase *tc = tcase_create("ordering");

    tcase_add_test(tc, it_is_its_rule);
    suite_add_tcase(suite, tc);
    return suite;
}
