#include "metrics/metrics.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define WORKERS 2
#define ROUNDS 5000

static struct metrics *metrics;
static uint64_t *values;
static _Atomic bool over;

static void
set_up(void)
{
    const struct metric_sample *samples;

    metrics = metrics_create(WORKERS);
    ck_assert_ptr_nonnull(metrics);
    values = calloc(metrics_samples(metrics, &samples), sizeof(*values));
    ck_assert_ptr_nonnull(values);
}

static void
tear_down(void)
{
    metrics_destroy(metrics);
    free(values);
}

/* The value of a sample after the last metrics_read(). */
static uint64_t
value(const char *name)
{
    const struct metric_sample *samples;
    size_t count = metrics_samples(metrics, &samples);

    for (size_t i = 0; i < count; i++)
        if (strcmp(samples[i].name, name) == 0)
            return values[i];
    ck_abort_msg("there is no sample %s", name);
}

static uint64_t
value_now(const char *name)
{
    metrics_read(metrics, values);
    return value(name);
}

/* ---- counters ---------------------------------------------------------------------------------
 */

START_TEST(sums_of_all_slots_since_the_last_rebase)
{
    metrics_add(metrics, 0, METRIC_REQUESTS_HIT, 3);
    metrics_add(metrics, 1, METRIC_REQUESTS_HIT, 4);
    metrics_add(metrics, metrics_fetcher_slot(metrics), METRIC_REQUESTS_HIT, 5);
    ck_assert_uint_eq(value_now("requests{outcome=\"hit\"}"), 12);
    ck_assert_uint_eq(value_now("requests{outcome=\"miss\"}"), 0);
    metrics_rebase(metrics);
    ck_assert_uint_eq(value_now("requests{outcome=\"hit\"}"), 0);
    metrics_add(metrics, 1, METRIC_REQUESTS_HIT, 6);
    ck_assert_uint_eq(value_now("requests{outcome=\"hit\"}"), 6);
}
END_TEST

/* The fetcher's slot is none of the workers'. */
START_TEST(the_fetcher_has_a_slot_of_its_own)
{
    ck_assert_uint_ge(metrics_fetcher_slot(metrics), WORKERS);
}
END_TEST

static void *
count(void *argument)
{
    unsigned slot = (unsigned)(uintptr_t)argument;

    for (int64_t n = 0; !atomic_load(&over); n++) {
        metrics_add(metrics, slot, METRIC_REQUESTS_MISS, 1);
        metrics_add(metrics, slot, METRIC_SERVED_BYTES_ORIGIN, 100);
        metrics_observe(metrics, slot, HISTOGRAM_MISS_DURATION, n);
    }
    return NULL;
}

static void *
rebase(void *argument)
{
    (void)argument;
    while (!atomic_load(&over))
        metrics_rebase(metrics);
    return NULL;
}

/* A base that is taken after the sum would leave a difference below zero: some 2^64 requests. */
START_TEST(no_sum_is_below_zero)
{
    pthread_t threads[WORKERS + 2];
    const struct metric_sample *samples;
    size_t sample_count = metrics_samples(metrics, &samples);

    atomic_store(&over, false);
    for (uintptr_t i = 0; i <= WORKERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, count, (void *)i), 0);
    ck_assert_int_eq(pthread_create(&threads[WORKERS + 1], NULL, rebase, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        metrics_read(metrics, values);
        for (size_t s = 0; s < sample_count; s++)
            ck_assert_uint_lt(values[s], UINT64_MAX / 2);
    }
    atomic_store(&over, true);
    for (unsigned i = 0; i < WORKERS + 2; i++)
        pthread_join(threads[i], NULL);
}
END_TEST

/* ---- histograms -------------------------------------------------------------------------------
 */

