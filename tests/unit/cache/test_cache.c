#include "cache/cache.h"

#include <malloc.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"

#define LRU_OVERHEAD cache_page_overhead(policy_find("lru"))

/* ---- configurations -------------------------------------------------------------------------- */

START_TEST(bad_configurations_are_refused)
{
    struct policy_ops future = *policy_find("lru");
    struct policy_spec oracle = policy_spec_of(&future);
    struct policy_spec lru = policy_spec_of(policy_find("lru")), none = policy_spec_of(NULL);
    const struct cache_config bad[] = {
        {lru, 0, 0, 1, 0, false},     {lru, 10, 0, 0, 0, false},
        {lru, 3, 0, 4, 0, false},     {lru, 100, 0, CACHE_MAX_SHARDS + 1, 0, false},
        {lru, 0, 3, 4, 0, false},     {lru, 100, 3, 4, 0, false},
        {lru, 3, 1000, 4, 0, false},  {none, 1, 1, 0, 0, false},
        {oracle, 10, 0, 1, 0, false},
    };
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    struct cache_config config;
    enum cache_error error;

    future.needs_future = true;
    pages_store_many(cache, 0, 10, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error = CACHE_OK;
        ck_assert_ptr_null(cache_create(&bad[i], &error));
        ck_assert_int_eq(error, CACHE_BAD_CONFIG);
        ck_assert_int_eq(cache_configure(cache, &bad[i]), CACHE_BAD_CONFIG);
    }
    cache_get_config(cache, &config);
    ck_assert_uint_eq(config.capacity_pages, 10);
    ck_assert_uint_eq(pages_stats(cache).pages, 10);
    cache_destroy(cache);
    cache_destroy(NULL);
}
END_TEST

START_TEST(the_configuration_in_force_is_told)
{
    struct cache_config wanted = {
        .policy = policy_spec_of(policy_find("maxs")),
        .capacity_pages = 100,
        .capacity_bytes = 5000,
        .shards = 7,
        .seed = 42,
        .body_only = true,
    };
    struct cache_config told;
    enum cache_error error;
    struct cache *cache = cache_create(&wanted, &error);

    cache_get_config(cache, &told);
    ck_assert(policy_spec_equal(&told.policy, &wanted.policy));
    ck_assert_uint_eq(told.capacity_pages, 100);
    ck_assert_uint_eq(told.capacity_bytes, 5000);
    ck_assert_uint_eq(told.shards, 7);
    ck_assert_uint_eq(told.seed, 42);
    ck_assert(told.body_only);
    wanted.policy = policy_spec_of(policy_find("fifo"));
    wanted.shards = 64;
    ck_assert_int_eq(cache_configure(cache, &wanted), CACHE_OK);
    cache_get_config(cache, &told);
    ck_assert(policy_spec_equal(&told.policy, &wanted.policy));
    ck_assert_uint_eq(told.shards, 64);
    cache_destroy(cache);
}
END_TEST

START_TEST(no_cache_never_has_anything)
{
    enum cache_error error;
    struct cache *cache = cache_create(&(struct cache_config){.shards = 2}, &error);
    struct cache_config config = {
        .policy = policy_spec_of(policy_find("lru")), .capacity_pages = 5, .shards = 1};

    ck_assert_ptr_nonnull(cache);
    ck_assert_int_eq(pages_store(cache, "http://a/", 1), CACHE_NOT_STORED);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(cache_purge(cache, span_str("http://a/")), 0);
    ck_assert_uint_eq(cache_purge_expired(cache, span_str("http://a/"), INT64_MAX), 0);
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("")), 0);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert(cache_is_valid(cache));

    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert_int_eq(pages_store(cache, "http://a/", 1), CACHE_STORED);
    ck_assert(pages_hit(cache, "http://a/"));
    config.policy = policy_spec_of(NULL);
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(pages_stats(cache).evictions, 1);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

/* ---- storing --------------------------------------------------------------------------------- */

