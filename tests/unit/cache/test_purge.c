/* Purging one page, by prefix, and all. */
#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include "tests/unit/cache/pages.h"

START_TEST(purging_one)
{
    struct cache *cache = pages_cache("lru", 100, 0, 4);

    pages_store_many(cache, 0, 50, 10);
    ck_assert_uint_eq(cache_count(cache, CACHE_BY_URL, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(cache_purge(cache, CACHE_BY_URL, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(cache_count(cache, CACHE_BY_URL, span_str(pages_url(7))), 0);
    ck_assert_uint_eq(cache_purge(cache, CACHE_BY_URL, span_str(pages_url(7))), 0);
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
    ck_assert_uint_eq(cache_count(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/1")),
                      111);
    ck_assert_uint_eq(cache_purge(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/1")),
                      111);
    ck_assert(!pages_hit(cache, pages_url(150)));
    ck_assert(pages_hit(cache, pages_url(215)));
    ck_assert_uint_eq(cache_purge(cache, CACHE_BY_PREFIX, span_str("http://www.example.org/")), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 139);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(cache_count(cache, CACHE_BY_PREFIX, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(cache_purge(cache, CACHE_BY_PREFIX, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(purging_all)
{
    struct cache *cache = pages_cache("maxs", 500, 0, 3);
    struct object *held;

    pages_store_many(cache, 0, 250, 10);
    held = pages_get(cache, span_str(pages_url(3)), 0);
    ck_assert_uint_eq(cache_purge_all(cache), 250);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    ck_assert_uint_eq(pages_stats(cache).insertions, 250);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert_uint_eq(held->references, 1);
    object_release(&held);
    pages_store_many(cache, 0, 250, 10);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache: purge");
    TCase *purge = tcase_create("purge");

    tcase_add_test(purge, purging_one);
    tcase_add_test(purge, purging_by_prefix);
    tcase_add_test(purge, purging_all);
    suite_add_tcase(suite, purge);
    return suite;
}
