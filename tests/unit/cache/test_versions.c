/* Responses that expire while their body arrives: a later fill takes their place. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

enum { SECOND = 1000000, NOW = 100 * SECOND, LIFETIME = 10 * SECOND, LATE = NOW + LIFETIME };

static struct cache *cache;
static struct requester first, second, third, fourth;

static void
set_up(void)
{
    cache = pages_cache("lru", 10, 0, 1);
    first = second = third = fourth = (struct requester){0};
}

static void
tear_down(void)
{
    pages_end(cache);
}

/* The head of a response that is fresh until then, and stale for `while_revalidate_us` more. */
static void
give_head(struct cache_fill *fill, int64_t born_us, int64_t fresh_until_us,
          int64_t while_revalidate_us)
{
    const struct object_head head = {.status = 200,
                                     .length = -1,
                                     .max_length = 1 << 30,
                                     .fetched_us = born_us,
                                     .fresh_until_us = fresh_until_us,
                                     .while_revalidate_us = while_revalidate_us};

    ck_assert_int_eq(cache_fill_head(fill, &head), 0);
}

/* Stores a page of "u" that has expired at NOW. */
static void
put_expired_page(void)
{
    ck_assert_int_eq(pages_store_until(cache, "u", 3, SECOND), CACHE_STORED);
}

/* A response to "u" arrives; it is that of the first request, and another one is begun. */
static void
begin_second(void)
{
    request_lookup(&first, cache, "u", NOW, true);
    give_head(first.found.fill, NOW, LATE, 0);
    fill_letters(first.found.fill, 5);
    request_lookup(&second, cache, "u", LATE, true);
    ck_assert_ptr_nonnull(second.found.fill);
    ck_assert(cache_is_valid(cache));
}

/* Ends the fill of a request, whose response is of that time and lifetime. */
static enum cache_outcome
finish(struct requester *request, int64_t born_us, int64_t ends_us, int64_t lifetime_us)
{
    struct cache_fill *fill = request->found.fill;
    enum cache_outcome outcome;

    if (fill->stage == FILL_BEGUN)
        give_head(fill, born_us, born_us + lifetime_us, 0);
    fill_letters(fill, 2);
    outcome =
        cache_fill_finish(fill, true, (uint64_t)(ends_us - fill->begun_us), born_us, lifetime_us);
    cache_fill_free(fill);
    ck_assert(request_take(request) & WAITER_END);
    ck_assert(cache_is_valid(cache));
    return outcome;
}

static enum cache_outcome
finish_first(int64_t ends_us)
{
    enum cache_outcome outcome = finish(&first, NOW, ends_us, LIFETIME);

    ck_assert_uint_eq(object_length(first.waiter.object), 7);
    request_end(&first);
    return outcome;
}

/* The length of the page of "u", fresh or not, and whether it is fresh at that time. */
static uint64_t
page_at(int64_t now_us, bool fresh)
{
    const struct cache_conditions only = {.only_cached = true, .max_age_us = INT64_MAX};
    struct requester request = {0};
    uint64_t length;

    request_lookup_with(&request, cache, "u", now_us, (struct cache_request){.conditions = &only});
    ck_assert_int_eq(request.answer, fresh ? CACHE_HIT : CACHE_STALE);
    length = object_length(request.found.object);
    request_end(&request);
    return length;
}

START_TEST(requests_share_the_fill_that_takes_the_place)
{
    for (unsigned expired = 0; expired < 2; expired++) {
        cache_purge_all(cache);
        if (expired)
            put_expired_page();
        begin_second();
        ck_assert_int_eq(second.answer, expired ? CACHE_STALE : CACHE_MISS);
        ck_assert_int_eq(second.found.object != NULL, expired);
        ck_assert_ptr_eq(second.found.fill->previous, second.found.object);
        ck_assert_int_eq(request_lookup(&third, cache, "u", LATE, false), CACHE_BUSY);
        give_head(second.found.fill, LATE, LATE + LIFETIME, 0);
        ck_assert_int_eq(request_lookup(&fourth, cache, "u", LATE + LIFETIME - 1, true),
                         CACHE_BUSY);
        ck_assert_int_eq(finish(&second, LATE, LATE + 5, LIFETIME),
                         expired ? CACHE_REPLACED : CACHE_STORED);
        ck_assert(request_take(&third) & WAITER_END);
        ck_assert(request_take(&fourth) & WAITER_END);
        ck_assert_uint_eq(object_length(third.waiter.object), 2);
        ck_assert_uint_eq(page_at(LATE + 6, true), 2);
        ck_assert_int_eq(finish_first(LATE + 7), CACHE_NOT_STORED);
        ck_assert_uint_eq(page_at(LATE + 8, true), 2);
        request_end(&second);
        request_end(&third);
        request_end(&fourth);
    }
}
END_TEST

