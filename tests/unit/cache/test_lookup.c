/* The answers of cache_lookup(), and the states of an object between them. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"

static struct cache *cache;

static void
set_up(void)
{
    cache = pages_cache("lru", 10, 0, 1);
}

static void
tear_down(void)
{
    pages_end(cache);
}

START_TEST(a_miss_inserts_a_busy_object_that_becomes_ready)
{
    struct requester leader = {0}, late = {0};
    struct cache_fill *fill;

    ck_assert_int_eq(request_lookup(&leader, cache, "a", 0, false), CACHE_MISS);
    fill = leader.found.fill;
    ck_assert_ptr_nonnull(fill);
    ck_assert_ptr_null(leader.found.object);
    ck_assert(leader.waiter.leader);
    ck_assert(span_equal(object_url(leader.waiter.object), span_str("a")));
    ck_assert_int_eq(object_state(fill->object), OBJECT_BUSY);
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    ck_assert(cache_is_valid(cache));

    ck_assert_int_eq(request_lookup(&late, cache, "a", 0, false), CACHE_BUSY);
    ck_assert_ptr_null(late.found.fill);
    ck_assert_ptr_null(late.found.object);
    ck_assert(!late.waiter.leader);
    ck_assert_uint_eq(fill->waiter_count, 2);

    fill_head(fill, 3, NULL);
    ck_assert_int_eq(object_state(fill->object), OBJECT_BUSY);
    ck_assert(cache_is_valid(cache));
    fill_letters(fill, 3);
    ck_assert_int_eq(cache_fill_finish(fill, true, 5, 100, 1000), CACHE_STORED);
    ck_assert_int_eq(object_state(fill->object), OBJECT_READY);
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_uint_eq(pages_stats(cache).insertions, 1);
    ck_assert_uint_eq(request_take(&leader), WAITER_END);
    ck_assert_uint_eq(request_take(&late), WAITER_END);
    ck_assert_ptr_eq(leader.waiter.object, fill->object);
    ck_assert_ptr_eq(late.waiter.object, fill->object);
    ck_assert_int_eq(leader.waiter.outcome, CACHE_STORED);
    ck_assert_int_eq(late.waiter.outcome, CACHE_STORED);
    cache_fill_free(fill);
    ck_assert(span_equal(object_body(late.waiter.object), span_str("abc")));
    ck_assert_int_eq(leader.waiter.object->fetched_us, 100);
    request_end(&leader);
    request_end(&late);

    ck_assert_int_eq(request_lookup(&late, cache, "a", 1099, false), CACHE_HIT);
    ck_assert_ptr_nonnull(late.found.object);
    ck_assert_ptr_null(late.found.fill);
    ck_assert_ptr_null(late.waiter.object); /* the waiter is untouched */
    request_end(&late);
}
END_TEST

START_TEST(a_hit_reads_no_waiter)
{
    struct cache_key key = cache_key_of(span_str("a"));
    struct cache_request request = {0};
    struct cache_found found;

    pages_store(cache, "a", 1);
    ck_assert_int_eq(cache_lookup(cache, &key, &request, 0, &found), CACHE_HIT);
    ck_assert_uint_eq(found.object->references, 2);
    object_release(&found.object);
}
END_TEST

START_TEST(an_expired_page_has_one_successor)
{
    struct requester first = {0}, second = {0};
    struct object *old;

    pages_store_until(cache, "a", 1, 5000);
    ck_assert_int_eq(request_lookup(&first, cache, "a", 6000, false), CACHE_STALE);
    ck_assert_ptr_nonnull(first.found.object);
    ck_assert_ptr_nonnull(first.found.fill);
    ck_assert(first.waiter.leader);
    ck_assert_uint_eq(object_length(first.found.object), 1);
    ck_assert_int_eq(request_lookup(&second, cache, "a", 6000, false), CACHE_BUSY);
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert(cache_is_valid(cache));
    /* To a request that arrived before it expired it is a hit. */
    old = pages_get(cache, span_str("a"), 4000);
    ck_assert_ptr_eq(old, first.found.object);
    object_release(&old);
    ck_assert_int_eq(fill_page(first.found.fill, 7), CACHE_REPLACED);
    ck_assert_uint_eq(request_take(&first), WAITER_END);
    ck_assert_uint_eq(request_take(&second), WAITER_END);
    ck_assert_uint_eq(object_length(second.waiter.object), 7);
    ck_assert_uint_eq(object_length(first.found.object), 1);
    ck_assert_ptr_eq(second.found.object, first.found.object);
    ck_assert_uint_eq(first.found.object->references, 2);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    request_end(&first);
    request_end(&second);
}
END_TEST

