/*
 * Caches with every allocation failing in turn: every failure is answered, no page is evicted
 * without need, no busy object stays without a fill, and the leak checker finds nothing.
 * torture_fill.c has single fills.
 */
#include <errno.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/torture.h"

#define PAGES 60

static char urls[PAGES][32];

static void
make_urls(void)
{
    for (int i = 0; i < PAGES; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://h/%d", i);
}

static struct stored
put(struct cache *cache, int i)
{
    return pages_put(cache, span_str(urls[i]), (size_t)(i * 37 % 101), INT64_MAX, NULL);
}

/* Nothing fails meanwhile. */
static void
put_all(struct cache *cache)
{
    for (int i = 0; i < PAGES; i++) {
        struct stored stored = put(cache, i);

        ck_assert_int_eq(stored.outcome, CACHE_STORED);
        stored_free(&stored);
    }
}

/* A lookup that is expected to be a hit allocates nothing; a miss would begin a fill. */
static bool
is_inside(struct cache *cache, int i)
{
    return pages_hit(cache, urls[i]);
}

static uint64_t
count_inside(struct cache *cache)
{
    return pages_stats(cache).pages;
}

static void
create_cache(void *context)
{
    enum cache_error error = CACHE_BAD_CONFIG;
    struct cache *cache = cache_create(context, &error);

    ck_assert_int_eq(error, cache ? CACHE_OK : CACHE_CONFIG_NO_MEMORY);
    ck_assert(!cache == torture_failed());
    cache_destroy(cache);
}

START_TEST(creating)
{
    struct cache_config config = {.capacity_pages = 100, .shards = 3};

    for (size_t p = 0; policies[p]; p++) {
        if (policies[p]->needs_future)
            continue;
        config.policy = policy_spec_of(policies[p]);
        ck_assert_uint_ge(torture_walk(create_cache, &config), 3 * 2 + 1);
    }
    config.policy = policy_spec_of(NULL);
    /* A table for each shard, the cache, and the list of entries that other shards had. */
    ck_assert_uint_eq(torture_walk(create_cache, &config), 3 + 2);
}
END_TEST

enum { FEW = 16 };

/* Stores a few pages; each that could not be stored has evicted nothing. */
static void
store_few(void *context)
{
    const struct cache_config *config = context;
    enum cache_error error;
    struct cache *cache = cache_create(config, &error);
    uint64_t refused = 0, handed = 0, evicted_in_all = 0;
    bool chooses = config->policy.ops->admit != NULL; /* so that a refusal says nothing */
    struct cache_stats stats;

    if (!cache)
        return;
    for (int i = 0; i < FEW; i++) {
        uint64_t before = count_inside(cache);
        struct stored stored = put(cache, i);

        if (stored.outcome == CACHE_NOT_STORED) {
            refused += !chooses;
            ck_assert_uint_eq(stored.evicted, 0);
            ck_assert_uint_eq(stored.victims.count, 0);
            ck_assert_uint_eq(count_inside(cache), before);
        } else if (stored.outcome == CACHE_PASSED_ON) {
            ck_assert(config->policy.ops->enters_first);
            ck_assert_uint_eq(count_inside(cache), before - stored.evicted);
        } else {
            ck_assert_uint_eq(count_inside(cache), before + 1 - stored.evicted);
            ck_assert(is_inside(cache, i)); /* a request: with a surplus others are evicted */
        }
        /* Without memory for the list victims are only counted. */
        ck_assert(stored.victims.count == stored.evicted ||
                  (stored.victims.count == 0 && torture_failed()));
        handed += stored.victims.count;
        evicted_in_all += stored.evicted;
        stored_free(&stored);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).busy, 0);
    }
    cache_get_stats(cache, &stats);
    if (config->policy.ops->hit_has_surplus)
        ck_assert_uint_ge(stats.evictions, evicted_in_all);
    else
        ck_assert_uint_eq(stats.evictions, evicted_in_all);
    ck_assert_uint_le(refused, torture_failed());
    ck_assert_uint_le(evicted_in_all - handed, 2 * torture_failed() + 3 * refused);

    /* Again: all of them replace or enter. */
    for (int i = 0; i < FEW; i++) {
        struct stored stored = put(cache, i);

        refused += stored.outcome == CACHE_NOT_STORED && !chooses;
        stored_free(&stored);
    }
    ck_assert_uint_le(refused, torture_failed());
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}

