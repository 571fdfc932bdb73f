/* The events of waiters: which ones, merged how, and after which transitions. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"

static struct cache *cache;

static void
set_up(void)
{
    cache = pages_cache("lru", 3, 0, 1);
}

static void
tear_down(void)
{
    pages_end(cache);
}

static void
finish(struct cache_fill *fill)
{
    cache_fill_finish(fill, true, 1, 1, INT64_MAX);
    cache_fill_free(fill);
}

START_TEST(one_that_streams_gets_every_event)
{
    struct requester request = {0};
    struct cache_fill *fill;
    struct object *headed;

    request_lookup(&request, cache, "a", 0, true);
    fill = request.found.fill;
    ck_assert_uint_eq(request_take(&request), 0);
    fill_head(fill, 100, NULL);
    ck_assert_uint_eq(request_take(&request), WAITER_HEAD);
    headed = request.waiter.object;
    ck_assert_ptr_eq(headed, fill->object);
    ck_assert_uint_eq(headed->status, 200);
    for (unsigned i = 0; i < 4; i++) {
        ck_assert_int_eq(cache_fill_append(fill, "x", 1), 0);
        ck_assert_uint_eq(request_take(&request), WAITER_MORE);
        ck_assert_uint_eq(object_length(request.waiter.object), i + 1);
        ck_assert_uint_eq(request_take(&request), 0);
    }
    finish(fill);
    ck_assert_uint_eq(request_take(&request), WAITER_END);
    ck_assert_ptr_eq(request.waiter.object, headed);
    ck_assert_int_eq(object_state(headed), OBJECT_READY);
    request_end(&request);
}
END_TEST

START_TEST(one_that_does_not_stream_gets_the_last_event_alone)
{
    struct requester request = {0}, late = {0};
    struct cache_fill *fill;

    request_lookup(&request, cache, "a", 0, false);
    fill = request.found.fill;
    fill_head(fill, -1, NULL);
    request_lookup(&late, cache, "a", 0, false);
    fill_letters(fill, 50);
    ck_assert_uint_eq(request.notified, 0);
    ck_assert_uint_eq(late.notified, 0);
    ck_assert_uint_eq(request.waiter.object->fields_len, 0);
    finish(fill);
    ck_assert_uint_eq(request.notified, 1);
    ck_assert_uint_eq(request_take(&request), WAITER_END);
    ck_assert_uint_eq(request_take(&late), WAITER_END);
    ck_assert_uint_eq(object_body(request.waiter.object).len, 50);
    request_end(&request);
    request_end(&late);
}
END_TEST

static bool
is_moved(const struct object *object)
{
    return object->status == 301;
}

/* `_i`: it has the status of those whose head is wanted, or another one. */
START_TEST(one_that_does_not_stream_may_want_the_head)
{
    struct requester request = {.waiter.wants_head = is_moved};
    struct requester late = {.waiter.wants_head = is_moved}, other = {0};
    const unsigned head = _i ? WAITER_HEAD : 0;
    struct cache_fill *fill;

    request_lookup(&request, cache, "a", 0, false);
    fill = request.found.fill;
    ck_assert_int_eq(
        cache_fill_head(
            fill, &(struct object_head){.status = _i ? 301 : 200, .length = -1, .max_length = 100}),
        0);
    ck_assert_uint_eq(request_take(&request), head);
    fill_letters(fill, 50);
    request_lookup(&late, cache, "a", 0, false);
    request_lookup(&other, cache, "a", 0, false);
    fill_letters(fill, 10);
    ck_assert_uint_eq(request_take(&request), 0);
    /* Whether it has taken it before the end or not. */
    finish(fill);
    ck_assert_uint_eq(request_take(&request), WAITER_END);
    ck_assert_uint_eq(request_take(&late), head | WAITER_END);
    ck_assert_uint_eq(request_take(&other), WAITER_END);
    ck_assert_uint_eq(object_length(request.waiter.object), 60);
    ck_assert_uint_eq(object_length(late.waiter.object), 60);
    ck_assert_int_eq(object_state(request.waiter.object), OBJECT_READY);
    request_end(&request);
    request_end(&late);
    request_end(&other);
}
END_TEST