START_TEST(an_expired_page_stays_when_its_successor_fails)
{
    struct requester first = {0}, second = {0};

    pages_store_until(cache, "a", 1, 5000);
    request_lookup(&first, cache, "a", 6000, false);
    fill_fail(first.found.fill);
    ck_assert_uint_eq(request_take(&first), WAITER_FAILED);
    request_end(&first);
    ck_assert(pages_hit_at(cache, "a", 4000));
    ck_assert_int_eq(request_lookup(&second, cache, "a", 6000, false), CACHE_STALE);
    fill_page(second.found.fill, 1);
    request_take(&second);
    request_end(&second);
}
END_TEST

START_TEST(a_failed_object_is_in_no_table)
{
    struct requester leader = {0}, late = {0}, next = {0};

    request_lookup(&leader, cache, "a", 0, false);
    request_lookup(&late, cache, "a", 0, false);
    cache_fill_fail(leader.found.fill, 42, "The origin is on fire.", NULL, NULL);
    ck_assert_int_eq(request_lookup(&next, cache, "a", 0, false), CACHE_MISS);
    cache_fill_free(leader.found.fill);
    ck_assert_uint_eq(request_take(&leader), WAITER_FAILED);
    ck_assert_uint_eq(request_take(&late), WAITER_FAILED);
    ck_assert_ptr_eq(leader.waiter.failure, late.waiter.failure);
    ck_assert_int_eq(object_state(late.waiter.failure), OBJECT_FAILED);
    ck_assert_uint_eq(late.waiter.failure->status, 42);
    ck_assert(span_equal(object_failure(late.waiter.failure), span_str("The origin is on fire.")));
    ck_assert(span_equal(object_url(late.waiter.object), span_str("a")));
    request_end(&leader);
    request_end(&late);
    fill_fail(next.found.fill);
    request_take(&next);
    request_end(&next);
}
END_TEST

START_TEST(a_long_sentence_is_cut_off)
{
    struct requester request = {0};
    char sentence[1000];

    memset(sentence, 'x', sizeof(sentence));
    sentence[999] = '\0';
    request_lookup(&request, cache, "a", 0, false);
    cache_fill_fail(request.found.fill, 1, sentence, NULL, NULL);
    cache_fill_free(request.found.fill);
    request_take(&request);
    ck_assert_uint_eq(object_failure(request.waiter.failure).len, OBJECT_MAX_FAILURE);
    request_end(&request);
}
END_TEST

START_TEST(a_failure_after_the_head_is_seen_in_the_object)
{
    struct requester streaming = {0};

    request_lookup(&streaming, cache, "a", 0, true);
    fill_head(streaming.found.fill, 100, NULL);
    fill_letters(streaming.found.fill, 50);
    request_take(&streaming);
    cache_fill_fail(streaming.found.fill, 3, "broken", NULL, NULL);
    ck_assert_uint_eq(object_length(streaming.found.fill->object), 0); /* the URL alone */
    cache_fill_free(streaming.found.fill);
    ck_assert_uint_eq(request_take(&streaming), WAITER_FAILED);
    ck_assert_int_eq(object_state(streaming.waiter.object), OBJECT_FAILED);
    ck_assert_uint_eq(object_length(streaming.waiter.object), 50);
    ck_assert_uint_eq(streaming.waiter.object->references, 1);
    request_end(&streaming);
}
END_TEST

START_TEST(one_that_is_not_stored_is_in_no_table)
{
    struct requester leader = {0};

    request_lookup(&leader, cache, "a", 0, false);
    fill_head(leader.found.fill, 0, NULL);
    ck_assert_int_eq(cache_fill_finish(leader.found.fill, false, 1, 1, INT64_MAX),
                     CACHE_NOT_STORED);
    cache_fill_free(leader.found.fill);
    ck_assert_uint_eq(request_take(&leader), WAITER_END);
    ck_assert_int_eq(object_state(leader.waiter.object), OBJECT_READY);
    ck_assert_uint_eq(leader.waiter.object->references, 1);
    request_end(&leader);
    ck_assert(!pages_hit(cache, "a"));
    ck_assert_uint_eq(pages_stats(cache).insertions, 0);
}
END_TEST

