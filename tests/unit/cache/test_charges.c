/* Who is charged for a page: the account while no cache holds it, and eviction on demand. */
#include <errno.h>
#include <pthread.h>

#include "tests/unit/cache/pages.h"

#define LIMIT ((uint64_t)64 << 20)

static struct memory_account account;

static void
set_up(void)
{
    memory_account_init(&account, LIMIT, NULL);
}

static uint64_t
charged(void)
{
    return memory_used(&account, MEMORY_PAGES);
}

static struct page *
make(const char *url, size_t body)
{
    static const char bytes[100000];
    struct page_builder builder;

    if (!page_begin(&builder, &account, span_str(url), span_of(NULL, 0), span_of(NULL, 0), 200, 0,
                    sizeof(bytes)))
        return NULL;
    ck_assert_int_eq(page_append(&builder, bytes, body), 0);
    return page_finish(&builder, 0, 0);
}

START_TEST(a_page_is_charged_to_the_byte)
{
    static const char body[5000];
    struct page_builder builder;
    struct page *page;
    uint64_t whole;

    ck_assert(page_begin(&builder, &account, span_str("http://a/"), span_of(NULL, 0),
                         span_of(NULL, 0), 200, 10, 100000));
    whole = sizeof(*page) + strlen("http://a/") + 1;
    ck_assert_uint_eq(charged(), whole + 10);
    ck_assert_uint_eq(page_builder_size(&builder), whole + 10);
    ck_assert_int_eq(page_append(&builder, body, sizeof(body)), 0);
    ck_assert_uint_ge(charged(), whole + sizeof(body));
    ck_assert_uint_eq(page_builder_size(&builder), charged());
    page = page_finish(&builder, 0, 0);
    ck_assert_uint_eq(page_builder_size(&builder), 0);
    ck_assert_uint_eq(charged(), whole + sizeof(body));
    ck_assert_uint_eq(page_size(page), whole + sizeof(body));
    page_release(&page);
    ck_assert_uint_eq(charged(), 0);

    ck_assert(page_begin(&builder, &account, span_str("http://a/"), span_of(NULL, 0),
                         span_of(NULL, 0), 200, 10, 100000));
    page_abandon(&builder);
    page_abandon(&builder);
    ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(a_page_does_not_grow_beyond_the_account)
{
    static const char body[8192];
    const uint64_t share = 6 * 1024;
    struct page_builder builder;

    memory_account_init(&account, 8 * 1024, NULL);
    ck_assert(page_begin(&builder, &account, span_str("u"), span_of(NULL, 0), span_of(NULL, 0), 200,
                         0, 1 << 20));
    ck_assert_int_eq(page_append(&builder, body, 3000), 0);
    ck_assert_int_eq(page_append(&builder, body, 4000), ENOBUFS);
    /* It keeps what it had. */
    ck_assert_uint_eq(builder.page->body_len, 3000);
    ck_assert_uint_le(charged(), share);
    ck_assert_int_eq(page_append(&builder, body, 500), 0);
    page_abandon(&builder);
    ck_assert_uint_eq(charged(), 0);
    ck_assert(!page_begin(&builder, &account, span_str("u"), span_of(NULL, 0), span_of(NULL, 0),
                          200, 8000, 1 << 20));
    ck_assert_int_eq(builder.error, ENOBUFS);
    ck_assert_uint_eq(charged(), 0);
    ck_assert_uint_eq(memory_refusals(&account), 2);
}
END_TEST

START_TEST(what_the_cache_holds_is_not_charged)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);
    struct page *a = make("http://a/", 1000), *b = make("http://b/", 2000);
    struct page *c = make("http://c/", 3000), *read;
    uint64_t size_a = page_size(a), size_b = page_size(b), size_c = page_size(c);
    struct cache_victims victims = {0};

    ck_assert_uint_eq(charged(), size_a + size_b + size_c);
    cache_store(cache, a, NULL, NULL);
    cache_store(cache, b, NULL, NULL);
    ck_assert_uint_eq(charged(), size_c);
    page_release(&a);
    page_release(&b);
    ck_assert_uint_eq(charged(), size_c);
    /* A slow reader has a; it is evicted. */
    read = cache_lookup(cache, span_str("http://a/"), 0);
    ck_assert_uint_eq(charged(), size_c);
    ck_assert(pages_hit(cache, "http://b/"));
    cache_store(cache, c, NULL, NULL);
    ck_assert_uint_eq(charged(), size_a);
    page_release(&read);
    ck_assert_uint_eq(charged(), 0);
    /* Victims that are handed over. */
    a = make("http://a/", 500);
    cache_store(cache, a, &victims, NULL);
    page_release(&a);
    ck_assert_uint_eq(victims.count, 1);
    ck_assert_uint_eq(charged(), size_b);
    cache_victims_free(&victims);
    ck_assert_uint_eq(charged(), 0);
    /* One that replaces another of its URL, which is being read. */
    read = cache_lookup(cache, span_str("http://a/"), 0);
    a = make("http://a/", 700);
    ck_assert_int_eq(cache_store(cache, a, NULL, NULL), CACHE_REPLACED);
    ck_assert_uint_eq(charged(), page_size(read));
    page_release(&read);
    /* Purged while it is read. */
    ck_assert_uint_eq(cache_purge_all(cache), 2);
    ck_assert_uint_eq(charged(), page_size(a) + page_size(c));
    page_release(&a);
    page_release(&c);
    ck_assert_uint_eq(charged(), 0);
    cache_destroy(cache);
}
END_TEST

