/* What a cache charges for a page beside its size: it counts against the capacity, and no more. */
#define UNIT_STARTS_NO_THREAD

#include "policies/charge.h"
#include "sim/sample.h"
#include "tests/unit/sim/traces.h"

enum { PAGES = 300, REQUESTS = 6000, OVERHEAD = 176 };

static struct made m, charged;
static uint32_t charges[PAGES];

/* The same trace twice: with charges beside its sizes, and with sizes that include them. */
static void
set_up(void)
{
    m = made_trace(21, REQUESTS, PAGES, true);
    charged = made_trace(21, REQUESTS, PAGES, true);
    m.trace.charges = charges;
    m.trace.all_charges = 0;
    for (uint32_t id = 0; id < PAGES; id++) {
        charges[id] = id * 37 % 211;
        m.trace.all_charges += charges[id];
    }
    for (size_t i = 0; i < REQUESTS; i++)
        charged.sizes[i] += charges[charged.ids[i]] + OVERHEAD;
}

static void
tear_down(void)
{
    made_free(&m);
    made_free(&charged);
}

static struct sim_result
run(const struct sim_trace *trace, const struct policy_ops *ops, uint64_t bytes, uint64_t overhead,
    const struct sim_sampling *sampling)
{
    struct sim_config config = {.spec = policy_spec_of(ops),
                                .capacity_bytes = bytes,
                                .overhead = overhead,
                                .seed = 1,
                                .sampling = sampling};
    struct sim_result result;

    ck_assert_int_eq(sim_run(trace, &config, NULL, &result), SIM_OK);
    return result;
}

START_TEST(a_charge_is_as_good_as_a_larger_page)
{
    const struct policy_ops *ops = policies[_i];
    struct sim_result with = run(&m.trace, ops, 40000, OVERHEAD, NULL);
    struct sim_result larger = run(&charged.trace, ops, 40000, 0, NULL);
    struct sim_result without = run(&m.trace, ops, 40000, 0, NULL);

    ck_assert_uint_eq(with.hits, larger.hits);
    ck_assert_uint_eq(with.evictions, larger.evictions);
    ck_assert_uint_eq(with.pages, larger.pages);
    ck_assert_uint_eq(with.bytes_inside, larger.bytes_inside);
    ck_assert_uint_eq(with.too_large, larger.too_large);
    /* What is asked for, and what is hit, are the pages' own bytes. */
    ck_assert_uint_eq(with.bytes, without.bytes);
    ck_assert_uint_lt(with.bytes, larger.bytes);
    ck_assert_uint_lt(with.bytes_hit, larger.bytes_hit);
    ck_assert_uint_ne(with.hits, without.hits);
}
END_TEST

START_TEST(a_page_that_only_its_charge_makes_too_large)
{
    struct sim_result result;

    for (uint32_t id = 0; id < PAGES; id++)
        charges[id] = 0;
    for (size_t i = 0; i < REQUESTS; i++)
        m.sizes[i] = 100;
    result = run(&m.trace, policy_find("lru"), 275, OVERHEAD, NULL);
    ck_assert_uint_eq(result.too_large, REQUESTS);
    ck_assert_uint_eq(result.hits, 0);
    result = run(&m.trace, policy_find("lru"), 276, OVERHEAD, NULL);
    ck_assert_uint_eq(result.too_large, 0);
    ck_assert_uint_eq(result.pages, 1);
    ck_assert_uint_eq(result.bytes_inside, 276);
}
END_TEST

START_TEST(a_cache_that_holds_everything_holds_the_charges)
{
    const struct policy_ops *lru = policy_find("lru");
    struct trace_totals facts;
    struct sim_result result;
    uint64_t all;

    facts = made_totals(&m, 0);
    m.trace.distinct_bytes = facts.distinct_bytes;
    all = facts.distinct_bytes + m.trace.all_charges + OVERHEAD * (uint64_t)PAGES;
    result = run(&m.trace, lru, facts.distinct_bytes, OVERHEAD, NULL);
    ck_assert_uint_gt(result.evictions, 0);
    /* No policy runs there: what it costs is 4 bytes a page. */
    result = run(&m.trace, lru, all, OVERHEAD, NULL);
    ck_assert_uint_eq(result.evictions, 0);
    ck_assert_uint_eq(result.memory, 4 * PAGES);
    result = run(&m.trace, lru, all - 1, OVERHEAD, NULL);
    ck_assert_uint_gt(result.memory, 4 * PAGES);
}
END_TEST

START_TEST(a_sample_has_the_charges_of_its_pages)
{
    struct sim_sample sample, of_larger;
    struct sim_result with, larger;

    ck_assert(sim_sample_make(&m.trace, 0.4, 3, 0, &sample));
    ck_assert(sim_sample_make(&charged.trace, 0.4, 3, 0, &of_larger));
    ck_assert_uint_eq(sample.trace.page_count, of_larger.trace.page_count);
    with = run(&sample.trace, policy_find("gdsf"), 16000, OVERHEAD, &sample.sampling);
    larger = run(&of_larger.trace, policy_find("gdsf"), 16000, 0, &of_larger.sampling);
    ck_assert_uint_eq(with.hits, larger.hits);
    ck_assert_uint_eq(with.evictions, larger.evictions);
    ck_assert_double_eq(with.hit_ratio, larger.hit_ratio);
    sim_sample_free(&sample);
    sim_sample_free(&of_larger);
}
END_TEST

START_TEST(charges_do_not_matter_without_sizes)
{
    struct made plain = made_trace(21, REQUESTS, PAGES, false);
    struct sim_config config = {
        .spec = made_spec("gdsf"), .capacity_pages = 60, .overhead = OVERHEAD};
    struct sim_result with, without;

    ck_assert_int_eq(sim_run(&plain.trace, &config, NULL, &without), SIM_OK);
    plain.trace.charges = charges;
    ck_assert_int_eq(sim_run(&plain.trace, &config, NULL, &with), SIM_OK);
    ck_assert_uint_eq(with.hits, without.hits);
    ck_assert_uint_eq(with.bytes_inside, 60);
    made_free(&plain);
}
END_TEST

START_TEST(the_largest_overhead_is_that_of_the_registry)
{
    uint64_t largest = 0;

    for (size_t p = 0; policies[p]; p++)
        if (charge_page_overhead(policies[p]) > largest)
            largest = charge_page_overhead(policies[p]);
    ck_assert_uint_eq(charge_largest_overhead(), largest);
    ck_assert_uint_gt(charge_page_overhead(policy_find("lirs")),
                      charge_page_overhead(policy_find("lru")));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("charges");
    TCase *tests = tcase_create("charges");
    int count = 0;

    while (policies[count])
        count++;
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, a_charge_is_as_good_as_a_larger_page, 0, count);
    tcase_add_test(tests, a_page_that_only_its_charge_makes_too_large);
    tcase_add_test(tests, a_cache_that_holds_everything_holds_the_charges);
    tcase_add_test(tests, a_sample_has_the_charges_of_its_pages);
    tcase_add_test(tests, charges_do_not_matter_without_sizes);
    tcase_add_test(tests, the_largest_overhead_is_that_of_the_registry);
    suite_add_tcase(suite, tests);
    return suite;
}
