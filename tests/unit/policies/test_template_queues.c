/*
 * The model of policies/templates/queues.c, and the template of a test: copy it to
 * tests/unit/policies/test_NAME.c and replace "queues" by NAME, as in the policy. Then write the
 * rule anew, from its source and not from the policy, on queues that are searched from end to end
 * (seq.h). naive.h gives both the same requests and compares hits and victims.
 */
#include "tests/unit/policies/seq.h"

extern const struct policy_ops policy_queues;

enum { PARAM_NEW };

/* Oldest first. */
static struct {
    struct seq new, main, ghosts;
    bool was_ghost;
} model;

static void
queues_begin(struct naive *n)
{
    (void)n;
    memset(&model, 0, sizeof(model));
}

static bool
queues_admit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    model.was_ghost = seq_take(&model.ghosts, id);
    return true;
}

static void
queues_enter(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_append(model.was_ghost ? &model.main : &model.new, id);
}

static void
queues_hit(struct naive *n, uint32_t id, const struct policy_page *page)
{
    (void)n, (void)page;
    seq_take(&model.new, id);
    seq_to_end(&model.main, id);
}

static uint32_t
queues_victim(struct naive *n)
{
    if (seq_is_over(n, &model.new, n->params[PARAM_NEW]) || model.main.count == 0)
        return model.new.ids[0];
    return model.main.ids[0];
}

static void
queues_leave(struct naive *n, uint32_t id, bool evicted)
{
    if (seq_take(&model.new, id) && evicted)
        seq_remember(n, &model.ghosts, id, 1);
    seq_take(&model.main, id);
}

static void
queues_resized(struct naive *n)
{
    seq_forget(n, &model.ghosts, 1);
}

static const struct naive_rule queues_rule = {.begin = queues_begin,
                                              .admit = queues_admit,
                                              .enter = queues_enter,
                                              .hit = queues_hit,
                                              .victim = queues_victim,
                                              .leave = queues_leave,
                                              .resized = queues_resized};

/* For a policy of the registry: naive_compare_all("NAME:new=0.7", &rule, NULL). */
START_TEST(it_is_its_rule)
{
    static const double shares[] = {0.2, 0.7, 1};
    struct policy_spec spec = policy_spec_of(&policy_queues);

    spec.params[PARAM_NEW] = shares[_i];
    naive_compare_spec(&spec, "queues", &queues_rule, NULL);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/queues");
    TCase *tc = tcase_create("queues");

    tcase_add_loop_test(tc, it_is_its_rule, 0, 3);
    suite_add_tcase(suite, tc);
    return suite;
}
