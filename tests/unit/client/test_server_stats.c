#define UNIT_STARTS_NO_THREAD

#include "client/server_stats.h"

#include <stdlib.h>
#include <string.h>

#include "client/stat_rows.h"
#include "tests/unit/unit.h"

static proxy_fact facts[] = {{"software", "a test"}, {"policy", "lru"}};

#define STATS(list)                                                                  \
    {                                                                                \
        .facts = {2, facts}, .metrics = { sizeof(list) / sizeof((list)[0]), (list) } \
    }

static proxy_metric few[] = {
    {"a", PROXY_COUNTER, 1},           {"ab", PROXY_COUNTER, 2},
    {"f{x=\"1\"}", PROXY_COUNTER, 10}, {"f{x=\"2\"}", PROXY_COUNTER, 20},
    {"f2{x=\"1\"}", PROXY_GAUGE, 40},
};

START_TEST(facts_and_values_by_name)
{
    proxy_stats stats = STATS(few);

    ck_assert_str_eq(server_stats_fact(&stats, "policy"), "lru");
    ck_assert_str_eq(server_stats_fact(&stats, "none"), "");
    ck_assert_uint_eq(server_stats_value(&stats, "a"), 1);
    ck_assert_uint_eq(server_stats_value(&stats, "f{x=\"2\"}"), 20);
    ck_assert_uint_eq(server_stats_value(&stats, "f"), 30);
    ck_assert_uint_eq(server_stats_value(&stats, "none"), 0);
    ck_assert_ptr_eq(server_stats_find(&stats, "f2"), &few[4]);
    ck_assert_ptr_null(server_stats_find(&stats, "b"));
    ck_assert_ptr_null(server_stats_find(&(proxy_stats){.facts = {0}}, "a"));
}
END_TEST

static proxy_metric timed[] = {
    {"other", PROXY_COUNTER, 1},
    {"t_bucket{le=\"1\"}", PROXY_HISTOGRAM, 10},
    {"t_bucket{le=\"8\"}", PROXY_HISTOGRAM, 50},
    {"t_bucket{le=\"64\"}", PROXY_HISTOGRAM, 99},
    {"t_bucket{le=\"+Inf\"}", PROXY_HISTOGRAM, 100},
    {"t_count", PROXY_HISTOGRAM, 100},
    {"t_sum", PROXY_HISTOGRAM, 1234},
};

START_TEST(a_histogram_is_read_whole)
{
    proxy_stats stats = STATS(timed);
    struct server_stats_histogram histogram;
    unsigned end = 0;

    ck_assert(!server_stats_read_histogram(&stats, 0, &histogram, &end));
    ck_assert(server_stats_read_histogram(&stats, 1, &histogram, &end));
    ck_assert_uint_eq(end, 7);
    ck_assert_str_eq(histogram.name, "t");
    ck_assert_uint_eq(histogram.bucket_count, 4);
    ck_assert_uint_eq(histogram.count, 100);
    ck_assert_uint_eq(histogram.sum, 1234);
    ck_assert_uint_eq(server_stats_quantile(&histogram, 10), 1);
    ck_assert_uint_eq(server_stats_quantile(&histogram, 11), 8);
    ck_assert_uint_eq(server_stats_quantile(&histogram, 50), 8);
    ck_assert_uint_eq(server_stats_quantile(&histogram, 99), 64);
    ck_assert_uint_eq(server_stats_quantile(&histogram, 99.5), UINT64_MAX);
    histogram.count = 0;
    ck_assert_uint_eq(server_stats_quantile(&histogram, 50), 0);
    ck_assert(!server_stats_read_histogram(&stats, 7, &histogram, &end));
}
END_TEST

/* Without its sum, or of another kind, it is none. */
START_TEST(a_histogram_in_part_is_no_histogram)
{
    proxy_stats stats = STATS(timed);
    struct server_stats_histogram histogram;
    unsigned end = 77;

    for (stats.metrics.metrics_len = 2; stats.metrics.metrics_len < 7; stats.metrics.metrics_len++)
        ck_assert(!server_stats_read_histogram(&stats, 1, &histogram, &end));
    stats.metrics.metrics_len = 7;
    timed[6].kind = PROXY_COUNTER;
    ck_assert(!server_stats_read_histogram(&stats, 1, &histogram, &end));
    ck_assert_uint_eq(end, 77);
    timed[6].kind = PROXY_HISTOGRAM;
}
END_TEST

static proxy_metric mixed[] = {
    {"zeal", PROXY_COUNTER, 1},
    {"requests{outcome=\"new\"}", PROXY_COUNTER, 5},
    {"requests{outcome=\"hit\"}", PROXY_COUNTER, 7},
    {"load_bytes", PROXY_GAUGE, 3},
    {"t_bucket{le=\"+Inf\"}", PROXY_HISTOGRAM, 4},
    {"t_count", PROXY_HISTOGRAM, 4},
    {"t_sum", PROXY_HISTOGRAM, 4},
    {"odd", 77, 6},
};

START_TEST(known_rows_come_first_and_others_by_their_names)
{
    static const struct {
        const char *key, *label;
        uint64_t value;
        enum stat_unit unit;
        bool has_rate;
    } expected[] = {
        {"requests", "requests", 12, STAT_PLAIN, true},
        {"hits", "hits", 7, STAT_PLAIN, true},
        {"zeal", "zeal", 1, STAT_PLAIN, true},
        {"requests{outcome=\"new\"}", "requests{outcome=\"new\"}", 5, STAT_PLAIN, true},
        {"load_bytes", "load_bytes", 3, STAT_BYTES, false},
        {"odd", "odd", 6, STAT_PLAIN, false},
    };
    proxy_stats stats = STATS(mixed);
    size_t count;
    struct stat_row *rows = stat_rows_make(&stats, &count);

    ck_assert_uint_eq(count, sizeof(expected) / sizeof(expected[0]));
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(rows[i].key, expected[i].key);
        ck_assert_str_eq(rows[i].label, expected[i].label);
        ck_assert_uint_eq(rows[i].value, expected[i].value);
        ck_assert_int_eq(rows[i].unit, expected[i].unit);
        ck_assert_int_eq(rows[i].has_rate, expected[i].has_rate);
    }
    free(rows);
    ck_assert_str_eq(stat_rows_histogram_label("t"), "t");
    ck_assert_str_eq(stat_rows_histogram_label("miss_duration_microseconds"), "time of a miss");
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("client/server_stats");
    TCase *tc = tcase_create("server_stats");

    tcase_add_test(tc, facts_and_values_by_name);
    tcase_add_test(tc, a_histogram_is_read_whole);
    tcase_add_test(tc, a_histogram_in_part_is_no_histogram);
    tcase_add_test(tc, known_rows_come_first_and_others_by_their_names);
    suite_add_tcase(suite, tc);
    return suite;
}
