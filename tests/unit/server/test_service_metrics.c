/* The table of all metrics of the daemon: names, labels and families; the numbers of the cache. */
#define UNIT_STARTS_NO_THREAD

#include "server/service_metrics.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/logs/origin_report.h"
#include "server/service.h"
#include "tests/unit/unit.h"

static struct service service;
static struct metrics *metrics;

static void
set_up(void)
{
    service = (struct service){.report = origin_report_create()};
    metrics = metrics_create(1);
    ck_assert(service.report && metrics);
}

static void
tear_down(void)
{
    metrics_destroy(metrics);
    origin_report_destroy(service.report);
}

static uint64_t
value(const char *name)
{
    const struct metric_sample *samples;
    size_t count = metrics_samples(metrics, &samples);
    uint64_t *values = calloc(count, sizeof(*values)), found = 0;

    metrics_read(metrics, values);
    for (size_t i = 0; i < count; i++)
        if (strcmp(samples[i].name, name) == 0)
            found = values[i];
    free(values);
    return found;
}

START_TEST(the_rows_of_the_cache)
{
    struct cache_config config = {.capacity_pages = 7, .capacity_bytes = 1 << 20, .shards = 3};
    enum cache_error error;
    char why[128];
    struct cache *cache;

    ck_assert(policy_parse("lru", &config.policy, why, sizeof(why)));
    cache = cache_create(&config, &error);
    ck_assert_ptr_nonnull(cache);
    ck_assert(metrics_register(metrics, &metric_source_cache, cache));
    ck_assert_uint_eq(value("cache_capacity_pages"), 7);
    ck_assert_uint_eq(value("cache_capacity_bytes"), 1 << 20);
    ck_assert_uint_eq(value("cache_shards"), 3);
    ck_assert_uint_eq(value("cache_pages"), 0);
    cache_destroy(cache);
}
END_TEST

/* ---- the table --------------------------------------------------------------------------------
 */

static bool
ends_in(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

/* OpenMetrics 1.0: a name of a family, without what the format adds to it; the unit is its end. */
static void
check_name(const struct metric_row *row)
{
    static const char *const reserved[] = {"_total", "_bucket",  "_sum", "_count",
                                           "_gsum",  "_created", "_info"};
    char end[32];

    ck_assert_msg(islower((unsigned char)row->name[0]), "%s", row->name);
    ck_assert_msg(strspn(row->name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(row->name),
                  "%s", row->name);
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
        ck_assert_msg(!ends_in(row->name, reserved[i]), "%s", row->name);
    snprintf(end, sizeof(end), "_%s", row->unit);
    if (row->unit[0])
        ck_assert_msg(ends_in(row->name, end), "%s is in %s", row->name, row->unit);
}

/* name="value", with a value that needs no escapes. */
static void
check_labels(const struct metric_row *row)
{
    size_t name = strspn(row->labels, "abcdefghijklmnopqrstuvwxyz_");
    const char *rest = row->labels + name;
    size_t value_len;

    if (row->labels[0] == '\0')
        return;
    ck_assert_msg(name > 0 && strncmp(rest, "=\"", 2) == 0, "%s{%s}", row->name, row->labels);
    value_len = strspn(rest + 2, "abcdefghijklmnopqrstuvwxyz0123456789_");
    ck_assert_msg(value_len > 0 && strcmp(rest + 2 + value_len, "\"") == 0, "%s{%s}", row->name,
                  row->labels);
}

START_TEST(every_row_has_a_valid_name_and_a_help_sentence)
{
    size_t rows;

    ck_assert(service_metrics_register(metrics, &service));
    rows = metrics_row_count(metrics);
    ck_assert_uint_gt(rows, (size_t)METRIC_COUNTERS + HISTOGRAMS);
    for (size_t i = 0; i < rows; i++) {
        const struct metric_row *row = metrics_row(metrics, i);

        if (!row)
            continue;
        check_name(row);
        check_labels(row);
        ck_assert_msg(isupper((unsigned char)row->help[0]) || isdigit((unsigned char)row->help[0]),
                      "%s: %s", row->name, row->help);
        ck_assert_msg(ends_in(row->help, "."), "%s: %s", row->name, row->help);
    }
}
END_TEST

START_TEST(rows_of_one_name_are_one_family)
{
    size_t rows;

    ck_assert(service_metrics_register(metrics, &service));
    rows = metrics_row_count(metrics);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = i + 1; j < rows; j++) {
            const struct metric_row *a = metrics_row(metrics, i), *b = metrics_row(metrics, j);

            if (!a || !b || strcmp(a->name, b->name) != 0)
                continue;
            ck_assert_ptr_eq(metrics_row(metrics, j - 1)->name, b->name);
            ck_assert_str_ne(a->labels, b->labels);
            ck_assert(a->labels[0] && b->labels[0]);
            ck_assert_int_eq(a->kind, b->kind);
            ck_assert_str_eq(a->unit, b->unit);
            ck_assert_str_eq(a->help, b->help);
        }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/service_metrics");
    TCase *tc = tcase_create("metrics");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_rows_of_the_cache);
    tcase_add_test(tc, every_row_has_a_valid_name_and_a_help_sentence);
    tcase_add_test(tc, rows_of_one_name_are_one_family);
    suite_add_tcase(suite, tc);
    return suite;
}
