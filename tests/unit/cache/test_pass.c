/* Markers: URLs whose responses are not shared. */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

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

static void
finish(struct requester *request, bool store, enum cache_outcome outcome)
{
    fill_head(request->found.fill, 5, NULL);
    fill_letters(request->found.fill, 5);
    ck_assert_int_eq(cache_fill_finish(request->found.fill, store, 1, 1, INT64_MAX), outcome);
    cache_fill_free(request->found.fill);
    ck_assert_uint_eq(request_take(request), WAITER_END);
    request_end(request);
}

/* A lookup at 0 that has this answer and ends in a mark until then. */
static void
mark(const char *url, enum cache_answer answer, int64_t until_us)
{
    struct requester request = {0};

    ck_assert_int_eq(request_lookup(&request, cache, url, 0, false), answer);
    cache_fill_restrict(request.found.fill, FILL_PRIVATE, until_us);
    ck_assert(cache_is_valid(cache));
    finish(&request, false, CACHE_NOT_STORED);
}

/* By a later miss of any URL, so that those which are not requested again do not stay. */
START_TEST(expired_marks_are_removed)
{
    struct requester request = {0};
    char url[16];

    for (unsigned i = 0; i < 10; i++) {
        snprintf(url, sizeof(url), "m%u", i);
        mark(url, CACHE_MISS, 1000 + i);
    }
    for (unsigned left = 8; left <= 8; left -= 2) {
        ck_assert_int_eq(request_lookup(&request, cache, "other", 1009, false), CACHE_MISS);
        ck_assert_uint_eq(pages_stats(cache).passed, left);
        fill_fail(request.found.fill);
        request_take(&request);
        request_end(&request);
        ck_assert(cache_is_valid(cache));
    }
}
END_TEST

/* Markers of long URLs are fewer: a mebibyte for 1,024 of them. */
START_TEST(the_memory_of_marks_is_bounded)
{
    enum { LENGTH = 8000, MOST = CACHE_MAX_MARKS * 1024 / LENGTH, COUNT = MOST + 100 };
    static char url[LENGTH + 1];

    memset(url, 'u', LENGTH);
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(url, sizeof(url), "%08u", i);
        url[8] = 'u';
        mark(url, CACHE_MISS, 1000);
    }
    ck_assert_uint_le(pages_stats(cache).passed, MOST);
    ck_assert_uint_ge(pages_stats(cache).passed, MOST - 10);
}
END_TEST

START_TEST(requests_pass_a_mark_until_it_expires)
{
    struct requester one = {0}, two = {0};

    mark("a", CACHE_MISS, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).bytes, 0);
    ck_assert_int_eq(request_lookup(&one, cache, "a", 999, false), CACHE_PASS);
    ck_assert_int_eq(request_lookup(&two, cache, "a", 999, false), CACHE_PASS);
    ck_assert(one.waiter.leader && two.waiter.leader);
    ck_assert_uint_eq(pages_stats(cache).busy, 2);
    finish(&one, false, CACHE_NOT_STORED);
    fill_fail(two.found.fill);
    ck_assert_uint_eq(request_take(&two), WAITER_FAILED);
    request_end(&two);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    ck_assert_int_eq(request_lookup(&one, cache, "a", 1000, false), CACHE_MISS);
    ck_assert_int_eq(request_lookup(&two, cache, "a", 1000, false), CACHE_BUSY);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    finish(&one, true, CACHE_STORED);
    request_take(&two);
    request_end(&two);
}
END_TEST

START_TEST(the_mark_is_there_while_the_private_response_arrives)
{
    struct requester leader = {0}, next = {0};

    request_lookup(&leader, cache, "a", 0, false);
    fill_head(leader.found.fill, 5, NULL);
    cache_fill_restrict(leader.found.fill, FILL_PRIVATE,
                        1000); /* after the head as well as before */
    ck_assert_int_eq(request_lookup(&next, cache, "a", 0, false), CACHE_PASS);
    finish(&next, false, CACHE_NOT_STORED);
    cache_fill_finish(leader.found.fill, false, 1, 1, INT64_MAX);
    cache_fill_free(leader.found.fill);
    request_take(&leader);
    request_end(&leader);
}
END_TEST

