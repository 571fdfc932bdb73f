/*
 * Real traces of every format, with every filter off, against what other tools counted over all of
 * their lines; and the official totals of the World Cup's sample log.
 */
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/unit.h"

static char why[512];

static const struct {
    const char *name;
    const char *format;
    size_t requests;
    size_t urls;
    uint64_t bad;
    uint64_t orphans; /* requests whose URL the log does not have */
    uint64_t kilobytes;
    uint64_t empty; /* requests with a size of 0, or none */
} real[] = {
    {"firefox/plaso-places.sqlite", "firefox", 1, 1, 0, 0, 0, 0},
    {"har/pagexray-contentTypes-ferguson.har", "har", 174, 170, 0, 0, 7228, 18},
    {"har/pagexray-http-http1.1-chrome.har", "har", 13, 13, 0, 0, 228, 0},
    {"har/pagexray-redirect-assa.har", "har", 127, 56, 0, 0, 9044, 10},
    {"har/pagexray-requests-expressen.har", "har", 607, 328, 0, 0, 7267, 63},
    {"har/pagexray-www.nytimes.com.har", "har", 328, 296, 0, 0, 2440, 144},
    {"har/perfcascade-browsertime_h2_filamentgroup.com.har", "har", 44, 18, 0, 0, 674, 0},
    {"har/perfcascade-www.bbc.co.uk.160529_8V_7R3.har", "har", 1050, 474, 0, 0, 9226, 112},
    {"sunrpc-paper/dataset1-urls.txt", "urls", 997, 68, 0, 0, 0, 0},
    {"traces/cache2k-web07.trace.xz", "cache2k", 76118, 20484, 0, 0, 0, 0},
    {"traces/caffeine-adaptsize-request.trace.xz", "adaptsize", 66987, 36815, 0, 0, 485457, 0},
    {"traces/cloudPhysicsIO.oracleGeneral.bin", "oracle", 113872, 48974, 0, 0, 4368040, 0},
    {"traces/elastic-apache_logs.log", "access", 10000, 1498, 0, 0, 2747282, 669},
    {"traces/epa-http.txt", "access", 47727, 6557, 21, 0, 311863, 11028},
    {"traces/hurence-access.log", "access", 4000, 699, 0, 0, 91255, 272},
    /* 1023 connections without a request; they count as one more URL where they are counted. */
    {"traces/rita-dnscat2-http.log.gz", "zeek", 27204 - 1023, 8020 - 1, 0, 1023, 798418, 6630},
    {"traces/squid/beats-access1.log", "squid", 100, 83, 0, 0, 578, 0},
    {"traces/twitter-cluster52-1m.oracleGeneral.bin.zst", "oracle", 1000000, 143542, 0, 0, 204308,
     0},
    {"traces/wc98/test_log.gz", "wc98", 1000, 410, 0, 0, 5410, 152},
};

static struct trace *
load(const char *name, const struct trace_options *options)
{
    struct trace *t = NULL;
    enum trace_error error = trace_load(unit_dataset(name), options, &t, why, sizeof(why));

    ck_assert_msg(error == TRACE_OK, "%s", why);
    return t;
}

static struct trace_options
everything(void)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;

    options.methods = "all";
    options.statuses = "all";
    options.all_schemes = true;
    options.sizes_as_read = true;
    return options;
}

START_TEST(counts)
{
    struct trace_options options = everything();
    struct trace *t = load(real[_i].name, &options);
    uint64_t bytes = 0;
    uint64_t empty = 0;

    ck_assert_str_eq(t->format, real[_i].format);
    ck_assert_uint_eq(t->request_count, real[_i].requests);
    ck_assert_uint_eq(t->url_count, real[_i].urls);
    ck_assert_uint_eq(t->counts.skipped_bad, real[_i].bad);
    ck_assert_uint_eq(t->counts.skipped_orphan, real[_i].orphans);
    for (size_t i = 0; t->sizes && i < t->request_count; i++) {
        bool known = t->sizes[i] != TRACE_SIZE_UNKNOWN;

        bytes += known ? t->sizes[i] : 0;
        empty += !known || t->sizes[i] == 0;
    }
    ck_assert_uint_eq(bytes / 1000, real[_i].kilobytes);
    ck_assert_uint_eq(empty, real[_i].empty);
    trace_free(t);
}
END_TEST

/* The number behind a name in the totals that came with the log. */
static unsigned long long
total(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    ck_assert_msg(at != NULL, "no '%s' in the totals", name);
    return strtoull(at + strlen(name), NULL, 10);
}

START_TEST(official_totals)
{
    char text[1024] = "";
    FILE *file = fopen(unit_dataset("traces/wc98/test_log.check"), "re");
    struct trace_options options = everything();
    struct trace *t;
    uint64_t bytes = 0;
    uint64_t least_id = UINT64_MAX;
    uint64_t most_id = 0;
    uint32_t most_size = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    fclose(file);
    t = load("traces/wc98/test_log.gz", &options);
    for (size_t i = 0; i < t->request_count; i++) {
        uint32_t size = t->sizes[i] == TRACE_SIZE_UNKNOWN ? 0 : t->sizes[i];

        bytes += size;
        most_size = size > most_size ? size : most_size;
        if (i > 0)
            ck_assert_int_ge(t->times_us[i], t->times_us[i - 1]); /* Out of Order: 0 */
    }
    for (size_t i = 0; i < t->url_count; i++) {
        least_id = t->numbers[i] < least_id ? t->numbers[i] : least_id;
        most_id = t->numbers[i] > most_id ? t->numbers[i] : most_id;
    }
    ck_assert_uint_eq(t->request_count, total(text, "Total Requests:"));
    ck_assert_uint_eq(bytes, total(text, "Total Bytes:"));
    ck_assert_uint_eq(least_id, total(text, "Min Object ID:"));
    ck_assert_uint_eq(most_id, total(text, "Max Object ID:"));
    ck_assert_uint_eq(most_size, total(text, "Max Size:"));
    ck_assert_int_eq(t->times_us[0] / 1000000, (long long)total(text, "Min Time:"));
    ck_assert_int_eq(t->times_us[t->request_count - 1] / 1000000,
                     (long long)total(text, "Max Time:"));
    ck_assert_uint_eq(t->statuses[0], 200);
    trace_free(t);
}
END_TEST

/* What the defaults leave: GETs that were answered with the page, or with "not modified". */
START_TEST(defaults)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t = load("traces/epa-http.txt", &options);

    for (size_t i = 0; i < t->request_count; i++)
        ck_assert(t->statuses[i] == 200 || t->statuses[i] == 304);
    ck_assert_uint_eq(t->request_count + t->counts.skipped_method + t->counts.skipped_status +
                          t->counts.skipped_redirect,
                      47727);
    ck_assert_uint_eq(t->request_count, 40591);
    ck_assert_uint_eq(t->counts.skipped_redirect, 4505);
    trace_free(t);
    options.redirects = TRACE_REDIRECTS_KEEP;
    t = load("traces/epa-http.txt", &options);
    ck_assert_uint_eq(t->request_count, 40591 + 4505);
    trace_free(t);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("real traces");
    TCase *tcase = tcase_create("real");

    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, counts, 0, (int)(sizeof(real) / sizeof(real[0])));
    tcase_add_test(tcase, official_totals);
    tcase_add_test(tcase, defaults);
    suite_add_tcase(suite, tcase);
    return suite;
}
