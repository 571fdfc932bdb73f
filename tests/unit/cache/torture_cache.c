/*
 * The cache with every allocation failing in turn: whatever failed is answered, nothing is lost,
 * nobody is evicted in vain, and the leak checker sees that nothing was left behind.
 */
#include <errno.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/torture.h"

#define PAGES 60

static struct page *pages[PAGES];

static void
make_pages(void)
{
    char url[32];

    for (int i = 0; i < PAGES; i++) {
        snprintf(url, sizeof(url), "http://h/%d", i);
        pages[i] = pages_make(url, (size_t)(i * 37 % 101));
    }
}

static void
free_pages(void)
{
    for (int i = 0; i < PAGES; i++)
        page_release(&pages[i]);
}

/* The end of a cache: nobody but this test holds a page any more. */
static void
destroy(struct cache *cache)
{
    cache_destroy(cache);
    for (int i = 0; i < PAGES; i++)
        ck_assert_uint_eq(pages[i]->references, 1);
}

static bool
is_inside(struct cache *cache, int i)
{
    struct page *page = cache_lookup(cache, page_url(pages[i]), 0);
    bool inside = page != NULL;

    ck_assert(!inside || page == pages[i]);
    page_release(&page);
    return inside;
}

static uint64_t
count_inside(struct cache *cache)
{
    struct cache_stats stats;

    cache_get_stats(cache, &stats);
    return stats.pages;
}

static void
build_page(void *context)
{
    struct page_builder builder;
    struct page *page;
    struct span body;

    (void)context;
    if (!page_begin(&builder, NULL, span_str("u"), span_str("f"), span_str("h"), 200, 0, 100000)) {
        ck_assert(torture_failed());
        page_abandon(&builder);
        return;
    }
    for (int i = 0; i < 10000; i++) {
        int error = page_append(&builder, "0123456", 7);

        if (error) {
            ck_assert(torture_failed());
            ck_assert_int_eq(error, ENOMEM);
            ck_assert_uint_eq(builder.page->body_len, (unsigned)i * 7); /* it keeps what it had */
            if (i % 2) {
                page_abandon(&builder);
                return;
            }
            ck_assert_int_eq(page_append(&builder, "0123456", 7), 0);
        }
    }
    page = page_finish(&builder, 0, 0);
    body = page_body(page);
    ck_assert_uint_eq(body.len, 70000);
    for (size_t i = 0; i < body.len; i += 7)
        ck_assert_mem_eq(body.ptr + i, "0123456", 7);
    ck_assert_int_eq(body.ptr[body.len], 0);
    page_release(&page);
}

START_TEST(building_a_page)
{
    /* The page, seven growths from 1 KiB, and the trimming. */
    ck_assert_uint_ge(torture_walk(build_page, NULL), 9);
}
END_TEST

/* ---- where an account is charged ------------------------------------------------------------- */

static struct cache *reclaimed;
static uint64_t reclaimed_bytes;

static bool
reclaim(void *context, size_t bytes)
{
    uint64_t count;

    (void)context;
    /* Nothing more fails: the failure was the one. */
    ck_assert(torture_failed());
    reclaimed_bytes += cache_reclaim(reclaimed, bytes, &count);
    return count > 0;
}

static void
build_charged_page(void *context)
{
    struct memory_account *account = context;
    struct page_builder builder;
    struct page *page;

    ck_assert(
        page_begin(&builder, account, span_str("u"), span_str("f"), span_str("h"), 200, 0, 100000));
    for (int i = 0; i < 10000; i++)
        ck_assert_int_eq(page_append(&builder, "0123456", 7), 0);
    page = page_finish(&builder, 0, 0);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), page_size(page));
    page_release(&page);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
    ck_assert(cache_is_valid(reclaimed));
}

START_TEST(building_a_page_evicts_others_where_memory_fails)
{
    const struct memory_hooks hooks = {.reclaim = reclaim};
    struct memory_account account;
    struct cache_stats stats;
    unsigned seams;

    reclaimed = pages_cache("lru", 0, 16 << 20, 2);
    pages_store_many(reclaimed, 0, 2000, 2000);
    memory_account_init(&account, UINT64_MAX, &hooks);
    reclaimed_bytes = 0;
    seams = torture_walk(build_charged_page, &account);
    ck_assert_uint_ge(seams, 9);
    cache_get_stats(reclaimed, &stats);
    /* At each seam but that of the trimming, and never much. */
    ck_assert_uint_ge(stats.evictions, seams - 1);
    ck_assert_uint_lt(stats.evictions, 1000);
    ck_assert_uint_gt(reclaimed_bytes, 70000);
    cache_destroy(reclaimed);
}
END_TEST

