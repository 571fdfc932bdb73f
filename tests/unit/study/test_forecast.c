/*
 * The interval of a ratio to come, of differences between parts that are drawn from known laws.
 */
#define UNIT_STARTS_NO_THREAD

#include <math.h>
#include <stdlib.h>

#include "study/forecast.h"
#include "tests/unit/unit.h"

#define REQUESTS 100000.0
#define TRIALS 400

static double
normal(uint64_t *state)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        sum += (double)(*state >> 11) / 0x1p53;
    }
    return sum - 6;
}

/* Differences of neighbours among parts whose ratios vary by `deviation` at 32 parts. */
static struct forecast
made(uint64_t *state, double deviation, double ratio)
{
    struct forecast f = {.ratio = ratio, .requests = REQUESTS};
    double values[FORECAST_PARTS];

    for (unsigned i = 0; i < FORECAST_PARTS; i++)
        values[i] = deviation * normal(state);
    for (unsigned parts = 2; parts <= FORECAST_PARTS; parts *= 2) {
        struct forecast_scale *scale = &f.scales[f.scale_count++];
        double before = 0;

        scale->parts = parts;
        for (unsigned i = 0; i < parts; i++) {
            double mean = 0;

            for (unsigned j = 0; j < FORECAST_PARTS / parts; j++)
                mean += values[i * (FORECAST_PARTS / parts) + j] * parts / FORECAST_PARTS;
            if (i > 0)
                scale->mean_square += (mean - before) * (mean - before) / (parts - 1);
            before = mean;
        }
    }
    return f;
}

/* Parts that vary independently: what is to come is as uncertain as two means of all parts. */
START_TEST(intervals_cover_independent_parts)
{
    uint64_t state = 7;
    unsigned within[FORECAST_LEVELS] = {0};
    double deviation = 0.05, truth = deviation * sqrt(2.0 / FORECAST_PARTS);

    for (unsigned i = 0; i < TRIALS; i++) {
        struct forecast f = made(&state, deviation, 0.5);
        double ratio = 0.5 + truth * normal(&state);

        forecast_compute(&f);
        ck_assert_double_lt(f.change[FORECAST_68], f.change[FORECAST_95]);
        for (int level = 0; level < FORECAST_LEVELS; level++)
            within[level] += ratio >= f.low[level] && ratio <= f.high[level];
    }
    /* Wider than independence alone asks for, since it is not known; and not by far. */
    ck_assert_uint_ge(within[FORECAST_68] * 100, TRIALS * 66);
    ck_assert_uint_le(within[FORECAST_68] * 100, TRIALS * 92);
    ck_assert_uint_ge(within[FORECAST_95] * 100, TRIALS * 93);
}
END_TEST

START_TEST(traffic_that_changes_slowly_has_wider_intervals)
{
    struct forecast fast = {.ratio = 0.5, .requests = REQUESTS, .scale_count = FORECAST_SCALES};
    struct forecast slow = fast;

    for (unsigned i = 0; i < FORECAST_SCALES; i++) {
        fast.scales[i] = (struct forecast_scale){2u << i, 0.0001 * (2u << i)};
        slow.scales[i] = (struct forecast_scale){2u << i, 0.0032};
    }
    forecast_compute(&fast);
    forecast_compute(&slow);
    ck_assert_double_gt(slow.change[FORECAST_95], 1.5 * fast.change[FORECAST_95]);
    ck_assert_double_ge(fast.change[FORECAST_68], sqrt(0.0001) * 0.8);
}
END_TEST

START_TEST(header_fields_and_chance_widen_it)
{
    uint64_t state = 3;
    struct forecast plain = made(&state, 0.01, 0.5), more = plain, one_sided = plain;

    forecast_compute(&plain);
    more.chance = 0.1;
    forecast_compute(&more);
    ck_assert_double_ge(more.change[FORECAST_95], 0.19);
    one_sided.falls[FORECAST_95] = 0.2;
    forecast_compute(&one_sided);
    ck_assert_double_eq(one_sided.high[FORECAST_95], plain.high[FORECAST_95]);
    ck_assert_double_le(one_sided.low[FORECAST_95], 0.3);
    ck_assert_double_eq(one_sided.low[FORECAST_68], plain.low[FORECAST_68]);
}
END_TEST

START_TEST(ratios_are_from_0_to_1_and_few_requests_promise_nothing)
{
    struct forecast none = {.ratio = 0.9, .requests = 4}, equal = {.ratio = 1, .requests = 1000};

    forecast_compute(&none);
    ck_assert_double_eq(none.low[FORECAST_68], 0);
    ck_assert_double_eq(none.high[FORECAST_95], 1);
    equal.scale_count = 1;
    equal.scales[0].parts = 2;
    forecast_compute(&equal);
    ck_assert_double_lt(equal.low[FORECAST_68], 1);
    ck_assert_double_eq(equal.high[FORECAST_68], 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("forecast");
    TCase *tests = tcase_create("forecast");

    tcase_add_test(tests, intervals_cover_independent_parts);
    tcase_add_test(tests, traffic_that_changes_slowly_has_wider_intervals);
    tcase_add_test(tests, header_fields_and_chance_widen_it);
    tcase_add_test(tests, ratios_are_from_0_to_1_and_few_requests_promise_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
