/* What a request demands of a cached object: age, freshness, the cache alone; and soft purges. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

enum { SECOND = 1000000, AGED = 3 * SECOND, NOW = 10 * SECOND };

static struct cache *cache;

/* At NOW, the age of "a" is 3 seconds and its lifetime 8. */
static void
set_up(void)
{
    struct requester request = {0};

    cache = pages_cache("lru", 10, 0, 1);
    request_lookup(&request, cache, "a", 0, false);
    fill_head(request.found.fill, 1, NULL);
    fill_letters(request.found.fill, 1);
    cache_fill_finish(request.found.fill, true, 1, NOW - AGED, 8 * SECOND);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
}

static void
tear_down(void)
{
    pages_end(cache);
}

/* The answer to a lookup of `url`; a fill that it begins fails. */
static enum cache_answer
ask(const char *url, int64_t now_us, const struct cache_conditions *conditions)
{
    struct requester request = {0};

    request_lookup_with(&request, cache, url, now_us,
                        (struct cache_request){.conditions = conditions});
    if (request.found.fill) {
        fill_fail(request.found.fill);
        ck_assert_uint_eq(request_take(&request), WAITER_FAILED);
    }
    request_end(&request);
    return request.answer;
}

START_TEST(an_object_may_be_too_old_for_a_request)
{
    static const struct {
        struct cache_conditions conditions;
        enum cache_answer answer;
    } cases[] = {
        {{.max_age_us = INT64_MAX}, CACHE_HIT},
        {{.max_age_us = AGED}, CACHE_HIT},
        {{.max_age_us = AGED - 1}, CACHE_STALE},
        {{.max_age_us = 0}, CACHE_STALE},
        {{.max_age_us = INT64_MAX, .min_fresh_us = 5 * SECOND}, CACHE_HIT},
        {{.max_age_us = INT64_MAX, .min_fresh_us = 5 * SECOND + 1}, CACHE_STALE},
        {{.max_age_us = INT64_MAX, .min_fresh_us = INT64_MAX}, CACHE_STALE},
        {{.max_age_us = INT64_MAX, .no_cache = true}, CACHE_STALE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        ck_assert_msg(ask("a", NOW, &cases[i].conditions) == cases[i].answer, "case %zu", i);
    /* The object stays as it is for others. */
    ck_assert_int_eq(ask("a", NOW + 5 * SECOND - 1, NULL), CACHE_HIT);
    ck_assert_int_eq(ask("a", NOW + 5 * SECOND, NULL), CACHE_STALE);
}
END_TEST

START_TEST(an_unlimited_lifetime_is_fresh_long_enough)
{
    struct cache_conditions conditions = {.max_age_us = INT64_MAX, .min_fresh_us = 100 * SECOND};
    struct requester request = {0};

    request_lookup(&request, cache, "b", 0, false);
    fill_page(request.found.fill, 1);
    request_take(&request);
    request_end(&request);
    ck_assert_int_eq(ask("b", NOW, &conditions), CACHE_HIT);
}
END_TEST

START_TEST(a_fresh_object_has_a_successor_and_is_a_hit_meanwhile)
{
    const struct cache_conditions no_cache = {.no_cache = true, .max_age_us = INT64_MAX};
    const struct cache_request demanding = {.conditions = &no_cache};
    struct requester first = {0}, second = {0};

    ck_assert_int_eq(request_lookup_with(&first, cache, "a", NOW, demanding), CACHE_STALE);
    ck_assert_int_eq(request_lookup_with(&second, cache, "a", NOW, demanding), CACHE_BUSY);
    ck_assert_ptr_nonnull(first.found.object);
    ck_assert_ptr_eq(second.found.object, first.found.object);
    ck_assert_ptr_eq(first.found.fill->previous, first.found.object);
    ck_assert(pages_hit_at(cache, "a", NOW));
    ck_assert(cache_is_valid(cache));
    ck_assert_int_eq(fill_page(first.found.fill, 7), CACHE_REPLACED);
    ck_assert_uint_eq(request_take(&first), WAITER_END);
    ck_assert_uint_eq(request_take(&second), WAITER_END);
    ck_assert_uint_eq(object_length(second.waiter.object), 7);
    request_end(&first);
    request_end(&second);
}
END_TEST

/* Only what had expired at the lookup is removed. */
START_TEST(a_fresh_object_outlives_a_successor_that_is_not_stored)
{
    const struct cache_conditions no_cache = {.no_cache = true, .max_age_us = INT64_MAX};
    struct requester request = {0};

    for (unsigned expired = 0; expired < 2; expired++) {
        ck_assert_int_eq(request_lookup_with(&request, cache, "a", NOW + (expired ? 5 * SECOND : 0),
                                             (struct cache_request){.conditions = &no_cache}),
                         CACHE_STALE);
        fill_head(request.found.fill, 0, NULL);
        cache_fill_finish(request.found.fill, false, 1, NOW, 0);
        cache_fill_free(request.found.fill);
        request_take(&request);
        request_end(&request);
        ck_assert_int_eq(pages_hit_at(cache, "a", NOW), !expired);
    }
}
END_TEST

/* Notes say for which requests an object has expired, whatever its lifetime. */
START_TEST(an_object_with_such_a_note_has_expired)
{
    static const struct {
        unsigned notes, stale_notes;
        bool fresh;
    } cases[] = {{0, 4, true}, {4, 0, true}, {3, 4, true}, {4, 4, false}, {7, 12, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct cache_request with = {.stale_notes = cases[i].stale_notes};
        struct requester first = {0}, joins = {0}, later = {0};
        struct cache_fill *fill;

        request_lookup(&first, cache, "b", NOW, false);
        fill = first.found.fill;
        ck_assert_int_eq(cache_fill_head(fill, &(struct object_head){.status = 200,
                                                                     .notes = cases[i].notes,
                                                                     .length = 1,
                                                                     .max_length = 1}),
                         0);
        /* While it grows. */
        request_lookup_with(&joins, cache, "b", NOW, with);
        ck_assert_int_eq(joins.answer, cases[i].fresh ? CACHE_BUSY : CACHE_MISS);
        fill_letters(fill, 1);
        cache_fill_finish(fill, true, 1, NOW, INT64_MAX);
        cache_fill_free(fill);
        if (joins.found.fill)
            fill_fail(joins.found.fill);
        ck_assert_uint_eq(request_take(&joins), cases[i].fresh ? WAITER_END : WAITER_FAILED);
        request_lookup_with(&later, cache, "b", NOW, with);
        ck_assert_int_eq(later.answer, cases[i].fresh ? CACHE_HIT : CACHE_STALE);
        if (later.found.fill) {
            fill_fail(later.found.fill);
            request_take(&later);
        }
        request_take(&first);
        request_end(&first);
        request_end(&joins);
        request_end(&later);
        ck_assert(pages_hit_at(cache, "b", NOW));
        ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str("b")), 1);
    }
}
END_TEST

START_TEST(the_cache_alone_is_asked)
{
    const struct cache_conditions only = {.only_cached = true, .max_age_us = INT64_MAX};
    const struct cache_conditions young = {.only_cached = true, .max_age_us = 1};
    const struct cache_request alone = {.conditions = &only};
    struct requester request = {0}, busy = {0}, marked = {0};

    /* No waiter is needed. */
    ck_assert_int_eq(cache_lookup(cache, &(struct cache_key){0},
                                  &(struct cache_request){.conditions = &only}, 0, &request.found),
                     CACHE_ABSENT);
    ck_assert_int_eq(ask("b", NOW, &only), CACHE_ABSENT);
    ck_assert_int_eq(ask("a", NOW, &only), CACHE_HIT);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(
            request_lookup_with(&request, cache, "a", i ? NOW : NOW + 5 * SECOND,
                                (struct cache_request){.conditions = i ? &young : &only}),
            CACHE_STALE);
        ck_assert_ptr_nonnull(request.found.object);
        ck_assert_ptr_null(request.found.fill);
        ck_assert_ptr_null(request.waiter.object);
        request_end(&request);
    }
    /* Busy objects and marks are no objects. */
    request_lookup(&busy, cache, "b", NOW, false);
    ck_assert_int_eq(request_lookup_with(&request, cache, "b", NOW, alone), CACHE_ABSENT);
    ck_assert_uint_eq(busy.found.fill->waiter_count, 1);
    request_lookup(&marked, cache, "c", NOW, false);
    cache_fill_restrict(marked.found.fill, FILL_PRIVATE, INT64_MAX);
    ck_assert_int_eq(request_lookup_with(&request, cache, "c", NOW, alone), CACHE_ABSENT);
    ck_assert_ptr_null(request.found.fill);
    fill_fail(busy.found.fill);
    fill_fail(marked.found.fill);
    request_take(&busy);
    request_take(&marked);
    request_end(&busy);
    request_end(&marked);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
}
END_TEST

