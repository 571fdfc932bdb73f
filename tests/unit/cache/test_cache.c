#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include "base/arena.h"
#include "cache/shard.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

#define LRU_OVERHEAD charge_page_overhead(policy_find("lru"))

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

START_TEST(the_configuration_in_force_is_reported)
{
    struct cache_config wanted = {
        .policy = policy_spec_of(policy_find("maxs")),
        .capacity_pages = 100,
        .capacity_bytes = 5000,
        .shards = 7,
        .seed = 42,
        .body_only = true,
    };
    struct cache_config reported;
    enum cache_error error;
    struct cache *cache = cache_create(&wanted, &error);

    cache_get_config(cache, &reported);
    ck_assert(policy_spec_equal(&reported.policy, &wanted.policy));
    ck_assert_uint_eq(reported.capacity_pages, 100);
    ck_assert_uint_eq(reported.capacity_bytes, 5000);
    ck_assert_uint_eq(reported.shards, 7);
    ck_assert_uint_eq(reported.seed, 42);
    ck_assert(reported.body_only);
    wanted.policy = policy_spec_of(policy_find("fifo"));
    wanted.shards = 64;
    ck_assert_int_eq(cache_configure(cache, &wanted), CACHE_OK);
    cache_get_config(cache, &reported);
    ck_assert(policy_spec_equal(&reported.policy, &wanted.policy));
    ck_assert_uint_eq(reported.shards, 64);
    cache_destroy(cache);
}
END_TEST

START_TEST(without_a_policy_nothing_is_stored)
{
    enum cache_error error;
    struct cache *cache = cache_create(&(struct cache_config){.shards = 2}, &error);
    struct cache_config config = {
        .policy = policy_spec_of(policy_find("lru")), .capacity_pages = 5, .shards = 1};

    ck_assert_ptr_nonnull(cache);
    ck_assert_int_eq(pages_store(cache, "http://a/", 1), CACHE_NOT_STORED);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str("http://a/")), 0);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("")), 0);
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

/* Fills with a head of several parts and "hello", and stores. */
static enum cache_outcome
store_hello(struct cache *cache, const char *url, int64_t length)
{
    struct object_head head = {
        .status = 200,
        .fields = span_str("X: y\r\n"),
        .length = length,
        .max_length = 100,
    };
    struct requester request = {0};
    enum cache_outcome outcome;

    request_lookup(&request, cache, url, INT64_MAX / 2, false);
    ck_assert_ptr_nonnull(request.found.fill);
    ck_assert_int_eq(cache_fill_head(request.found.fill, &head), 0);
    ck_assert_int_eq(cache_fill_append(request.found.fill, "hello", 5), 0);
    outcome = cache_fill_finish(request.found.fill, true, 0, 0, 1000000);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
    return outcome;
}