/* ---- a model --------------------------------------------------------------------------------- */

enum { HELD = 40, STEPS = 20000 };

/* Is a page of the URL inside, and the very one? */
static bool
is_inside(struct cache *cache, struct page *page)
{
    struct page *found = cache_lookup(cache, page_url(page), 0);
    bool inside = found == page;

    page_release(&found);
    return inside;
}

/* Readers hold pages by chance; what they hold and the cache does not is what is charged. */
START_TEST(it_agrees_with_a_model)
{
    static const char *const names[] = {"lru", "s3-fifo", "arc", "lfu"};
    struct page *held[HELD] = {0};
    uint64_t state = 7;

    for (size_t p = 0; p < sizeof(names) / sizeof(names[0]); p++) {
        struct cache *cache = pages_cache(names[p], 0, 60000, 2);
        struct cache_config config;

        for (unsigned step = 0; step < STEPS; step++) {
            struct page **slot = &held[unit_draw(&state, HELD)];
            char url[32];

            snprintf(url, sizeof(url), "http://%u/", unit_draw(&state, 100));
            page_release(slot);
            switch (unit_draw(&state, 100)) {
            case 0:
                cache_purge(cache, span_str(url));
                break;
            case 1:
                cache_get_config(cache, &config);
                config.capacity_bytes = 30000 + unit_draw(&state, 60000);
                config.shards = 1 + unit_draw(&state, 3);
                ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
                break;
            default:
                *slot = cache_lookup(cache, span_str(url), 0);
                if (!*slot) {
                    *slot = make(url, unit_draw(&state, 3000));
                    cache_store(cache, *slot, NULL, NULL);
                }
            }
            if (step % 64 == 0) {
                uint64_t sum = 0;

                for (unsigned i = 0; i < HELD; i++) {
                    bool again = false;

                    for (unsigned j = 0; j < i; j++)
                        again = again || held[j] == held[i];
                    if (held[i] && !again && !is_inside(cache, held[i]))
                        sum += page_size(held[i]);
                }
                ck_assert_uint_eq(charged(), sum);
            }
        }
        cache_destroy(cache);
        for (unsigned i = 0; i < HELD; i++)
            page_release(&held[i]);
        ck_assert_uint_eq(charged(), 0);
    }
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 3, ROUNDS = 3000 };

struct reader {
    struct cache *cache;
    uint64_t state;
};