START_TEST(what_passes_is_not_joined_when_the_mark_ends)
{
    struct requester passing = {0}, next = {0};

    mark("a", CACHE_MISS, 1000);
    ck_assert_int_eq(request_lookup(&passing, cache, "a", 999, true), CACHE_PASS);
    fill_head(passing.found.fill, 5, NULL);
    ck_assert_int_eq(request_lookup(&next, cache, "a", 1000, false), CACHE_MISS);
    finish(&next, true, CACHE_STORED);
    fill_fail(passing.found.fill);
    ck_assert(request_take(&passing) & WAITER_FAILED);
    request_end(&passing);
}
END_TEST

START_TEST(without_a_mark_the_next_request_misses)
{
    struct requester leader = {0}, next = {0};

    request_lookup(&leader, cache, "a", 0, false);
    cache_fill_restrict(leader.found.fill, FILL_PRIVATE, 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    ck_assert_int_eq(request_lookup(&next, cache, "a", 0, false), CACHE_MISS);
    /* It is for its client alone. */
    finish(&leader, true, CACHE_NOT_STORED);
    finish(&next, true, CACHE_STORED);
}
END_TEST

START_TEST(a_shared_response_replaces_the_mark)
{
    struct requester one = {0}, two = {0};

    mark("a", CACHE_MISS, 1000);
    request_lookup(&one, cache, "a", 0, false);
    request_lookup(&two, cache, "a", 0, false);
    finish(&one, true, CACHE_STORED);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert(pages_hit(cache, "a"));
    finish(&two, true, CACHE_REPLACED);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
}
END_TEST

START_TEST(a_mark_is_renewed)
{
    struct requester one = {0};

    mark("a", CACHE_MISS, 1000);
    mark("a", CACHE_PASS, 5000);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    ck_assert_int_eq(request_lookup(&one, cache, "a", 4999, false), CACHE_PASS);
    finish(&one, false, CACHE_NOT_STORED);
}
END_TEST

START_TEST(a_mark_replaces_an_expired_page)
{
    struct requester one = {0};

    pages_store_until(cache, "a", 1, 100);
    ck_assert_int_eq(request_lookup(&one, cache, "a", 200, false), CACHE_STALE);
    cache_fill_restrict(one.found.fill, FILL_PRIVATE, 1000);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    finish(&one, false, CACHE_NOT_STORED);

    /* Without a mark the page stays. */
    cache_purge_all(cache);
    pages_store_until(cache, "a", 1, 1000);
    ck_assert_int_eq(request_lookup(&one, cache, "a", 2000, false), CACHE_STALE);
    cache_fill_restrict(one.found.fill, FILL_PRIVATE, 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    fill_head(one.found.fill, 0, NULL);
    cache_fill_finish(one.found.fill, false, 1, 2000, INT64_MAX);
    cache_fill_free(one.found.fill);
    request_take(&one);
    request_end(&one);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
}
END_TEST

static void
finish_at(struct requester *request, int64_t fetched_us, int64_t lifetime_us,
          enum cache_outcome outcome)
{
    fill_head(request->found.fill, 0, NULL);
    ck_assert_int_eq(cache_fill_finish(request->found.fill, true, 1, fetched_us, lifetime_us),
                     outcome);
    cache_fill_free(request->found.fill);
    request_take(request);
    request_end(request);
}

START_TEST(a_fill_that_passed_a_mark_replaces_no_page_from_later)
{
    static const struct {
        int64_t fetched_us, lifetime_us;
        enum cache_outcome outcome;
    } rows[] = {
        {3000, 100000, CACHE_NOT_STORED}, /* the page is from later */
        {500, 100000, CACHE_REPLACED},    /* it is not */
        {3000, INT64_MAX, CACHE_NOT_STORED},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct requester older = {0}, newer = {0};
        struct object *page;

        mark("a", CACHE_MISS, 100000);
        ck_assert_int_eq(request_lookup(&older, cache, "a", 1000, false), CACHE_PASS);
        ck_assert_int_eq(request_lookup(&newer, cache, "a", 3000, false), CACHE_PASS);
        finish_at(&newer, rows[i].fetched_us, rows[i].lifetime_us, CACHE_STORED);
        finish_at(&older, 1000, 100000, rows[i].outcome);
        page = pages_get(cache, span_str("a"), 4000);
        ck_assert_ptr_nonnull(page);
        ck_assert_int_eq(page->fetched_us,
                         rows[i].outcome == CACHE_REPLACED ? 1000 : rows[i].fetched_us);
        object_release(&page);
        cache_purge_all(cache);
    }
}
END_TEST

/* A request that the page did not satisfy may get an older response, by another cache's Age. */
START_TEST(the_successor_of_a_page_replaces_it)
{
    const struct cache_conditions conditions = {.no_cache = true, .max_age_us = INT64_MAX};
    struct requester one = {0};

    ck_assert_int_eq(request_lookup(&one, cache, "a", 1000, false), CACHE_MISS);
    finish_at(&one, 900, 100000, CACHE_STORED);
    ck_assert_int_eq(request_lookup_with(&one, cache, "a", 2000,
                                         (struct cache_request){.conditions = &conditions}),
                     CACHE_STALE);
    finish_at(&one, 500, 100000, CACHE_REPLACED);
}
END_TEST

START_TEST(a_fill_without_an_entry_marks_what_is_not_newer)
{
    struct requester evicted = {0}, newer = {0};

    /* Nothing of the URL is there. */
    pages_store_until(cache, "a", 1, 100);
    request_lookup(&evicted, cache, "a", 200, false);
    pages_store_many(cache, 0, 10, 1);
    ck_assert_uint_eq(pages_stats(cache).evictions, 1);
    cache_fill_restrict(evicted.found.fill, FILL_PRIVATE, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, 1);
    finish(&evicted, false, CACHE_NOT_STORED);
    cache_purge_all(cache);

    /* A busy object is. */
    pages_store_until(cache, "a", 1, 100);
    request_lookup(&evicted, cache, "a", 200, false);
    pages_store_many(cache, 0, 10, 1);
    ck_assert_int_eq(request_lookup(&newer, cache, "a", 200, false), CACHE_MISS);
    cache_fill_restrict(evicted.found.fill, FILL_PRIVATE, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
    finish(&evicted, false, CACHE_NOT_STORED);
    finish(&newer, true, CACHE_STORED);
}
END_TEST

START_TEST(marks_are_bounded_and_the_oldest_is_dropped)
{
    struct requester request = {0};

    for (int i = 0; i < (int)CACHE_MAX_MARKS; i++)
        mark(pages_url(i), CACHE_MISS, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, CACHE_MAX_MARKS);
    mark(pages_url(0), CACHE_PASS, 1000); /* the newest now */
    mark("http://one.more/", CACHE_MISS, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, CACHE_MAX_MARKS);
    ck_assert_int_eq(request_lookup(&request, cache, pages_url(0), 0, false), CACHE_PASS);
    finish(&request, false, CACHE_NOT_STORED);
    ck_assert_int_eq(request_lookup(&request, cache, pages_url(1), 0, false), CACHE_MISS);
    finish(&request, false, CACHE_NOT_STORED);
    ck_assert_int_eq(request_lookup(&request, cache, pages_url(2), 0, false), CACHE_PASS);
    finish(&request, false, CACHE_NOT_STORED);
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
}
END_TEST

START_TEST(marks_do_not_evict_pages)
{
    pages_store_many(cache, 0, 10, 1);
    for (int i = 10; i < 50; i++)
        mark(pages_url(i), CACHE_MISS, 1000);
    ck_assert_uint_eq(pages_stats(cache).pages, 10);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
}
END_TEST

START_TEST(purges_drop_marks)
{
    struct requester pass = {0};

    for (int i = 0; i < 30; i++)
        mark(pages_url(i), CACHE_MISS, 1000);
    request_lookup(&pass, cache, pages_url(3), 0, false);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str(pages_url(3))), 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 29);
    /* What was fetched before the purge is not stored, nor is it marked. */
    cache_fill_restrict(pass.found.fill, FILL_PRIVATE, 1000);
    ck_assert_uint_eq(pages_stats(cache).passed, 29);
    finish(&pass, true, CACHE_NOT_STORED);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("http://www.example.com/1")), 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 29 - 11);
    ck_assert_uint_eq(cache_purge_all(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).passed, 0);
}
END_TEST

