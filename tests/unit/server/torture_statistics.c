/* The answer of PROXY_STAT: all of the table, and with each of its allocations failing in turn. */
#include <string.h>

#include "proxy.h"
#include "server/service.h"
#include "server/service_metrics.h"
#include "server/statistics.h"
#include "tests/unit/torture.h"
#include "tests/unit/unit.h"

#define SHARE ((uint64_t)8 << 10) /* of waiting requests and their replies */

static struct service service;

static void
set_up(void)
{
    struct cache_config config = {.capacity_pages = 7, .shards = 1};
    enum cache_error error;
    char why[128];

    ck_assert(policy_parse("lru-k:k=3", &config.policy, why, sizeof(why)));
    service = (struct service){.magic = SERVICE_MAGIC,
                               .cache = cache_create(&config, &error),
                               .metrics = metrics_create(1)};
    ck_assert(metrics_register(service.metrics, &metric_source_cache, service.cache));
    memory_account_init(&service.memory, 8 * SHARE, NULL);
}

static void
tear_down(void)
{
    torture_fail_at(0);
    ck_assert_uint_eq(memory_used(&service.memory, MEMORY_REPLIES), 0);
    metrics_destroy(service.metrics);
    cache_destroy(service.cache);
}

static void
decode(struct statistics_answer *answer, proxy_stats *stats)
{
    XDR xdr;

    memset(stats, 0, sizeof(*stats));
    xdrmem_create(&xdr, answer->bytes, answer->len, XDR_DECODE);
    ck_assert(xdr_proxy_stats(&xdr, stats));
    ck_assert_uint_eq(xdr_getpos(&xdr), answer->len);
}

START_TEST(an_answer_has_all_samples_of_the_table)
{
    const struct metric_sample *samples;
    size_t count = metrics_samples(service.metrics, &samples);
    struct statistics_answer *answer;
    proxy_stats stats;

    metrics_add(service.metrics, 0, METRIC_REQUESTS_STALE, 5);
    answer = statistics_answer_make(&service, false);
    ck_assert_ptr_nonnull(answer);
    decode(answer, &stats);
    ck_assert_uint_eq(stats.facts.facts_len, 3);
    ck_assert_str_eq(stats.facts.facts_val[0].name, "software");
    ck_assert_str_eq(stats.facts.facts_val[1].name, "policy");
    ck_assert_str_eq(stats.facts.facts_val[1].text, "lru-k:k=3");
    ck_assert_uint_eq(stats.metrics.metrics_len, count);
    ck_assert_uint_lt(count, PROXY_MAX_METRICS / 4);
    for (size_t i = 0; i < count; i++) {
        ck_assert_str_eq(stats.metrics.metrics_val[i].name, samples[i].name);
        ck_assert_uint_eq(stats.metrics.metrics_val[i].kind, samples[i].kind);
    }
    ck_assert_uint_eq(stats.metrics.metrics_val[METRIC_REQUESTS_STALE].value, 5);
    xdr_free((xdrproc_t)xdr_proxy_stats, &stats);
    statistics_answer_free(answer);
}
END_TEST

/* It comes although the share is used up, and is charged all the same. */
START_TEST(an_answer_is_charged_beyond_the_share)
{
    struct statistics_answer *answer;

    ck_assert(memory_charge(&service.memory, MEMORY_REPLIES, SHARE));
    answer = statistics_answer_make(&service, false);
    ck_assert_ptr_nonnull(answer);
    ck_assert_uint_gt(memory_used(&service.memory, MEMORY_REPLIES), SHARE + answer->len);
    statistics_answer_free(answer);
    memory_uncharge(&service.memory, MEMORY_REPLIES, SHARE);
}
END_TEST

START_TEST(no_answer_without_memory)
{
    struct statistics_answer *answer = NULL;
    unsigned failures = 0;

    for (unsigned i = 1; !answer; i++) {
        torture_fail_at(i);
        answer = statistics_answer_make(&service, false);
        failures += !answer;
        ck_assert(answer || torture_failed());
        ck_assert(answer || memory_used(&service.memory, MEMORY_REPLIES) == 0);
    }
    torture_fail_at(0);
    ck_assert_uint_eq(failures, 3);
    statistics_answer_free(answer);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("server/statistics without memory");
    TCase *tests = tcase_create("statistics");

    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_answer_has_all_samples_of_the_table);
    tcase_add_test(tests, an_answer_is_charged_beyond_the_share);
    tcase_add_test(tests, no_answer_without_memory);
    suite_add_tcase(suite, tests);
    return suite;
}
