/* Expiry and admission whatever the policy, beside a cache written as plainly as can be. */
#define UNIT_STARTS_NO_THREAD

#include "sim/sample.h"
#include "tests/unit/sim/traces.h"
#include "trace/totals.h"

enum { PAGES = 300, REQUESTS = 8000 };

static struct made m;
static int64_t times[REQUESTS];

static void
set_up(void)
{
    uint64_t state = 9;

    m = made_trace(31, REQUESTS, PAGES, true);
    for (size_t i = 0; i < REQUESTS; i++)
        times[i] = (i ? times[i - 1] : 0) + (int64_t)(splitmix64_next(&state) % 2000000);
    m.trace.times_us = times;
}

static void
tear_down(void)
{
    made_free(&m);
}

static struct sim_result
run(const char *policy, uint64_t pages, const struct sim_storage *storage)
{
    struct sim_config config = {
        .spec = made_spec(policy), .capacity_pages = pages, .storage = *storage, .seed = 1};
    struct sim_result result;

    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &result), SIM_OK);
    return result;
}

/* FIFO of `capacity` pages; what is stored anew goes to the end. */
static struct sim_result
plain_fifo(size_t capacity, const struct sim_storage *storage)
{
    static uint32_t queue[REQUESTS];
    static uint64_t uses[PAGES];
    struct sim_result r = {0};
    size_t count = 0;

    memset(uses, 0, sizeof(uses));
    for (size_t i = 0; i < REQUESTS; i++) {
        static int64_t stored[PAGES];
        uint32_t id = m.ids[i];
        size_t at = 0;

        while (at < count && queue[at] != id)
            at++;
        if (at < count && (!storage->ttl_us || times[i] - stored[id] < storage->ttl_us)) {
            r.hits++;
            r.bytes_hit += m.sizes[i];
            continue;
        }
        r.expired += at < count;
        if ((storage->max_page && m.sizes[i] > storage->max_page) ||
            ++uses[id] < storage->min_uses) {
            r.not_admitted++;
            continue;
        }
        if (at < count)
            memmove(&queue[at], &queue[at + 1], (--count - at) * sizeof(*queue));
        if (count == capacity) {
            memmove(queue, queue + 1, --count * sizeof(*queue));
            r.evictions++;
        }
        queue[count++] = id;
        stored[id] = times[i];
        r.insertions++;
    }
    r.pages = count;
    return r;
}

static const struct sim_storage rules[] = {
    {0},
    {.ttl_us = 300000000},
    {.ttl_us = 1},
    {.max_page = 400},
    {.min_uses = 2},
    {.min_uses = 5},
    {.ttl_us = 200000000, .max_page = 700, .min_uses = 2},
};

#define RULES (int)(sizeof(rules) / sizeof(rules[0]))

START_TEST(as_a_plain_cache_does)
{
    static const size_t capacities[] = {1, 40, PAGES};

    for (size_t c = 0; c < 3; c++) {
        struct sim_result plain = plain_fifo(capacities[c], &rules[_i]);
        struct sim_result r = run("fifo", capacities[c], &rules[_i]);

        ck_assert_uint_eq(r.hits, plain.hits);
        ck_assert_uint_eq(r.bytes_hit, plain.bytes_hit);
        ck_assert_uint_eq(r.expired, plain.expired);
        ck_assert_uint_eq(r.not_admitted, plain.not_admitted);
        ck_assert_uint_eq(r.evictions, plain.evictions);
        ck_assert_uint_eq(r.insertions, plain.insertions);
        ck_assert_uint_eq(r.pages, plain.pages);
    }
}
END_TEST

/* What is said of an infinite cache holds for one that stores by the same rules. */
START_TEST(an_infinite_cache_keeps_the_rules)
{
    struct sim_result plain = plain_fifo(PAGES, &rules[_i]);
    const struct trace_requests requests = {.count = REQUESTS,
                                            .ids = m.ids,
                                            .sizes = m.sizes,
                                            .url_count = PAGES,
                                            .times_us = times,
                                            .ttl_us = rules[_i].ttl_us,
                                            .max_page = rules[_i].max_page,
                                            .min_uses = rules[_i].min_uses};
    struct trace_totals totals;

    ck_assert(trace_totals_make(&requests, &totals));
    ck_assert_uint_eq(totals.requests, REQUESTS);
    ck_assert_uint_eq(totals.hits, plain.hits);
    ck_assert_uint_eq(totals.bytes_hit, plain.bytes_hit);
    ck_assert_uint_eq(totals.distinct_bytes, made_totals(&m, 0).distinct_bytes);
}
END_TEST

/* Structures agree after each step in the debug build; counts agree everywhere. */
START_TEST(every_policy_keeps_count)
{
    for (size_t p = 0; policies[p]; p++)
        for (int i = 0; i < RULES; i++) {
            struct sim_config config = {.spec = policy_spec_of(policies[p]),
                                        .capacity_bytes = 20000,
                                        .storage = rules[i],
                                        .seed = 1};
            struct sim_result r;

            ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &r), SIM_OK);
            ck_assert_uint_eq(r.requests, REQUESTS);
            ck_assert_uint_le(r.insertions + r.not_admitted + r.too_large, REQUESTS - r.hits);
            ck_assert_uint_le(r.bytes_inside, 20000);
            if (rules[i].ttl_us == 1)
                ck_assert_uint_eq(r.hits, 0);
        }
}
END_TEST

START_TEST(a_cache_for_everything_expires_and_refuses_too)
{
    const struct sim_storage never = {0}, soon = {.ttl_us = 300000000};
    struct sim_result all;

    m.trace.distinct_bytes = made_totals(&m, 0).distinct_bytes;
    all = run("lru", PAGES, &never);
    ck_assert_uint_gt(all.hits, run("lru", PAGES, &soon).hits);
    ck_assert_uint_gt(run("lru", PAGES, &soon).expired, 0);
}
END_TEST

START_TEST(a_sample_expires_by_the_same_times)
{
    struct sim_config config = {
        .spec = made_spec("lru"), .capacity_pages = PAGES, .storage = {.ttl_us = 300000000}};
    struct sim_sample sample;
    struct sim_result whole = run("lru", PAGES, &config.storage), r;

    ck_assert(sim_sample_make(&m.trace, 1, 1, 0, &sample));
    config.sampling = &sample.sampling;
    ck_assert_int_eq(sim_run(&sample.trace, &config, NULL, &r), SIM_OK);
    ck_assert_uint_eq(r.hits, whole.hits);
    ck_assert_uint_eq(r.expired, whole.expired);
    sim_sample_free(&sample);
}
END_TEST

START_TEST(without_times_nothing_can_expire)
{
    struct sim_config config = {
        .spec = made_spec("lru"), .capacity_pages = 10, .storage = {.ttl_us = 1}};
    struct sim_result r;

    m.trace.times_us = NULL;
    ck_assert_int_eq(sim_run(&m.trace, &config, NULL, &r), SIM_NEEDS_TIMES);
    ck_assert_ptr_nonnull(strstr(sim_strerror(SIM_NEEDS_TIMES), "times"));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("storage");
    TCase *tests = tcase_create("storage");

    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, as_a_plain_cache_does, 0, RULES);
    tcase_add_loop_test(tests, an_infinite_cache_keeps_the_rules, 0, RULES);
    tcase_add_test(tests, every_policy_keeps_count);
    tcase_add_test(tests, a_cache_for_everything_expires_and_refuses_too);
    tcase_add_test(tests, a_sample_expires_by_the_same_times);
    tcase_add_test(tests, without_times_nothing_can_expire);
    suite_add_tcase(suite, tests);
    return suite;
}
