/* LRU's curve in one pass, samples, and what can be known of a trace beforehand. */
#define UNIT_STARTS_NO_THREAD

#include "sim/curve.h"
#include "sim/sample.h"
#include "tests/unit/sim/traces.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

START_TEST(next_is_the_next_request_for_the_same_page)
{
    static const uint32_t ids[] = {0, 1, 0, 0, 2, 1};
    static const uint32_t next[] = {2, 5, 3, UINT32_MAX, UINT32_MAX, UINT32_MAX};
    struct made m = made_of(ids, NULL, COUNT(ids), 3);

    ck_assert_mem_eq(m.next, next, sizeof(next));
    made_free(&m);
}
END_TEST

START_TEST(facts)
{
    static const uint32_t ids[] = {0, 1, 0, 2, 1}, sizes[] = {10, 20, 15, 40, 20};
    struct made m = made_of(ids, sizes, COUNT(ids), 3);
    struct trace_totals f;

    f = made_totals(&m, 0);
    ck_assert_uint_eq(f.distinct_bytes, 70);
    ck_assert_uint_eq(f.requests, 5);
    ck_assert_uint_eq(f.hits, 2);
    ck_assert_uint_eq(f.bytes, 105);
    ck_assert_uint_eq(f.bytes_hit, 35);
    ck_assert_uint_eq(f.smallest, 10);
    ck_assert_uint_eq(f.largest, 40);
    f = made_totals(&m, 3);
    ck_assert_uint_eq(f.distinct_bytes, 70);
    ck_assert_uint_eq(f.requests, 2);
    ck_assert_uint_eq(f.hits, 1);
    ck_assert_uint_eq(f.bytes_hit, 20);
    made_free(&m);
}
END_TEST

/* ---- the curve ------------------------------------------------------------------------------- */

static void
check_curve(const struct made *m, size_t warmup)
{
    struct sim_curve curve;
    struct sim_result result;

    ck_assert_int_eq(sim_curve_make(&m->trace, warmup, NULL, &curve), SIM_OK);
    ck_assert_uint_eq(curve.page_count, m->trace.page_count);
    ck_assert_uint_eq(curve.hits[0], 0);
    for (size_t size = 1; size <= m->trace.page_count; size++) {
        struct sim_config config = {
            .spec = made_spec("lru"), .capacity_pages = size, .warmup = warmup};

        ck_assert_int_eq(sim_run(&m->trace, &config, NULL, &result), SIM_OK);
        ck_assert_uint_eq(curve.requests, result.requests);
        ck_assert_uint_eq(curve.bytes, result.bytes);
        ck_assert_msg(curve.hits[size] == result.hits, "%zu", size);
        ck_assert_msg(curve.bytes_hit[size] == result.bytes_hit, "%zu", size);
    }
    sim_curve_free(&curve);
}

START_TEST(the_curve_is_what_lru_hits_at_every_size)
{
    struct made m = made_trace(3, 8000, 60, true);

    check_curve(&m, 0);
    check_curve(&m, 777);
    made_free(&m);
}
END_TEST

/* Many times the window of moments, and a page that is asked for only at the ends. */
START_TEST(the_curve_of_a_long_trace)
{
    struct made m = made_trace(4, 60000, 20, false);

    m.ids[0] = m.ids[59999] = 19;
    for (size_t i = 1; i < 59999; i++)
        if (m.ids[i] == 19)
            m.ids[i] = 0;
    check_curve(&m, 0);
    made_free(&m);
}
END_TEST

START_TEST(the_smallest_size_that_hits_enough)
{
    static const uint32_t ids[] = {0, 1, 2, 0, 1, 2, 2};
    struct made m = made_of(ids, NULL, COUNT(ids), 3);
    struct sim_curve curve;

    ck_assert_int_eq(sim_curve_make(&m.trace, 0, NULL, &curve), SIM_OK);
    ck_assert_uint_eq(sim_curve_find(&curve, 0), 0);
    ck_assert_uint_eq(sim_curve_find(&curve, 1), 1);
    ck_assert_uint_eq(sim_curve_find(&curve, 1.5), 3);
    ck_assert_uint_eq(sim_curve_find(&curve, 4), 3);
    ck_assert_uint_eq(sim_curve_find(&curve, 99), 3);
    sim_curve_free(&curve);
    made_free(&m);
}
END_TEST

