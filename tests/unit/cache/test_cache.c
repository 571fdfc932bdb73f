#include "cache/cache.h"

#include <malloc.h>

#include "base/djb.h"
#include "base/hash.h"
#include "cache/shard.h"
#include "tests/unit/cache/pages.h"

#define LRU_OVERHEAD cache_page_overhead(policy_find("lru"))

static struct cache_stats
stats_of(struct cache *cache)
{
    struct cache_stats stats;

    cache_get_stats(cache, &stats);
    return stats;
}

static const char *
numbered(int i)
{
    static char url[64];

    snprintf(url, sizeof(url), "http://www.example.com/%d", i);
    return url;
}

static void
store_many(struct cache *cache, int from, int to, size_t body)
{
    for (int i = from; i < to; i++)
        ck_assert_int_ne(pages_store(cache, numbered(i), body), CACHE_NOT_STORED);
}

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
    store_many(cache, 0, 10, 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        error = CACHE_OK;
        ck_assert_ptr_null(cache_create(&bad[i], &error));
        ck_assert_int_eq(error, CACHE_BAD_CONFIG);
        ck_assert_int_eq(cache_configure(cache, &bad[i]), CACHE_BAD_CONFIG);
    }
    cache_get_config(cache, &config);
    ck_assert_uint_eq(config.capacity_pages, 10);
    ck_assert_uint_eq(stats_of(cache).pages, 10);
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
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("")), 0);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(stats_of(cache).pages, 0);
    ck_assert(cache_is_valid(cache));

    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert_int_eq(pages_store(cache, "http://a/", 1), CACHE_STORED);
    ck_assert(pages_hit(cache, "http://a/"));
    config.policy = policy_spec_of(NULL);
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(stats_of(cache).evictions, 1);
    ck_assert_uint_eq(stats_of(cache).bytes, 0);
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

    ck_assert(page_begin(&builder, span_str("http://a/"), span_str("http://bb/"),
                         span_str("X: y\r\n"), 200, 0, 100));
    ck_assert_int_eq(page_append(&builder, "hello", 5), 0);
    page = page_finish(&builder, 0, 0);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_STORED);
    ck_assert_uint_eq(stats_of(cache).bytes, 9 + 10 + 6 + 5 + LRU_OVERHEAD);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_REPLACED);
    ck_assert_uint_eq(stats_of(cache).bytes, 9 + 10 + 6 + 5 + LRU_OVERHEAD);
    cache_purge(cache, span_str("http://a/"));
    ck_assert_uint_eq(stats_of(cache).bytes, 0);
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
    ck_assert_uint_eq(stats_of(cache).pages, 2);

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
    old = cache_fetch(cache, span_str("a"));
    ck_assert_int_eq(pages_store(cache, "a", 5), CACHE_REPLACED);
    ck_assert_uint_eq(stats_of(cache).evictions, 0);
    ck_assert_uint_eq(stats_of(cache).insertions, 3);
    fresh = cache_fetch(cache, span_str("a"));
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
    a = cache_fetch(cache, span_str("a"));
    ck_assert_uint_eq(a->references, 2);
    pages_store(cache, "b", 10);
    ck_assert_uint_eq(a->references, 1);
    b = cache_fetch(cache, span_str("b"));
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

    ck_assert(page_begin(&builder, url, url, span_of(NULL, 0), 200, 0, 0));
    page = page_finish(&builder, 0, 0);
    ck_assert_int_eq(cache_store(cache, page, NULL, NULL), CACHE_STORED);
    page_release(&page);
    ck_assert(!pages_hit(cache, "a"));
    page = cache_fetch(cache, url);
    ck_assert_ptr_nonnull(page);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

/* ---- shards ---------------------------------------------------------------------------------- */

