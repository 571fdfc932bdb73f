/*
 * The traces that ship with the project, read by our own reader: with cache and LRU they have the
 * figures that were published.
 */
#include <stdlib.h>

#include "tests/unit/cache/pages.h"
#include "trace/trace.h"

#define FOLDER "datasets/"

static char why[512];

static struct trace *
load(const char *path, struct trace_options options)
{
    struct trace *trace = NULL;
    enum trace_error error = trace_load(path, &options, &trace, why, sizeof(why));

    ck_assert_msg(error == TRACE_OK, "%s", why);
    ck_assert_uint_eq(
        trace->counts.skipped_bad + trace->counts.skipped_orphan + trace->counts.skipped_scheme, 0);
    return trace;
}

static double
percent(size_t part, size_t whole)
{
    return 100.0 * (double)part / (double)whole;
}

static double
lru_percent(const struct trace *trace, uint64_t capacity)
{
    struct cache *cache = pages_cache("lru", capacity, 0, 1);
    size_t hits = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        const char *url = trace->urls[trace->ids[i]].ptr;

        if (pages_hit(cache, url))
            hits++;
        else
            ck_assert_int_eq(pages_store(cache, url, 10), CACHE_STORED);
    }
    cache_destroy(cache);
    return percent(hits, trace->request_count);
}

/* The requests to the busiest URL, whose id is in *id. */
static size_t
busiest(const struct trace *trace, size_t *id)
{
    size_t *counts = calloc(trace->url_count, sizeof(*counts));
    size_t most = 0;

    for (size_t i = 0; i < trace->request_count; i++) {
        size_t count = ++counts[trace->ids[i]];

        if (count > most) {
            most = count;
            *id = trace->ids[i];
        }
    }
    free(counts);
    return most;
}

static int64_t
size_of(const struct trace *sizes, struct span url)
{
    for (size_t i = 0; i < sizes->url_count; i++) {
        if (span_equal(sizes->urls[i], url))
            return sizes->sizes[i];
    }
    ck_abort_msg("no size for %s", url.ptr);
    return -1;
}

/* Per cent of the requests that are for pages of at most 20 KB. */
static double
small_percent(const struct trace *trace, const struct trace *sizes)
{
    size_t small = 0;

    for (size_t i = 0; i < trace->request_count; i++)
        small += size_of(sizes, trace->urls[trace->ids[i]]) <= 20000;
    return percent(small, trace->request_count);
}

static const struct {
    const char *history;
    const char *sizes;
    size_t requests;
    size_t urls;
    size_t busiest;
    double small;          /* of the requests, per cent: Figure 6 has a little more */
    int64_t busiest_bytes; /* -1: not published */
} published[] = {
    {FOLDER "dataset1/History", FOLDER "dataset1/sizes.tsv", 997, 68, 446, 75.0, 20000},
    {FOLDER "dataset2/History", FOLDER "dataset2/sizes.tsv", 985, 74, 233, 62.0, -1},
};

START_TEST(the_histories_are_as_published)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    struct trace *sizes = load(published[_i].sizes, options);
    struct trace *t = load(published[_i].history, options);
    size_t id = 0;
    double small;

    ck_assert_str_eq(t->format, "chrome");
    ck_assert_uint_eq(t->request_count, published[_i].requests);
    ck_assert_uint_eq(t->url_count, published[_i].urls);
    ck_assert_uint_eq(busiest(t, &id), published[_i].busiest);
    small = small_percent(t, sizes);
    ck_assert_double_gt(small, published[_i].small);
    ck_assert_double_lt(small, published[_i].small + 0.5);
    if (published[_i].busiest_bytes >= 0)
        ck_assert_int_eq(size_of(sizes, t->urls[id]), published[_i].busiest_bytes);
    ck_assert_uint_eq(sizes->url_count, t->url_count);
    trace_free(t);
    trace_free(sizes);
    options.base_urls = true; /* they are base URLs already */
    t = load(published[_i].history, options);
    ck_assert_uint_eq(t->url_count, published[_i].urls);
    trace_free(t);
}
END_TEST

START_TEST(lru_hits_as_often_as_in_the_paper)
{
    struct trace *t = load(FOLDER "dataset1/History", TRACE_OPTIONS_DEFAULT);

    ck_assert_double_eq_tol(lru_percent(t, 7), 85.6, 1.0);
    ck_assert_double_eq_tol(lru_percent(t, 14), 90.5, 1.0);
    trace_free(t);
}
END_TEST

/* The bytes of the pages of some requests, each page once. */
static int64_t
distinct_bytes(const struct trace *trace, size_t first, size_t end)
{
    bool *seen = calloc(trace->url_count, sizeof(*seen));
    int64_t bytes = 0;

    for (size_t i = first; i < end; i++) {
        if (!seen[trace->ids[i]])
            bytes += trace->sizes[i];
        seen[trace->ids[i]] = true;
    }
    free(seen);
    return bytes;
}

START_TEST(the_workloads_of_the_thrift_study)
{
    struct trace *random = load(FOLDER "thrift/random.urls", TRACE_OPTIONS_DEFAULT);
    struct trace *repeated = load(FOLDER "thrift/repeated.urls", TRACE_OPTIONS_DEFAULT);

    ck_assert_uint_eq(random->request_count, 150);
    ck_assert_uint_le(random->url_count, 25);
    ck_assert_uint_eq(repeated->request_count, 150);
    ck_assert_uint_eq(repeated->url_count, 25);
    /* Within its set a page stays: only the first of its six requests misses. */
    ck_assert_double_eq_tol(lru_percent(repeated, 5), 100.0 * 125 / 150, 0.01);
    for (size_t i = 0; i < repeated->url_count; i++)
        ck_assert_int_gt(repeated->sizes[i], 0);
    /* Each set fits into the cache for which the study states the optimum; all pages do not fit
       into its largest one. */
    for (size_t set = 0; set < 5; set++)
        ck_assert_int_le(distinct_bytes(repeated, set * 30, set * 30 + 30), 192 << 10);
    ck_assert_int_gt(distinct_bytes(repeated, 0, 150), 256 << 10);
    ck_assert_int_gt(distinct_bytes(random, 0, 150), 256 << 10);
    trace_free(random);
    trace_free(repeated);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("datasets");
    TCase *tcase = tcase_create("shipped");

    tcase_add_loop_test(tcase, the_histories_are_as_published, 0,
                        (int)(sizeof(published) / sizeof(published[0])));
    tcase_add_test(tcase, lru_hits_as_often_as_in_the_paper);
    tcase_add_test(tcase, the_workloads_of_the_thrift_study);
    suite_add_tcase(suite, tcase);
    return suite;
}
