/* Successors that the origin confirms, and failed ones instead of which the old object is good. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

enum { NOW = 6000 };

static struct cache *cache;
static struct memory_account account;
static struct requester leader, late, streaming;

static void
set_up(void)
{
    cache = pages_cache("lru", 3, 0, 1);
    memory_account_init(&account, UINT64_MAX, NULL);
    leader = late = streaming = (struct requester){0};
}

static void
tear_down(void)
{
    request_end(&leader);
    request_end(&late);
    request_end(&streaming);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    cache_destroy(cache);
    ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
}

/* "u" has expired, and three requests wait for its successor. */
static struct cache_fill *
begin(size_t body)
{
    struct stored stored = pages_put(cache, span_str("u"), body, 5000, &account);

    stored_free(&stored);
    ck_assert_int_eq(request_lookup(&leader, cache, "u", NOW, false), CACHE_STALE);
    ck_assert_int_eq(request_lookup(&late, cache, "u", NOW, false), CACHE_BUSY);
    ck_assert_int_eq(request_lookup(&streaming, cache, "u", NOW, true), CACHE_BUSY);
    ck_assert_ptr_eq(leader.found.fill->previous, leader.found.object);
    return leader.found.fill;
}

static struct object_head
fresh_head(void)
{
    return (struct object_head){.status = 200,
                                .notes = 5,
                                .fields = span_str("ETag: \"2\"\r\n"),
                                .length = -1,
                                .account = &account};
}

static enum cache_outcome
refresh(struct cache_fill *fill, bool store)
{
    const struct object_head head = fresh_head();
    enum cache_outcome outcome = CACHE_FELL_BACK;

    ck_assert_int_eq(cache_fill_refresh(fill, &head, store, 9, NOW - 1000, 3000, &outcome), 0);
    return outcome;
}

static void
check_body(const struct object *object, size_t len)
{
    struct object_place place = {0};
    struct span run;
    size_t at = 0;

    while (run = object_read(object, &place), run.len)
        for (size_t i = 0; i < run.len; i++, at++)
            ck_assert_int_eq(run.ptr[i], "abcdefghijklmnopqrstuvwxyz"[at % 26]);
    ck_assert_uint_eq(at, len);
}

/* Inline and copied; in segments and shared. */
static const size_t bodies[] = {0, 1000, OBJECT_INLINE_MAX + 100000};

START_TEST(a_confirmed_object_has_a_new_head_and_the_old_body)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct cache_fill *fill = begin(bodies[i]);
        struct object *old = leader.found.object, *object;

        ck_assert_int_eq(refresh(fill, true), CACHE_REPLACED);
        ck_assert_ptr_null(fill->previous);
        cache_fill_free(fill);
        ck_assert_uint_eq(request_take(&leader), WAITER_END);
        ck_assert_uint_eq(request_take(&late), WAITER_END);
        ck_assert_uint_eq(request_take(&streaming), WAITER_HEAD | WAITER_MORE | WAITER_END);
        object = leader.waiter.object;
        ck_assert_ptr_eq(late.waiter.object, object);
        ck_assert_ptr_eq(streaming.waiter.object, object);
        ck_assert_ptr_ne(object, old);
        ck_assert_int_eq(object_state(object), OBJECT_READY);
        ck_assert(span_equal(object_fields(object), span_str("ETag: \"2\"\r\n")));
        ck_assert_uint_eq(object->notes, 5);
        ck_assert(span_equal(object_url(object), span_str("u")));
        check_body(object, bodies[i]);
        ck_assert_int_eq(object->segmented, bodies[i] > OBJECT_INLINE_MAX);
        ck_assert_int_eq(object_age(object, NOW), 1000);
        ck_assert_int_eq(object_lifetime(object), 3000);
        ck_assert(pages_hit_at(cache, "u", NOW + 1999));
        ck_assert(!pages_hit_at(cache, "u", NOW + 2000));
        /* Old readers keep the old one. */
        ck_assert_uint_eq(object_fields(old).len, 0);
        check_body(old, bodies[i]);
        ck_assert_uint_eq(pages_stats(cache).pages, 1);
        cache_purge_all(cache);
        check_body(object, bodies[i]);
        request_end(&leader);
        check_body(object, bodies[i]);
        request_end(&late);
        request_end(&streaming);
        ck_assert_uint_eq(memory_used(&account, MEMORY_PAGES), 0);
    }
}
END_TEST

/* The body is the same memory, however often; the last object frees it. */
START_TEST(a_body_in_segments_is_shared)
{
    struct object_place one = {0}, two = {0};
    struct cache_fill *fill = begin(bodies[2]);

    refresh(fill, true);
    cache_fill_free(fill);
    request_take(&leader);
    request_take(&late);
    request_take(&streaming);
    ck_assert_ptr_eq(object_read(leader.found.object, &one).ptr,
                     object_read(leader.waiter.object, &two).ptr);
    for (unsigned i = 0; i < 3; i++) {
        request_end(&leader);
        ck_assert_int_eq(request_lookup(&leader, cache, "u", NOW + 9000, false), CACHE_STALE);
        refresh(leader.found.fill, true);
        cache_fill_free(leader.found.fill);
        request_take(&leader);
        ck_assert_uint_eq(pages_stats(cache).pages, 1);
    }
    cache_purge_all(cache);
    check_body(leader.waiter.object, bodies[2]);
}
END_TEST

