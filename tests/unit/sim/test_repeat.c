/* Policies that draw random numbers: several seeds, their mean and their spread. */
#include "sim/sweep.h"
#include "tests/unit/sim/traces.h"

/* Fewer requests where each step of a policy is checked, which takes O(n). */
#ifdef SUNPROXY_CHECK_EACH_STEP
enum { RUNS = 5, REQUESTS = 8000 };
#else
enum { RUNS = 5, REQUESTS = 30000 };
#endif

static struct sim_result
run_in(const struct made *m, const struct policy_spec *spec, uint64_t pages, uint64_t seed)
{
    struct sim_config config = {.spec = *spec, .capacity_pages = pages, .seed = seed};
    struct sim_result result;

    ck_assert_int_eq(sim_run(&m->trace, &config, NULL, &result), SIM_OK);
    return result;
}

static struct sim_result
run_alone(const struct made *m, const struct policy_spec *spec, uint64_t seed)
{
    return run_in(m, spec, 60, seed);
}

/*
 * What the registry says of each policy is what it does. The cache is large beside the samples of
 * pages that some policies draw.
 */
START_TEST(the_registry_says_which_policies_draw)
{
    struct made m = made_trace(4, REQUESTS, 3000, true);

    for (size_t p = 0; policies[p]; p++) {
        struct policy_spec spec = policy_spec_of(policies[p]);
        struct sim_result first = run_in(&m, &spec, 500, 1);
        bool differs = false;

        for (uint64_t seed = 2; seed < 8; seed++)
            differs = differs || run_in(&m, &spec, 500, seed).hits != first.hits;
        ck_assert_msg(differs == policies[p]->draws, "%s: draws is %d, but two seeds %s",
                      policies[p]->name, policies[p]->draws,
                      differs ? "give two results" : "give one result");
    }
    made_free(&m);
}
END_TEST

START_TEST(several_seeds_give_mean_and_spread)
{
    struct made m = made_trace(4, 30000, 300, true);
    struct sim_config config = {.spec = made_spec("rand"), .capacity_pages = 60, .seed = 7};
    struct sim_result result;
    struct sim_spread spread;
    double sum = 0, squares = 0, byte_sum = 0, low = 1, high = 0;
    uint64_t hits = 0;

    ck_assert_int_eq(sim_repeat(&m.trace, &config, RUNS, NULL, &result, &spread), SIM_OK);
    for (uint64_t seed = 7; seed < 7 + RUNS; seed++) {
        struct sim_result one = run_alone(&m, &config.spec, seed);

        sum += one.hit_ratio;
        squares += one.hit_ratio * one.hit_ratio;
        byte_sum += one.byte_hit_ratio;
        hits += one.hits;
        low = fmin(low, one.hit_ratio);
        high = fmax(high, one.hit_ratio);
    }
    ck_assert_uint_eq(spread.runs, RUNS);
    ck_assert_double_eq_tol(result.hit_ratio, sum / (double)RUNS, 1e-12);
    ck_assert_double_eq_tol(result.byte_hit_ratio, byte_sum / (double)RUNS, 1e-12);
    ck_assert_uint_eq(result.hits, (hits + RUNS / 2) / RUNS);
    ck_assert_uint_eq(result.requests, 30000);
    ck_assert_double_eq_tol(spread.hit_ratio,
                            sqrt((squares - sum * sum / (double)RUNS) / (RUNS - 1)), 1e-9);
    ck_assert_double_gt(spread.hit_ratio, 0);
    ck_assert_double_gt(spread.byte_hit_ratio, 0);
    ck_assert_double_eq(spread.hit_ratio_low, low);
    ck_assert_double_eq(spread.hit_ratio_high, high);
    made_free(&m);
}
END_TEST

START_TEST(one_run_is_the_run_itself)
{
    struct made m = made_trace(4, 5000, 300, true);
    struct sim_config config = {.spec = made_spec("rand"), .capacity_pages = 60, .seed = 7};
    struct sim_result result, alone = run_alone(&m, &config.spec, 7);
    struct sim_spread spread;

    for (unsigned runs = 0; runs < 2; runs++) {
        ck_assert_int_eq(sim_repeat(&m.trace, &config, runs, NULL, &result, &spread), SIM_OK);
        alone.cpu_us = result.cpu_us;
        ck_assert_mem_eq(&alone, &result, sizeof(alone));
        ck_assert_uint_eq(spread.runs, 1);
        ck_assert_double_eq(spread.hit_ratio, 0);
        ck_assert_double_eq(spread.hit_ratio_low, alone.hit_ratio);
        ck_assert_double_eq(spread.byte_hit_ratio_high, alone.byte_hit_ratio);
    }
    made_free(&m);
}
END_TEST

