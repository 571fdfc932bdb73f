/* Another policy, capacity or number of shards for a cache that is in use. */
#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include <stdio.h>

#include "policies/charge.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

static void
configure(struct cache *cache, const char *policy, uint64_t pages, uint64_t bytes, unsigned shards)
{
    struct cache_config config = {
        policy_spec_of(policy_find(policy)), pages, bytes, shards, 0, false};

    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert(cache_is_valid(cache));
}

START_TEST(a_new_policy_sees_pages_in_order_of_entry)
{
    static const char *const others[] = {"lru", "fifo", "lfu"};

    for (size_t i = 0; i < 3; i++) {
        struct cache *cache = pages_cache("maxs", 100, 0, 5);

        pages_store_many(cache, 0, 20, 3);
        configure(cache, others[i], 100, 0, 1);
        for (int n = 0; n < 20; n++) {
            struct stored stored;

            configure(cache, others[i], (uint64_t)(20 - n), 0, 1);
            stored = pages_put(cache, span_str("http://new/"), 0, INT64_MAX, NULL);
            ck_assert_uint_eq(stored.victims.count, 1);
            ck_assert(span_equal(object_url(stored.victims.pages[0]), span_str(pages_url(n))));
            stored_free(&stored);
            purge_by(cache, CACHE_BY_URL, span_str("http://new/"));
        }
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(what_does_not_fit_is_evicted_by_the_new_policy)
{
    struct cache *cache = pages_cache("fifo", 10, 0, 1);

    for (int i = 0; i < 10; i++)
        pages_store(cache, pages_url(i), (size_t)(i * 37 % 10 * 100)); /* 0 7 4 1 8 5 2 9 6 3 */
    configure(cache, "maxs", 4, 0, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 4);
    ck_assert_uint_eq(pages_stats(cache).evictions, 6);
    ck_assert_uint_eq(pages_stats(cache).insertions, 10);
    /* They enter one by one and the largest is evicted each time, so the last one stays. */
    ck_assert(pages_hit(cache, pages_url(9)) && pages_hit(cache, pages_url(0)));
    ck_assert(pages_hit(cache, pages_url(3)) && pages_hit(cache, pages_url(6)));
    cache_destroy(cache);
}
END_TEST

/* Where newcomers compete, some are evicted at once while the new policy is filled. */
START_TEST(a_new_policy_may_pass_pages_on)
{
    struct cache *cache = pages_cache("fifo", 10, 0, 1);

    for (int i = 0; i < 10; i++)
        pages_store(cache, pages_url(i), (size_t)(100 + i * 1000));
    configure(cache, "gdsf", 4, 0, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 4);
    ck_assert_uint_eq(pages_stats(cache).evictions, 6);
    ck_assert(pages_hit(cache, pages_url(0)));  /* the smallest is worth most */
    ck_assert(!pages_hit(cache, pages_url(4))); /* it was the first to be passed on */
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(another_capacity_alone_keeps_the_state_of_the_policy)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);

    pages_store_many(cache, 0, 10, 1);
    ck_assert(pages_hit(cache, pages_url(0)));
    ck_assert(pages_hit(cache, pages_url(1)));
    configure(cache, "lru", 3, 0, 1);
    ck_assert_uint_eq(pages_stats(cache).evictions, 7);
    ck_assert(pages_hit(cache, pages_url(0)) && pages_hit(cache, pages_url(1)) &&
              pages_hit(cache, pages_url(9)));
    configure(cache, "lru", 100, 0, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 3);
    pages_store_many(cache, 10, 90, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 83);
    cache_destroy(cache);
}
END_TEST

static struct policy_config resized[4];
static unsigned resizes;

static void
record_resize(struct policy *policy, const struct policy_config *config)
{
    ck_assert_ptr_nonnull(policy);
    ck_assert_uint_lt(resizes, 4);
    resized[resizes++] = *config;
}

START_TEST(a_policy_that_uses_the_capacity_gets_the_new_one)
{
    struct policy_ops probe = *policy_find("lru");
    struct cache_config config = {policy_spec_of(&probe), 10, 0, 2, 5, false};
    enum cache_error error;
    struct cache *cache;

    probe.resize = record_resize;
    cache = cache_create(&config, &error);
    ck_assert_ptr_nonnull(cache);
    ck_assert_uint_eq(resizes, 0);
    config.capacity_pages = 7;
    config.capacity_bytes = 1001;
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert_uint_eq(resizes, 2);
    ck_assert_uint_eq(resized[0].capacity_pages, 4);
    ck_assert_uint_eq(resized[0].capacity_bytes, 501);
    ck_assert_uint_eq(resized[1].capacity_pages, 3);
    ck_assert_uint_eq(resized[1].capacity_bytes, 500);
    config.shards = 1; /* a new instance gets it when it is created */
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert_uint_eq(resizes, 2);
    cache_destroy(cache);
}
END_TEST

START_TEST(fewer_bytes_remove_first_the_pages_that_are_too_large)
{
    struct cache *cache = pages_cache("lru", 0, 100000, 1);

    pages_store(cache, "small", 10);
    pages_store(cache, "smaller", 1);
    pages_store(cache, "large", 5000);
    configure(cache, "lru", 0, 1000, 1);
    ck_assert(pages_hit(cache, "small") && pages_hit(cache, "smaller"));
    ck_assert(!pages_hit(cache, "large"));
    ck_assert_uint_eq(pages_stats(cache).evictions, 1);

    pages_store(cache, "middle", 350);
    configure(cache, "fifo", 0, 500, 1); /* the same when the policy is another */
    ck_assert(pages_hit(cache, "small") && pages_hit(cache, "smaller"));
    ck_assert_uint_eq(pages_stats(cache).evictions, 2);
    cache_destroy(cache);
}
END_TEST

/* Nodes of another policy may be larger, and are counted. */
START_TEST(bytes_are_counted_anew_for_another_policy)
{
    uint64_t lru = charge_page_overhead(policy_find("lru")),
             lirs = charge_page_overhead(policy_find("lirs"));
    struct cache *cache = pages_cache("lru", 0, 10 * (9 + 100 + lru), 1);
    char url[32];

    for (int i = 0; i < 10; i++) {
        snprintf(url, sizeof(url), "http://%d/", i);
        ck_assert_int_eq(pages_store(cache, url, 100), CACHE_STORED);
    }
    ck_assert_uint_eq(pages_stats(cache).bytes, 10 * (9 + 100 + lru));
    configure(cache, "lirs", 0, 10 * (9 + 100 + lru), 1);
    ck_assert_uint_lt(pages_stats(cache).pages, 10);
    ck_assert_uint_eq(pages_stats(cache).bytes, pages_stats(cache).pages * (9 + 100 + lirs));
    configure(cache, "lru", 0, 10 * (9 + 100 + lru), 2);
    ck_assert_uint_eq(pages_stats(cache).bytes, pages_stats(cache).pages * (9 + 100 + lru));
    cache_destroy(cache);
}
END_TEST

START_TEST(any_number_of_shards_keeps_all_pages)
{
    static const unsigned counts[] = {1, 64, 2, 63, 7, 8, 1};
    struct cache *cache = pages_cache("lru", 10000, 0, 3);

    pages_store_many(cache, 0, 1000, 5);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        configure(cache, "lru", 10000, 0, counts[i]);
        for (int n = 0; n < 1000; n++)
            ck_assert(pages_hit(cache, pages_url(n)));
        ck_assert_uint_eq(pages_stats(cache).pages, 1000);
        ck_assert_uint_eq(pages_stats(cache).evictions, 0);
        ck_assert_uint_eq(pages_stats(cache).insertions, 1000);
    }
    ck_assert_uint_eq(cache_purge_all(cache), 1000);
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/configure");
    TCase *tc = tcase_create("configure");

    tcase_add_test(tc, a_new_policy_sees_pages_in_order_of_entry);
    tcase_add_test(tc, what_does_not_fit_is_evicted_by_the_new_policy);
    tcase_add_test(tc, a_new_policy_may_pass_pages_on);
    tcase_add_test(tc, another_capacity_alone_keeps_the_state_of_the_policy);
    tcase_add_test(tc, a_policy_that_uses_the_capacity_gets_the_new_one);
    tcase_add_test(tc, fewer_bytes_remove_first_the_pages_that_are_too_large);
    tcase_add_test(tc, bytes_are_counted_anew_for_another_policy);
    tcase_add_test(tc, any_number_of_shards_keeps_all_pages);
    suite_add_tcase(suite, tc);
    return suite;
}