static uint64_t
bucket(unsigned i)
{
    char name[METRICS_MAX_NAME];

    if (i == METRICS_BUCKETS - 1)
        snprintf(name, sizeof(name), "miss_duration_microseconds_bucket{le=\"+Inf\"}");
    else
        snprintf(name, sizeof(name), "miss_duration_microseconds_bucket{le=\"%llu\"}",
                 (unsigned long long)metrics_bucket_bound(i));
    return value(name);
}

/* Buckets are cumulative: the first one that counts a value, and all behind it, grow. */
static void
expect_bucket(int64_t us, unsigned expected)
{
    metrics_rebase(metrics);
    metrics_observe(metrics, 0, HISTOGRAM_MISS_DURATION, us);
    metrics_read(metrics, values);
    for (unsigned i = 0; i < METRICS_BUCKETS; i++)
        ck_assert_msg(bucket(i) == (i >= expected), "%lld us, bucket %u", (long long)us, i);
    ck_assert_uint_eq(value("miss_duration_microseconds_count"), 1);
    ck_assert_uint_eq(value("miss_duration_microseconds_sum"), us > 0 ? (uint64_t)us : 0);
    ck_assert_uint_eq(value("hit_duration_microseconds_count"), 0);
}

START_TEST(a_value_is_counted_in_the_bucket_whose_bound_it_does_not_exceed)
{
    expect_bucket(INT64_MIN, 0);
    expect_bucket(-1, 0);
    expect_bucket(0, 0);
    for (unsigned i = 0; i < METRICS_BUCKETS - 1; i++) {
        int64_t bound = (int64_t)metrics_bucket_bound(i);

        ck_assert_int_eq(bound, (int64_t)1 << i);
        expect_bucket(bound, i);
        expect_bucket(bound + 1, i + 1);
    }
    ck_assert_uint_eq(metrics_bucket_bound(METRICS_BUCKETS - 1), UINT64_MAX);
    expect_bucket(INT64_MAX, METRICS_BUCKETS - 1);
}
END_TEST

START_TEST(sum_and_count_of_several_slots)
{
    metrics_observe(metrics, 0, HISTOGRAM_ORIGIN_FIRST_BYTE, 100);
    metrics_observe(metrics, 1, HISTOGRAM_ORIGIN_FIRST_BYTE, 1000);
    metrics_observe(metrics, metrics_fetcher_slot(metrics), HISTOGRAM_ORIGIN_FIRST_BYTE, 10000);
    metrics_read(metrics, values);
    ck_assert_uint_eq(value("origin_first_byte_microseconds_sum"), 11100);
    ck_assert_uint_eq(value("origin_first_byte_microseconds_count"), 3);
    ck_assert_uint_eq(value("origin_first_byte_microseconds_bucket{le=\"1024\"}"), 2);
}
END_TEST

/* ---- sources ----------------------------------------------------------------------------------
 */

struct numbers {
    uint64_t first, second;
};

static void
read_numbers(void *context, void *snapshot)
{
    *(struct numbers *)snapshot = *(const struct numbers *)context;
}

static const struct metric_row number_rows[] = {
    {"second", "", METRIC_KIND_GAUGE, "", "The second.", offsetof(struct numbers, second)},
    {"first", "kind=\"a\"", METRIC_KIND_COUNTER, "", "The first.", offsetof(struct numbers, first)},
};

static const struct metric_source number_source = {number_rows, 2, read_numbers, 0};