/* Its readers get the rest, and the page has the later fill as its successor. */
START_TEST(the_older_one_is_stored_until_the_later_one_is)
{
    for (unsigned expired = 0; expired < 2; expired++) {
        cache_purge_all(cache);
        if (expired)
            put_expired_page();
        begin_second();
        give_head(second.found.fill, LATE, LATE + LIFETIME, 0);
        ck_assert_int_eq(finish_first(LATE + 1), expired ? CACHE_REPLACED : CACHE_STORED);
        ck_assert_uint_eq(pages_stats(cache).pages, 1);
        ck_assert_int_eq(request_lookup(&third, cache, "u", LATE + 2, false), CACHE_BUSY);
        ck_assert_uint_eq(object_length(third.found.object), 7);
        ck_assert_int_eq(finish(&second, LATE, LATE + 3, LIFETIME), CACHE_REPLACED);
        ck_assert_uint_eq(request_take(&third), WAITER_END);
        ck_assert_uint_eq(page_at(LATE + 4, true), 2);
        request_end(&second);
        request_end(&third);
    }
}
END_TEST

START_TEST(a_failure_of_the_later_one_leaves_the_older_one)
{
    begin_second();
    fill_fail(second.found.fill);
    ck_assert_uint_eq(request_take(&second), WAITER_FAILED);
    request_end(&second);
    ck_assert_int_eq(finish_first(LATE + 1), CACHE_STORED);
    ck_assert_int_eq(request_lookup(&second, cache, "u", LATE + 2, false), CACHE_STALE);
    ck_assert_uint_eq(object_length(second.found.object), 7);
    fill_fail(second.found.fill);
    request_take(&second);
    request_end(&second);
}
END_TEST

/* Though it has expired itself, or is validated before each use. */
START_TEST(a_page_from_later_stays)
{
    static const int64_t lifetimes[] = {0, SECOND, INT64_MAX};

    for (size_t i = 0; i < sizeof(lifetimes) / sizeof(lifetimes[0]); i++) {
        cache_purge_all(cache);
        begin_second();
        give_head(second.found.fill, LATE, INT64_MAX, 0);
        ck_assert_int_eq(finish(&second, LATE, LATE + 1, lifetimes[i]), CACHE_STORED);
        request_end(&second);
        ck_assert_int_eq(finish_first(LATE + 100 * SECOND), CACHE_NOT_STORED);
        ck_assert_uint_eq(page_at(LATE + 100 * SECOND, lifetimes[i] == INT64_MAX), 2);
    }
}
END_TEST

/* The page of a response that its origin's cache had for long is fresh where this one is not. */
START_TEST(a_fresh_page_stays)
{
    begin_second();
    ck_assert_int_eq(finish(&second, NOW - SECOND, LATE + 1, 100 * SECOND), CACHE_STORED);
    request_end(&second);
    ck_assert_int_eq(finish_first(LATE + 2), CACHE_NOT_STORED);
    ck_assert_uint_eq(page_at(LATE + 3, true), 2);
}
END_TEST

/* The capacity is too small for the first one: the later one can be joined still. */
START_TEST(what_is_too_large_to_be_stored_leaves_the_later_one_in_its_place)
{
    struct cache *large = cache;

    cache = pages_cache("lru", 0, 2000, 1);
    begin_second();
    fill_letters(first.found.fill, 100000);
    ck_assert_int_eq(finish(&first, NOW, LATE + 1, LIFETIME), CACHE_NOT_STORED);
    request_end(&first);
    ck_assert_int_eq(request_lookup(&third, cache, "u", LATE + 2, false), CACHE_BUSY);
    ck_assert_int_eq(finish(&second, LATE, LATE + 3, LIFETIME), CACHE_STORED);
    ck_assert_uint_eq(request_take(&third), WAITER_END);
    request_end(&second);
    request_end(&third);
    pages_end(cache);
    cache = large;
}
END_TEST

