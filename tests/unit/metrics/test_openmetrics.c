#define UNIT_STARTS_NO_THREAD

#include "metrics/openmetrics.h"

#include <string.h>

#include "tests/unit/unit.h"

struct numbers {
    uint64_t pages;
    uint64_t refused_full;
    uint64_t refused_client;
    uint64_t uptime_us;
};

static void
read_numbers(void *context, void *snapshot)
{
    memcpy(snapshot, context, sizeof(struct numbers));
}

static const struct metric_row rows[] = {
    {"pages", "", METRIC_KIND_GAUGE, "", "Pages.", offsetof(struct numbers, pages)},
    {"refused", "reason=\"full\"", METRIC_KIND_COUNTER, "", "Refusals.",
     offsetof(struct numbers, refused_full)},
    {"refused", "reason=\"client\"", METRIC_KIND_COUNTER, "", "Refusals.",
     offsetof(struct numbers, refused_client)},
    {"uptime_microseconds", "", METRIC_KIND_GAUGE, "microseconds", "Uptime.",
     offsetof(struct numbers, uptime_us)},
};

static struct numbers numbers = {7, 1, 2, 1500000};
static struct metrics *metrics;
static struct buf text;

static void
set_up(void)
{
    const struct metric_source source = {rows, sizeof(rows) / sizeof(rows[0]), read_numbers, 0};

    metrics = metrics_create(1);
    ck_assert_ptr_nonnull(metrics);
    ck_assert(metrics_register(metrics, &source, &numbers));
    buf_init(&text, 1 << 20);
}

static void
tear_down(void)
{
    metrics_destroy(metrics);
    buf_free(&text);
}

static void
assert_has(const char *lines)
{
    ck_assert_msg(strstr(buf_str(&text), lines), "no \"%s\" in:\n%s", lines, buf_str(&text));
}

static void
assert_has_not(const char *lines)
{
    ck_assert_msg(!strstr(buf_str(&text), lines), "\"%s\" in:\n%s", lines, buf_str(&text));
}

START_TEST(text_of_openmetrics)
{
    ck_assert(exposition_write(metrics, EXPOSITION_OPENMETRICS, &text));
    assert_has("# HELP sunproxy_pages Pages.\n# TYPE sunproxy_pages gauge\nsunproxy_pages 7\n");
    assert_has("# HELP sunproxy_refused Refusals.\n"
               "# TYPE sunproxy_refused counter\n"
               "sunproxy_refused_total{reason=\"full\"} 1\n"
               "sunproxy_refused_total{reason=\"client\"} 2\n");
    assert_has("# TYPE sunproxy_uptime_seconds gauge\n"
               "# UNIT sunproxy_uptime_seconds seconds\n"
               "sunproxy_uptime_seconds 1.5\n");
    assert_has("# UNIT sunproxy_served_bytes bytes\n");
    ck_assert_str_eq(buf_str(&text) + text.len - 6, "# EOF\n");
}
END_TEST

START_TEST(text_of_prometheus)
{
    ck_assert(exposition_write(metrics, EXPOSITION_PROMETHEUS, &text));
    assert_has("# HELP sunproxy_refused_total Refusals.\n"
               "# TYPE sunproxy_refused_total counter\n"
               "sunproxy_refused_total{reason=\"full\"} 1\n");
    assert_has_not("# UNIT");
    assert_has_not("# EOF");
}
END_TEST

START_TEST(a_histogram)
{
    metrics_observe(metrics, 0, HISTOGRAM_MISS_DURATION, 3);
    metrics_observe(metrics, 0, HISTOGRAM_MISS_DURATION, 2000000);
    ck_assert(exposition_write(metrics, EXPOSITION_OPENMETRICS, &text));
    assert_has("# TYPE sunproxy_miss_duration_seconds histogram\n");
    assert_has("sunproxy_miss_duration_seconds_bucket{le=\"0.000002\"} 0\n"
               "sunproxy_miss_duration_seconds_bucket{le=\"0.000004\"} 1\n");
    assert_has("sunproxy_miss_duration_seconds_bucket{le=\"1.048576\"} 1\n"
               "sunproxy_miss_duration_seconds_bucket{le=\"2.097152\"} 2\n");
    assert_has("sunproxy_miss_duration_seconds_bucket{le=\"+Inf\"} 2\n"
               "sunproxy_miss_duration_seconds_count 2\n"
               "sunproxy_miss_duration_seconds_sum 2.000003\n");
}
END_TEST

START_TEST(too_little_space_is_an_error)
{
    struct buf small;

    buf_init(&small, 100);
    ck_assert(!exposition_write(metrics, EXPOSITION_OPENMETRICS, &small));
    buf_free(&small);
}
END_TEST

static const struct {
    const char *accept;
    enum exposition format;
} choices[] = {
    {"", EXPOSITION_PROMETHEUS},
    {"*/*", EXPOSITION_PROMETHEUS},
    {"text/plain", EXPOSITION_PROMETHEUS},
    {"application/openmetrics-text", EXPOSITION_OPENMETRICS},
    {"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.5", EXPOSITION_OPENMETRICS},
    /* As Prometheus sends it. */
    {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
     "text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
     EXPOSITION_OPENMETRICS},
    {"application/openmetrics-text;q=0.1, text/plain;q=0.15", EXPOSITION_PROMETHEUS},
    {"Application/OpenMetrics-Text ; q=0", EXPOSITION_PROMETHEUS},
    {"application/openmetrics-text;q=x", EXPOSITION_PROMETHEUS},
};

START_TEST(the_choice_of_a_format)
{
    ck_assert_int_eq(exposition_choose(span_str(choices[_i].accept)), choices[_i].format);
    ck_assert_ptr_nonnull(strstr(exposition_media_type(choices[_i].format), "version="));
}
END_TEST

Suite *
unit_suite(void)
{
    TCase *tcase = tcase_create("openmetrics");
    Suite *suite = suite_create("openmetrics");

    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, text_of_openmetrics);
    tcase_add_test(tcase, text_of_prometheus);
    tcase_add_test(tcase, a_histogram);
    tcase_add_test(tcase, too_little_space_is_an_error);
    tcase_add_loop_test(tcase, the_choice_of_a_format, 0, sizeof(choices) / sizeof(choices[0]));
    suite_add_tcase(suite, tcase);
    return suite;
}