START_TEST(rows_of_sources_follow_ours)
{
    struct numbers one = {1, 2}, other = {10, 20};
    const struct metric_sample *samples;
    size_t own = metrics_samples(metrics, &samples), own_rows = metrics_row_count(metrics);

    ck_assert(metrics_register(metrics, &number_source, &one));
    ck_assert(metrics_register(metrics, &number_source, &other));
    ck_assert_uint_eq(metrics_samples(metrics, &samples), own + 4);
    ck_assert_uint_eq(metrics_row_count(metrics), own_rows + 4);
    ck_assert_str_eq(samples[own].name, "second");
    ck_assert_int_eq(samples[own].kind, METRIC_KIND_GAUGE);
    ck_assert_str_eq(samples[own + 3].name, "first{kind=\"a\"}");
    ck_assert_ptr_eq(metrics_row(metrics, own_rows + 1), &number_rows[1]);
    ck_assert_ptr_eq(metrics_row(metrics, own_rows + 2), &number_rows[0]);
    ck_assert_ptr_null(metrics_row(metrics, own_rows + 4));
    values = realloc(values, (own + 4) * sizeof(*values));
    metrics_add(metrics, 0, METRIC_REQUESTS_HIT, 1);
    metrics_read(metrics, values);
    ck_assert_uint_eq(values[METRIC_REQUESTS_HIT], 1);
    ck_assert_uint_eq(values[own], 2);
    ck_assert_uint_eq(values[own + 1], 1);
    ck_assert_uint_eq(values[own + 2], 20);
    ck_assert_uint_eq(values[own + 3], 10);
    /* The numbers of a source are its owner's: they are read anew, and not rebased. */
    one.first = 3;
    metrics_rebase(metrics);
    metrics_read(metrics, values);
    ck_assert_uint_eq(values[METRIC_REQUESTS_HIT], 0);
    ck_assert_uint_eq(values[own + 1], 3);
}
END_TEST

START_TEST(rows_are_hidden_until_they_are_shown)
{
    const struct metric_source source = {number_rows, 2, read_numbers, 1};
    struct numbers numbers = {1, 2}, others = {10, 20};
    const struct metric_sample *samples;
    size_t own = metrics_samples(metrics, &samples), own_rows = metrics_row_count(metrics);

    ck_assert(metrics_register(metrics, &number_source, &others));
    ck_assert(metrics_register(metrics, &source, &numbers));
    ck_assert_uint_eq(metrics_samples(metrics, &samples), own + 4);
    ck_assert(samples[own + 2].shown && !samples[own + 3].shown);
    ck_assert_ptr_eq(metrics_row(metrics, own_rows + 2), &number_rows[0]);
    ck_assert_ptr_null(metrics_row(metrics, own_rows + 3));
    metrics_show(metrics, number_rows, 2); /* all of the first source are shown already */
    metrics_destroy(metrics);
    metrics = metrics_create(1);
    ck_assert(metrics_register(metrics, &source, &numbers));
    metrics_show(metrics, number_rows, 2);
    metrics_samples(metrics, &samples);
    ck_assert(samples[own + 1].shown);
    ck_assert_str_eq(samples[own + 1].name, "first{kind=\"a\"}");
    ck_assert_ptr_eq(metrics_row(metrics, own_rows + 1), &number_rows[1]);
}
END_TEST

/* ---- the table --------------------------------------------------------------------------------
 */

START_TEST(samples_have_names_of_their_own)
{
    const struct metric_sample *samples;
    size_t sample_count = metrics_samples(metrics, &samples);

    for (size_t i = 0; i < sample_count; i++) {
        ck_assert_uint_lt(strlen(samples[i].name), METRICS_MAX_NAME - 1);
        for (size_t j = i + 1; j < sample_count; j++)
            ck_assert_str_ne(samples[i].name, samples[j].name);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("metrics/metrics");
    TCase *tc = tcase_create("metrics");

    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, sums_of_all_slots_since_the_last_rebase);
    tcase_add_test(tc, the_fetcher_has_a_slot_of_its_own);
    tcase_add_test(tc, no_sum_is_below_zero);
    tcase_add_test(tc, a_value_is_counted_in_the_bucket_whose_bound_it_does_not_exceed);
    tcase_add_test(tc, sum_and_count_of_several_slots);
    tcase_add_test(tc, rows_of_sources_follow_ours);
    tcase_add_test(tc, rows_are_hidden_until_they_are_shown);
    tcase_add_test(tc, samples_have_names_of_their_own);
    suite_add_tcase(suite, tc);
    return suite;
}
