/*
 * Every policy in the simulator on the first data set that ships with the project, in pages and in
 * bytes. With SUNPROXY_POLICY=NAME (make check-policy) that policy's hit ratios are printed.
 */
#include <inttypes.h>
#include <stdio.h>

#include "policies/policy.h"
#include "sim/sim.h"
#include "tests/unit/policies/wanted.h"
#include "tests/unit/unit.h"
#include "trace/trace.h"

#define TRACE "datasets/dataset1/History"
#define SIZES "datasets/dataset1/sizes.tsv"
#define SHARES 4u

static const double shares[SHARES] = {0.1, 0.2, 0.5, 1.0};

static struct trace *trace;
static struct sim_trace pages, sized;
static uint32_t *next;
static uint64_t all_bytes;

/* Lines of a URL, a tab and its bytes. */
static uint32_t *
read_sizes(void)
{
    FILE *file = fopen(SIZES, "r");
    uint32_t *by_url = calloc(trace->url_count, sizeof(*by_url));
    uint32_t *by_request = calloc(trace->request_count, sizeof(*by_request));
    char url[2048];
    uint32_t bytes;

    ck_assert(file && by_url && by_request);
    while (fscanf(file, "%2047s %" SCNu32, url, &bytes) == 2) {
        for (size_t i = 0; i < trace->url_count; i++)
            if (span_equal(trace->urls[i], span_str(url)))
                by_url[i] = bytes;
    }
    for (size_t i = 0; i < trace->request_count; i++)
        by_request[i] = by_url[trace->ids[i]];
    fclose(file);
    free(by_url);
    return by_request;
}

/* Of all pages, each at its first request. */
static uint64_t
count_bytes(void)
{
    bool *seen = calloc(sized.page_count, sizeof(*seen));
    uint64_t bytes = 0;

    ck_assert_ptr_nonnull(seen);
    for (size_t i = 0; i < sized.request_count; i++) {
        if (!seen[sized.ids[i]])
            bytes += sized.sizes[i];
        seen[sized.ids[i]] = true;
    }
    free(seen);
    return bytes;
}

static void
load(void)
{
    struct trace_options options = TRACE_OPTIONS_DEFAULT;
    char why[256] = "";

    ck_assert_msg(trace_load(TRACE, &options, &trace, why, sizeof(why)) == TRACE_OK, "%s", why);
    pages = (struct sim_trace){.request_count = trace->request_count,
                               .ids = trace->ids,
                               .page_count = trace->url_count,
                               .keys = trace->keys};
    next = sim_next(&pages);
    ck_assert_ptr_nonnull(next);
    pages.next = next;
    sized = pages;
    sized.sizes = read_sizes();
    all_bytes = count_bytes();
}

static void
unload(void)
{
    free((void *)(uintptr_t)sized.sizes);
    free(next);
    trace_free(trace);
}

static struct sim_result
simulate(const struct policy_ops *ops, const struct sim_trace *simulated, uint64_t capacity)
{
    struct sim_config config = {.spec = policy_spec_of(ops),
                                .capacity_pages = simulated->sizes ? 0 : capacity,
                                .capacity_bytes = simulated->sizes ? capacity : 0,
                                .seed = 1};
    struct sim_result result, again;

    ck_assert_int_eq(sim_run(simulated, &config, NULL, &result), SIM_OK);
    ck_assert_int_eq(sim_run(simulated, &config, NULL, &again), SIM_OK);
    ck_assert_uint_eq(result.hits, again.hits);
    ck_assert_uint_eq(result.bytes_hit, again.bytes_hit);
    return result;
}

/*
 * A policy hits, no more often than an infinite cache, and as often as that where the capacity is
 * many times all pages (a part of the cache then holds all of them).
 */
static void
check_policy(const struct policy_ops *ops, const struct sim_trace *simulated, const char *unit)
{
    /* Of an infinite cache: all requests but the first one of each page. */
    uint64_t most = simulated->request_count - simulated->page_count;
    uint64_t whole = simulated->sizes ? all_bytes : simulated->page_count;

    for (unsigned i = 0; i < SHARES; i++) {
        uint64_t capacity = (uint64_t)((double)whole * shares[i]);
        struct sim_result result = simulate(ops, simulated, capacity);

        ck_assert_msg(result.hits > 0 && result.hits <= most, "%s: %" PRIu64 " hits", ops->name,
                      result.hits);
        if (getenv(WANTED_VARIABLE))
            printf("%s, %9" PRIu64 " %s: hit ratio %5.2f %%, byte hit ratio %5.2f %%\n", ops->name,
                   capacity, unit, 100 * result.hit_ratio, 100 * result.byte_hit_ratio);
    }
    ck_assert_uint_eq(simulate(ops, simulated, 1000 * whole).hits, most);
}

START_TEST(every_policy_on_dataset1)
{
    unsigned checked = 0;

    load();
    for (size_t p = 0; policies[p]; p++) {
        if (!policy_is_wanted(policies[p]->name))
            continue;
        check_policy(policies[p], &pages, "pages");
        check_policy(policies[p], &sized, "bytes");
        checked++;
    }
    ck_assert_msg(checked > 0, "there is no policy %s", getenv(WANTED_VARIABLE));
    unload();
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("policies/dataset");
    TCase *tc = tcase_create("dataset");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, every_policy_on_dataset1);
    suite_add_tcase(suite, tc);
    return suite;
}