START_TEST(bytes_count_a_page_whole)
{
    struct cache *cache = pages_cache("lru", 0, 100000, 1);
    struct page_builder builder;
    struct page *page;

    ck_assert(page_begin(&builder, NULL, span_str("http://a/"), span_str("http://bb/"),
                         span_str("X: y\r\n"), 200, 0, 100));
    ck_assert_int_eq(page_append(&builder, "hello", 5), 0);
    page = page_finish(&builder, 0, 0);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).bytes, 9 + 10 + 6 + 5 + LRU_OVERHEAD);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_REPLACED);
    ck_assert_uint_eq(pages_stats(cache).bytes, 9 + 10 + 6 + 5 + LRU_OVERHEAD);
    cache_purge(cache, span_str("http://a/"));
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_page_that_fits_to_the_byte_is_stored_and_a_larger_one_evicts_nothing)
{
    struct cache *cache = pages_cache("lru", 0, 2 * (9 + 100 + LRU_OVERHEAD), 1);
    size_t evicted = 7;
    struct cache_victims victims = {0};
    struct page *page;

    ck_assert_int_eq(pages_store(cache, "http://a/", 100), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://b/", 100), CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).pages, 2);

    page = pages_make("http://c/", 2 * 100 + 9 + LRU_OVERHEAD + 1);
    ck_assert_int_eq(cache_store(cache, page, &victims, &evicted), CACHE_NOT_STORED);
    ck_assert_uint_eq(evicted, 0);
    ck_assert_uint_eq(victims.count, 0);
    ck_assert_uint_eq(page->references, 1);
    page_release(&page);
    ck_assert(pages_hit(cache, "http://a/") && pages_hit(cache, "http://b/"));

    page = pages_make("http://c/", 2 * 100 + 9 + LRU_OVERHEAD);
    ck_assert_int_eq(cache_store(cache, page, &victims, &evicted), CACHE_STORED);
    ck_assert_uint_eq(evicted, 2);
    ck_assert_uint_eq(victims.count, 2);
    ck_assert(span_equal(page_url(victims.pages[0]), span_str("http://a/")));
    ck_assert(span_equal(page_url(victims.pages[1]), span_str("http://b/")));
    cache_victims_free(&victims);
    ck_assert_ptr_null(victims.pages);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_replacement_too_large_leaves_the_old_page)
{
    struct cache *cache = pages_cache("lru", 0, 1000, 1);

    ck_assert_int_eq(pages_store(cache, "http://a/", 100), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://a/", 2000), CACHE_NOT_STORED);
    ck_assert(pages_hit(cache, "http://a/"));
    cache_destroy(cache);
}
END_TEST

START_TEST(a_replacement_enters_anew_and_is_no_eviction)
{
    struct cache *cache = pages_cache("fifo", 2, 0, 1);
    struct page *old, *fresh;

    pages_store(cache, "a", 1);
    pages_store(cache, "b", 1);
    old = cache_lookup(cache, span_str("a"), 0);
    ck_assert_int_eq(pages_store(cache, "a", 5), CACHE_REPLACED);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert_uint_eq(pages_stats(cache).insertions, 3);
    fresh = cache_lookup(cache, span_str("a"), 0);
    ck_assert_uint_eq(fresh->body_len, 5);
    ck_assert_uint_eq(old->body_len, 1); /* who holds it still has it */
    ck_assert_uint_eq(old->references, 1);
    page_release(&old);
    page_release(&fresh);
    pages_store(cache, "c", 1); /* b is the oldest now */
    ck_assert(pages_hit(cache, "a") && !pages_hit(cache, "b") && pages_hit(cache, "c"));
    cache_destroy(cache);
}
END_TEST

START_TEST(pages_outlive_their_eviction_and_their_cache)
{
    struct cache *cache = pages_cache("lru", 1, 0, 1);
    struct page *a, *b;

    pages_store(cache, "a", 10);
    a = cache_lookup(cache, span_str("a"), 0);
    ck_assert_uint_eq(a->references, 2);
    pages_store(cache, "b", 10);
    ck_assert_uint_eq(a->references, 1);
    b = cache_lookup(cache, span_str("b"), 0);
    cache_destroy(cache);
    ck_assert(span_equal(page_body(a), page_body(b)));
    page_release(&a);
    page_release(&b);
}
END_TEST

START_TEST(a_url_may_hold_any_byte)
{
    struct cache *cache = pages_cache("lru", 10, 0, 3);
    struct span url = span_of("a\0b", 3);
    struct page_builder builder;
    struct page *page;

    ck_assert(page_begin(&builder, NULL, url, url, span_of(NULL, 0), 200, 0, 0));
    page = page_finish(&builder, 0, 0);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_STORED);
    page_release(&page);
    ck_assert(!pages_hit(cache, "a"));
    page = cache_lookup(cache, url, 0);
    ck_assert_ptr_nonnull(page);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

/* ---- lifetimes ------------------------------------------------------------------------------- */

START_TEST(an_expired_page_is_a_miss_until_it_is_replaced)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);

    ck_assert_int_eq(pages_store_until(cache, "a", 1, 5000), CACHE_STORED);
    ck_assert(pages_hit_at(cache, "a", 4000));
    ck_assert(!pages_hit_at(cache, "a", 5000));
    ck_assert(!pages_hit_at(cache, "a", INT64_MAX));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_int_eq(pages_store_until(cache, "a", 7, 9000), CACHE_REPLACED);
    ck_assert(pages_hit_at(cache, "a", 8000));
    ck_assert(!pages_hit_at(cache, "a", 9000));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_uint_eq(pages_stats(cache).insertions, 2);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    /* Without a lifetime it stays. */
    ck_assert_int_eq(pages_store(cache, "a", 1), CACHE_REPLACED);
    ck_assert(pages_hit_at(cache, "a", INT64_MAX));
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(asking_for_an_expired_page_is_no_request_to_the_policy)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);

    pages_store_until(cache, "a", 1, 5000);
    pages_store(cache, "b", 1);
    ck_assert(!pages_hit_at(cache, "a", 5000));
    pages_store(cache, "c", 1); /* a is still the one that was requested longest ago */
    ck_assert(pages_hit(cache, "b") && pages_hit(cache, "c") && !pages_hit(cache, "a"));

    /* A hit in time is one: then b leaves. */
    ck_assert(pages_hit(cache, "b"));
    pages_store_until(cache, "c", 1, 5000);
    ck_assert(pages_hit(cache, "b") && pages_hit_at(cache, "c", 4000));
    pages_store(cache, "d", 1);
    ck_assert(!pages_hit(cache, "b") && pages_hit_at(cache, "c", 4000) && pages_hit(cache, "d"));
    cache_destroy(cache);
}
END_TEST