START_TEST(a_purge_concerns_both)
{
    for (unsigned soft = 0; soft < 2; soft++) {
        begin_second();
        if (soft)
            expire_by(cache, CACHE_BY_URL, span_str("u"), LATE);
        else
            purge_by(cache, CACHE_BY_URL, span_str("u"));
        ck_assert(cache_is_valid(cache));
        ck_assert_int_eq(finish_first(LATE + 1), CACHE_NOT_STORED);
        ck_assert_int_eq(finish(&second, LATE, LATE + 2, LIFETIME), CACHE_NOT_STORED);
        request_end(&second);
        ck_assert_uint_eq(pages_stats(cache).pages, 0);
    }
}
END_TEST

/* Otherwise a body that the origin no longer gives to all would be used stale. */
START_TEST(a_mark_of_the_later_response_stays)
{
    for (unsigned record = 0; record < 2; record++) {
        enum cache_answer answer = record ? CACHE_VARIES : CACHE_PASS;
        struct cache_fill *later;

        cache_purge_all(cache);
        begin_second();
        later = second.found.fill;
        if (record)
            ck_assert(cache_fill_vary(later, span_str("accept"), span_str("v")));
        else
            cache_fill_restrict(later, FILL_PRIVATE, LATE + 3600 * (int64_t)SECOND);
        give_head(later, LATE, LATE + LIFETIME, 0);
        (void)cache_fill_finish(later, record, 1, LATE, LIFETIME);
        cache_fill_free(later);
        (void)request_take(&second);
        request_end(&second);
        ck_assert_int_eq(finish_first(LATE + 2), CACHE_NOT_STORED);
        ck_assert_int_eq(request_lookup(&third, cache, "u", LATE + 3, true), answer);
        if (third.found.fill) {
            fill_fail(third.found.fill);
            (void)request_take(&third);
        }
        request_end(&third);
    }
}
END_TEST

/* It is the later response that says whether the URL is for one client. */
START_TEST(an_older_private_response_lets_no_request_pass)
{
    begin_second();
    cache_fill_restrict(first.found.fill, FILL_PRIVATE, INT64_MAX);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    ck_assert_int_eq(request_lookup(&third, cache, "u", LATE, false), CACHE_BUSY);
    ck_assert_int_eq(finish(&second, LATE, LATE + 1, LIFETIME), CACHE_STORED);
    request_take(&third);
    request_end(&second);
    request_end(&third);
    fill_fail(first.found.fill);
    ck_assert(request_take(&first) & WAITER_FAILED);
    request_end(&first);
    ck_assert_uint_eq(page_at(LATE + 2, true), 2);
}
END_TEST

START_TEST(an_older_response_ends_no_pass)
{
    begin_second();
    cache_fill_restrict(second.found.fill, FILL_PRIVATE, LATE + 3600 * (int64_t)SECOND);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    cache_fill_end_pass(first.found.fill);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    fill_fail(second.found.fill);
    (void)request_take(&second);
    request_end(&second);
    fill_fail(first.found.fill);
    (void)request_take(&first);
    request_end(&first);
}
END_TEST