START_TEST(too_many_waiters_are_refused)
{
    struct cache_request three = {.max_waiters = 3};
    struct requester requests[4] = {0};

    ck_assert_int_eq(request_lookup_with(&requests[0], cache, "a", 0, three), CACHE_MISS);
    ck_assert_int_eq(request_lookup_with(&requests[1], cache, "a", 0, three), CACHE_BUSY);
    ck_assert_int_eq(request_lookup_with(&requests[2], cache, "a", 0, three), CACHE_BUSY);
    ck_assert_int_eq(request_lookup_with(&requests[3], cache, "a", 0, three), CACHE_FULL);
    ck_assert_ptr_null(requests[3].waiter.object);
    ck_assert_ptr_null(requests[3].found.fill);
    /* One gives up: there is one more. */
    ck_assert(cache_leave(&requests[1].waiter));
    request_end(&requests[1]);
    ck_assert_int_eq(request_lookup_with(&requests[3], cache, "a", 0, three), CACHE_BUSY);
    ck_assert_int_eq(request_lookup_with(&requests[1], cache, "a", 0, three), CACHE_FULL);
    fill_page(requests[0].found.fill, 1);
    for (unsigned i = 0; i < 4; i++) {
        if (i != 1)
            ck_assert_uint_eq(request_take(&requests[i]), WAITER_END);
        request_end(&requests[i]);
    }
}
END_TEST

START_TEST(a_bypass_changes_nothing)
{
    struct cache_request pass = {.pass = true};
    struct requester one = {0}, two = {0}, busy = {0};

    pages_store(cache, "a", 1);
    ck_assert_int_eq(request_lookup_with(&one, cache, "a", 0, pass), CACHE_PASS);
    ck_assert(one.waiter.leader);
    ck_assert_int_eq(fill_page(one.found.fill, 9), CACHE_NOT_STORED);
    ck_assert_uint_eq(request_take(&one), WAITER_END);
    ck_assert_uint_eq(object_length(one.waiter.object), 9);
    request_end(&one);
    ck_assert(pages_hit(cache, "a"));

    /* It joins no object, and an isolated one leaves no mark and removes no expired page. */
    request_lookup(&busy, cache, "b", 0, false);
    ck_assert_int_eq(request_lookup_with(&one, cache, "b", 0, pass), CACHE_PASS);
    cache_fill_restrict(one.found.fill, FILL_PRIVATE, INT64_MAX);
    fill_page(one.found.fill, 9);
    request_take(&one);
    request_end(&one);
    pages_store_until(cache, "c", 1, 5000);
    ck_assert_int_eq(request_lookup_with(&two, cache, "c", 6000, pass), CACHE_PASS);
    fill_head(two.found.fill, 0, NULL);
    cache_fill_finish(two.found.fill, false, 1, 6000, INT64_MAX);
    cache_fill_free(two.found.fill);
    request_take(&two);
    request_end(&two);
    ck_assert(pages_hit_at(cache, "c", 4000));
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert_int_eq(fill_page(busy.found.fill, 1), CACHE_STORED);
    request_take(&busy);
    request_end(&busy);
}
END_TEST

START_TEST(requests_join_without_a_policy)
{
    struct cache *none = pages_cache(NULL, 0, 0, 2);
    struct requester leader = {0}, late = {0};

    ck_assert_int_eq(request_lookup(&leader, none, "a", 0, false), CACHE_MISS);
    ck_assert_int_eq(request_lookup(&late, none, "a", 0, false), CACHE_BUSY);
    ck_assert(cache_is_valid(none));
    ck_assert_int_eq(fill_page(leader.found.fill, 3), CACHE_NOT_STORED);
    ck_assert_uint_eq(request_take(&leader), WAITER_END);
    ck_assert_uint_eq(request_take(&late), WAITER_END);
    request_end(&leader);
    request_end(&late);
    ck_assert_int_eq(request_lookup(&leader, none, "a", 0, false), CACHE_MISS);
    cache_fill_restrict(leader.found.fill, FILL_PRIVATE, 1000);
    ck_assert_int_eq(request_lookup(&late, none, "a", 0, false), CACHE_PASS);
    fill_page(leader.found.fill, 3);
    fill_page(late.found.fill, 3);
    request_take(&leader);
    request_take(&late);
    request_end(&leader);
    request_end(&late);
    ck_assert(cache_is_valid(none));
    cache_destroy(none);
}
END_TEST

