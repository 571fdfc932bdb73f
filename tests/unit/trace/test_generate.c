/*
 * Made-up traces, and what is found out about traces: the one is held against the other.
 */
#include "trace/generate.h"

#include <math.h>
#include <stdlib.h>

#include "tests/unit/trace/loading.h"
#include "trace/facts.h"
#include "trace/random.h"

static char why[256];

static struct trace *
make_with(const char *name, const struct generate_options *options, uint8_t **writes)
{
    struct trace *t = NULL;
    enum trace_error error =
        generate_trace(generate_find(name), options, &t, writes, why, sizeof(why));

    ck_assert_msg(error == TRACE_OK, "%s", why);
    return t;
}

/* With the workload's defaults; all of it reads, or the writes are not looked at. */
static struct trace *
make(const char *name, uint64_t seed)
{
    struct generate_options options = generate_find(name)->defaults;
    uint8_t *writes;
    struct trace *t;

    options.seed = seed;
    t = make_with(name, &options, &writes);
    free(writes);
    return t;
}

START_TEST(the_same_seed_makes_the_same)
{
    const char *name = generate_workloads[_i].name;
    struct trace *a = make(name, 7);
    struct trace *b = make(name, 7);
    struct trace *c = make(name, 8);

    ck_assert_uint_eq(a->request_count, b->request_count);
    ck_assert_mem_eq(a->ids, b->ids, a->request_count * sizeof(*a->ids));
    ck_assert_mem_eq(a->numbers, b->numbers, a->url_count * sizeof(*a->numbers));
    ck_assert(a->url_count != c->url_count ||
              memcmp(a->numbers, c->numbers, a->url_count * sizeof(*a->numbers)) != 0);
    ck_assert_ptr_null(a->times_us);
    trace_free(a);
    trace_free(b);
    trace_free(c);
}
END_TEST

/* Each rank's share against the law's, by Pearson's test at five standard deviations. */
static void
check_law(const struct trace *t, size_t n, double constant)
{
    double *counts = calloc(n, sizeof(*counts));
    double weight = 0;
    double chi = 0;

    ck_assert_uint_le(t->url_count, n);
    for (size_t i = 0; i < t->request_count; i++) {
        uint64_t rank = t->numbers[t->ids[i]];

        ck_assert(rank >= 1 && rank <= n);
        counts[rank - 1]++;
    }
    for (size_t r = 1; r <= n; r++)
        weight += pow((double)r, -constant);
    for (size_t r = 1; r <= n; r++) {
        double expected = (double)t->request_count * pow((double)r, -constant) / weight;

        chi += (counts[r - 1] - expected) * (counts[r - 1] - expected) / expected;
    }
    free(counts);
    if (n > 1)
        ck_assert_msg(chi < (double)n - 1 + 5 * sqrt(2 * ((double)n - 1)), "chi %g of %zu", chi, n);
}

static const struct {
    uint64_t urls;
    double constant;
} laws[] = {{1, 1}, {2, 1}, {100, 0}, {100, 0.5}, {300, 0.99}, {300, 1}, {300, 1.01}, {50, 2}};

START_TEST(zipf_is_the_law)
{
    struct generate_options options = {.requests = 200000,
                                       .urls = laws[_i].urls,
                                       .constant = laws[_i].constant,
                                       .reads = 1,
                                       .seed = 3};
    uint8_t *writes;
    struct trace *t = make_with("zipf", &options, &writes);

    ck_assert_ptr_null(writes);
    check_law(t, laws[_i].urls, laws[_i].constant);
    trace_free(t);
    if (laws[_i].constant <= 0) {
        t = make_with("uniform", &options, &writes);
        check_law(t, laws[_i].urls, 0);
        trace_free(t);
    }
}
END_TEST

START_TEST(thrift)
{
    struct trace *t = make("thrift-random", 1);

    ck_assert_uint_eq(t->request_count, 150);
    ck_assert_uint_le(t->url_count, 25);
    trace_free(t);
    t = make("thrift-repeated", 1);
    ck_assert_uint_eq(t->request_count, 150);
    ck_assert_uint_eq(t->url_count, 25);
    for (size_t set = 0; set < 5; set++) {
        unsigned counts[25] = {0};

        for (size_t i = set * 30; i < set * 30 + 30; i++)
            counts[t->numbers[t->ids[i]] - 1]++;
        for (size_t page = 0; page < 25; page++)
            ck_assert_uint_eq(counts[page], page / 5 == set ? 6 : 0);
    }
    /* A page's size is always the same, and is some size. */
    for (size_t i = 0; i < 150; i++) {
        ck_assert_uint_gt(t->sizes[i], 0);
        for (size_t k = 0; k < i; k++)
            ck_assert(t->ids[i] != t->ids[k] || t->sizes[i] == t->sizes[k]);
    }
    trace_free(t);
}
END_TEST