/* ---- soft purges ----------------------------------------------------------------------------- */

START_TEST(a_soft_purge_expires_objects)
{
    struct object *object = pages_get(cache, span_str("a"), NOW);

    pages_store(cache, "b", 1);
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("a"), NOW), 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 2);
    /* Also to a request that arrived before, or whose clock is behind. */
    ck_assert_int_eq(ask("a", NOW - 2 * SECOND, NULL), CACHE_STALE);
    ck_assert_int_eq(object_lifetime(object), AGED); /* since when it is stale */
    ck_assert(pages_hit(cache, "b"));
    /* Once. */
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("a"), NOW + SECOND), 0);
    ck_assert_int_eq(object_lifetime(object), AGED);
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("none"), NOW), 0);
    object_release(&object);
    pages_store(cache, "a", 1);
    ck_assert(pages_hit_at(cache, "a", NOW));
}
END_TEST

START_TEST(a_soft_purge_keeps_the_end_of_what_has_expired)
{
    struct object *object = pages_get(cache, span_str("a"), NOW);

    ck_assert_uint_eq(expire_by(cache, CACHE_BY_URL, span_str("a"), NOW + 100 * SECOND), 1);
    ck_assert_int_eq(object_lifetime(object), 8 * SECOND);
    ck_assert_int_eq(ask("a", NOW, NULL), CACHE_STALE);
    object_release(&object);
}
END_TEST

START_TEST(a_soft_purge_by_prefix)
{
    pages_store_many(cache, 0, 9, 1);
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/"), 5), 9);
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/"), 5), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 10);
    ck_assert(!pages_hit(cache, pages_url(3)));
    ck_assert(pages_hit_at(cache, "a", NOW));
    ck_assert_uint_eq(expire_by(cache, CACHE_BY_PREFIX, span_of(NULL, 0), NOW), 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/conditions");
    TCase *tc = tcase_create("conditions");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, an_object_may_be_too_old_for_a_request);
    tcase_add_test(tc, an_unlimited_lifetime_is_fresh_long_enough);
    tcase_add_test(tc, a_fresh_object_has_a_successor_and_is_a_hit_meanwhile);
    tcase_add_test(tc, a_fresh_object_outlives_a_successor_that_is_not_stored);
    tcase_add_test(tc, an_object_with_such_a_note_has_expired);
    tcase_add_test(tc, the_cache_alone_is_asked);
    tcase_add_test(tc, a_soft_purge_expires_objects);
    tcase_add_test(tc, a_soft_purge_keeps_the_end_of_what_has_expired);
    tcase_add_test(tc, a_soft_purge_by_prefix);
    suite_add_tcase(suite, tc);
    return suite;
}