START_TEST(storing)
{
    for (size_t p = 0; policies[p]; p++) {
        if (policies[p]->needs_future)
            continue;
        ck_assert_uint_ge(
            torture_walk(store_few, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_pages = 10,
                                                           .shards = 1}),
            5 * FEW);
        ck_assert_uint_ge(
            torture_walk(store_few, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_bytes = 3200,
                                                           .shards = 2}),
            5 * FEW);
    }
}
END_TEST

START_TEST(hits_and_purges_of_a_few_allocate_nothing)
{
    struct cache *cache = pages_cache("lru", 2 * PAGES, 0, 1);
    uint64_t gone;

    torture_fail_at(0);
    put_all(cache);
    torture_fail_at(1);
    for (int i = 0; i < PAGES; i++)
        ck_assert(is_inside(cache, i));
    ck_assert(!torture_failed());
    gone = purge_by(cache, CACHE_BY_URL, span_str(urls[7]));
    gone += purge_by(cache, CACHE_BY_PREFIX, span_str("http://h/1"));
    torture_fail_at(0); /* returning memory of the table may allocate, and may be refused */
    ck_assert_uint_eq(gone, 1 + 11);
    ck_assert_uint_eq(count_inside(cache), PAGES - gone);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(joining_leaving_failing_and_isolating_allocate_nothing)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    struct requester leader = {0}, late[3] = {0}, other = {0};

    torture_fail_at(0);
    request_lookup(&leader, cache, "u", 0, true);
    request_lookup(&other, cache, "v", 0, true);
    torture_fail_at(1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(request_lookup(&late[i], cache, "u", 0, i % 2), CACHE_BUSY);
    ck_assert(cache_leave(&late[2].waiter));
    cache_fill_restrict(leader.found.fill, FILL_PRIVATE, 1000);
    cache_fill_fail(leader.found.fill, 1, "failed", NULL, NULL);
    cache_fill_fail(other.found.fill, 1, "failed", NULL, NULL);
    ck_assert(!torture_failed());
    torture_fail_at(0);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    ck_assert_uint_eq(request_take(&late[0]), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&late[1]), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&leader), WAITER_FAILED);
    ck_assert_uint_eq(request_take(&other), WAITER_FAILED);
    cache_fill_free(leader.found.fill);
    cache_fill_free(other.found.fill);
    for (unsigned i = 0; i < 3; i++)
        request_end(&late[i]);
    request_end(&leader);
    request_end(&other);
    cache_destroy(cache);
}
END_TEST