START_TEST(events_that_are_not_taken_are_merged)
{
    struct requester request = {0};
    struct cache_fill *fill;

    request_lookup(&request, cache, "a", 0, true);
    fill = request.found.fill;
    fill_head(fill, -1, NULL);
    fill_letters(fill, 1000);
    fill_letters(fill, 1000);
    ck_assert_uint_eq(request.notified, 1);
    /* The object changes when the events are taken, and not before. */
    ck_assert_uint_eq(object_length(request.waiter.object), 0);
    ck_assert_uint_eq(request_take(&request), WAITER_HEAD | WAITER_MORE);
    ck_assert_uint_eq(object_length(request.waiter.object), 2000);
    fill_letters(fill, 1000);
    finish(fill);
    ck_assert_uint_eq(request.notified, 1);
    ck_assert_uint_eq(request_take(&request), WAITER_MORE | WAITER_END);
    ck_assert_uint_eq(object_length(request.waiter.object), 3000);
    request_end(&request);

    request_lookup(&request, cache, "b", 0, true);
    fill = request.found.fill;
    fill_head(fill, -1, NULL);
    fill_fail(fill);
    ck_assert_uint_eq(request.notified, 1);
    ck_assert_uint_eq(request_take(&request), WAITER_HEAD | WAITER_FAILED);
    request_end(&request);
}
END_TEST

START_TEST(one_that_joins_late_is_notified_of_what_it_has_missed)
{
    struct requester leader = {0}, after_head = {0}, after_body = {0};
    struct cache_fill *fill;

    request_lookup(&leader, cache, "a", 0, false);
    fill = leader.found.fill;
    fill_head(fill, 10, NULL);
    ck_assert_int_eq(request_lookup(&after_head, cache, "a", 0, true), CACHE_BUSY);
    ck_assert_uint_eq(after_head.notified, 1);
    ck_assert_uint_eq(request_take(&after_head), WAITER_HEAD);
    fill_letters(fill, 10);
    ck_assert_int_eq(request_lookup(&after_body, cache, "a", 0, true), CACHE_BUSY);
    ck_assert_uint_eq(request_take(&after_body), WAITER_HEAD | WAITER_MORE);
    ck_assert_uint_eq(object_length(after_body.waiter.object), 10);
    finish(fill);
    ck_assert_uint_eq(request_take(&after_body), WAITER_END);
    ck_assert_uint_eq(request_take(&after_head), WAITER_MORE | WAITER_END);
    request_take(&leader);
    request_end(&leader);
    request_end(&after_head);
    request_end(&after_body);
}
END_TEST

START_TEST(victims_are_the_leaders)
{
    struct requester leader = {0}, late = {0}, gone = {0};

    pages_store_many(cache, 0, 3, 1);
    request_lookup(&leader, cache, "a", 0, false);
    request_lookup(&late, cache, "a", 0, false);
    ck_assert_int_eq(fill_page(leader.found.fill, 1), CACHE_STORED);
    request_take(&leader);
    request_take(&late);
    ck_assert_uint_eq(leader.waiter.evicted, 1);
    ck_assert_uint_eq(leader.waiter.victims.count, 1);
    ck_assert(span_equal(object_url(leader.waiter.victims.pages[0]), span_str(pages_url(0))));
    ck_assert_uint_eq(late.waiter.evicted, 0);
    ck_assert_uint_eq(late.waiter.victims.count, 0);
    ck_assert_int_eq(late.waiter.outcome, CACHE_STORED);
    request_end(&leader);
    request_end(&late);
    /* If it has given up, they are released. */
    request_lookup(&gone, cache, "b", 0, false);
    ck_assert(cache_leave(&gone.waiter));
    ck_assert_int_eq(fill_page(gone.found.fill, 1), CACHE_STORED);
    ck_assert_uint_eq(gone.notified, 0);
    request_end(&gone);
    ck_assert_uint_eq(pages_stats(cache).evictions, 2);
}
END_TEST

/* ---- giving up ------------------------------------------------------------------------------- */