START_TEST(what_is_appended_is_bounded)
{
    struct requester request = {0};
    struct cache_fill *fill;
    struct object_head head = {.status = 200, .length = -1, .max_length = 10};
    char *long_fields = calloc(1, OBJECT_MAX_META + 1);

    request_lookup(&request, cache, "a", 0, false);
    fill = request.found.fill;
    head.fields = span_of(long_fields, OBJECT_MAX_META + 1);
    ck_assert_int_eq(cache_fill_head(fill, &head), EINVAL);
    head.fields = span_of(NULL, 0);
    ck_assert_int_eq(cache_fill_head(fill, &head), 0);
    ck_assert_int_eq(cache_fill_append(fill, "0123456", 7), 0);
    ck_assert_int_eq(cache_fill_append(fill, "0123", 4), EFBIG);
    ck_assert_int_eq(cache_fill_append(fill, "012", 3), 0);
    ck_assert_int_eq(cache_fill_append(fill, "", 0), 0);
    ck_assert_uint_eq(object_length(fill->object), 10);
    fill_fail(fill);
    request_take(&request);
    request_end(&request);

    /* The declared length of an inline body, and of one beyond max_length. */
    for (int64_t length = 8; length <= 12; length += 4) {
        request_lookup(&request, cache, "a", 0, false);
        fill = request.found.fill;
        head.length = length;
        ck_assert_int_eq(cache_fill_head(fill, &head), 0);
        ck_assert(!fill->object->segmented);
        ck_assert_int_eq(cache_fill_append(fill, "01234567890", 11), EFBIG);
        ck_assert_int_eq(cache_fill_append(fill, "01234567", 8), 0);
        ck_assert_int_eq(cache_fill_append(fill, "012", 3), EFBIG);
        fill_fail(fill);
        request_take(&request);
        request_end(&request);
    }
    free(long_fields);
}
END_TEST

START_TEST(bodies_are_inline_or_in_segments_and_small_ones_are_compacted)
{
    static const struct {
        int64_t length;
        size_t body;
        bool streams, inline_at_first, inline_in_cache, inline_for_waiter;
    } cases[] = {
        {1000, 1000, false, true, true, true},
        {OBJECT_INLINE_MAX, OBJECT_INLINE_MAX, true, true, true, true},
        {OBJECT_INLINE_MAX + 1, OBJECT_INLINE_MAX + 1, false, false, false, false},
        {-1, 0, false, false, true, true},
        {-1, 1000, false, false, true, true},
        {-1, 1000, true, false, true, false},
        {-1, 256 << 10, false, false, true, true},
        {-1, (256 << 10) + 1, false, false, false, false},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct requester request = {0};
        struct cache_fill *fill;
        struct object *object;

        request_lookup(&request, cache, pages_url((int)i), 0, cases[i].streams);
        fill = request.found.fill;
        fill_head(fill, cases[i].length, NULL);
        ck_assert_int_eq(fill->object->segmented, !cases[i].inline_at_first);
        fill_letters(fill, cases[i].body);
        ck_assert_int_eq(cache_fill_finish(fill, true, 1, 1, INT64_MAX), CACHE_STORED);
        cache_fill_free(fill);
        ck_assert(request_take(&request) & WAITER_END);
        ck_assert_int_eq(request.waiter.object->segmented, !cases[i].inline_for_waiter);
        ck_assert_int_eq(object_state(request.waiter.object), OBJECT_READY);
        ck_assert_uint_eq(object_length(request.waiter.object), cases[i].body);
        object = pages_get(cache, span_str(pages_url((int)i)), 0);
        ck_assert_int_eq(object->segmented, !cases[i].inline_in_cache);
        ck_assert_uint_eq(object_length(object), cases[i].body);
        if (!object->segmented)
            ck_assert_int_eq(object_body(object).ptr[cases[i].body], 0);
        object_release(&object);
        request_end(&request);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/lookup");
    TCase *tc = tcase_create("lookup");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_miss_inserts_a_busy_object_that_becomes_ready);
    tcase_add_test(tc, a_hit_reads_no_waiter);
    tcase_add_test(tc, an_expired_page_has_one_successor);
    tcase_add_test(tc, an_expired_page_stays_when_its_successor_fails);
    tcase_add_test(tc, a_failed_object_is_in_no_table);
    tcase_add_test(tc, a_long_sentence_is_cut_off);
    tcase_add_test(tc, a_failure_after_the_head_is_seen_in_the_object);
    tcase_add_test(tc, one_that_is_not_stored_is_in_no_table);
    tcase_add_test(tc, too_many_waiters_are_refused);
    tcase_add_test(tc, a_bypass_changes_nothing);
    tcase_add_test(tc, requests_join_without_a_policy);
    tcase_add_test(tc, what_is_appended_is_bounded);
    tcase_add_test(tc, bodies_are_inline_or_in_segments_and_small_ones_are_compacted);
    suite_add_tcase(suite, tc);
    return suite;
}