static bool
count_events(void *context, const struct sim_event *event)
{
    (void)event;
    ++*(size_t *)context;
    return true;
}

START_TEST(a_sweep_repeats_and_reports_each_run)
{
    struct made m = made_trace(4, 5000, 300, true);
    size_t seen = 0;
    struct sim_job job = {.trace = &m.trace,
                          .config = {.spec = made_spec("rand"),
                                     .capacity_pages = 60,
                                     .seed = 7,
                                     .tell = count_events,
                                     .context = &seen},
                          .runs = RUNS};
    struct sim_sweep *sweep = sim_sweep_start(&job, 1, 1);
    uint64_t total;

    ck_assert_ptr_nonnull(sweep);
    while (!sim_sweep_wait(sweep, 50))
        ;
    ck_assert_uint_eq(sim_sweep_progress(sweep, &total), 5000 * RUNS);
    ck_assert_uint_eq(total, 5000 * RUNS);
    sim_sweep_finish(sweep);
    ck_assert_int_eq(job.error, SIM_OK);
    ck_assert_uint_eq(job.spread.runs, RUNS);
    ck_assert_uint_eq(seen, 5000 * RUNS);
    made_free(&m);
}
END_TEST

static bool
stop_after(void *context, const struct sim_event *event)
{
    (void)event;
    return --*(size_t *)context != 0;
}

static struct sim_result
stopped_after(const struct made *m, size_t requests, struct sim_spread *spread)
{
    struct sim_config config = {.spec = made_spec("rand"),
                                .capacity_pages = 60,
                                .seed = 7,
                                .warmup = 1000,
                                .tell = stop_after,
                                .context = &requests};
    struct sim_result result;

    ck_assert_int_eq(sim_repeat(&m->trace, &config, RUNS, NULL, &result, spread), SIM_STOPPED);
    return result;
}

START_TEST(a_stop_leaves_what_was_done)
{
    struct made m = made_trace(4, 5000, 300, true);
    struct sim_config config = {
        .spec = made_spec("rand"), .capacity_pages = 60, .seed = 7, .warmup = 1000};
    struct sim_trace begin = m.trace;
    struct sim_spread spread;
    struct sim_result result, expected;

    /* In the warm-up; in the first run; in the third. */
    ck_assert_uint_eq(stopped_after(&m, 999, &spread).requests, 0);
    ck_assert_uint_eq(stopped_after(&m, 1000, &spread).requests, 0);
    result = stopped_after(&m, 3000, &spread);
    begin.request_count = 3000;
    ck_assert_int_eq(sim_run(&begin, &config, NULL, &expected), SIM_OK);
    ck_assert_uint_eq(spread.runs, 1);
    ck_assert_uint_eq(result.requests, 2000);
    ck_assert_uint_eq(result.hits, expected.hits);
    ck_assert_double_eq(result.hit_ratio, expected.hit_ratio);
    result = stopped_after(&m, 12000, &spread);
    ck_assert_int_eq(sim_repeat(&m.trace, &config, 2, NULL, &expected, &spread), SIM_OK);
    ck_assert_uint_eq(result.requests, 4000);
    ck_assert_uint_eq(result.hits, expected.hits);
    ck_assert_double_eq(result.hit_ratio, expected.hit_ratio);
    made_free(&m);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("repeat");
    TCase *tests = tcase_create("repeat");

    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, the_registry_says_which_policies_draw);
    tcase_add_test(tests, several_seeds_give_mean_and_spread);
    tcase_add_test(tests, one_run_is_the_run_itself);
    tcase_add_test(tests, a_sweep_repeats_and_reports_each_run);
    tcase_add_test(tests, a_stop_leaves_what_was_done);
    suite_add_tcase(suite, tests);
    return suite;
}
