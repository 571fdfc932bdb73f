/* PFOO-L: against a naive model, and against every policy. */
#define UNIT_STARTS_NO_THREAD

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

/* The least that the page of request i had up to it. */
static uint32_t
least_size(size_t i)
{
    static uint32_t known[REQUESTS];

    if (!known[i]) {
        known[i] = m.sizes[i];
        for (size_t k = 0; k < i; k++)
            if (m.ids[k] == m.ids[i] && m.sizes[k] < known[i])
                known[i] = m.sizes[k];
    }
    return known[i];
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
            size_t j = m.next[i];
            double cost, gain;

            if (taken[i] || j >= REQUESTS || j < warmup)
                continue;
            cost = (least_size(i) + (double)OVERHEAD) * (double)(j - i);
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

/* 40 pages of 1 byte that have 1,000 when they are requested again. */
START_TEST(pages_that_grow)
{
    uint32_t ids[80], sizes[80];
    struct made grown;
    struct sim_bound bound;
    struct sim_config config = {.spec = policy_spec_of(policy_find("lru")), .capacity_bytes = 40};
    struct sim_result result;

    for (uint32_t i = 0; i < 80; i++) {
        ids[i] = i % 40;
        sizes[i] = i < 40 ? 1 : 1000;
    }
    grown = made_of(ids, sizes, 80, 40);
    ck_assert(sim_bound_make(&grown.trace, 0, 0, &bound));
    ck_assert_int_eq(sim_run(&grown.trace, &config, NULL, &result), SIM_OK);
    ck_assert_uint_eq(result.hits, 40);
    ck_assert_double_ge(sim_bound_hit_ratio(&bound, 40), 0.5);
    ck_assert_double_ge(sim_bound_byte_hit_ratio(&bound, 40), result.byte_hit_ratio - 1e-9);
    sim_bound_free(&bound);
    made_free(&grown);
}
END_TEST

/* Random sizes at each request: small, large, none, and of pages that only grow or shrink. */
static void
draw_sizes(struct made *random, uint64_t seed)
{
    uint64_t state = seed;

    for (size_t i = 0; i < random->trace.request_count; i++) {
        uint64_t draw = splitmix64_next(&state);
        size_t age = i * 20 / random->trace.request_count;

        switch (random->ids[i] % 4) {
        case 0:
            random->sizes[i] = (uint32_t)(draw % 30);
            break;
        case 1:
            random->sizes[i] = draw % 8 ? (uint32_t)(draw % 7) : (uint32_t)(draw % 3000);
            break;
        case 2:
            random->sizes[i] = (uint32_t)(1u << age / 2);
            break;
        default:
            random->sizes[i] = (uint32_t)(1u << (20 - age) / 2);
        }
    }
}

START_TEST(no_policy_hits_more_where_sizes_change)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct made random = made_trace(seed, 1500, 60, true);
        uint64_t overhead = seed % 3 * 4;
        struct sim_bound bound;

        draw_sizes(&random, seed);
        ck_assert(sim_bound_make(&random.trace, WARMUP, overhead, &bound));
        for (uint64_t capacity = 8; capacity < 10000; capacity *= 3) {
            struct sim_config config = {.spec = policy_spec_of(policies[_i]),
                                        .capacity_bytes = capacity,
                                        .overhead = overhead,
                                        .seed = 1,
                                        .warmup = WARMUP};
            struct sim_result result;

            ck_assert_int_eq(sim_run(&random.trace, &config, NULL, &result), SIM_OK);
            ck_assert_double_le(result.hit_ratio, sim_bound_hit_ratio(&bound, capacity) + 1e-12);
            ck_assert_double_le(result.byte_hit_ratio,
                                sim_bound_byte_hit_ratio(&bound, capacity) + 1e-9);
        }
        sim_bound_free(&bound);
        made_free(&random);
    }
}
END_TEST

enum { TINY_REQUESTS = 9, TINY_PAGES = 4 };

/* The most hits, or bytes of hits, from request i on, of all that a cache can do. */
static uint64_t
best(const struct made *tiny, size_t i, const uint32_t *inside, uint64_t capacity, bool bytes)
{
    uint32_t id = tiny->ids[i];
    uint64_t most;

    if (i == TINY_REQUESTS)
        return 0;
    if (inside[id])
        return (bytes ? tiny->sizes[i] : 1) + best(tiny, i + 1, inside, capacity, bytes);
    most = best(tiny, i + 1, inside, capacity, bytes);
    for (unsigned kept = 0; kept < 1u << TINY_PAGES; kept++) {
        uint32_t then[TINY_PAGES] = {0};
        uint64_t sum = tiny->sizes[i], value;
        bool is_possible = true;

        for (uint32_t page = 0; page < TINY_PAGES; page++) {
            if (!(kept & 1u << page))
                continue;
            is_possible = is_possible && inside[page];
            then[page] = inside[page];
            sum += inside[page];
        }
        if (!is_possible || sum > capacity)
            continue;
        then[id] = tiny->sizes[i];
        value = best(tiny, i + 1, then, capacity, bytes);
        if (value > most)
            most = value;
    }
    return most;
}

START_TEST(no_cache_at_all_hits_more)
{
    uint64_t state = 5;
    size_t met = 0;

    for (int trial = 0; trial < 300; trial++) {
        uint32_t ids[TINY_REQUESTS + 1] = {0}, sizes[TINY_REQUESTS + 1] = {0};
        const uint32_t empty[TINY_PAGES] = {0};
        uint64_t capacity = 1 + splitmix64_next(&state) % 12, asked = 0, hits;
        struct made tiny;
        struct sim_bound bound;

        for (size_t i = 0; i < TINY_REQUESTS; i++) {
            ids[i] = (uint32_t)(splitmix64_next(&state) % TINY_PAGES);
            sizes[i] = 1 + (uint32_t)(splitmix64_next(&state) % (i < 5 ? 3 : 12));
            asked += sizes[i];
        }
        tiny = made_of(ids, sizes, TINY_REQUESTS, TINY_PAGES);
        ck_assert(sim_bound_make(&tiny.trace, 0, 0, &bound));
        hits = best(&tiny, 0, empty, capacity, false);
        ck_assert_double_ge(sim_bound_hit_ratio(&bound, capacity) * (double)TINY_REQUESTS,
                            (double)hits - 1e-9);
        ck_assert_double_ge(sim_bound_byte_hit_ratio(&bound, capacity) * (double)asked,
                            (double)best(&tiny, 0, empty, capacity, true) - 1e-9);
        met += (double)hits > sim_bound_hit_ratio(&bound, capacity) * (double)TINY_REQUESTS - 0.5;
        sim_bound_free(&bound);
        made_free(&tiny);
    }
    ck_assert_uint_gt(met, 100); /* and it is reached in many of them */
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
    tcase_add_test(tests, pages_that_grow);
    tcase_add_loop_test(tests, no_policy_hits_more_where_sizes_change, 0, count);
    tcase_add_test(tests, no_cache_at_all_hits_more);
    suite_add_tcase(suite, tests);
    return suite;
}