/* A page, a busy object and a mark are there. */
static bool
purge_all(unsigned n)
{
    struct cache *cache = pages_cache("lru", 1000, 0, 3);
    struct requester busy = {0}, marked = {0};
    bool failed;

    put_all(cache);
    request_lookup(&busy, cache, "busy", 0, false);
    request_lookup(&marked, cache, "marked", 0, false);
    cache_fill_restrict(marked.found.fill, FILL_PRIVATE, 1000);
    torture_fail_at(n);
    ck_assert_uint_eq(cache_purge_all(cache), PAGES);
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_uint_eq(count_inside(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    ck_assert(cache_is_valid(cache));
    ck_assert_int_eq(fill_page(busy.found.fill, 1), CACHE_NOT_STORED);
    fill_fail(marked.found.fill);
    ck_assert_uint_eq(request_take(&busy), WAITER_END);
    ck_assert_uint_eq(request_take(&marked), WAITER_FAILED);
    request_end(&busy);
    request_end(&marked);
    cache_destroy(cache);
    return failed;
}

START_TEST(purging_all_cannot_fail)
{
    unsigned n = 1;

    torture_fail_at(0);
    while (purge_all(n))
        n++;
    ck_assert_uint_ge(n - 1, 3 * 2);
}
END_TEST

static void
check_configured(struct cache *cache, const struct cache_config *config,
                 const struct cache_stats *before)
{
    struct cache_config reported;
    struct cache_stats after;

    cache_get_stats(cache, &after);
    cache_get_config(cache, &reported);
    ck_assert(policy_spec_equal(&reported.policy, &config->policy));
    ck_assert_uint_eq(reported.capacity_pages, config->capacity_pages);
    ck_assert_uint_eq(reported.capacity_bytes, config->capacity_bytes);
    ck_assert_uint_eq(reported.shards, config->shards);
    ck_assert_uint_eq(after.insertions, before->insertions);
    ck_assert_uint_eq(after.evictions, before->pages - after.pages);
    ck_assert(cache_is_valid(cache));
}

/*
 * With the n-th allocation failing: all of the change, or none of it, while an object is busy, an
 * expired one has a successor, and there is a mark. False if n is not reached.
 */
static bool
configure(const struct cache_config *from, const struct cache_config *to, unsigned n,
          unsigned *refused)
{
    enum cache_error error;
    struct cache *cache = cache_create(from, &error);
    struct requester busy = {0}, successor = {0}, marked = {0};
    struct cache_stats before;
    bool failed;

    put_all(cache);
    pages_store_tagged(cache, "other", "old one");
    request_lookup(&busy, cache, "busy", 0, false);
    ck_assert_int_eq(request_lookup(&successor, cache, urls[9], INT64_MAX / 2, false), CACHE_STALE);
    object_release(&successor.found.object);
    request_lookup(&marked, cache, "marked", 0, false);
    cache_fill_restrict(marked.found.fill, FILL_PRIVATE, 1000);
    cache_get_stats(cache, &before);
    torture_fail_at(n);
    error = cache_configure(cache, to);
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_uint_eq(pages_stats(cache).busy, 2);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    if (error) {
        ck_assert(failed);
        ck_assert_int_eq(error, CACHE_CONFIG_NO_MEMORY);
        check_configured(cache, from, &before);
        for (int i = 0; i < PAGES; i++)
            ck_assert(is_inside(cache, i));
        ++*refused;
    } else {
        check_configured(cache, to, &before); /* a table that could not grow is no error */
    }
    fill_fail(marked.found.fill);
    fill_page(busy.found.fill, 1);
    fill_page(successor.found.fill, 1);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(request_take(&busy), WAITER_END);
    ck_assert_uint_eq(request_take(&successor), WAITER_END);
    ck_assert_uint_eq(request_take(&marked), WAITER_FAILED);
    request_end(&busy);
    request_end(&successor);
    request_end(&marked);
    cache_destroy(cache);
    return failed;
}

START_TEST(configuring)
{
    static const struct {
        const char *policy;
        uint64_t pages, bytes;
        unsigned shards;
        unsigned seams; /* at least */
    } others[] = {
        {"fifo", 1000, 0, 2, PAGES + 5},
        {"lru", 1000, 0, 5, PAGES + 11},
        {"maxs", 50, 0, 1, PAGES + 3},
        {"rand", 0, 5000, 4, PAGES + 9},
        {"lru", 20, 0, 2, 0},
        {"lru", 0, 3000, 2, 0},
        {NULL, 0, 0, 1, 4},
        {"lfu", 0, 700, 3, 7},
    };

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct cache_config from = {
            .policy = policy_spec_of(policy_find("lru")), .capacity_pages = 1000, .shards = 2};
        struct cache_config to = {
            .policy = policy_spec_of(others[i].policy ? policy_find(others[i].policy) : NULL),
            .capacity_pages = others[i].pages,
            .capacity_bytes = others[i].bytes,
            .shards = others[i].shards,
        };
        unsigned n = 1, refused = 0;

        while (configure(&from, &to, n, &refused))
            n++;
        ck_assert_uint_ge(refused, others[i].seams);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/torture");
    TCase *tc = tcase_create("torture");

    tcase_add_unchecked_fixture(tc, make_urls, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, creating);
    tcase_add_test(tc, storing);
    tcase_add_test(tc, hits_and_purges_of_a_few_allocate_nothing);
    tcase_add_test(tc, joining_leaving_failing_and_isolating_allocate_nothing);
    tcase_add_test(tc, purging_all_cannot_fail);
    tcase_add_test(tc, configuring);
    suite_add_tcase(suite, tc);
    return suite;
}
