/* Purging one page, by prefix, and all. */
#define UNIT_STARTS_NO_THREAD

#include "cache/cache.h"

#include <stdlib.h>

#include "cache/slots.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

START_TEST(purging_one)
{
    struct cache *cache = pages_cache("lru", 100, 0, 4);

    pages_store_many(cache, 0, 50, 10);
    ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str(pages_url(7))), 1);
    ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str(pages_url(7))), 0);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str(pages_url(7))), 0);
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
    ck_assert_uint_eq(count_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/1")), 111);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/1")), 111);
    ck_assert(!pages_hit(cache, pages_url(150)));
    ck_assert(pages_hit(cache, pages_url(215)));
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.org/")), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 139);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(count_by(cache, CACHE_BY_PREFIX, span_of(NULL, 0)), 139);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_of(NULL, 0)), 139);
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

/* What becomes of a page, by its number; meanwhile others come, and pages are hit. */
struct deciding {
    struct cache *cache;
    int decided, stored;
};

static enum cache_fate
decide(struct object *object, const void *context)
{
    struct deciding *deciding = (struct deciding *)(uintptr_t)context;
    static const enum cache_fate fates[] = {CACHE_SPARED, CACHE_EXPIRED, CACHE_REMOVED};
    const int number = atoi(strrchr(object_url(object).ptr, '/') + 1);

    if (number >= 1000)
        return CACHE_SPARED;
    deciding->decided++;
    if (deciding->stored < 3000) {
        pages_store_many(deciding->cache, 1000 + deciding->stored, 1010 + deciding->stored, 10);
        deciding->stored += 10;
        ck_assert(pages_hit(deciding->cache, pages_url(1000)));
    }
    return fates[number % 3];
}

/* No lock is held while it is decided; each page that was there at first is decided once. */
START_TEST(purging_while_others_come)
{
    struct cache *cache = pages_cache("lru", 10000, 0, 2);
    struct deciding deciding = {.cache = cache};
    const struct cache_scope scope = {.decide = decide, .context = &deciding};

    pages_store_many(cache, 0, 900, 10);
    ck_assert_uint_eq(
        cache_purge(cache,
                    &(struct cache_purge){.by = CACHE_BY_PREFIX, .scope = &scope, .now_us = 1000}),
        600);
    ck_assert_int_eq(deciding.decided, 900);
    for (int i = 0; i < 900; i++) {
        ck_assert_int_eq(pages_hit_at(cache, pages_url(i), 2000), i % 3 == 0);
        ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str(pages_url(i))), i % 3 != 2);
    }
    ck_assert_uint_eq(pages_stats(cache).pages, 600 + 3000);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

/* An object that replaces another one after that was decided about is not concerned. */
static enum cache_fate
replace(struct object *object, const void *context)
{
    struct cache *cache = (struct cache *)(uintptr_t)context;

    (void)object;
    ck_assert_int_eq(pages_store(cache, pages_url(1), 20), CACHE_REPLACED);
    return CACHE_REMOVED;
}

START_TEST(purging_what_is_replaced)
{
    struct cache *cache = pages_cache("lru", 100, 0, 1);
    const struct cache_scope scope = {.decide = replace, .context = cache};

    pages_store_many(cache, 1, 2, 10);
    ck_assert_uint_eq(
        cache_purge(cache, &(struct cache_purge){.by = CACHE_BY_PREFIX, .scope = &scope}), 0);
    ck_assert(pages_hit(cache, pages_url(1)));
    cache_destroy(cache);
}
END_TEST

/* The shards are rebuilt while it is decided. */
static enum cache_fate
rebuild(struct object *object, const void *context)
{
    struct deciding *deciding = (struct deciding *)(uintptr_t)context;
    struct cache_config config;

    (void)object;
    if (deciding->decided++ == 300) {
        cache_get_config(deciding->cache, &config);
        config.shards = 5;
        ck_assert_int_eq(cache_configure(deciding->cache, &config), CACHE_OK);
    }
    return CACHE_REMOVED;
}

START_TEST(purging_while_shards_are_rebuilt)
{
    struct cache *cache = pages_cache("lru", 5000, 0, 2);
    struct deciding deciding = {.cache = cache};
    const struct cache_scope scope = {.decide = rebuild, .context = &deciding};

    pages_store_many(cache, 0, 1000, 10);
    ck_assert_uint_eq(
        cache_purge(cache, &(struct cache_purge){.by = CACHE_BY_PREFIX, .scope = &scope}), 1000);
    ck_assert_int_gt(deciding.decided, 1000);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

/* How many pages were removed since the last call, which is without a lock. */
struct counting {
    struct cache *cache;
    uint64_t left, most;
};

static enum cache_fate
count_removed(struct object *object, const void *context)
{
    struct counting *counting = (struct counting *)(uintptr_t)context;
    const uint64_t left = pages_stats(counting->cache).pages;

    (void)object;
    if (counting->left - left > counting->most)
        counting->most = counting->left - left;
    counting->left = left;
    return CACHE_REMOVED;
}

START_TEST(a_lock_is_held_for_a_slice)
{
    for (enum cache_by by = CACHE_BY_PREFIX; by <= CACHE_BY_TAG; by++) {
        struct cache *cache = pages_cache("lru", 10000, 0, 1);
        struct counting counting = {.cache = cache, .left = 3000};
        const struct cache_scope scope = {.decide = count_removed, .context = &counting};

        for (int i = 0; i < 3000; i++)
            pages_store_tagged(cache, pages_url(i), "tag");
        ck_assert_uint_eq(
            cache_purge(cache,
                        &(struct cache_purge){.by = by,
                                              .name = span_str(by == CACHE_BY_TAG ? "tag" : ""),
                                              .scope = &scope}),
            3000);
        ck_assert_uint_gt(counting.most, 0);
        ck_assert_uint_le(counting.most, PURGE_SLICE);
        pages_end(cache);
    }
}
END_TEST

/* Stores the page that was removed first again, when the next slice is decided. */
struct restoring {
    struct cache *cache;
    char first[64];
    unsigned decided;
};

static enum cache_fate
restore(struct object *object, const void *context)
{
    struct restoring *restoring = (struct restoring *)(uintptr_t)context;
    const struct span url = object_url(object);

    if (restoring->decided++ == 0)
        snprintf(restoring->first, sizeof(restoring->first), "%.*s", (int)url.len, url.ptr);
    if (restoring->decided == PURGE_SLICE + 1)
        pages_store_tagged(restoring->cache, restoring->first, "");
    return CACHE_REMOVED;
}

/* Not at the table's beginning, where it would pass what it has emptied, under the lock. */
START_TEST(a_walk_goes_on_behind_what_it_has_removed)
{
    struct cache *cache = pages_cache("lru", 10000, 0, 1);
    struct restoring restoring = {.cache = cache};
    const struct cache_scope scope = {.decide = restore, .context = &restoring};

    pages_store_many(cache, 0, 1000, 10);
    ck_assert_uint_eq(
        cache_purge(cache, &(struct cache_purge){.by = CACHE_BY_PREFIX, .scope = &scope}), 1000);
    ck_assert_uint_eq(restoring.decided, 1000);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    pages_end(cache);
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
    tcase_add_test(purge, purging_while_others_come);
    tcase_add_test(purge, purging_what_is_replaced);
    tcase_add_test(purge, purging_while_shards_are_rebuilt);
    tcase_add_test(purge, a_lock_is_held_for_a_slice);
    tcase_add_test(purge, a_walk_goes_on_behind_what_it_has_removed);
    suite_add_tcase(suite, purge);
    return suite;
}
