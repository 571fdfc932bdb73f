/* Policies that refuse pages, whose newcomers compete, and that evict other pages with a hit. */
#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include "base/hash.h"
#include "tests/unit/cache/pages.h"

static struct policy_page asked, entered, requested;
static unsigned refusals;

static bool
refuse_large(struct policy *policy, const struct policy_page *page)
{
    ck_assert_ptr_nonnull(policy);
    asked = *page;
    refusals += page->bytes >= 100;
    return page->bytes < 100;
}

static int
record_insert(struct policy *policy, void *node, const struct policy_page *page)
{
    entered = *page;
    return policy_find("lru")->insert(policy, node, page);
}

static void
record_access(struct policy *policy, void *node, const struct policy_page *page)
{
    requested = *page;
    policy_find("lru")->access(policy, node, page);
}

START_TEST(what_a_policy_refuses_evicts_nothing)
{
    struct policy_ops probe = *policy_find("lru");
    struct cache_config config = {policy_spec_of(&probe), 3, 0, 1, 0, true};
    enum cache_error error;
    struct cache *cache;
    struct stored stored;

    probe.admit = refuse_large;
    probe.insert = record_insert;
    probe.access = record_access;
    cache = cache_create(&config, &error);
    pages_store_many(cache, 0, 3, 99);
    stored = pages_put(cache, span_str(pages_url(9)), 100, INT64_MAX, NULL);
    ck_assert_int_eq(stored.outcome, CACHE_NOT_STORED);
    ck_assert_uint_eq(stored.evicted, 0);
    stored_free(&stored);
    ck_assert(pages_hit(cache, pages_url(0)) && pages_hit(cache, pages_url(1)) &&
              pages_hit(cache, pages_url(2)));
    ck_assert_uint_eq(pages_stats(cache).insertions, 3);
    ck_assert_uint_eq(pages_stats(cache).bytes, 3 * 99); /* bodies alone */
    /* In place of an expired page: that one is removed, and no other. */
    ck_assert_int_eq(pages_store(cache, pages_url(1), 100), CACHE_NOT_STORED);
    ck_assert(pages_hit(cache, pages_url(0)) && !pages_hit(cache, pages_url(1)) &&
              pages_hit(cache, pages_url(2)));
    ck_assert_uint_eq(refusals, 2);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);

    /* The policy gets the same description for admission, insertion and a request. */
    ck_assert_int_eq(pages_store(cache, pages_url(7), 50), CACHE_STORED);
    ck_assert(pages_hit(cache, pages_url(7)));
    ck_assert_mem_eq(&asked, &entered, sizeof(asked));
    ck_assert_mem_eq(&asked, &requested, sizeof(asked));
    ck_assert_uint_eq(asked.bytes, 50);
    ck_assert_uint_eq(asked.key, hash64_bytes(span_str(pages_url(7))));
    ck_assert_uint_eq(asked.cost_us, 1);
    ck_assert_uint_eq(asked.next, POLICY_NEVER);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_newcomer_that_competes_may_be_the_victim)
{
    struct policy_ops probe = *policy_find("maxs");
    struct cache_config config = {policy_spec_of(&probe), 0, 1000, 1, 0, true};
    struct stored stored;
    enum cache_error error;
    struct cache *cache;

    probe.enters_first = true;
    cache = cache_create(&config, &error);
    ck_assert_int_eq(pages_store(cache, "http://a/", 300), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://b/", 600), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://c/", 700), CACHE_PASSED_ON);
    ck_assert_int_eq(pages_store(cache, "http://a/", 900), CACHE_PASSED_ON);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(pages_stats(cache).insertions, 2);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);

    stored = pages_put(cache, span_str("http://d/"), 550, INT64_MAX, NULL);
    ck_assert_int_eq(stored.outcome, CACHE_STORED);
    ck_assert_uint_eq(stored.victims.count, 1); /* the larger one */
    ck_assert(span_equal(object_url(stored.victims.pages[0]), span_str("http://b/")));
    ck_assert_uint_eq(pages_stats(cache).bytes, 550);
    ck_assert_uint_eq(pages_stats(cache).evictions, 1);
    ck_assert(cache_is_valid(cache));
    stored_free(&stored);
    cache_destroy(cache);
}
END_TEST

static uint64_t surplus_beyond; /* 0: no bound */

static bool
has_surplus(const struct policy *policy)
{
    return surplus_beyond && !policy_find("lru")->is_valid(policy, surplus_beyond, 0);
}

START_TEST(a_surplus_is_evicted_with_a_hit)
{
    struct policy_ops probe = *policy_find("lru");
    struct cache_config config = {policy_spec_of(&probe), 10, 0, 1, 0, false};
    enum cache_error error;
    struct cache *cache;

    surplus_beyond = 0;
    probe.hit_has_surplus = has_surplus;
    cache = cache_create(&config, &error);
    pages_store_many(cache, 0, 10, 5);
    surplus_beyond = 4; /* pages that may stay */
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(pages_stats(cache).pages, 10);
    ck_assert(pages_hit(cache, pages_url(1)));
    ck_assert_uint_eq(pages_stats(cache).pages, 4);
    ck_assert_uint_eq(pages_stats(cache).evictions, 6);
    ck_assert(pages_hit(cache, pages_url(1)) && pages_hit(cache, pages_url(7)));
    ck_assert(!pages_hit(cache, pages_url(0)) && !pages_hit(cache, pages_url(6)));
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/newcomers");
    TCase *tc = tcase_create("newcomers");

    tcase_add_test(tc, what_a_policy_refuses_evicts_nothing);
    tcase_add_test(tc, a_newcomer_that_competes_may_be_the_victim);
    tcase_add_test(tc, a_surplus_is_evicted_with_a_hit);
    suite_add_tcase(suite, tc);
    return suite;
}