START_TEST(marks_survive_another_configuration)
{
    static const unsigned shards[] = {1, 7, 64, 2, 1};
    struct requester request = {0};

    for (int i = 0; i < 40; i++)
        mark(pages_url(i), CACHE_MISS, 1000 + i);
    for (size_t s = 0; s < sizeof(shards) / sizeof(shards[0]); s++) {
        struct cache_config config = {
            .policy = policy_spec_of(s == 3 ? NULL : policy_find("lirs")),
            .capacity_pages = 100,
            .shards = shards[s],
        };

        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).passed, 40);
        for (int i = 0; i < 40; i++) {
            ck_assert_int_eq(request_lookup(&request, cache, pages_url(i), 999 + i, false),
                             CACHE_PASS);
            finish(&request, false, CACHE_NOT_STORED);
        }
    }
    /* With more shards there are fewer for each; the oldest go. */
    for (int i = 40; i < (int)CACHE_MAX_MARKS; i++)
        mark(pages_url(i), CACHE_MISS, 1000);
    ck_assert_int_eq(cache_configure(cache,
                                     &(struct cache_config){
                                         .policy = policy_spec_of(policy_find("lru")),
                                         .capacity_pages = 100,
                                         .shards = 64,
                                     }),
                     CACHE_OK);
    ck_assert_uint_lt(pages_stats(cache).passed, CACHE_MAX_MARKS);
    ck_assert_uint_gt(pages_stats(cache).passed, CACHE_MAX_MARKS / 2);
    ck_assert(cache_is_valid(cache));
    ck_assert_int_eq(request_lookup(&request, cache, pages_url((int)CACHE_MAX_MARKS - 1), 0, false),
                     CACHE_PASS);
    finish(&request, false, CACHE_NOT_STORED);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/marks");
    TCase *tc = tcase_create("marks");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, requests_pass_a_mark_until_it_expires);
    tcase_add_test(tc, expired_marks_are_removed);
    tcase_add_test(tc, the_memory_of_marks_is_bounded);
    tcase_add_test(tc, the_mark_is_there_while_the_private_response_arrives);
    tcase_add_test(tc, what_passes_is_not_joined_when_the_mark_ends);
    tcase_add_test(tc, without_a_mark_the_next_request_misses);
    tcase_add_test(tc, a_shared_response_replaces_the_mark);
    tcase_add_test(tc, a_mark_is_renewed);
    tcase_add_test(tc, a_fill_that_passed_a_mark_replaces_no_page_from_later);
    tcase_add_test(tc, the_successor_of_a_page_replaces_it);
    tcase_add_test(tc, a_mark_replaces_an_expired_page);
    tcase_add_test(tc, a_fill_without_an_entry_marks_what_is_not_newer);
    tcase_add_test(tc, marks_are_bounded_and_the_oldest_is_dropped);
    tcase_add_test(tc, marks_do_not_evict_pages);
    tcase_add_test(tc, purges_drop_marks);
    tcase_add_test(tc, marks_survive_another_configuration);
    suite_add_tcase(suite, tc);
    return suite;
}
