/*
 * Policies with every allocation failing in turn: a page that cannot enter changes nothing, and a
 * page that enters right after another has left always can.
 */
#include "policies/policy.h"

#include <stdlib.h>

#include "tests/unit/policies/wanted.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#define NODES 100

/* Inserts a page; its length is its key, too. */
static int
insert(const struct policy_ops *ops, struct policy *policy, uint64_t *node, uint64_t bytes)
{
    struct policy_page page = {.bytes = bytes, .key = bytes, .next = POLICY_NEVER};

    if (ops->admit && !ops->admit(policy, &page))
        ck_abort_msg("%s refuses", ops->name);
    return ops->insert(policy, node, &page);
}

/* Enters all nodes, lets some leave, enters them again; counts what was refused. */
static void
fill_and_drain(void *context)
{
    const struct policy_spec *spec = context;
    const struct policy_ops *ops = spec->ops;
    static uint64_t nodes[NODES][8];
    bool inside[NODES] = {false};
    uint64_t count = 0, bytes = 0, refused = 0; /* page i has i bytes */
    struct policy *policy =
        ops->create(ops, &(struct policy_config){.capacity_pages = NODES, .params = spec->params});

    ck_assert_uint_le(ops->node_size, sizeof(nodes[0]));
    if (!policy) {
        ck_assert(torture_failed());
        return;
    }
    for (int i = 0; i < NODES; i++) {
        memset(nodes[i], 0, sizeof(nodes[i]));
        if (insert(ops, policy, nodes[i], (uint64_t)i) == 0) {
            inside[i] = true;
            count++;
            bytes += (uint64_t)i;
        } else {
            refused++;
        }
        ck_assert(ops->is_valid(policy, count, bytes));
    }
    ck_assert_uint_le(refused, torture_failed()); /* a ghost that is not remembered is no refusal */
    for (int i = 0; i < NODES; i++) {
        if (!inside[i])
            continue;
        ops->access(policy, nodes[i], &(struct policy_page){.bytes = (uint64_t)i});
        ops->remove(policy, nodes[i], true);
        ck_assert(ops->is_valid(policy, count - 1, bytes - (uint64_t)i));
        if (i % 3) {
            memset(nodes[i], 0, sizeof(nodes[i]));
            ck_assert_int_eq(insert(ops, policy, nodes[i], (uint64_t)i), 0);
        } else {
            inside[i] = false;
            count--;
            bytes -= (uint64_t)i;
        }
    }
    ck_assert(ops->is_valid(policy, count, bytes));
    while (count--)
        ops->remove(policy, ops->victim(policy), true);
    ck_assert_ptr_null(ops->victim(policy));
    ops->destroy(policy);
}

START_TEST(every_policy)
{
    for (size_t p = 0; policies[p]; p++) {
        struct policy_spec spec = policy_spec_of(policies[p]);

        if (!policy_is_wanted(policies[p]->name))
            continue;

        ck_assert_uint_ge(torture_walk(fill_and_drain, &spec),
                          1); /* the instance, and, but for lists, each growth */
    }
}
END_TEST

/* Off their defaults, where more is allocated. */
START_TEST(variants)
{
    static const char *const texts[] = {"lru-k:history=1,k=3", "rand:draw=each"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct policy_spec spec;
        char why[200];

        if (!policy_is_wanted(texts[i]))
            continue;
        ck_assert_msg(policy_parse(texts[i], &spec, why, sizeof(why)), "%s", why);
        ck_assert_uint_gt(torture_walk(fill_and_drain, &spec), 3);
    }
}
END_TEST

/* A refused page draws nothing: the run goes on as if it had never been asked for. */
static void
rand_order(void *context)
{
    const struct policy_ops *ops = policy_find("rand");
    static uint64_t nodes[NODES][8];
    uint64_t **order = context;
    struct policy *policy = ops->create(ops, &(struct policy_config){.seed = 5});

    if (!policy)
        return;
    memset(nodes, 0, sizeof(nodes));
    for (int i = 0; i < NODES; i++) {
        /* A second time, should it have been refused. */
        if (ops->insert(policy, nodes[i], &(struct policy_page){.bytes = 1}) != 0)
            ck_assert_int_eq(ops->insert(policy, nodes[i], &(struct policy_page){.bytes = 1}), 0);
    }
    for (int i = 0; i < NODES; i++) {
        uint64_t *victim = ops->victim(policy);

        if (order[i])
            ck_assert_ptr_eq(victim, order[i]);
        order[i] = victim;
        ops->remove(policy, victim, true);
    }
    ops->destroy(policy);
}

START_TEST(a_refused_page_draws_no_key)
{
    uint64_t *order[NODES] = {NULL};

    rand_order(order);
    ck_assert_uint_gt(torture_walk(rand_order, order), 3);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/torture");
    TCase *tc = tcase_create("torture");

    tcase_add_test(tc, every_policy);
    tcase_add_test(tc, variants);
    tcase_add_test(tc, a_refused_page_draws_no_key);
    suite_add_tcase(suite, tc);
    return suite;
}