static void *
read_and_store(void *argument)
{
    struct reader *reader = argument;
    struct page *held[8] = {0};

    for (unsigned round = 0; round < ROUNDS; round++) {
        struct page **slot = &held[unit_draw(&reader->state, 8)];
        char url[32];

        snprintf(url, sizeof(url), "http://%u/", unit_draw(&reader->state, 50));
        page_release(slot);
        *slot = cache_lookup(reader->cache, span_str(url), 0);
        if (!*slot) {
            *slot = make(url, unit_draw(&reader->state, 3000));
            cache_store(reader->cache, *slot, NULL, NULL);
        }
    }
    for (unsigned i = 0; i < 8; i++)
        page_release(&held[i]);
    return NULL;
}

START_TEST(nothing_is_lost_between_threads)
{
    struct cache *cache = pages_cache("lru", 0, 30000, 2);
    struct reader readers[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        readers[i] = (struct reader){.cache = cache, .state = i + 1};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_and_store, &readers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(charged(), 0);
    cache_destroy(cache);
    ck_assert_uint_eq(charged(), 0);
    ck_assert_int_eq(atomic_load(&account.groups[MEMORY_GROUP_FETCHING].used), 0);
}
END_TEST

/* ---- eviction on demand ---------------------------------------------------------------------- */

START_TEST(reclaiming_evicts_what_is_asked_for_and_no_more)
{
    struct cache *cache = pages_cache("lru", 0, 16 << 20, 3);
    uint64_t pages, bytes;
    struct cache_stats before, after;

    pages_store_many(cache, 0, 5000, 2000);
    before = pages_stats(cache);
    bytes = cache_reclaim(cache, 100000, &pages);
    after = pages_stats(cache);
    ck_assert_uint_ge(bytes, 100000);
    ck_assert_uint_lt(bytes, 100000 + 2500);
    ck_assert_uint_eq(before.pages - after.pages, pages);
    ck_assert_uint_eq(after.evictions - before.evictions, pages);
    /* The policy's victims of each shard, and of about equal numbers. */
    for (int i = 0; i < 10; i++)
        ck_assert(!pages_hit(cache, pages_url(i)));
    ck_assert(pages_hit(cache, pages_url(4999)));
    /* A sixteenth of the capacity. */
    bytes = cache_reclaim(cache, UINT64_MAX, &pages);
    ck_assert_uint_ge(bytes, 1 << 20);
    ck_assert_uint_lt(bytes, (1 << 20) + 2500);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(there_may_be_nothing_to_reclaim)
{
    struct cache *cache = pages_cache("lru", 100, 0, 2);
    struct cache_config none = {.policy = policy_spec_of(NULL), .shards = 1};
    uint64_t pages = 7;
    enum cache_error error;

    ck_assert_uint_eq(cache_reclaim(cache, 1000, &pages), 0);
    ck_assert_uint_eq(pages, 0);
    /* Bounded in pages alone: a sixteenth of what is inside, and at least one. */
    pages_store(cache, "http://a/", 100);
    ck_assert_uint_gt(cache_reclaim(cache, 1000, &pages), 100);
    ck_assert_uint_eq(pages, 1);
    cache_destroy(cache);
    cache = cache_create(&none, &error);
    ck_assert_uint_eq(cache_reclaim(cache, 1000, &pages), 0);
    ck_assert_uint_eq(pages, 0);
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache: charges");
    TCase *tests = tcase_create("charges");

    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_page_is_charged_to_the_byte);
    tcase_add_test(tests, a_page_does_not_grow_beyond_the_account);
    tcase_add_test(tests, what_the_cache_holds_is_not_charged);
    tcase_add_test(tests, it_agrees_with_a_model);
    tcase_add_test(tests, nothing_is_lost_between_threads);
    tcase_add_test(tests, reclaiming_evicts_what_is_asked_for_and_no_more);
    tcase_add_test(tests, there_may_be_nothing_to_reclaim);
    suite_add_tcase(suite, tests);
    return suite;
}
