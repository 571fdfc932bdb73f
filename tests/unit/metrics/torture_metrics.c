/* Metrics without memory: none are made, or a source is not registered and nothing has changed. */
#include "metrics/metrics.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

static const struct metric_row rows_of_source[] = {
    {"pages", "", METRIC_KIND_GAUGE, "", "Pages.", 0},
    {"evictions", "", METRIC_KIND_COUNTER, "", "Evictions.", sizeof(uint64_t)},
};

static void
read_nothing(void *context, void *snapshot)
{
    (void)context;
    (void)snapshot;
}

static const struct metric_source source = {rows_of_source, 2, read_nothing, 0};

static void
tear_down(void)
{
    torture_fail_at(0);
}

START_TEST(no_metrics_without_memory)
{
    struct metrics *metrics = NULL;
    unsigned failures = 0;

    for (unsigned i = 1; !metrics; i++) {
        torture_fail_at(i);
        metrics = metrics_create(2);
        failures += !metrics;
        ck_assert(metrics || torture_failed());
    }
    ck_assert_uint_eq(failures, 3);
    metrics_destroy(metrics);
    metrics_destroy(NULL);
}
END_TEST

START_TEST(a_source_that_cannot_be_registered_changes_nothing)
{
    struct metrics *metrics = metrics_create(2);
    const struct metric_sample *samples;
    size_t rows = metrics_row_count(metrics), count = metrics_samples(metrics, &samples);
    bool done = false;
    unsigned failures = 0;

    for (unsigned i = 1; !done; i++) {
        uint64_t values[256];

        torture_fail_at(i);
        done = metrics_register(metrics, &source, NULL);
        if (done)
            break;
        ck_assert(torture_failed());
        failures++;
        torture_fail_at(0);
        ck_assert_uint_eq(metrics_row_count(metrics), rows);
        ck_assert_uint_eq(metrics_samples(metrics, &samples), count);
        metrics_read(metrics, values);
    }
    ck_assert_uint_eq(failures, 2);
    ck_assert_uint_eq(metrics_row_count(metrics), rows + source.count);
    metrics_destroy(metrics);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("metrics/metrics without memory");
    TCase *tests = tcase_create("metrics");

    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, no_metrics_without_memory);
    tcase_add_test(tests, a_source_that_cannot_be_registered_changes_nothing);
    suite_add_tcase(suite, tests);
    return suite;
}