START_TEST(ycsb)
{
    static const struct {
        const char *name;
        double reads;
    } mixes[] = {{"ycsb-a", 0.5}, {"ycsb-b", 0.95}, {"ycsb-d", 0.95}};

    for (size_t i = 0; i < 3; i++) {
        struct generate_options options = generate_find(mixes[i].name)->defaults;
        uint8_t *writes;
        struct trace *t = make_with(mixes[i].name, &options, &writes);
        double written = 0;

        ck_assert_ptr_nonnull(writes);
        for (size_t k = 0; k < t->request_count; k++)
            written += writes[k];
        ck_assert_double_eq_tol(written / (double)t->request_count, 1 - mixes[i].reads, 0.01);
        ck_assert_uint_eq(t->sizes[0], 1000);
        /* Inserts are of pages that were not there, and what is newest is read most. */
        if (strcmp(mixes[i].name, "ycsb-d") == 0) {
            uint64_t newest = options.urls;
            size_t just_inserted = 0;

            for (size_t k = 0; k < t->request_count; k++) {
                uint64_t page = t->numbers[t->ids[k]];

                if (writes[k])
                    ck_assert_uint_eq(page, ++newest);
                else
                    just_inserted += page == newest;
                ck_assert_uint_le(page, newest);
            }
            ck_assert_uint_gt(just_inserted, t->request_count / 20);
        }
        free(writes);
        trace_free(t);
    }
}
END_TEST

START_TEST(ycsb_scans)
{
    struct generate_options options = generate_find("ycsb-e")->defaults;
    uint8_t *writes;
    struct trace *t;
    uint64_t pages = options.urls, before = 0, length = 0, longest = 0;
    double scans = 0, inserts = 0, popular = 0;
    struct trace_facts facts;

    t = make_with("ycsb-e", &options, &writes);
    for (size_t k = 0; k < t->request_count; k++) {
        uint64_t page = t->numbers[t->ids[k]];

        if (writes[k]) {
            ck_assert_uint_eq(page, ++pages);
            inserts++;
        }
        ck_assert_uint_le(page, pages);
        length = !writes[k] && length != 0 && page == before + 1 ? length + 1 : !writes[k];
        scans += length == 1;
        longest = length > longest ? length : longest;
        before = page;
    }
    ck_assert_double_eq_tol(scans / (scans + inserts), 0.95, 0.015);
    ck_assert_double_eq_tol((double)t->request_count / scans, 50.5, 3);
    /* Seldom does one scan begin where the last one ended. */
    ck_assert(longest >= 98 && longest <= 200);
    /* Where the most popular scan begins, and not at the first page. */
    ck_assert_int_eq(trace_facts_make(t, 1, &facts), TRACE_OK);
    popular = (double)facts.busiest[0].requests;
    ck_assert_double_ge(popular, 0.08 * scans);
    ck_assert_uint_gt(t->numbers[facts.busiest[0].id], 100);
    trace_facts_free(&facts);
    free(writes);
    trace_free(t);
    /* Where there is one page, a scan ends with it. */
    options = (struct generate_options){.requests = 50, .urls = 1, .reads = 1};
    t = make_with("ycsb-e", &options, &writes);
    ck_assert_uint_eq(t->url_count, 1);
    trace_free(t);
}
END_TEST

START_TEST(ycsb_modifies)
{
    struct generate_options options = generate_find("ycsb-f")->defaults;
    uint8_t *writes;
    struct trace *t = make_with("ycsb-f", &options, &writes);
    double written = 0;

    ck_assert_uint_eq(writes[0], 0);
    for (size_t k = 1; k < t->request_count; k++) {
        if (writes[k])
            ck_assert(t->ids[k] == t->ids[k - 1] && !writes[k - 1]);
        written += writes[k];
    }
    /* Of two operations one has two requests. */
    ck_assert_double_eq_tol(written / (double)t->request_count, 1.0 / 3, 0.01);
    free(writes);
    trace_free(t);
}
END_TEST

START_TEST(sizes_and_times)
{
    struct generate_options options = {
        .requests = 20000, .urls = 20000, .reads = 1, .rate = 4, .seed = 5};
    static const struct {
        const char *law;
        double median, low, high;
    } sizes[] = {{"fixed:7", 7, 7, 7},
                 {"uniform:100:300", 200, 100, 300},
                 {"lognormal:45000:0.8", 45000, 100, 4e6},
                 {"pareto:1000:1.5", 1587, 1000, 4294967294.0}};

    for (size_t i = 0; i < 4; i++) {
        struct trace_facts facts;
        uint8_t *writes;
        struct trace *t;

        ck_assert(generate_parse_sizes(sizes[i].law, &options.sizes, why, sizeof(why)));
        t = make_with("uniform", &options, &writes);
        ck_assert_int_eq(t->times_us[1000], 250000000);
        ck_assert_int_eq(trace_facts_make(t, 0, &facts), TRACE_OK);
        ck_assert_double_eq_tol(facts.url_sizes.p50 / sizes[i].median, 1, 0.05);
        ck_assert_double_ge(facts.url_sizes.min, sizes[i].low);
        ck_assert_double_le(facts.url_sizes.max, sizes[i].high);
        ck_assert_uint_eq(facts.size_changes, 0);
        trace_facts_free(&facts);
        trace_free(t);
    }
}
END_TEST

