/* Pages that expire, and what becomes of them then. */
#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include "tests/unit/cache/pages.h"

START_TEST(an_expired_page_is_a_miss_until_it_is_replaced)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);

    ck_assert_int_eq(pages_store_until(cache, "a", 1, 5000), CACHE_STORED);
    ck_assert(pages_hit_at(cache, "a", 4000));
    ck_assert(!pages_hit_at(cache, "a", 5000));
    ck_assert(!pages_hit_at(cache, "a", INT64_MAX / 2));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_int_eq(pages_store_until(cache, "a", 7, 9000), CACHE_REPLACED);
    ck_assert(pages_hit_at(cache, "a", 8000));
    ck_assert(!pages_hit_at(cache, "a", 9000));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_uint_eq(pages_stats(cache).insertions, 2);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(a_lookup_of_an_expired_page_is_no_request_to_the_policy)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);

    pages_store_until(cache, "a", 1, 5000);
    pages_store(cache, "b", 1);
    ck_assert(!pages_hit_at(cache, "a", 5000));
    pages_store(cache, "c", 1); /* a is still the one that was requested longest ago */
    ck_assert(pages_hit(cache, "b") && pages_hit(cache, "c") && !pages_hit(cache, "a"));

    /* A hit in time is one: then b is evicted. */
    ck_assert(pages_hit(cache, "b"));
    pages_store_until(cache, "c", 1, 5000);
    ck_assert(pages_hit(cache, "b") && pages_hit_at(cache, "c", 4000));
    pages_store(cache, "d", 1);
    ck_assert(!pages_hit(cache, "b") && pages_hit_at(cache, "c", 4000) && pages_hit(cache, "d"));
    cache_destroy(cache);
}
END_TEST

/* Fills the successor of an expired page at that moment; finished without being stored. */
static void
fetch_unstored(struct cache *cache, const char *url, int64_t now_us, bool fails)
{
    struct requester request = {0};

    ck_assert_int_eq(request_lookup(&request, cache, url, now_us, false), CACHE_STALE);
    if (fails) {
        fill_fail(request.found.fill);
    } else {
        fill_head(request.found.fill, 3, NULL);
        fill_letters(request.found.fill, 3);
        ck_assert_int_eq(cache_fill_finish(request.found.fill, false, 1, now_us, 1000),
                         CACHE_NOT_STORED);
        cache_fill_free(request.found.fill);
    }
    request_take(&request);
    request_end(&request);
}

START_TEST(an_expired_page_is_removed_when_its_successor_is_not_stored)
{
    for (unsigned shards = 1; shards <= 4; shards += 3) {
        struct cache *cache = pages_cache("slru", 8, 0, shards);

        pages_store_until(cache, "a", 1, 5000);
        pages_store(cache, "b", 1);
        fetch_unstored(cache, "a", 5000, true); /* a failure is no response */
        ck_assert(pages_hit_at(cache, "a", 4000) && pages_hit(cache, "b"));
        fetch_unstored(cache, "a", 5000, false);
        ck_assert(!pages_hit_at(cache, "a", 4000) && pages_hit(cache, "b"));
        ck_assert_uint_eq(pages_stats(cache).evictions, 0);
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(a_lifetime_is_kept_in_milliseconds_or_seconds_or_is_unlimited)
{
    static const struct {
        int64_t lifetime_us;
        int64_t kept_us;
    } cases[] = {{INT64_MAX, INT64_MAX},
                 {INT64_MAX - 1, ((INT64_C(1) << 30) - 2) * 1000000},
                 {INT64_C(1) << 49, (INT64_C(1) << 49) / 1000000 * 1000000},
                 {INT64_C(2147483648123), INT64_C(2147483000000)},
                 {INT64_C(2147483647999), INT64_C(2147483647000)},
                 {1999, 1000},
                 {999, 0},
                 {0, 0},
                 {-5000, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct cache *cache = pages_cache("lru", 8, 0, 1);
        struct requester request = {0};

        request_lookup(&request, cache, "a", 0, false);
        fill_head(request.found.fill, 0, NULL);
        ck_assert_int_eq(
            cache_fill_finish(request.found.fill, true, UINT64_MAX, 1000, cases[i].lifetime_us),
            CACHE_STORED);
        ck_assert_int_eq(object_lifetime(request.found.fill->object), cases[i].kept_us);
        ck_assert_uint_eq(request.found.fill->object->fetch_us, UINT32_MAX);
        cache_fill_free(request.found.fill);
        request_take(&request);
        request_end(&request);
        ck_assert_int_eq(pages_hit_at(cache, "a", 1000), cases[i].kept_us > 0);
        /* A request that arrived before it, and has waited. */
        ck_assert_int_eq(pages_hit_at(cache, "a", 900), cases[i].kept_us > 0);
        ck_assert_int_eq(pages_hit_at(cache, "a", INT64_MAX), cases[i].kept_us == INT64_MAX);
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(a_lifetime_may_become_shorter)
{
    static const int64_t before[] = {INT64_MAX, (int64_t)30 * 86400 * 1000000, 9000000, 0};

    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
        struct object object = {.lifetime = object_lifetime_of(before[i])};

        object_shorten(&object, INT64_MAX);
        ck_assert_int_eq(object_lifetime(&object), before[i]);
        object_shorten(&object, 5000000);
        ck_assert_int_eq(object_lifetime(&object), before[i] ? 5000000 : 0);
        object_shorten(&object, 6000000);
        ck_assert_int_eq(object_lifetime(&object), before[i] ? 5000000 : 0);
        /* One that has been expired stays so. */
        ck_assert(object_expire(&object, 3000000));
        object_shorten(&object, 4000000);
        ck_assert(!object_expire(&object, 3000000));
        ck_assert(!object_is_fresh(&object, 0));
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

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache: lifetimes");
    TCase *lifetimes = tcase_create("lifetimes");

    tcase_add_test(lifetimes, an_expired_page_is_a_miss_until_it_is_replaced);
    tcase_add_test(lifetimes, a_lookup_of_an_expired_page_is_no_request_to_the_policy);
    tcase_add_test(lifetimes, an_expired_page_is_removed_when_its_successor_is_not_stored);
    tcase_add_test(lifetimes, a_lifetime_is_kept_in_milliseconds_or_seconds_or_is_unlimited);
    tcase_add_test(lifetimes, a_lifetime_may_become_shorter);
    tcase_add_test(lifetimes, a_lifetime_outlives_another_configuration);
    suite_add_tcase(suite, lifetimes);
    return suite;
}