START_TEST(bytes_count_a_page_whole)
{
    struct cache *cache = pages_cache("lru", 0, 100000, 1);

    ck_assert_int_eq(store_hello(cache, "http://a/", 5), CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).bytes, 9 + 6 + 5 + LRU_OVERHEAD);
    /* A body of unknown length is in segments until it is complete. */
    ck_assert_int_eq(store_hello(cache, "http://a/", -1), CACHE_REPLACED);
    ck_assert_uint_eq(pages_stats(cache).bytes, 9 + 6 + 5 + LRU_OVERHEAD);
    purge_by(cache, CACHE_BY_URL, span_str("http://a/"));
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_page_that_fits_to_the_byte_is_stored_and_a_larger_one_evicts_nothing)
{
    struct cache *cache = pages_cache("lru", 0, 2 * (9 + 100 + LRU_OVERHEAD), 1);
    struct span url = span_str("http://c/");
    struct stored stored;

    ck_assert_int_eq(pages_store(cache, "http://a/", 100), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://b/", 100), CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).pages, 2);

    stored = pages_put(cache, url, 2 * 100 + 9 + LRU_OVERHEAD + 1, INT64_MAX, NULL);
    ck_assert_int_eq(stored.outcome, CACHE_NOT_STORED);
    ck_assert_uint_eq(stored.evicted, 0);
    ck_assert_uint_eq(stored.victims.count, 0);
    ck_assert_uint_eq(stored.object->references, 1);
    stored_free(&stored);
    ck_assert(pages_hit(cache, "http://a/") && pages_hit(cache, "http://b/"));

    stored = pages_put(cache, url, 2 * 100 + 9 + LRU_OVERHEAD, INT64_MAX, NULL);
    ck_assert_int_eq(stored.outcome, CACHE_STORED);
    ck_assert_uint_eq(stored.evicted, 2);
    ck_assert_uint_eq(stored.victims.count, 2);
    ck_assert(span_equal(object_url(stored.victims.pages[0]), span_str("http://a/")));
    ck_assert(span_equal(object_url(stored.victims.pages[1]), span_str("http://b/")));
    stored_free(&stored);
    ck_assert_ptr_null(stored.victims.pages);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_replacement_too_large_removes_the_expired_page)
{
    struct cache *cache = pages_cache("lru", 0, 1000, 1);

    ck_assert_int_eq(pages_store(cache, "http://a/", 100), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://a/", 2000), CACHE_NOT_STORED);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_replacement_enters_anew_and_is_no_eviction)
{
    struct cache *cache = pages_cache("fifo", 2, 0, 1);
    struct object *old, *fresh;

    pages_store(cache, "a", 1);
    pages_store(cache, "b", 1);
    old = pages_get(cache, span_str("a"), 0);
    ck_assert_int_eq(pages_store(cache, "a", 5), CACHE_REPLACED);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert_uint_eq(pages_stats(cache).insertions, 3);
    fresh = pages_get(cache, span_str("a"), 0);
    ck_assert_uint_eq(object_length(fresh), 5);
    ck_assert_uint_eq(object_length(old), 1); /* a holder's object does not change */
    ck_assert_uint_eq(old->references, 1);
    object_release(&old);
    object_release(&fresh);
    pages_store(cache, "c", 1); /* b is the oldest now */
    ck_assert(pages_hit(cache, "a") && !pages_hit(cache, "b") && pages_hit(cache, "c"));
    cache_destroy(cache);
}
END_TEST

START_TEST(objects_outlive_their_eviction_and_their_cache)
{
    struct cache *cache = pages_cache("lru", 1, 0, 1);
    struct object *a, *b;

    pages_store(cache, "a", 10);
    a = pages_get(cache, span_str("a"), 0);
    ck_assert_uint_eq(a->references, 2);
    pages_store(cache, "b", 10);
    ck_assert_uint_eq(a->references, 1);
    b = pages_get(cache, span_str("b"), 0);
    cache_destroy(cache);
    ck_assert(span_equal(object_body(a), object_body(b)));
    object_release(&a);
    object_release(&b);
}
END_TEST

START_TEST(a_url_may_have_any_byte)
{
    struct cache *cache = pages_cache("lru", 10, 0, 3);
    struct span url = span_of("a\0b", 3);
    struct stored stored = pages_put(cache, url, 0, INT64_MAX, NULL);
    struct object *object;

    ck_assert_int_eq(stored.outcome, CACHE_STORED);
    stored_free(&stored);
    ck_assert(!pages_hit(cache, "a"));
    object = pages_get(cache, url, 0);
    ck_assert_ptr_nonnull(object);
    object_release(&object);
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
        /* Half of the capacity is used, by URLs that differ in their digits: no shard overflowed.
         */
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

/* ---- memory ---------------------------------------------------------------------------------- */

/* The slots of a stored page in heap and table, at the largest size of both. */
#define SLOTS ((sizeof(struct entry *) + sizeof(struct heap_node *)) * 3 / 2)

/* What the arena takes for a page, without its URL and body; 0 where blocks come from malloc(). */
static size_t
taken_by_page(const struct policy_ops *ops, size_t body)
{
    struct object_parts parts = {.url = span_str("http://www.example.com/"),
                                 .inline_size = (uint32_t)body};
    size_t node = ops->node_size > 16 ? ops->node_size : 16;
    struct arena_stats before, with;
    struct object *object;
    void *entry;

    arena_get_stats(&before);
    object = object_make(&parts);
    entry = arena_alloc(sizeof(struct entry) + node);
    arena_get_stats(&with);
    arena_free(entry);
    object_release(&object);
    return with.used == 0 ? 0 : with.used - before.used - parts.url.len - body;
}

START_TEST(a_page_costs_no_more_than_it_is_charged)
{
    for (size_t p = 0; policies[p]; p++) {
        size_t most = 0;

        for (size_t body = 0; body < 64; body++) {
            size_t taken = taken_by_page(policies[p], body);

            most = taken > most ? taken : most;
        }
        ck_assert(most == 0 || most + SLOTS == charge_page_overhead(policies[p]));
    }
    ck_assert_uint_le(charge_page_overhead(policy_find("lru")), 168);
    ck_assert_uint_gt(charge_page_overhead(policy_find("lirs")),
                      charge_page_overhead(policy_find("lru")));
    ck_assert_uint_le(sizeof(struct entry) + policy_find("lru")->node_size, 56);
    ck_assert_uint_eq(sizeof(struct object), 64);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache");
    TCase *config = tcase_create("config");
    TCase *store = tcase_create("store");
    TCase *shards = tcase_create("shards");
    TCase *memory = tcase_create("memory");

    tcase_add_test(config, bad_configurations_are_refused);
    tcase_add_test(config, the_configuration_in_force_is_reported);
    tcase_add_test(config, without_a_policy_nothing_is_stored);
    suite_add_tcase(suite, config);
    tcase_add_test(store, bytes_count_a_page_whole);
    tcase_add_test(store, a_page_that_fits_to_the_byte_is_stored_and_a_larger_one_evicts_nothing);
    tcase_add_test(store, a_replacement_too_large_removes_the_expired_page);
    tcase_add_test(store, a_replacement_enters_anew_and_is_no_eviction);
    tcase_add_test(store, objects_outlive_their_eviction_and_their_cache);
    tcase_add_test(store, a_url_may_have_any_byte);
    suite_add_tcase(suite, store);
    tcase_add_test(shards, shards_share_the_pages_evenly);
    tcase_add_test(shards, shares_add_up_to_the_capacity);
    suite_add_tcase(suite, shards);
    tcase_add_test(memory, a_page_costs_no_more_than_it_is_charged);
    suite_add_tcase(suite, memory);
    return suite;
}
