/*
 * Chrome's History as real browsers of many versions wrote it. The counts were taken from the files
 * with other tools.
 */
#include "trace/trace.h"

#include <stdlib.h>

#include "tests/unit/unit.h"

static char why[512];

static const struct {
    const char *name;
    size_t visits;
    size_t joined;
    size_t urls; /* without fragments */
    size_t bases;
    unsigned busiest; /* per cent of the requests, to the busiest base URL */
} real[] = {
    {"chrome/browser-history-darwin-epic", 7, 7, 5, 3, 43},
    {"chrome/browserexport-chrome.sqlite", 6, 6, 2, 2, 83},
    {"chrome/grr-History3", 19, 19, 18, 6, 42},
    {"chrome/hindsight-10-History", 84, 84, 62, 17, 23},
    {"chrome/hindsight-30-History", 46, 46, 35, 10, 35},
    {"chrome/hindsight-60-History", 61, 61, 30, 6, 59},
    {"chrome/personal_search-History", 826, 48, 23, 10, 33},
    {"chrome/pesos-win-opera-History", 6, 6, 5, 5, 33},
    {"chrome/plaso-History", 69, 69, 53, 15, 38},
    {"chrome/velociraptor-ChromeHistory.sqlite", 2, 2, 1, 1, 100},
};

static unsigned
busiest_percent(const struct trace *trace)
{
    unsigned *counts = calloc(trace->url_count, sizeof(*counts));
    unsigned most = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        unsigned count = ++counts[trace->ids[i]];

        most = count > most ? count : most;
    }
    free(counts);
    return (unsigned)((most * 200 / trace->request_count + 1) / 2);
}

START_TEST(real_files)
{
    const char *path = unit_dataset(real[_i].name);
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *t;
    enum trace_error error = trace_load(path, &options, &t, why, sizeof(why));

    ck_assert_msg(error == TRACE_OK, "%s", why);
    ck_assert_str_eq(t->format, "chrome");
    ck_assert_uint_eq(t->request_count, real[_i].joined);
    ck_assert_uint_eq(t->counts.skipped_orphan, real[_i].visits - real[_i].joined);
    ck_assert_uint_eq(t->counts.skipped_scheme + t->counts.skipped_bad, 0);
    ck_assert_uint_eq(t->url_count, real[_i].urls);
    for (size_t i = 1; i < t->request_count; i++)
        ck_assert_int_le(t->times_us[i - 1], t->times_us[i]);
    trace_free(t);
    options.base_urls = true;
    ck_assert_int_eq(trace_load(path, &options, &t, why, sizeof(why)), TRACE_OK);
    ck_assert_uint_eq(t->url_count, real[_i].bases);
    ck_assert_uint_eq(busiest_percent(t), real[_i].busiest);
    trace_free(t);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("chrome_real");
    TCase *tcase = tcase_create("real");

    tcase_add_loop_test(tcase, real_files, 0, (int)(sizeof(real) / sizeof(real[0])));
    suite_add_tcase(suite, tcase);
    return suite;
}