/* Without memory a charge is taken back. */
static void
build_page_in_vain(void *context)
{
    struct memory_account *account = context;
    struct page_builder builder;

    if (page_begin(&builder, account, span_str("u"), span_str("f"), span_str("h"), 200, 0,
                   100000)) {
        for (int i = 0; i < 10000; i++) {
            int error = page_append(&builder, "0123456", 7);

            ck_assert(error == 0 || (error == ENOMEM && torture_failed()));
            ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), page_builder_size(&builder));
            if (error)
                break;
        }
    } else {
        ck_assert(torture_failed());
        ck_assert_int_eq(builder.error, ENOMEM);
    }
    page_abandon(&builder);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
}

START_TEST(a_charge_without_memory_is_taken_back)
{
    struct memory_account account;

    memory_account_init(&account, UINT64_MAX, NULL);
    ck_assert_uint_ge(torture_walk(build_page_in_vain, &account), 8);
}
END_TEST

static void
create_cache(void *context)
{
    enum cache_error error = CACHE_BAD_CONFIG;
    struct cache *cache = cache_create(context, &error);

    ck_assert_int_eq(error, cache ? CACHE_OK : CACHE_NO_MEMORY);
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
    ck_assert_uint_eq(torture_walk(create_cache, &config), 1);
}
END_TEST

/* Stores all pages; each that could not be stored has changed nothing. */
static void
store_all(void *context)
{
    const struct cache_config *config = context;
    enum cache_error error;
    struct cache *cache = cache_create(config, &error);
    uint64_t refused = 0, handed = 0, evicted_in_all = 0;
    bool chooses = config->policy.ops->admit != NULL; /* so that a refusal says nothing */
    struct cache_stats stats;

    if (!cache)
        return;
    for (int i = 0; i < PAGES; i++) {
        uint64_t before = count_inside(cache);
        struct cache_victims victims = {0};
        size_t evicted = 99;
        enum cache_outcome outcome = cache_store(cache, pages[i], &victims, &evicted);

        if (outcome == CACHE_NOT_STORED) {
            refused += !chooses;
            ck_assert_uint_eq(evicted, 0);
            ck_assert_uint_eq(victims.count, 0);
            ck_assert_uint_eq(count_inside(cache), before);
            ck_assert(!is_inside(cache, i));
        } else if (outcome == CACHE_PASSED_ON) {
            ck_assert(config->policy.ops->enters_first);
            ck_assert(!is_inside(cache, i));
            ck_assert_uint_eq(count_inside(cache), before - evicted);
        } else {
            ck_assert_uint_eq(count_inside(cache), before + 1 - evicted);
            ck_assert(is_inside(cache, i)); /* a request: with a surplus others leave */
        }
        /* Without memory for the list victims are only counted. */
        ck_assert(victims.count == evicted || (victims.count == 0 && torture_failed()));
        handed += victims.count;
        evicted_in_all += evicted;
        cache_victims_free(&victims);
        ck_assert(cache_is_valid(cache));
    }
    cache_get_stats(cache, &stats);
    if (config->policy.ops->has_surplus)
        ck_assert_uint_ge(stats.evictions, evicted_in_all);
    else
        ck_assert_uint_eq(stats.evictions, evicted_in_all);
    ck_assert_uint_le(refused, torture_failed());
    ck_assert_uint_le(evicted_in_all - handed, 2 * torture_failed() + 3 * refused);

    /* Again: all of them replace or enter. */
    for (int i = 0; i < PAGES; i++)
        refused += cache_store(cache, pages[i], NULL, NULL) == CACHE_NOT_STORED && !chooses;
    ck_assert_uint_le(refused, torture_failed());
    ck_assert(cache_is_valid(cache));
    destroy(cache);
}

START_TEST(storing)
{
    for (size_t p = 0; policies[p]; p++) {
        if (policies[p]->needs_future)
            continue;
        ck_assert_uint_ge(
            torture_walk(store_all, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_pages = 40,
                                                           .shards = 1}),
            PAGES);
        ck_assert_uint_ge(
            torture_walk(store_all, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_bytes = 8000,
                                                           .shards = 2}),
            PAGES);
    }
}
END_TEST

/* A replacement for which there is no memory leaves the old page where it is. */
static void
replace_one(void *context)
{
    struct cache *cache = context;
    uint64_t before = count_inside(cache);

    switch (cache_store(cache, pages[5], NULL, NULL)) {
    case CACHE_REPLACED:
        ck_assert(!torture_failed());
        break;
    case CACHE_NOT_STORED:
        ck_assert(torture_failed());
        break;
    case CACHE_STORED:
    case CACHE_PASSED_ON:
        ck_abort_msg("the old page was gone");
    }
    ck_assert_uint_eq(count_inside(cache), before);
    ck_assert(is_inside(cache, 5));
}