START_TEST(a_curve_can_be_stopped)
{
    struct made m = made_trace(4, 100, 20, false);
    struct sim_watch watch = {.stop = true};
    struct sim_curve curve;

    ck_assert_int_eq(sim_curve_make(&m.trace, 0, &watch, &curve), SIM_STOPPED);
    ck_assert_ptr_null(curve.hits);
    watch.stop = false;
    ck_assert_int_eq(sim_curve_make(&m.trace, 0, &watch, &curve), SIM_OK);
    ck_assert_uint_eq(watch.done, 100);
    sim_curve_free(&curve);
    made_free(&m);
}
END_TEST

/* ---- samples --------------------------------------------------------------------------------- */

START_TEST(a_sample_has_all_requests_for_its_pages_in_their_order)
{
    struct made m = made_trace(6, 20000, 5000, true);
    struct sim_sample sample, again;
    size_t at = 0, before_warmup = 0;

    ck_assert(sim_sample_make(&m.trace, 0.2, 1, 4000, &sample));
    ck_assert_uint_gt(sample.trace.page_count, 800);
    ck_assert_uint_lt(sample.trace.page_count, 1200);
    ck_assert_uint_eq(sample.sampling.requests, 16000);
    for (size_t i = 0; i < m.trace.request_count; i++) {
        bool drawn = false;

        for (size_t page = 0; page < sample.trace.page_count && !drawn; page++)
            drawn = sample.trace.keys[page] == m.keys[m.ids[i]];
        if (!drawn)
            continue;
        ck_assert_uint_lt(at, sample.trace.request_count);
        ck_assert_uint_eq(sample.trace.keys[sample.trace.ids[at]], m.keys[m.ids[i]]);
        ck_assert_uint_eq(sample.trace.sizes[at], m.sizes[i]);
        before_warmup += i < 4000;
        at++;
    }
    ck_assert_uint_eq(at, sample.trace.request_count);
    ck_assert_uint_eq(before_warmup, sample.warmup);
    ck_assert(sim_sample_make(&m.trace, 0.2, 1, 4000, &again));
    ck_assert_uint_eq(again.trace.request_count, sample.trace.request_count);
    ck_assert_mem_eq(again.trace.ids, sample.trace.ids, at * sizeof(*again.trace.ids));
    sim_sample_free(&again);
    ck_assert(sim_sample_make(&m.trace, 0.2, 2, 4000, &again));
    ck_assert(again.trace.request_count != sample.trace.request_count ||
              again.trace.keys[0] != sample.trace.keys[0]);
    sim_sample_free(&again);
    sim_sample_free(&sample);
    ck_assert(sim_sample_make(&m.trace, 1, 1, 0, &sample));
    ck_assert_uint_eq(sample.trace.request_count, 20000);
    sim_sample_free(&sample);
    made_free(&m);
}
END_TEST

START_TEST(capacities_shrink_with_the_sample)
{
    ck_assert_uint_eq(sim_sample_capacity(1000, 0.1), 100);
    ck_assert_uint_eq(sim_sample_capacity(1000, 1), 1000);
    ck_assert_uint_eq(sim_sample_capacity(3, 0.01), 1);
    ck_assert_uint_eq(sim_sample_capacity(0, 0.01), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("sizes");
    TCase *facts_case = tcase_create("facts"), *curve = tcase_create("curve"),
          *sample = tcase_create("sample");

    tcase_add_test(facts_case, next_is_the_next_request_for_the_same_page);
    tcase_add_test(facts_case, facts);
    suite_add_tcase(suite, facts_case);
    tcase_set_timeout(curve, 120);
    tcase_add_test(curve, the_curve_is_what_lru_hits_at_every_size);
    tcase_add_test(curve, the_curve_of_a_long_trace);
    tcase_add_test(curve, the_smallest_size_that_hits_enough);
    tcase_add_test(curve, a_curve_can_be_stopped);
    suite_add_tcase(suite, curve);
    tcase_set_timeout(sample, 120);
    tcase_add_test(sample, a_sample_has_all_requests_for_its_pages_in_their_order);
    tcase_add_test(sample, capacities_shrink_with_the_sample);
    suite_add_tcase(suite, sample);
    return suite;
}