START_TEST(a_waiter_may_leave_in_each_state)
{
    enum { BEFORE_HEAD, AFTER_HEAD, UNTAKEN_HEAD, AFTER_MORE, STATES };

    for (unsigned state = 0; state < STATES; state++) {
        for (unsigned streams = 0; streams < 2; streams++) {
            struct requester leader = {0}, gone = {0};
            struct cache_fill *fill;

            request_lookup(&leader, cache, "a", 0, true);
            fill = leader.found.fill;
            request_lookup(&gone, cache, "a", 0, streams);
            if (state != BEFORE_HEAD)
                fill_head(fill, 100, NULL);
            if (state != UNTAKEN_HEAD)
                request_take(&gone);
            if (state == AFTER_MORE)
                fill_letters(fill, 10);
            ck_assert(cache_leave(&gone.waiter));
            ck_assert_uint_eq(fill->waiter_count, 1);
            ck_assert(!cache_leave(&gone.waiter));
            /* A notification before that is still answered. */
            ck_assert_int_eq(request_take(&gone) != 0,
                             streams && (state == UNTAKEN_HEAD || state == AFTER_MORE));
            request_end(&gone);
            if (state == BEFORE_HEAD)
                fill_head(fill, 100, NULL);
            fill_letters(fill, 1);
            finish(fill);
            ck_assert_uint_eq(gone.notified, 0);
            request_take(&leader);
            request_end(&leader);
            cache_purge_all(cache);
        }
    }
}
END_TEST

START_TEST(the_last_event_wins_over_leaving)
{
    for (unsigned what = 0; what < 3; what++) {
        static const unsigned last[] = {WAITER_END, WAITER_FAILED, WAITER_RETRY};
        struct requester leader = {0}, late = {0};

        request_lookup(&leader, cache, "a", 0, false);
        request_lookup(&late, cache, "a", 0, false);
        if (what == 0)
            fill_page(leader.found.fill, 1);
        if (what == 2)
            cache_fill_restrict(leader.found.fill, FILL_PRIVATE, 0);
        if (what != 0)
            fill_fail(leader.found.fill);
        ck_assert(!cache_leave(&late.waiter));
        ck_assert_uint_eq(request_take(&late), last[what]);
        ck_assert(!cache_leave(&leader.waiter));
        request_take(&leader);
        request_end(&leader);
        request_end(&late);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(a_fill_without_waiters_is_stored)
{
    struct requester leader = {0}, late = {0};

    request_lookup(&leader, cache, "a", 0, false);
    ck_assert(cache_leave(&leader.waiter));
    request_end(&leader);
    ck_assert_int_eq(request_lookup(&late, cache, "a", 0, false), CACHE_BUSY);
    ck_assert(!late.waiter.leader);
    ck_assert_int_eq(fill_page(leader.found.fill, 1), CACHE_STORED);
    ck_assert_uint_eq(request_take(&late), WAITER_END);
    request_end(&late);
    ck_assert(pages_hit(cache, "a"));
}
END_TEST

/* ---- private responses and retries ----------------------------------------------------------- */

START_TEST(a_private_response_goes_to_the_leader_alone)
{
    struct requester leader = {0}, late = {0}, streaming = {0};
    struct cache_fill *fill;

    request_lookup(&leader, cache, "a", 0, true);
    fill = leader.found.fill;
    request_lookup(&late, cache, "a", 0, false);
    request_lookup(&streaming, cache, "a", 0, true);
    cache_fill_restrict(fill, FILL_PRIVATE, 1000);
    cache_fill_restrict(fill, FILL_PRIVATE, 2000); /* does nothing */
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&streaming), WAITER_RETRY);
    ck_assert(span_equal(object_url(late.waiter.object), span_str("a")));
    ck_assert_uint_eq(leader.notified, 0);
    ck_assert_uint_eq(fill->waiter_count, 1);
    fill_head(fill, 5, NULL);
    fill_letters(fill, 5);
    ck_assert_uint_eq(late.waiter.object->status, 0);
    ck_assert_uint_eq(object_length(streaming.waiter.object), 0);
    cache_fill_finish(fill, false, 1, 1, INT64_MAX);
    cache_fill_free(fill);
    ck_assert_uint_eq(request_take(&leader), WAITER_HEAD | WAITER_MORE | WAITER_END);
    ck_assert_uint_eq(object_length(leader.waiter.object), 5);
    request_end(&leader);
    request_end(&late);
    request_end(&streaming);
    ck_assert(!pages_hit_at(cache, "a", 2000));
}
END_TEST