START_TEST(replacing)
{
    struct cache *cache = pages_cache("lru", 50, 0, 1);

    for (int i = 0; i < 50; i++)
        cache_store(cache, pages[i], NULL, NULL);
    ck_assert_uint_eq(torture_walk(replace_one, cache), 1);
    destroy(cache);
}
END_TEST

static void
fetch_and_purge(void *context)
{
    struct cache *cache = context;
    uint64_t before, gone;

    torture_fail_at(0);
    for (int i = 0; i < PAGES; i++)
        ck_assert_int_ne(cache_store(cache, pages[i], NULL, NULL), CACHE_NOT_STORED);
    before = count_inside(cache);
    torture_fail_at(1);
    for (int i = 0; i < PAGES; i++)
        ck_assert(is_inside(cache, i));
    gone = cache_purge(cache, page_url(pages[7]));
    gone += cache_purge_prefix(cache, span_str("http://h/1"));
    ck_assert_uint_eq(gone, 1 + 11);
    ck_assert_uint_eq(count_inside(cache), before - gone);
    ck_assert(cache_is_valid(cache));
}

START_TEST(fetching_and_purging_a_few_cannot_fail)
{
    struct cache *cache = pages_cache("lru", 2 * PAGES, 0, 1);

    fetch_and_purge(cache);
    /* Only giving memory back asks for memory, and may be refused. */
    torture_fail_at(0);
    destroy(cache);
}
END_TEST

static void
purge_all(void *context)
{
    struct cache *cache = pages_cache("lru", 1000, 0, 3);

    (void)context;
    for (int i = 0; i < PAGES; i++)
        ck_assert_int_eq(cache_store(cache, pages[i], NULL, NULL), CACHE_STORED);
    torture_fail_at(*(unsigned *)context);
    ck_assert_uint_eq(cache_purge_all(cache), PAGES);
    (*(unsigned *)context)++;
    ck_assert_uint_eq(count_inside(cache), 0);
    ck_assert(cache_is_valid(cache));
    destroy(cache);
}

START_TEST(purging_all_cannot_fail)
{
    unsigned n = 1;

    do {
        torture_fail_at(0);
        purge_all(&n);
    } while (torture_failed());
    torture_fail_at(0);
    ck_assert_uint_gt(n, 3 * 2);
}
END_TEST

static void
check_configured(struct cache *cache, const struct cache_config *config,
                 const struct cache_stats *before)
{
    struct cache_config told;
    struct cache_stats after;

    cache_get_stats(cache, &after);
    cache_get_config(cache, &told);
    ck_assert(policy_spec_equal(&told.policy, &config->policy));
    ck_assert_uint_eq(told.capacity_pages, config->capacity_pages);
    ck_assert_uint_eq(told.capacity_bytes, config->capacity_bytes);
    ck_assert_uint_eq(told.shards, config->shards);
    ck_assert_uint_eq(after.insertions, before->insertions);
    ck_assert_uint_eq(after.evictions, before->pages - after.pages);
    ck_assert(cache_is_valid(cache));
}

/* With the n-th allocation failing: all of the change, or none of it. False if n is not reached. */
static bool
configure(const struct cache_config *from, const struct cache_config *to, unsigned n,
          unsigned *refused)
{
    enum cache_error error;
    struct cache *cache = cache_create(from, &error);
    struct cache_stats before;
    bool failed;

    for (int i = 0; i < PAGES; i++)
        ck_assert_int_eq(cache_store(cache, pages[i], NULL, NULL), CACHE_STORED);
    cache_get_stats(cache, &before);
    torture_fail_at(n);
    error = cache_configure(cache, to);
    failed = torture_failed();
    torture_fail_at(0);
    if (error) {
        ck_assert(failed);
        ck_assert_int_eq(error, CACHE_NO_MEMORY);
        check_configured(cache, from, &before);
        for (int i = 0; i < PAGES; i++)
            ck_assert(is_inside(cache, i));
        ++*refused;
    } else {
        check_configured(cache, to, &before); /* a table that could not grow is no error */
    }
    destroy(cache);
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
        {NULL, 0, 0, 1, 1},
        {"lfu", 0, 600, 3, 7},
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

    tcase_add_unchecked_fixture(tc, make_pages, free_pages);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, building_a_page);
    tcase_add_test(tc, building_a_page_evicts_others_where_memory_fails);
    tcase_add_test(tc, a_charge_without_memory_is_taken_back);
    tcase_add_test(tc, creating);
    tcase_add_test(tc, storing);
    tcase_add_test(tc, replacing);
    tcase_add_test(tc, fetching_and_purging_a_few_cannot_fail);
    tcase_add_test(tc, purging_all_cannot_fail);
    tcase_add_test(tc, configuring);
    suite_add_tcase(suite, tc);
    return suite;
}
