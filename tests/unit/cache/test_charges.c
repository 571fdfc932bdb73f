/* The account is charged for an object while no cache counts it; and eviction on demand. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

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

/* Stores a page; with one more reference. */
static struct object *
put(struct cache *cache, const char *url, size_t body)
{
    struct stored stored = pages_put(cache, span_str(url), body, INT64_MAX, &account);
    struct object *object = object_retain(stored.object);

    ck_assert_int_ne(stored.outcome, CACHE_NOT_STORED);
    stored_free(&stored);
    return object;
}

START_TEST(a_busy_object_is_charged_to_the_byte)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);
    struct requester request = {0};
    uint64_t whole = sizeof(struct object) + strlen("http://a/") + 1;
    struct object *held;

    /* Inline: all at once, with the head. */
    request_lookup(&request, cache, "http://a/", 0, false);
    ck_assert_uint_eq(charged(), 0);
    fill_head(request.found.fill, 5000, &account);
    ck_assert_uint_eq(charged(), whole + 5000);
    ck_assert_uint_eq(object_size(request.found.fill->object), charged());
    fill_letters(request.found.fill, 5000);
    ck_assert_uint_eq(charged(), whole + 5000);
    /* Stored, the cache counts it. */
    cache_fill_finish(request.found.fill, true, 0, 0, INT64_MAX);
    ck_assert_uint_eq(charged(), 0);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
    cache_purge_all(cache);

    /* In segments: as they come. The copy of all is charged before they are freed. */
    request_lookup(&request, cache, "http://b/", 0, false);
    fill_head(request.found.fill, -1, &account);
    ck_assert_uint_eq(object_size(request.found.fill->object), charged());
    fill_letters(request.found.fill, 20000);
    ck_assert_uint_ge(charged(), whole + 20000);
    ck_assert_uint_eq(object_size(request.found.fill->object), charged());
    cache_fill_finish(request.found.fill, true, 0, 0, INT64_MAX);
    ck_assert_uint_eq(charged(), 0);
    ck_assert_uint_eq(object_size(request.found.fill->object), whole + 20000);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);

    /* Failed: at once, although the fill is still there; what is referred to has its own share. */
    request_lookup(&request, cache, "http://c/", 0, false);
    fill_head(request.found.fill, -1, &account);
    fill_letters(request.found.fill, 20000);
    held = object_retain(request.found.fill->object);
    cache_fill_fail(request.found.fill, 1, "", NULL, NULL);
    ck_assert_uint_eq(charged(), 0);
    ck_assert_uint_eq(memory_used(&account, MEMORY_FAILED), object_size(held));
    object_release(&held);
    ck_assert_uint_eq(memory_used(&account, MEMORY_FAILED), 0);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);

    /* Not stored: until the last holder drops it. */
    request_lookup(&request, cache, "http://d/", 0, false);
    fill_head(request.found.fill, 100, &account);
    fill_letters(request.found.fill, 100);
    cache_fill_finish(request.found.fill, false, 0, 0, INT64_MAX);
    ck_assert_uint_eq(charged(), whole + 100);
    cache_fill_free(request.found.fill);
    ck_assert_uint_eq(charged(), whole + 100);
    request_take(&request);
    request_end(&request);
    ck_assert_uint_eq(charged(), 0);
    cache_destroy(cache);
}
END_TEST

START_TEST(a_body_does_not_grow_beyond_the_account)
{
    static const char body[50000];
    const uint64_t share = 50 * 1024;
    struct cache *cache = pages_cache("lru", 2, 0, 1);
    struct requester request = {0};
    struct cache_fill *fill;

    memory_account_init(&account, 80 * 1024, NULL);
    request_lookup(&request, cache, "u", 0, false);
    fill = request.found.fill;
    fill_head(fill, -1, &account);
    ck_assert_int_eq(cache_fill_append(fill, body, 15000), 0);
    ck_assert_int_eq(cache_fill_append(fill, body, 50000), ENOBUFS);
    /* It keeps what it had. */
    ck_assert_uint_eq(object_length(fill->object), 15000);
    ck_assert_uint_le(charged(), share);
    ck_assert_int_eq(cache_fill_append(fill, body, 500), 0);
    /* No copy is made at the end if the account does not suffice for it. */
    ck_assert_int_eq(cache_fill_append(fill, body, 16000), 0);
    ck_assert_int_eq(cache_fill_finish(fill, true, 0, 0, INT64_MAX), CACHE_STORED);
    ck_assert(fill->object->segmented);
    cache_fill_free(fill);
    request_take(&request);
    request_end(&request);
    ck_assert_uint_eq(charged(), 0);

    request_lookup(&request, cache, "v", 0, false);
    ck_assert_int_eq(
        cache_fill_head(request.found.fill, &(struct object_head){.status = 200,
                                                                  .length = 70000,
                                                                  .max_length = 70000,
                                                                  .account = &account}),
        ENOBUFS);
    ck_assert_uint_eq(charged(), 0);
    ck_assert_uint_eq(memory_refusals(&account), 2); /* the copy asks for none */
    fill_fail(request.found.fill);
    request_take(&request);
    request_end(&request);
    cache_destroy(cache);
    ck_assert_uint_eq(charged(), 0);
}
END_TEST