START_TEST(shards_share_the_pages_evenly)
{
    for (unsigned shards = 1; shards <= CACHE_MAX_SHARDS; shards += 9) {
        struct cache *cache = pages_cache("lru", 20000, 0, shards);

        store_many(cache, 0, 10000, 0);
        for (int i = 0; i < 10000; i++)
            ck_assert(pages_hit(cache, numbered(i)));
        /* With half the room used by URLs that differ in their digits, no shard overflowed. */
        ck_assert_uint_eq(stats_of(cache).pages, 10000);
        ck_assert_uint_eq(stats_of(cache).evictions, 0);
        ck_assert(cache_is_valid(cache));
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(shares_add_up_to_the_capacity)
{
    struct cache *cache = pages_cache("lru", 1003, 0, 10);

    store_many(cache, 0, 20000, 0);
    ck_assert_uint_eq(stats_of(cache).pages, 1003);
    ck_assert_uint_eq(stats_of(cache).evictions, 20000 - 1003);
    ck_assert_uint_eq(stats_of(cache).insertions, 20000);
    cache_reset_stats(cache);
    ck_assert_uint_eq(stats_of(cache).pages, 1003);
    ck_assert_uint_eq(stats_of(cache).evictions, 0);
    ck_assert_uint_eq(stats_of(cache).insertions, 0);
    cache_destroy(cache);
}
END_TEST

/* ---- purging --------------------------------------------------------------------------------- */

START_TEST(purging_one)
{
    struct cache *cache = pages_cache("lru", 100, 0, 4);

    store_many(cache, 0, 50, 10);
    ck_assert_uint_eq(cache_purge(cache, span_str(numbered(7))), 1);
    ck_assert_uint_eq(cache_purge(cache, span_str(numbered(7))), 0);
    ck_assert(!pages_hit(cache, numbered(7)));
    ck_assert_uint_eq(stats_of(cache).pages, 49);
    ck_assert_uint_eq(stats_of(cache).evictions, 0);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(purging_by_prefix)
{
    struct cache *cache = pages_cache("lfu", 500, 0, 4);

    store_many(cache, 0, 250, 10);
    /* 1, 10 to 19, 100 to 199 */
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("http://www.example.com/1")), 111);
    ck_assert(!pages_hit(cache, numbered(150)));
    ck_assert(pages_hit(cache, numbered(215)));
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("http://www.example.org/")), 0);
    ck_assert_uint_eq(stats_of(cache).pages, 139);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(cache_purge_prefix(cache, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(stats_of(cache).bytes, 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(purging_all)
{
    struct cache *cache = pages_cache("maxs", 500, 0, 3);
    struct page *held;

    store_many(cache, 0, 250, 10);
    held = cache_fetch(cache, span_str(numbered(3)));
    ck_assert_uint_eq(cache_purge_all(cache), 250);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(stats_of(cache).pages, 0);
    ck_assert_uint_eq(stats_of(cache).bytes, 0);
    ck_assert_uint_eq(stats_of(cache).insertions, 250);
    ck_assert_uint_eq(stats_of(cache).evictions, 0);
    ck_assert_uint_eq(held->references, 1);
    page_release(&held);
    store_many(cache, 0, 250, 10);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

/* ---- another configuration ------------------------------------------------------------------- */

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

        store_many(cache, 0, 20, 3);
        configure(cache, others[i], 100, 0, 1);
        for (int n = 0; n < 20; n++) {
            struct cache_victims victims = {0};
            struct page *page = pages_make("http://new/", 0);

            configure(cache, others[i], (uint64_t)(20 - n), 0, 1);
            cache_store(cache, page, &victims, NULL);
            page_release(&page);
            ck_assert_uint_eq(victims.count, 1);
            ck_assert(span_equal(page_url(victims.pages[0]), span_str(numbered(n))));
            cache_victims_free(&victims);
            cache_purge(cache, span_str("http://new/"));
        }
        cache_destroy(cache);
    }
}
END_TEST

START_TEST(what_does_not_fit_leaves_by_the_new_policy)
{
    struct cache *cache = pages_cache("fifo", 10, 0, 1);

    for (int i = 0; i < 10; i++)
        pages_store(cache, numbered(i), (size_t)(i * 37 % 10 * 100)); /* 0 7 4 1 8 5 2 9 6 3 */
    configure(cache, "maxs", 4, 0, 1);
    ck_assert_uint_eq(stats_of(cache).pages, 4);
    ck_assert_uint_eq(stats_of(cache).evictions, 6);
    ck_assert_uint_eq(stats_of(cache).insertions, 10);
    /* Entering one by one, the largest leaving each time, the last to enter is always in. */
    ck_assert(pages_hit(cache, numbered(9)) && pages_hit(cache, numbered(0)));
    ck_assert(pages_hit(cache, numbered(3)) && pages_hit(cache, numbered(6)));
    cache_destroy(cache);
}
END_TEST

/* Where newcomers compete, some are passed on while the new policy is filled: nothing is lost. */
START_TEST(a_new_policy_may_pass_pages_on)
{
    struct cache *cache = pages_cache("fifo", 10, 0, 1);

    for (int i = 0; i < 10; i++)
        pages_store(cache, numbered(i), (size_t)(100 + i * 1000));
    configure(cache, "gdsf", 4, 0, 1);
    ck_assert_uint_eq(stats_of(cache).pages, 4);
    ck_assert_uint_eq(stats_of(cache).evictions, 6);
    ck_assert(pages_hit(cache, numbered(0)));  /* the smallest is worth most */
    ck_assert(!pages_hit(cache, numbered(4))); /* it was the first to be passed on */
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(another_capacity_alone_keeps_what_the_policy_knows)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);

    store_many(cache, 0, 10, 1);
    ck_assert(pages_hit(cache, numbered(0)));
    ck_assert(pages_hit(cache, numbered(1)));
    configure(cache, "lru", 3, 0, 1);
    ck_assert_uint_eq(stats_of(cache).evictions, 7);
    ck_assert(pages_hit(cache, numbered(0)) && pages_hit(cache, numbered(1)) &&
              pages_hit(cache, numbered(9)));
    configure(cache, "lru", 100, 0, 1);
    ck_assert_uint_eq(stats_of(cache).pages, 3);
    store_many(cache, 10, 90, 1);
    ck_assert_uint_eq(stats_of(cache).pages, 83);
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

START_TEST(a_policy_that_looks_at_the_capacity_hears_of_a_new_one)
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
    config.shards = 1; /* a new instance is told when it is made */
    ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    ck_assert_uint_eq(resizes, 2);
    cache_destroy(cache);
}
END_TEST

/* ---- policies that refuse, and whose newcomers compete --------------------------------------- */

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

START_TEST(what_a_policy_refuses_changes_nothing)
{
    struct policy_ops probe = *policy_find("lru");
    struct cache_config config = {policy_spec_of(&probe), 3, 0, 1, 0, true};
    enum cache_error error;
    struct cache *cache;
    size_t evicted = 99;
    struct page *page = pages_make(numbered(9), 100);

    probe.admit = refuse_large;
    probe.insert = record_insert;
    probe.access = record_access;
    cache = cache_create(&config, &error);
    store_many(cache, 0, 3, 99);
    ck_assert_int_eq(cache_store(cache, page, NULL, &evicted), CACHE_NOT_STORED);
    ck_assert_uint_eq(evicted, 0);
    ck_assert_int_eq(pages_store(cache, numbered(1), 100), CACHE_NOT_STORED);
    ck_assert(pages_hit(cache, numbered(0)) && pages_hit(cache, numbered(1)) &&
              pages_hit(cache, numbered(2)));
    ck_assert_uint_eq(refusals, 2);
    ck_assert_uint_eq(stats_of(cache).insertions, 3);
    ck_assert_uint_eq(stats_of(cache).bytes, 3 * 99); /* bodies alone */

    /* A page is told alike when it is asked for, enters and is requested. */
    ck_assert_int_eq(pages_store(cache, numbered(7), 50), CACHE_STORED);
    ck_assert(pages_hit(cache, numbered(7)));
    ck_assert_mem_eq(&asked, &entered, sizeof(asked));
    ck_assert_mem_eq(&asked, &requested, sizeof(asked));
    ck_assert_uint_eq(asked.bytes, 50);
    ck_assert_uint_eq(asked.key, hash64_bytes(span_str(numbered(7))));
    ck_assert_uint_eq(asked.cost_us, 1);
    ck_assert_uint_eq(asked.next, POLICY_NEVER);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_newcomer_that_competes_may_be_the_one_to_leave)
{
    struct policy_ops probe = *policy_find("maxs");
    struct cache_config config = {policy_spec_of(&probe), 0, 1000, 1, 0, true};
    struct cache_victims victims = {0};
    enum cache_error error;
    struct cache *cache;
    struct page *page;

    probe.enters_first = true;
    cache = cache_create(&config, &error);
    ck_assert_int_eq(pages_store(cache, "http://a/", 300), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://b/", 600), CACHE_STORED);
    ck_assert_int_eq(pages_store(cache, "http://c/", 700), CACHE_PASSED_ON);
    ck_assert_int_eq(pages_store(cache, "http://a/", 900), CACHE_PASSED_ON);
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(stats_of(cache).insertions, 2);
    ck_assert_uint_eq(stats_of(cache).evictions, 0);

    page = pages_make("http://d/", 550); /* the larger one leaves for it */
    ck_assert_int_eq(cache_store(cache, page, &victims, NULL), CACHE_STORED);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert(span_equal(page_url(victims.pages[0]), span_str("http://b/")));
    ck_assert_uint_eq(stats_of(cache).bytes, 550);
    ck_assert_uint_eq(stats_of(cache).evictions, 1);
    ck_assert(cache_is_valid(cache));
    cache_victims_free(&victims);
    page_release(&page);
    cache_destroy(cache);
}
END_TEST

static uint64_t surplus_beyond;

static bool
has_surplus(const struct policy *policy)
{
    return !policy_find("lru")->is_valid(policy, surplus_beyond);
}

START_TEST(a_surplus_leaves_with_a_hit)
{
    struct policy_ops probe = *policy_find("lru");
    struct cache_config config = {policy_spec_of(&probe), 10, 0, 1, 0, false};
    enum cache_error error;
    struct cache *cache;

    probe.has_surplus = has_surplus;
    cache = cache_create(&config, &error);
    store_many(cache, 0, 10, 5);
    surplus_beyond = 4; /* as many may stay */
    ck_assert(!pages_hit(cache, "http://a/"));
    ck_assert_uint_eq(stats_of(cache).pages, 10);
    ck_assert(pages_hit(cache, numbered(1)));
    ck_assert_uint_eq(stats_of(cache).pages, 4);
    ck_assert_uint_eq(stats_of(cache).evictions, 6);
    ck_assert(pages_hit(cache, numbered(1)) && pages_hit(cache, numbered(7)));
    ck_assert(!pages_hit(cache, numbered(0)) && !pages_hit(cache, numbered(6)));
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(fewer_bytes_take_first_who_cannot_stay)
{
    struct cache *cache = pages_cache("lru", 0, 100000, 1);

    pages_store(cache, "small", 10);
    pages_store(cache, "smaller", 1);
    pages_store(cache, "large", 5000);
    configure(cache, "lru", 0, 1000, 1);
    ck_assert(pages_hit(cache, "small") && pages_hit(cache, "smaller"));
    ck_assert(!pages_hit(cache, "large"));
    ck_assert_uint_eq(stats_of(cache).evictions, 1);

    pages_store(cache, "middle", 400);
    configure(cache, "fifo", 0, 500, 1); /* the same when the policy is another */
    ck_assert(pages_hit(cache, "small") && pages_hit(cache, "smaller"));
    ck_assert_uint_eq(stats_of(cache).evictions, 2);
    cache_destroy(cache);
}
END_TEST

/* Nodes of another policy may be larger, and are paid for. */
START_TEST(bytes_are_counted_anew_for_another_policy)
{
    uint64_t lru = LRU_OVERHEAD, lirs = cache_page_overhead(policy_find("lirs"));
    struct cache *cache = pages_cache("lru", 0, 10 * (9 + 100 + lru), 1);
    char url[32];

    for (int i = 0; i < 10; i++) {
        snprintf(url, sizeof(url), "http://%d/", i);
        ck_assert_int_eq(pages_store(cache, url, 100), CACHE_STORED);
    }
    ck_assert_uint_eq(stats_of(cache).bytes, 10 * (9 + 100 + lru));
    configure(cache, "lirs", 0, 10 * (9 + 100 + lru), 1);
    ck_assert_uint_lt(stats_of(cache).pages, 10);
    ck_assert_uint_eq(stats_of(cache).bytes, stats_of(cache).pages * (9 + 100 + lirs));
    configure(cache, "lru", 0, 10 * (9 + 100 + lru), 2);
    ck_assert_uint_eq(stats_of(cache).bytes, stats_of(cache).pages * (9 + 100 + lru));
    cache_destroy(cache);
}
END_TEST

START_TEST(any_number_of_shards_keeps_all_pages)
{
    static const unsigned counts[] = {1, 64, 2, 63, 7, 8, 1};
    struct cache *cache = pages_cache("lru", 10000, 0, 3);

    store_many(cache, 0, 1000, 5);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        configure(cache, "lru", 10000, 0, counts[i]);
        for (int n = 0; n < 1000; n++)
            ck_assert(pages_hit(cache, numbered(n)));
        ck_assert_uint_eq(stats_of(cache).pages, 1000);
        ck_assert_uint_eq(stats_of(cache).evictions, 0);
        ck_assert_uint_eq(stats_of(cache).insertions, 1000);
    }
    ck_assert_uint_eq(cache_purge_all(cache), 1000);
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
    ck_assert_uint_le(sizeof(struct page), 40);
    ck_assert_uint_gt(overhead_of(policy_find("lru"), 10), 0);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache");
    TCase *config = tcase_create("config");
    TCase *store = tcase_create("store");
    TCase *shards = tcase_create("shards");
    TCase *purge = tcase_create("purge");
    TCase *other = tcase_create("configure");
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
    tcase_add_test(shards, shards_share_the_pages_evenly);
    tcase_add_test(shards, shares_add_up_to_the_capacity);
    suite_add_tcase(suite, shards);
    tcase_add_test(purge, purging_one);
    tcase_add_test(purge, purging_by_prefix);
    tcase_add_test(purge, purging_all);
    suite_add_tcase(suite, purge);
    tcase_add_test(other, a_new_policy_sees_pages_in_order_of_entry);
    tcase_add_test(other, what_does_not_fit_leaves_by_the_new_policy);
    tcase_add_test(other, a_new_policy_may_pass_pages_on);
    tcase_add_test(other, another_capacity_alone_keeps_what_the_policy_knows);
    tcase_add_test(other, a_policy_that_looks_at_the_capacity_hears_of_a_new_one);
    tcase_add_test(other, what_a_policy_refuses_changes_nothing);
    tcase_add_test(other, a_surplus_leaves_with_a_hit);
    tcase_add_test(other, a_newcomer_that_competes_may_be_the_one_to_leave);
    tcase_add_test(other, fewer_bytes_take_first_who_cannot_stay);
    tcase_add_test(other, bytes_are_counted_anew_for_another_policy);
    tcase_add_test(other, any_number_of_shards_keeps_all_pages);
    suite_add_tcase(suite, other);
    tcase_add_test(memory, a_page_costs_no_more_than_it_is_charged);
    suite_add_tcase(suite, memory);
    return suite;
}
