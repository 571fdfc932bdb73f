/* PFOO-L: against a naive model, and against every policy. */
#include "sim/bound.h"
#include "tests/unit/sim/traces.h"

enum { REQUESTS = 3000, PAGES = 200, WARMUP = 500, OVERHEAD = 30 };

static struct made m;

static void
set_up(void)
{
    m = made_trace(17, REQUESTS, PAGES, true);
}

static void
tear_down(void)
{
    made_free(&m);
}

/* Takes the stay with the least cost, one by one, each time looking for it among all. */
static double
naive(uint64_t capacity, size_t warmup, bool bytes)
{
    double left = (double)capacity * (double)REQUESTS, gained = 0, asked = 0;
    bool taken[REQUESTS] = {false};

    for (size_t i = warmup; i < REQUESTS; i++)
        asked += bytes ? m.sizes[i] : 1;
    for (;;) {
        size_t best = REQUESTS;
        double best_price = 0, best_cost = 0, best_gain = 0;

        for (size_t i = 0; i < REQUESTS; i++) {
            size_t j = i + 1;
            double cost, gain;

            while (j < REQUESTS && m.ids[j] != m.ids[i])
                j++;
            if (taken[i] || j == REQUESTS || j < warmup)
                continue;
            cost = (m.sizes[i] + (double)OVERHEAD) * (double)(j - i);
            gain = bytes ? m.sizes[j] : 1;
            if (best == REQUESTS || cost / gain < best_price) {
                best = i;
                best_price = cost / gain;
                best_cost = cost;
                best_gain = gain;
            }
        }
        if (best == REQUESTS)
            return gained / asked;
        if (best_cost > left)
            return (gained + (bytes ? best_gain * left / best_cost : 0)) / asked;
        taken[best] = true;
        left -= best_cost;
        gained += best_gain;
    }
}

START_TEST(it_is_what_the_naive_model_says)
{
    struct sim_bound bound;

    ck_assert(sim_bound_make(&m.trace, WARMUP, OVERHEAD, &bound));
    ck_assert_uint_eq(bound.requests, REQUESTS - WARMUP);
    ck_assert_double_eq_tol(sim_bound_hit_ratio(&bound, 900), naive(900, WARMUP, false), 1e-9);
    ck_assert_double_eq_tol(sim_bound_byte_hit_ratio(&bound, 900), naive(900, WARMUP, true), 1e-9);
    sim_bound_free(&bound);
}
END_TEST

START_TEST(no_policy_hits_more)
{
    const struct policy_ops *ops = policies[_i];
    struct sim_bound bound;

    ck_assert(sim_bound_make(&m.trace, WARMUP, OVERHEAD, &bound));
    for (uint64_t capacity = 500; capacity < 200000; capacity *= 2) {
        struct sim_config config = {.spec = policy_spec_of(ops),
                                    .capacity_bytes = capacity,
                                    .overhead = OVERHEAD,
                                    .seed = 1,
                                    .warmup = WARMUP};
        struct sim_result result;

        ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &result), SIM_OK);
        ck_assert_double_le(result.hit_ratio, sim_bound_hit_ratio(&bound, capacity) + 1e-12);
        ck_assert_double_le(result.byte_hit_ratio,
                            sim_bound_byte_hit_ratio(&bound, capacity) + 1e-9);
    }
    sim_bound_free(&bound);
}
END_TEST

/* Two URLs in turns, in caches for none, one and both of them. */
START_TEST(small_cases)
{
    const uint32_t ids[] = {0, 1, 0, 1, 0, 1}, sizes[] = {10, 10, 10, 10, 10, 10};
    struct made two = made_of(ids, sizes, 6, 2);
    struct sim_bound bound;

    ck_assert(sim_bound_make(&two.trace, 0, 0, &bound));
    ck_assert_double_eq_tol(sim_bound_hit_ratio(&bound, 0), 0, 1e-12);
    /* A stay costs 20 of 60, so that three are affordable of the four there are. */
    ck_assert_double_eq_tol(sim_bound_hit_ratio(&bound, 10), 3.0 / 6, 1e-12);
    ck_assert_double_eq_tol(sim_bound_hit_ratio(&bound, 1000), 4.0 / 6, 1e-12);
    ck_assert_double_eq_tol(sim_bound_byte_hit_ratio(&bound, 5), 15.0 / 60, 1e-12);
    ck_assert_double_eq_tol(sim_bound_byte_hit_ratio(&bound, 1000), 4.0 / 6, 1e-12);
    sim_bound_free(&bound);
    sim_bound_free(&bound);
    made_free(&two);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("bound");
    TCase *tests = tcase_create("bound");
    int count = 0;

    while (policies[count])
        count++;
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, it_is_what_the_naive_model_says);
    tcase_add_loop_test(tests, no_policy_hits_more, 0, count);
    tcase_add_test(tests, small_cases);
    suite_add_tcase(suite, tests);
    return suite;
}