START_TEST(the_previous_object_may_be_evicted_or_purged_meanwhile)
{
    for (unsigned purge = 0; purge < 2; purge++) {
        struct cache_fill *fill = begin(1000);

        request_end(&leader);
        object_release(&late.found.object);
        object_release(&streaming.found.object);
        if (purge)
            purge_by(cache, CACHE_BY_URL, span_str("u"));
        else
            pages_store_many(cache, 0, 3, 1);
        ck_assert(!pages_hit_at(cache, "u", 0));
        check_body(fill->previous, 1000);
        ck_assert_int_eq(refresh(fill, true), purge ? CACHE_NOT_STORED : CACHE_STORED);
        cache_fill_free(fill);
        ck_assert_uint_eq(request_take(&leader), WAITER_END);
        request_take(&late);
        ck_assert(request_take(&streaming) & WAITER_END);
        check_body(late.waiter.object, 1000);
        ck_assert_int_eq(pages_hit_at(cache, "u", NOW), !purge);
        request_end(&leader);
        request_end(&late);
        request_end(&streaming);
        ck_assert(cache_is_valid(cache));
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(a_confirmed_object_that_is_not_stored_takes_the_expired_one_away)
{
    struct cache_fill *fill = begin(1000);

    ck_assert_int_eq(refresh(fill, false), CACHE_NOT_STORED);
    cache_fill_free(fill);
    request_take(&leader);
    request_take(&late);
    request_take(&streaming);
    check_body(leader.waiter.object, 1000);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
}
END_TEST

START_TEST(an_impossible_head_or_memory_changes_nothing)
{
    struct cache_fill *fill = begin(bodies[2]);
    struct object_head head = fresh_head();
    struct memory_account small;
    enum cache_outcome outcome;
    char *fields = calloc(1, OBJECT_MAX_META + 1);

    memory_account_init(&small, 1000, NULL);
    head.fields = span_of(fields, OBJECT_MAX_META + 1);
    ck_assert_int_eq(cache_fill_refresh(fill, &head, true, 1, NOW, 0, &outcome), EINVAL);
    head.fields.len = 1;
    head.account = &small;
    ck_assert_int_eq(cache_fill_refresh(fill, &head, true, 1, NOW, 0, &outcome), ENOBUFS);
    ck_assert_uint_eq(request_take(&streaming), 0);
    ck_assert(cache_is_valid(cache));
    ck_assert_ptr_nonnull(fill->previous);
    cache_fill_fail(fill, 1, "no memory", NULL, NULL);
    cache_fill_free(fill);
    request_take(&leader);
    request_take(&late);
    request_take(&streaming);
    free(fields);
}
END_TEST

/* A fresh one, to which a request had demands, as well as an expired one. */
START_TEST(waiters_fall_back_to_the_object_that_is_there)
{
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct cache_fill *fill = begin(bodies[i]);
        struct object *old = leader.found.object;

        cache_fill_fall_back(fill, 503);
        ck_assert_ptr_null(fill->previous);
        cache_fill_free(fill);
        ck_assert_uint_eq(request_take(&leader), WAITER_END);
        ck_assert_uint_eq(request_take(&late), WAITER_END);
        ck_assert_uint_eq(request_take(&streaming), WAITER_HEAD | WAITER_MORE | WAITER_END);
        ck_assert_ptr_eq(leader.waiter.object, old);
        ck_assert_ptr_eq(late.waiter.object, old);
        ck_assert_ptr_eq(streaming.waiter.object, old);
        ck_assert_int_eq(leader.waiter.outcome, CACHE_FELL_BACK);
        ck_assert_int_eq(late.waiter.outcome, CACHE_FELL_BACK);
        check_body(old, bodies[i]);
        /* It is in the table as before, and the next request begins another successor. */
        ck_assert_uint_eq(pages_stats(cache).pages, 1);
        ck_assert(pages_hit_at(cache, "u", 4000));
        ck_assert(cache_is_valid(cache));
        request_end(&leader);
        request_end(&late);
        request_end(&streaming);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(waiters_fall_back_to_an_object_that_is_gone)
{
    for (unsigned purge = 0; purge < 2; purge++) {
        struct cache_fill *fill = begin(1000);

        request_end(&leader);
        if (purge)
            purge_by(cache, CACHE_BY_URL, span_str("u"));
        else
            pages_store_many(cache, 0, 3, 1);
        cache_fill_fall_back(fill, 503);
        cache_fill_free(fill);
        request_take(&leader);
        request_take(&late);
        request_take(&streaming);
        check_body(leader.waiter.object, 1000);
        ck_assert(!pages_hit_at(cache, "u", 0));
        ck_assert(cache_is_valid(cache));
        request_end(&leader);
        request_end(&late);
        request_end(&streaming);
        cache_purge_all(cache);
    }
}
END_TEST

/* The leader serves the old object at once and leaves; the fill goes on without it. */
START_TEST(a_successor_is_filled_in_the_background)
{
    struct cache_fill *fill = begin(1000);

    ck_assert(cache_leave(&leader.waiter));
    ck_assert(cache_leave(&late.waiter));
    ck_assert(cache_leave(&streaming.waiter));
    check_body(leader.found.object, 1000);
    ck_assert_int_eq(refresh(fill, true), CACHE_REPLACED);
    cache_fill_free(fill);
    ck_assert(pages_hit_at(cache, "u", NOW));
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/refresh");
    TCase *tc = tcase_create("refresh");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_confirmed_object_has_a_new_head_and_the_old_body);
    tcase_add_test(tc, a_body_in_segments_is_shared);
    tcase_add_test(tc, the_previous_object_may_be_evicted_or_purged_meanwhile);
    tcase_add_test(tc, a_confirmed_object_that_is_not_stored_takes_the_expired_one_away);
    tcase_add_test(tc, an_impossible_head_or_memory_changes_nothing);
    tcase_add_test(tc, waiters_fall_back_to_the_object_that_is_there);
    tcase_add_test(tc, waiters_fall_back_to_an_object_that_is_gone);
    tcase_add_test(tc, a_successor_is_filled_in_the_background);
    suite_add_tcase(suite, tc);
    return suite;
}