/* A request with conditions begins another one, whose response is for its client alone. */
START_TEST(a_private_response_hides_no_fresh_version)
{
    const struct cache_conditions no_cache = {.no_cache = true, .max_age_us = INT64_MAX};

    for (unsigned passes = 0; passes < 2; passes++) {
        request_lookup(&first, cache, "u", NOW, true);
        give_head(first.found.fill, NOW, LATE, 0);
        request_lookup_with(&second, cache, "u", NOW + SECOND,
                            (struct cache_request){.conditions = &no_cache});
        ck_assert_int_eq(second.answer, CACHE_MISS);
        give_head(second.found.fill, NOW + SECOND, LATE, 0);
        cache_fill_restrict(second.found.fill, FILL_PRIVATE, passes ? LATE : 0);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).passed, 0);
        ck_assert_int_eq(request_lookup(&third, cache, "u", NOW + 2 * SECOND, true), CACHE_BUSY);
        ck_assert_ptr_eq(third.waiter.fill, first.found.fill);
        fill_fail(second.found.fill);
        (void)request_take(&second);
        request_end(&second);
        ck_assert_int_eq(finish(&first, NOW, NOW + 3 * SECOND, LIFETIME), CACHE_STORED);
        ck_assert(request_take(&third) & WAITER_END);
        request_end(&first);
        request_end(&third);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(a_mark_that_has_expired_refuses_no_older_response)
{
    begin_second();
    cache_fill_restrict(second.found.fill, FILL_PRIVATE, LATE + SECOND);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    fill_fail(second.found.fill);
    (void)request_take(&second);
    request_end(&second);
    ck_assert_int_eq(finish_first(LATE + 2 * SECOND), CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
}
END_TEST

/* Requests without conditions join a version while it is fresh, or may be used stale. */
START_TEST(conditions_begin_a_version_beside_a_fresh_one)
{
    static const struct {
        struct cache_conditions conditions;
        int64_t at_us; /* with a lifetime of 10 s, and 20 s of stale-while-revalidate */
        enum cache_answer answer;
        bool joins_after; /* does a later request join the first response, */
        int64_t after_us; /* at this time? */
    } rows[] = {
        {{.no_cache = true, .max_age_us = INT64_MAX}, 5 * SECOND, CACHE_MISS, true, 6 * SECOND},
        {{.no_cache = true, .max_age_us = INT64_MAX},
         5 * SECOND,
         CACHE_MISS,
         true,
         30 * SECOND - 1},
        {{.max_age_us = 4 * SECOND}, 5 * SECOND, CACHE_MISS, true, 6 * SECOND},
        {{.max_age_us = 5 * SECOND}, 5 * SECOND, CACHE_BUSY, true, 30 * SECOND - 1},
        {{.max_age_us = 60 * SECOND}, LIFETIME - 1, CACHE_BUSY, true, 30 * SECOND - 1},
        {{.max_age_us = 60 * SECOND}, LIFETIME, CACHE_MISS, true, 30 * SECOND - 1},
        {{.max_age_us = 5 * SECOND}, LIFETIME, CACHE_MISS, true, 30 * SECOND - 1},
        {{.max_age_us = INT64_MAX, .only_cached = true},
         LIFETIME,
         CACHE_ABSENT,
         true,
         30 * SECOND - 1},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        cache_purge_all(cache);
        request_lookup(&first, cache, "u", NOW, true);
        give_head(first.found.fill, NOW, LATE, 20 * SECOND);
        request_lookup_with(&second, cache, "u", NOW + rows[i].at_us,
                            (struct cache_request){.conditions = &rows[i].conditions});
        ck_assert_msg(second.answer == rows[i].answer, "row %zu", i);
        request_lookup(&third, cache, "u", NOW + rows[i].after_us, false);
        ck_assert_int_eq(third.answer, CACHE_BUSY);
        ck_assert_msg((third.waiter.fill == first.found.fill) == rows[i].joins_after, "row %zu", i);
        if (second.found.fill) {
            fill_fail(second.found.fill);
            request_take(&second);
        }
        fill_fail(first.found.fill);
        request_take(&first);
        request_take(&second);
        request_take(&third);
        request_end(&first);
        request_end(&second);
        request_end(&third);
    }
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/versions");
    TCase *tc = tcase_create("versions");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, requests_share_the_fill_that_takes_the_place);
    tcase_add_test(tc, the_older_one_is_stored_until_the_later_one_is);
    tcase_add_test(tc, a_failure_of_the_later_one_leaves_the_older_one);
    tcase_add_test(tc, a_page_from_later_stays);
    tcase_add_test(tc, a_fresh_page_stays);
    tcase_add_test(tc, what_is_too_large_to_be_stored_leaves_the_later_one_in_its_place);
    tcase_add_test(tc, a_purge_concerns_both);
    tcase_add_test(tc, a_mark_of_the_later_response_stays);
    tcase_add_test(tc, an_older_private_response_lets_no_request_pass);
    tcase_add_test(tc, an_older_response_ends_no_pass);
    tcase_add_test(tc, a_private_response_hides_no_fresh_version);
    tcase_add_test(tc, a_mark_that_has_expired_refuses_no_older_response);
    tcase_add_test(tc, conditions_begin_a_version_beside_a_fresh_one);
    suite_add_tcase(suite, tc);
    return suite;
}