static const struct {
    const char *law;
    const char *meant;
} no_laws[] = {
    {"", "none"},
    {"fixed", "fixed:BYTES"},
    {"fixed:", "fixed:BYTES"},
    {"fixed:-1", "fixed:BYTES"},
    {"fixed:x", "fixed:BYTES"},
    {"fixed:1:2", "fixed:BYTES"},
    {"none:1", "none"},
    {"uniform:5", "uniform:LOW:HIGH"},
    {"uniform:5:4", "uniform:LOW:HIGH"},
    {"pareto:5:0", "pareto:LEAST:SHAPE"},
    {"fixed:nan", "fixed:BYTES"},
    {"lognormal:1e99:1", "lognormal:MEDIAN:SIGMA"},
    {"fixd:5", "fixed:BYTES"},
    {"lognrmal:5:1", "lognormal:MEDIAN:SIGMA"},
    {"lognormal and much more of it:5:1", "lognormal:MEDIAN:SIGMA"},
};

START_TEST(no_law)
{
    struct generate_sizes sizes;
    char wanted[64];

    ck_assert_msg(!generate_parse_sizes(no_laws[_i].law, &sizes, why, sizeof(why)), "%s",
                  no_laws[_i].law);
    snprintf(wanted, sizeof(wanted), "did you mean %s?", no_laws[_i].meant);
    ck_assert_msg(strstr(why, wanted) != NULL, "%s", why);
}
END_TEST

START_TEST(what_cannot_be_made)
{
    struct generate_options options = {.requests = 12, .urls = 10, .reads = 1};
    struct trace *t;
    uint8_t *writes;

    ck_assert_int_eq(
        generate_trace(generate_find("thrift-repeated"), &options, &t, &writes, why, sizeof(why)),
        TRACE_BAD_OPTION);
    ck_assert_ptr_nonnull(strstr(why, "multiples of five"));
    options.constant = NAN;
    ck_assert_int_eq(generate_trace(generate_find("zipf"), &options, &t, &writes, why, sizeof(why)),
                     TRACE_BAD_OPTION);
    ck_assert_ptr_null(t);
    ck_assert_ptr_null(generate_find("poetry"));
}
END_TEST

static const struct {
    struct generate_options options;
    const char *why;
} impossible[] = {
    {{.requests = 1, .urls = 0, .reads = 1}, "from 1 to 4294967294 URLs"},
    {{.requests = 1, .urls = UINT32_MAX, .reads = 1}, "from 1 to 4294967294 URLs"},
    {{.requests = 1, .urls = 1, .constant = 10.01, .reads = 1}, "constant of Zipf's law"},
    {{.requests = 1, .urls = 1, .constant = -0.01, .reads = 1}, "constant of Zipf's law"},
    {{.requests = 1, .urls = 1, .reads = 1.01}, "the share of reads is from 0 to 1"},
    {{.requests = 1, .urls = 1, .reads = -0.01}, "the share of reads is from 0 to 1"},
    {{.requests = 1, .urls = 1, .reads = 1, .rate = -1}, "the rate is from 0 to 1000000000"},
    {{.requests = 1, .urls = 1, .reads = 1, .rate = 1.01e9}, "the rate is from 0 to 1000000000"},
};