START_TEST(an_expired_page_leaves_when_nothing_replaces_it)
{
    for (unsigned shards = 1; shards <= 4; shards += 3) {
        struct cache *cache = pages_cache("slru", 8, 0, shards);

        pages_store_until(cache, "a", 1, 5000);
        pages_store(cache, "b", 1);
        ck_assert_uint_eq(cache_purge_expired(cache, span_str("a"), 4000), 0);
        ck_assert_uint_eq(cache_purge_expired(cache, span_str("b"), INT64_MAX), 0);
        ck_assert_uint_eq(cache_purge_expired(cache, span_str("c"), INT64_MAX), 0);
        ck_assert(pages_hit_at(cache, "a", 4000) && pages_hit(cache, "b"));
        ck_assert_uint_eq(cache_purge_expired(cache, span_str("a"), 5000), 1);
        ck_assert(!pages_hit_at(cache, "a", 4000) && pages_hit(cache, "b"));
        ck_assert_uint_eq(pages_stats(cache).evictions, 0);
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(a_lifetime_outlives_another_configuration)
{
    struct cache *cache = pages_cache("lru", 8, 0, 1);
    struct cache_config config;

    pages_store_until(cache, "a", 1, 5000);
    cache_get_config(cache, &config);
    config.shards = 3;
    config.policy = policy_spec_of(policy_find("lfu"));
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert(pages_hit_at(cache, "a", 4000) && !pages_hit_at(cache, "a", 5000));
    cache_destroy(cache);
}
END_TEST

/* ---- shards ---------------------------------------------------------------------------------- */

START_TEST(shards_share_the_pages_evenly)
{
    for (unsigned shards = 1; shards <= CACHE_MAX_SHARDS; shards += 9) {
        struct cache *cache = pages_cache("lru", 20000, 0, shards);

        pages_store_many(cache, 0, 10000, 0);
        for (int i = 0; i < 10000; i++)
            ck_assert(pages_hit(cache, pages_url(i)));
        /* With half the room used by URLs that differ in their digits, no shard overflowed. */
        ck_assert_uint_eq(pages_stats(cache).pages, 10000);
        ck_assert_uint_eq(pages_stats(cache).evictions, 0);
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(shares_add_up_to_the_capacity)
{
    struct cache *cache = pages_cache("lru", 1003, 0, 10);

    pages_store_many(cache, 0, 20000, 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 1003);
    ck_assert_uint_eq(pages_stats(cache).evictions, 20000 - 1003);
    ck_assert_uint_eq(pages_stats(cache).insertions, 20000);
    cache_reset_stats(cache);
    ck_assert_uint_eq(pages_stats(cache).pages, 1003);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert_uint_eq(pages_stats(cache).insertions, 0);
    cache_destroy(cache);
}
END_TEST

/* ---- purging --------------------------------------------------------------------------------- */

START_TEST(purging_one)
{
    struct cache *cache = pages_cache("lru", 100, 0, 4);

    pages_store_many(cache, 0, 50, 10);
    ck_assert_uint_eq(cache_count(cache, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(cache_purge(cache, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(cache_count(cache, span_str(pages_url(7))), 0);
    ck_assert_uint_eq(cache_purge(cache, span_str(pages_url(7))), 0);
    ck_assert(!pages_hit(cache, pages_url(7)));
    ck_assert_uint_eq(pages_stats(cache).pages, 49);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(purging_by_prefix)
{
    struct cache *cache = pages_cache("lfu", 500, 0, 4);

    pages_store_many(cache, 0, 250, 10);
    /* 1, 10 to 19, 100 to 199 */
    ck_assert_uint_eq(cache_count_prefix(cache, span_str("http://www.example.com/1")), 111);
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("http://www.example.com/1")), 111);
    ck_assert(!pages_hit(cache, pages_url(150)));
    ck_assert(pages_hit(cache, pages_url(215)));
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("http://www.example.org/")), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 139);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(cache_count_prefix(cache, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(cache_purge_prefix(cache, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(purging_all)
{
    struct cache *cache = pages_cache("maxs", 500, 0, 3);
    struct page *held;

    pages_store_many(cache, 0, 250, 10);
    held = cache_lookup(cache, span_str(pages_url(3)), 0);
    ck_assert_uint_eq(cache_purge_all(cache), 250);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    ck_assert_uint_eq(pages_stats(cache).insertions, 250);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert_uint_eq(held->references, 1);
    page_release(&held);
    pages_store_many(cache, 0, 250, 10);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------------- */

#define MALLOC_HEADER 8

/* All that a stored page costs beyond its own bytes, at the widest that heap and table get. */
static size_t
overhead_of(const struct policy_ops *ops, size_t body)
{
    struct page *page = pages_make("http://www.example.com/", body);
    void *entry = malloc(sizeof(struct entry) + ops->node_size);
    size_t own = page->url_len + page->body_len;
    size_t total =
        malloc_usable_size(entry) + MALLOC_HEADER + malloc_usable_size(page) + MALLOC_HEADER - own;

    free(entry);
    page_release(&page);
    return total + sizeof(struct bucket) * 3 / 2 + sizeof(struct heap_node *) * 3 / 2;
}

START_TEST(a_page_costs_no_more_than_it_is_charged)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    for (size_t p = 0; policies[p]; p++) {
        for (size_t body = 0; body < 64; body++)
            ck_assert_uint_le(overhead_of(policies[p], body), cache_page_overhead(policies[p]));
    }
#endif
    ck_assert_uint_le(cache_page_overhead(policy_find("lru")), 176);
    ck_assert_uint_gt(cache_page_overhead(policy_find("lirs")),
                      cache_page_overhead(policy_find("lru")));
    ck_assert_uint_le(sizeof(struct entry) + policy_find("lru")->node_size, 72);
    ck_assert_uint_le(sizeof(struct page), 48);
    ck_assert_uint_gt(overhead_of(policy_find("lru"), 10), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache");
    TCase *config = tcase_create("config");
    TCase *store = tcase_create("store");
    TCase *lifetimes = tcase_create("lifetimes");
    TCase *shards = tcase_create("shards");
    TCase *purge = tcase_create("purge");
    TCase *memory = tcase_create("memory");

    tcase_add_test(config, bad_configurations_are_refused);
    tcase_add_test(config, the_configuration_in_force_is_told);
    tcase_add_test(config, no_cache_never_has_anything);
    suite_add_tcase(suite, config);
    tcase_add_test(store, bytes_count_a_page_whole);
    tcase_add_test(store, a_page_that_fits_to_the_byte_is_stored_and_a_larger_one_evicts_nothing);
    tcase_add_test(store, a_replacement_too_large_leaves_the_old_page);
    tcase_add_test(store, a_replacement_enters_anew_and_is_no_eviction);
    tcase_add_test(store, pages_outlive_their_eviction_and_their_cache);
    tcase_add_test(store, a_url_may_hold_any_byte);
    suite_add_tcase(suite, store);
    tcase_add_test(lifetimes, an_expired_page_is_a_miss_until_it_is_replaced);
    tcase_add_test(lifetimes, asking_for_an_expired_page_is_no_request_to_the_policy);
    tcase_add_test(lifetimes, an_expired_page_leaves_when_nothing_replaces_it);
    tcase_add_test(lifetimes, a_lifetime_outlives_another_configuration);
    suite_add_tcase(suite, lifetimes);
    tcase_add_test(shards, shards_share_the_pages_evenly);
    tcase_add_test(shards, shares_add_up_to_the_capacity);
    suite_add_tcase(suite, shards);
    tcase_add_test(purge, purging_one);
    tcase_add_test(purge, purging_by_prefix);
    tcase_add_test(purge, purging_all);
    suite_add_tcase(suite, purge);
    tcase_add_test(memory, a_page_costs_no_more_than_it_is_charged);
    suite_add_tcase(suite, memory);
    return suite;
}