START_TEST(after_the_head_those_that_stream_stay)
{
    struct requester leader = {0}, late = {0}, streaming = {0};
    struct cache_fill *fill;

    request_lookup(&leader, cache, "a", 0, false);
    fill = leader.found.fill;
    request_lookup(&late, cache, "a", 0, false);
    request_lookup(&streaming, cache, "a", 0, true);
    fill_head(fill, 5, NULL);
    fill_letters(fill, 5);
    cache_fill_restrict(fill, FILL_PRIVATE, 0);
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    cache_fill_finish(fill, false, 1, 1, INT64_MAX);
    cache_fill_free(fill);
    ck_assert_uint_eq(request_take(&streaming), WAITER_HEAD | WAITER_MORE | WAITER_END);
    ck_assert_uint_eq(request_take(&leader), WAITER_END);
    request_end(&leader);
    request_end(&late);
    request_end(&streaming);
}
END_TEST

struct choice {
    const struct object_waiter *retries;
    unsigned calls;
};

static bool
choose(const struct object_waiter *waiter, void *context)
{
    struct choice *choice = context;

    choice->calls++;
    return waiter == choice->retries;
}

START_TEST(a_failure_lets_some_retry)
{
    struct requester leader = {0}, one = {0}, two = {0}, again = {0};
    struct choice choice = {0};

    request_lookup(&leader, cache, "a", 0, false);
    request_lookup(&one, cache, "a", 0, false);
    request_lookup(&two, cache, "a", 0, true);
    choice.retries = &two.waiter;
    cache_fill_fail(leader.found.fill, 9, "displaced", choose, &choice);
    cache_fill_free(leader.found.fill);
    ck_assert_uint_eq(choice.calls, 3);
    ck_assert_uint_eq(request_take(&leader), WAITER_FAILED);
    ck_assert_uint_eq(request_take(&one), WAITER_FAILED);
    ck_assert_uint_eq(request_take(&two), WAITER_RETRY);
    ck_assert_ptr_null(two.waiter.failure);
    /* It looks up again, by the URL that it has. */
    ck_assert_int_eq(
        request_lookup(&again, cache, object_url(two.waiter.object).len == 1 ? "a" : "", 0, false),
        CACHE_MISS);
    fill_fail(again.found.fill);
    request_take(&again);
    request_end(&leader);
    request_end(&one);
    request_end(&two);
    request_end(&again);
}
END_TEST

START_TEST(clearing_is_harmless_twice)
{
    struct object_waiter zero = {0};
    struct requester request = {0};

    object_waiter_clear(&zero);
    request_lookup(&request, cache, "a", 0, true);
    fill_head(request.found.fill, 1, NULL);
    cache_leave(&request.waiter); /* with a head that is not taken */
    object_waiter_clear(&request.waiter);
    object_waiter_clear(&request.waiter);
    fill_fail(request.found.fill);
    ck_assert_ptr_null(request.waiter.object);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/waiters");
    TCase *tc = tcase_create("waiters");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, one_that_streams_gets_every_event);
    tcase_add_test(tc, one_that_does_not_stream_gets_the_last_event_alone);
    tcase_add_loop_test(tc, one_that_does_not_stream_may_want_the_head, 0, 2);
    tcase_add_test(tc, events_that_are_not_taken_are_merged);
    tcase_add_test(tc, one_that_joins_late_is_notified_of_what_it_has_missed);
    tcase_add_test(tc, victims_are_the_leaders);
    tcase_add_test(tc, a_waiter_may_leave_in_each_state);
    tcase_add_test(tc, the_last_event_wins_over_leaving);
    tcase_add_test(tc, a_fill_without_waiters_is_stored);
    tcase_add_test(tc, a_private_response_goes_to_the_leader_alone);
    tcase_add_test(tc, after_the_head_those_that_stream_stay);
    tcase_add_test(tc, a_failure_lets_some_retry);
    tcase_add_test(tc, clearing_is_harmless_twice);
    suite_add_tcase(suite, tc);
    return suite;
}