START_TEST(options_out_of_range)
{
    struct trace *t;
    uint8_t *writes;

    ck_assert_int_eq(generate_trace(generate_find("ycsb-a"), &impossible[_i].options, &t, &writes,
                                    why, sizeof(why)),
                     TRACE_BAD_OPTION);
    ck_assert_msg(strstr(why, impossible[_i].why) != NULL, "%s", why);
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(random_numbers)
{
    struct random_numbers r;
    unsigned counts[3] = {0};

    random_seed(&r, 1);
    for (int i = 0; i < 30000; i++) {
        double u = random_unit(&r);

        ck_assert(u >= 0 && u < 1);
        counts[random_below(&r, 3)]++;
    }
    for (int i = 0; i < 3; i++)
        ck_assert(counts[i] > 9500 && counts[i] < 10500);
    ck_assert_uint_eq(random_below(&r, 1), 0);
}
END_TEST

/* ---- facts --------------------------------------------------------------------------------- */

START_TEST(facts_of_a_small_trace)
{
    struct trace *t = loading_text("time,url,size\n5,http://b.test/,10\n4,http://a.test/,1\n"
                                   "6,http://a.test/,3\n7,http://b.test/,10\n9,http://c.test/,100\n"
                                   "8,http://a.test/,3\n8,http://d.test/,\n",
                                   TRACE_OPTIONS_DEFAULT);
    struct trace_facts f;

    ck_assert_int_eq(trace_facts_make(t, 3, &f), TRACE_OK);
    ck_assert_uint_eq(f.requests, 7);
    ck_assert_uint_eq(f.urls, 4);
    ck_assert_uint_eq(f.one_hit, 2);
    ck_assert_uint_eq(f.busiest_count, 3);
    ck_assert_uint_eq(f.busiest[0].id, 1);
    ck_assert_uint_eq(f.busiest[0].requests, 3);
    ck_assert_uint_eq(f.busiest[1].id, 0);
    ck_assert_uint_eq(f.busiest[2].id, 2); /* ties by number */
    ck_assert_double_eq_tol(trace_totals_hit_ratio(&f.totals), 3.0 / 7, 1e-12);
    ck_assert_uint_eq(f.totals.bytes, 127);
    ck_assert_uint_eq(f.totals.distinct_bytes, 111); /* each URL as it was first */
    ck_assert_uint_eq(f.size_changes, 1);
    ck_assert_uint_eq(f.unknown_sizes, 1);
    ck_assert_double_eq_tol(trace_totals_byte_hit_ratio(&f.totals), 16.0 / 127, 1e-12);
    ck_assert_uint_eq(f.request_sizes.count, 6);
    ck_assert_uint_eq(f.request_sizes.p50, 3);
    ck_assert_uint_eq(f.request_sizes.p75, 10);
    ck_assert_uint_eq(f.request_sizes.max, 100);
    ck_assert_uint_eq(f.url_sizes.count, 3);
    ck_assert_uint_eq(f.url_sizes.min, 3);
    ck_assert_int_eq(f.first_us, 4000000);
    ck_assert_int_eq(f.last_us, 9000000);
    ck_assert_uint_eq(f.out_of_order, 2);
    trace_facts_free(&f);
    trace_free(t);
}
END_TEST

/* Counts that follow the law give it back, on few ranks and on many. */
START_TEST(fits)
{
    static const double constants[] = {0, 0.5, 0.8, 1, 1.2, 2.5};
    static const size_t sizes[] = {10, 1000, 100000};

    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        for (size_t k = 0; k < 3; k++) {
            uint32_t *counts = malloc(sizes[k] * sizeof(*counts));

            for (size_t r = 0; r < sizes[k]; r++)
                counts[r] = (uint32_t)(4e9 * pow((double)r + 1, -constants[i]) + 0.5);
            ck_assert_double_eq_tol(trace_fit_zipf(counts, sizes[k]), constants[i], 0.002);
            free(counts);
        }
    }
    ck_assert_double_eq_tol(trace_fit_zipf(NULL, 0), 0, 1e-9);
}
END_TEST

START_TEST(the_fit_finds_what_was_drawn)
{
    struct generate_options options = {
        .requests = 300000, .urls = 1000, .constant = 0.9, .reads = 1, .seed = 2};
    uint8_t *writes;
    struct trace *t = make_with("zipf", &options, &writes);
    struct trace_facts f;

    ck_assert_int_eq(trace_facts_make(t, 0, &f), TRACE_OK);
    ck_assert_double_eq_tol(f.zipf, 0.9, 0.02);
    trace_facts_free(&f);
    trace_free(t);
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("generate");
    TCase *tcase = tcase_create("generate");

    tcase_add_checked_fixture(tcase, scratch_make, scratch_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, the_same_seed_makes_the_same, 0, 8);
    tcase_add_loop_test(tcase, zipf_is_the_law, 0, COUNT(laws));
    tcase_add_test(tcase, thrift);
    tcase_add_test(tcase, ycsb);
    tcase_add_test(tcase, ycsb_scans);
    tcase_add_test(tcase, ycsb_modifies);
    tcase_add_test(tcase, sizes_and_times);
    tcase_add_loop_test(tcase, no_law, 0, COUNT(no_laws));
    tcase_add_test(tcase, what_cannot_be_made);
    tcase_add_loop_test(tcase, options_out_of_range, 0,
                        (int)(sizeof(impossible) / sizeof(impossible[0])));
    tcase_add_test(tcase, random_numbers);
    tcase_add_test(tcase, facts_of_a_small_trace);
    tcase_add_test(tcase, fits);
    tcase_add_test(tcase, the_fit_finds_what_was_drawn);
    suite_add_tcase(suite, tcase);
    return suite;
}