START_TEST(what_the_cache_counts_is_not_charged)
{
    struct cache *cache = pages_cache("lru", 2, 0, 1);
    struct object *a = put(cache, "http://a/", 1000), *b = put(cache, "http://b/", 2000), *c, *read;
    uint64_t size_a = object_size(a), size_b = object_size(b);
    struct stored stored;

    ck_assert_uint_eq(charged(), 0);
    object_release(&a);
    object_release(&b);
    ck_assert_uint_eq(charged(), 0);
    /* A slow reader has a; it is evicted. */
    read = pages_get(cache, span_str("http://a/"), 0);
    ck_assert(pages_hit(cache, "http://b/"));
    c = put(cache, "http://c/", 3000);
    ck_assert_uint_eq(charged(), size_a);
    object_release(&read);
    ck_assert_uint_eq(charged(), 0);
    /* Victims that are handed over. */
    stored = pages_put(cache, span_str("http://a/"), 500, INT64_MAX, &account);
    ck_assert_uint_eq(stored.victims.count, 1);
    ck_assert_uint_eq(charged(), size_b);
    stored_free(&stored);
    ck_assert_uint_eq(charged(), 0);
    /* One that replaces another of its URL, which is being read. */
    read = pages_get(cache, span_str("http://a/"), 0);
    a = put(cache, "http://a/", 700);
    ck_assert_uint_eq(pages_stats(cache).pages, 2);
    ck_assert_uint_eq(charged(), object_size(read));
    object_release(&read);
    /* Purged while it is read. */
    ck_assert_uint_eq(cache_purge_all(cache), 2);
    ck_assert_uint_eq(charged(), object_size(a) + object_size(c));
    object_release(&a);
    object_release(&c);
    ck_assert_uint_eq(charged(), 0);
    cache_destroy(cache);
}
END_TEST

/* ---- a model --------------------------------------------------------------------------------- */

enum { HELD = 40, STEPS = 20000 };

/* Is the object in the cache? */
static bool
is_inside(struct cache *cache, struct object *object)
{
    struct object *found = pages_get(cache, object_url(object), 0);
    bool inside = found == object;

    object_release(&found);
    return inside;
}

/* Readers hold objects by chance; those that the cache does not count are charged. */
START_TEST(it_agrees_with_a_model)
{
    static const char *const names[] = {"lru", "s3-fifo", "arc", "lfu"};
    struct object *held[HELD] = {0};
    uint64_t state = 7;

    for (size_t p = 0; p < sizeof(names) / sizeof(names[0]); p++) {
        struct cache *cache = pages_cache(names[p], 0, 60000, 2);
        struct cache_config config;

        for (unsigned step = 0; step < STEPS; step++) {
            struct object **slot = &held[unit_draw(&state, HELD)];
            char url[32];

            snprintf(url, sizeof(url), "http://%u/", unit_draw(&state, 100));
            object_release(slot);
            switch (unit_draw(&state, 100)) {
            case 0:
                purge_by(cache, CACHE_BY_URL, span_str(url));
                break;
            case 1:
                cache_get_config(cache, &config);
                config.capacity_bytes = 30000 + unit_draw(&state, 60000);
                config.shards = 1 + unit_draw(&state, 3);
                ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
                break;
            default:
                *slot = pages_get(cache, span_str(url), 0);
                if (!*slot) {
                    struct stored stored = pages_put(cache, span_str(url), unit_draw(&state, 3000),
                                                     INT64_MAX, &account);

                    *slot = object_retain(stored.object);
                    stored_free(&stored);
                }
            }
            if (step % 64 == 0) {
                uint64_t sum = 0;

                for (unsigned i = 0; i < HELD; i++) {
                    bool again = false;

                    for (unsigned j = 0; j < i; j++)
                        again = again || held[j] == held[i];
                    if (held[i] && !again && !is_inside(cache, held[i]))
                        sum += object_size(held[i]);
                }
                ck_assert_uint_eq(charged(), sum);
            }
        }
        cache_destroy(cache);
        for (unsigned i = 0; i < HELD; i++)
            object_release(&held[i]);
        ck_assert_uint_eq(charged(), 0);
    }
}
END_TEST

/* ---- eviction on demand ---------------------------------------------------------------------- */

START_TEST(reclaiming_evicts_the_bytes_asked_for_and_no_more)
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
    tcase_add_test(tests, a_busy_object_is_charged_to_the_byte);
    tcase_add_test(tests, a_body_does_not_grow_beyond_the_account);
    tcase_add_test(tests, what_the_cache_counts_is_not_charged);
    tcase_add_test(tests, it_agrees_with_a_model);
    tcase_add_test(tests, reclaiming_evicts_the_bytes_asked_for_and_no_more);
    tcase_add_test(tests, there_may_be_nothing_to_reclaim);
    suite_add_tcase(suite, tests);
    return suite;
}
