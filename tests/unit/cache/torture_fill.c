/*
 * One fill with every allocation failing in turn: requests, windows, refreshed pages, variants,
 * tags, and where an account is charged. Every failure is answered, no waiter stays without an
 * answer, and the leak checker finds nothing.
 */
#include <errno.h>

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"
#include "tests/unit/torture.h"

/* A body is PIECES of these. */
enum { PIECE = 350, PIECES = 200 };

static char piece[PIECE];

static void
make_piece(void)
{
    for (int i = 0; i < PIECE; i++)
        piece[i] = (char)('0' + i % 7);
}

/* How the response is. */
struct plan {
    enum cache_answer answer;
    int64_t length;
    bool isolates;
    struct memory_account *account; /* that reclaims, or NULL */
    struct cache *cache;
    enum cache_outcome outcome;
};

/* Head and body; false after a failure, which is that of the memory. */
static bool
fill_body(struct cache_fill *fill, const struct plan *plan)
{
    struct object_head head = {
        .status = 200,
        .fields = span_str("h"),
        .length = plan->length,
        .max_length = 100000,
        .account = plan->account,
    };
    int error = cache_fill_head(fill, &head);

    if (error) {
        ck_assert(torture_failed());
        ck_assert_int_eq(error, ENOMEM);
        ck_assert_uint_eq(object_fields(fill->object).len, 0);
        error = cache_fill_head(fill, &head);
    }
    ck_assert_int_eq(error, 0);
    for (unsigned i = 0; i < PIECES; i++) {
        error = cache_fill_append(fill, piece, PIECE);
        if (error) {
            ck_assert(torture_failed());
            ck_assert_int_eq(error, ENOMEM);
            ck_assert_uint_eq(object_length(fill->object), i * PIECE); /* it keeps what it had */
            if (i % 2)
                return false;
            ck_assert_int_eq(cache_fill_append(fill, piece, PIECE), 0);
        }
    }
    return true;
}

static void
check_body(const struct object *object)
{
    struct object_place place = {0};
    struct span run;
    uint64_t at = 0, wrong = 0;

    while (run = object_read(object, &place), run.len) {
        for (size_t i = 0; i < run.len; i++, at++)
            wrong += run.ptr[i] != piece[at % PIECE];
    }
    ck_assert_uint_eq(at, PIECE * PIECES);
    ck_assert_uint_eq(wrong, 0);
}

/* One request that streams leads, another one joins; every waiter has one answer. */
static void
request_page(const struct plan *plan)
{
    struct cache_stats before = pages_stats(plan->cache), after;
    struct requester leader = {0}, late = {0};
    unsigned last = WAITER_FAILED;
    struct cache_fill *fill;

    if (request_lookup(&leader, plan->cache, "u", 5000, true) == CACHE_NO_MEMORY) {
        ck_assert(torture_failed());
        ck_assert_ptr_null(leader.found.fill);
        ck_assert_ptr_null(leader.found.object);
        ck_assert_ptr_null(leader.waiter.object);
        after = pages_stats(plan->cache);
        ck_assert_uint_eq(after.busy, 0);
        ck_assert_uint_eq(after.pages, before.pages);
        ck_assert(cache_is_valid(plan->cache));
        /* It may look up again. */
        request_lookup(&leader, plan->cache, "u", 5000, true);
    }
    ck_assert_int_eq(leader.answer, plan->answer);
    fill = leader.found.fill;
    object_release(&leader.found.object);
    if (plan->answer != CACHE_PASS)
        ck_assert_int_eq(request_lookup(&late, plan->cache, "u", 5000, false), CACHE_BUSY);
    if (plan->isolates)
        cache_fill_restrict(fill, FILL_PRIVATE, 9000);
    if (fill_body(fill, plan)) {
        enum cache_outcome outcome = cache_fill_finish(fill, !plan->isolates, 1, 5000, 1000000);

        ck_assert(outcome == plan->outcome || (torture_failed() && outcome == CACHE_NOT_STORED));
        last = WAITER_END;
    } else {
        cache_fill_fail(fill, 1, "no memory", NULL, NULL);
    }
    cache_fill_free(fill);
    ck_assert_uint_eq(request_take(&leader) & WAITER_LAST, last);
    if (last == WAITER_END)
        check_body(leader.waiter.object);
    if (plan->answer != CACHE_PASS) {
        ck_assert_uint_eq(request_take(&late), plan->isolates ? WAITER_RETRY : last);
        if (late.taken == WAITER_END)
            check_body(late.waiter.object);
    }
    request_end(&leader);
    request_end(&late);
    after = pages_stats(plan->cache);
    ck_assert_uint_eq(after.busy, 0);
    ck_assert(after.evictions == before.evictions || plan->account);
    ck_assert(cache_is_valid(plan->cache));
    if (plan->account)
        ck_assert_uint_eq(memory_used(plan->account, MEMORY_PAGES), 0);
}

/* For each plan, a cache that answers so. */
static void
begin_plan(struct plan *plan)
{
    struct requester request = {0};

    cache_purge_all(plan->cache);
    if (plan->answer == CACHE_STALE)
        pages_store_until(plan->cache, "u", 10, 2000);
    if (plan->answer != CACHE_PASS)
        return;
    request_lookup(&request, plan->cache, "u", 5000, false);
    cache_fill_restrict(request.found.fill, FILL_PRIVATE, 9000);
    fill_fail(request.found.fill);
    request_take(&request);
    request_end(&request);
}

START_TEST(requesting_a_page)
{
    static const struct plan plans[] = {
        {.answer = CACHE_MISS, .length = -1, .outcome = CACHE_STORED},
        {.answer = CACHE_MISS, .length = 70000, .outcome = CACHE_STORED},
        {.answer = CACHE_STALE, .length = -1, .outcome = CACHE_REPLACED},
        {.answer = CACHE_PASS, .length = -1, .outcome = CACHE_STORED},
        {.answer = CACHE_MISS, .length = -1, .isolates = true, .outcome = CACHE_NOT_STORED},
        {.answer = CACHE_STALE, .length = 70000, .isolates = true, .outcome = CACHE_NOT_STORED},
        {.answer = CACHE_PASS, .length = 70000, .isolates = true, .outcome = CACHE_NOT_STORED},
    };
    /* The fill, its two objects and an entry; the head; three segments and a copy. */
    static const unsigned seams[] = {9, 5, 9, 8, 8, 5, 4};

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct plan plan = plans[i];
        unsigned n = 1;

        plan.cache = pages_cache("lru", 10, 0, 1);
        do {
            torture_fail_at(0);
            begin_plan(&plan);
            torture_fail_at(n++);
            request_page(&plan);
        } while (torture_failed());
        torture_fail_at(0);
        ck_assert_uint_ge(n - 2, seams[i]);
        cache_destroy(plan.cache);
    }
}
END_TEST

static void
ignore_resume(struct cache_fill *fill)
{
    (void)fill;
}

/* Without memory the body stays whole and everyone waits, and it may be tried again. */
static void
open_window(struct cache_fill *fill, struct requester *whole)
{
    static const struct cache_window window = {.size = 20000,
                                               .lag = 20000,
                                               .lags = {2, "slow"},
                                               .whole = {3, "large"},
                                               .resume = ignore_resume};

    if (cache_fill_unstore(fill, &window) != 0) {
        ck_assert(torture_failed());
        ck_assert(!object_is_windowed(fill->object));
        ck_assert_uint_eq(request_take(whole), 0);
        ck_assert_uint_eq(pages_stats(fill->cache).busy, 1);
        ck_assert_int_eq(cache_fill_unstore(fill, &window), 0);
    }
    ck_assert_uint_eq(request_take(whole), WAITER_FAILED);
    ck_assert_uint_eq(pages_stats(fill->cache).busy, 0);
}

static void
window_page(struct cache *cache, struct memory_account *account)
{
    struct requester leader = {0}, whole = {0};
    struct object_place place = {0};
    struct cache_fill *fill;
    struct span run;
    uint64_t at = 0;

    if (request_lookup(&leader, cache, "u", 0, true) == CACHE_NO_MEMORY)
        request_lookup(&leader, cache, "u", 0, true);
    fill = leader.found.fill;
    ck_assert_int_eq(request_lookup(&whole, cache, "u", 0, false), CACHE_BUSY);
    while (cache_fill_head(fill, &(struct object_head){.status = 200,
                                                       .length = -1,
                                                       .max_length = UINT64_MAX,
                                                       .account = account}) != 0)
        ck_assert(torture_failed());
    open_window(fill, &whole);
    for (unsigned i = 0; i < PIECES; i++) {
        int error = cache_fill_append(fill, piece, PIECE);

        if (error > 0) {
            ck_assert(torture_failed());
            ck_assert_uint_eq(object_length(fill->object), i * PIECE);
            error = cache_fill_append(fill, piece, PIECE);
        }
        ck_assert_int_eq(error, 0);
        request_take(&leader);
        while (run = object_read(leader.waiter.object, &place), run.len) {
            for (size_t b = 0; b < run.len; b++, at++)
                ck_assert(run.ptr[b] == piece[at % PIECE]);
        }
        cache_waiter_taken(&leader.waiter, at);
    }
    ck_assert_int_eq(cache_fill_finish(fill, true, 1, 0, INT64_MAX), CACHE_NOT_STORED);
    cache_fill_free(fill);
    ck_assert(request_take(&leader) & WAITER_END);
    request_end(&leader);
    request_end(&whole);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
    ck_assert(cache_is_valid(cache));
}

START_TEST(a_body_with_a_window)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    struct memory_account account;
    unsigned n = 1;

    memory_account_init(&account, UINT64_MAX / 4, NULL);
    do {
        torture_fail_at(n++);
        window_page(cache, &account);
    } while (torture_failed());
    torture_fail_at(0);
    ck_assert_uint_ge(n - 2,
                      10); /* the fill, its objects and entry; head; two failures; segments */
    cache_destroy(cache);
}
END_TEST

/* A confirmed successor: without memory for its head the expired object is good enough. */
static void
refresh_page(struct cache *cache)
{
    const struct object_head head = {.status = 200, .fields = span_str("h")};
    struct requester leader = {0}, late = {0};
    enum cache_outcome outcome;

    if (request_lookup(&leader, cache, "u", 5000, false) == CACHE_NO_MEMORY)
        request_lookup(&leader, cache, "u", 5000, false);
    ck_assert_int_eq(leader.answer, CACHE_STALE);
    ck_assert_int_eq(request_lookup(&late, cache, "u", 5000, true), CACHE_BUSY);
    if (cache_fill_refresh(leader.found.fill, &head, true, 1, 5000, 0, &outcome) != 0) {
        ck_assert(torture_failed());
        ck_assert(cache_is_valid(cache));
        cache_fill_fall_back(leader.found.fill, 0);
        outcome = CACHE_FELL_BACK;
    } else {
        ck_assert(outcome == CACHE_REPLACED || (outcome == CACHE_NOT_STORED && torture_failed()));
    }
    cache_fill_free(leader.found.fill);
    ck_assert_uint_eq(request_take(&leader), WAITER_END);
    ck_assert(request_take(&late) & WAITER_END);
    ck_assert_int_eq(late.waiter.outcome, outcome);
    ck_assert_uint_eq(object_length(late.waiter.object), 10);
    request_end(&leader);
    request_end(&late);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
}

START_TEST(refreshing_a_page)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    unsigned n = 1;

    do {
        torture_fail_at(0);
        cache_purge_all(cache);
        pages_store_until(cache, "u", 10, 2000);
        torture_fail_at(n++);
        refresh_page(cache);
    } while (torture_failed());
    torture_fail_at(0);
    ck_assert_uint_ge(n - 2, 5); /* the fill, its two objects, the new object and its entry */
    cache_destroy(cache);
}
END_TEST

/* A response that expires while it arrives is followed by a later version, or stays the newest. */
static void
follow_page(void *context)
{
    struct object_head head = {.status = 200, .length = PIECE, .max_length = PIECE};
    struct requester first = {0}, second = {0};
    struct cache *cache = context;
    enum cache_outcome outcome;

    if (request_lookup(&first, cache, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&first, cache, "u", 0, false);
    head.fresh_until_us = 1000;
    while (cache_fill_head(first.found.fill, &head) != 0)
        ck_assert(torture_failed());
    if (request_lookup(&second, cache, "u", 1000, false) == CACHE_NO_MEMORY) {
        ck_assert(torture_failed());
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).busy, 1);
        ck_assert_int_eq(request_lookup(&second, cache, "u", 999, false), CACHE_BUSY);
        ck_assert(cache_leave(&second.waiter));
        request_end(&second);
        request_lookup(&second, cache, "u", 1000, false);
    }
    ck_assert_int_eq(second.answer, CACHE_MISS);
    /* Too large to be stored: the later one needs an entry again. */
    while (cache_fill_append(first.found.fill, piece, PIECE) != 0)
        ck_assert(torture_failed());
    outcome = cache_fill_finish(first.found.fill, true, 1, 1, 1000);
    ck_assert_int_eq(outcome, CACHE_NOT_STORED);
    ck_assert(cache_is_valid(cache));
    cache_fill_free(first.found.fill);
    ck_assert_uint_eq(request_take(&first), WAITER_END);
    request_end(&first);
    head.length = 1;
    while (cache_fill_head(second.found.fill, &head) != 0)
        ck_assert(torture_failed());
    outcome = cache_fill_finish(second.found.fill, true, 1, 1000, 1000);
    ck_assert(outcome == CACHE_STORED || (outcome == CACHE_NOT_STORED && torture_failed()));
    cache_fill_free(second.found.fill);
    ck_assert_uint_eq(request_take(&second), WAITER_END);
    request_end(&second);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    purge_by(cache, CACHE_BY_URL, span_str("u"));
}

START_TEST(following)
{
    struct cache *cache = pages_cache("lru", 0, 400, 1);

    /* Two fills with two objects each, an entry; two heads; an entry, in which a page is stored. */
    ck_assert_uint_eq(torture_walk(follow_page, cache), 9);
    cache_destroy(cache);
}
END_TEST

/* A response that varies is stored under its variant, or without memory given to its leader alone.
 */
static void
vary_page(struct cache *cache)
{
    struct requester leader = {0}, late = {0};
    struct cache_fill *fill;
    bool varies;

    if (request_lookup(&leader, cache, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&leader, cache, "u", 0, false);
    fill = leader.found.fill;
    ck_assert_int_eq(request_lookup(&late, cache, "u", 0, true), CACHE_BUSY);
    varies = cache_fill_vary(fill, span_str("names"), span_str("variant"));
    ck_assert(varies || torture_failed());
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    request_end(&late);
    ck_assert_uint_eq(pages_stats(cache).varied, varies);
    ck_assert_uint_eq(pages_stats(cache).busy, varies);
    if (cache_fill_head(fill, &(struct object_head){.status = 200}) == 0) {
        enum cache_outcome outcome = cache_fill_finish(fill, true, 1, 0, INT64_MAX);

        ck_assert(outcome == CACHE_STORED || (outcome == CACHE_NOT_STORED && torture_failed()));
        ck_assert_uint_eq(request_take(&leader), WAITER_END);
    } else {
        cache_fill_fail(fill, 1, "no memory", NULL, NULL);
        ck_assert_uint_eq(request_take(&leader), WAITER_FAILED);
    }
    cache_fill_free(fill);
    request_end(&leader);
    ck_assert(cache_is_valid(cache));
}

START_TEST(varying)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    unsigned n = 1;

    do {
        torture_fail_at(0);
        cache_purge_all(cache);
        torture_fail_at(n++);
        vary_page(cache);
    } while (torture_failed());
    torture_fail_at(0);
    /* A fill, its objects and entry; two objects, an entry, in which a page is stored; its head. */
    ck_assert_uint_eq(n - 2, 8);
    cache_destroy(cache);
}
END_TEST

/* A page with tags is stored with all of them in the index, or not at all. */
static void
tag_page(void *context)
{
    struct cache *cache = context;
    const struct object_head head = {.status = 200, .tags = span_str("old new1 new2")};
    struct requester request = {0};

    if (request_lookup(&request, cache, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&request, cache, "u", 0, false);
    if (cache_fill_head(request.found.fill, &head) == 0) {
        enum cache_outcome outcome = cache_fill_finish(request.found.fill, true, 1, 0, INT64_MAX);

        ck_assert(outcome == CACHE_STORED || (outcome == CACHE_NOT_STORED && torture_failed()));
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(purge_by(cache, CACHE_BY_TAG, span_str("new2")), outcome == CACHE_STORED);
    } else {
        cache_fill_fail(request.found.fill, 1, "no memory", NULL, NULL);
    }
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
}

START_TEST(tagging)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);

    pages_store_tagged(cache, "other", "old one");
    /* The fill, its objects and entry; the head; an entry with links, and two tags. */
    ck_assert_uint_ge(torture_walk(tag_page, cache), 8);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_TAG, span_str("old")), 1);
    cache_destroy(cache);
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
    /* Nothing more fails: this was the one failure. */
    ck_assert(torture_failed());
    reclaimed_bytes += cache_reclaim(reclaimed, bytes, &count);
    return count > 0;
}

/* Head and body cannot fail, because the account's owner evicts pages of the same cache. */
static void
fill_charged(void *context)
{
    struct memory_account *account = context;
    struct requester request = {0};
    unsigned appended = 0;

    if (request_lookup(&request, reclaimed, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&request, reclaimed, "u", 0, false);
    ck_assert_int_eq(cache_fill_head(request.found.fill, &(struct object_head){.status = 200,
                                                                               .length = -1,
                                                                               .max_length = 100000,
                                                                               .account = account}),
                     0);
    while (appended < PIECE * PIECES) {
        ck_assert_int_eq(cache_fill_append(request.found.fill, piece, PIECE), 0);
        appended += PIECE;
    }
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), object_size(request.found.fill->object));
    ck_assert_int_eq(cache_fill_finish(request.found.fill, true, 1, 1, 0), CACHE_STORED);
    cache_fill_free(request.found.fill);
    ck_assert_uint_eq(request_take(&request), WAITER_END);
    check_body(request.waiter.object);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
    request_end(&request);
    purge_by(reclaimed, CACHE_BY_URL, span_str("u"));
    ck_assert(cache_is_valid(reclaimed));
}

START_TEST(filling_evicts_others_where_memory_fails)
{
    const struct memory_hooks hooks = {.reclaim = reclaim};
    struct memory_account account;

    reclaimed = pages_cache("lru", 0, 16 << 20, 2);
    pages_store_many(reclaimed, 0, 2000, 2000);
    memory_account_init(&account, UINT64_MAX, &hooks);
    reclaimed_bytes = 0;
    ck_assert_uint_ge(torture_walk(fill_charged, &account), 9);
    /* For the head and each segment, and never much. */
    ck_assert_uint_ge(pages_stats(reclaimed).evictions, 4);
    ck_assert_uint_lt(pages_stats(reclaimed).evictions, 1000);
    ck_assert_uint_gt(reclaimed_bytes, 70000);
    cache_destroy(reclaimed);
}
END_TEST

/* Without memory a charge is taken back. */
static void
fill_in_vain(void *context)
{
    struct memory_account *account = context;
    struct requester request = {0};
    struct cache *cache = reclaimed;
    struct object_head head = {
        .status = 200, .length = -1, .max_length = 100000, .account = account};

    if (request_lookup(&request, cache, "u", 0, false) == CACHE_NO_MEMORY)
        return;
    if (cache_fill_head(request.found.fill, &head) == 0) {
        for (int i = 0; i < PIECES; i++) {
            int error = cache_fill_append(request.found.fill, piece, PIECE);

            ck_assert(error == 0 || (error == ENOMEM && torture_failed()));
            ck_assert_uint_eq(memory_used(account, MEMORY_PAGES),
                              object_size(request.found.fill->object));
            if (error)
                break;
        }
    } else {
        ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
    }
    fill_fail(request.found.fill);
    ck_assert_uint_eq(request_take(&request), WAITER_FAILED);
    request_end(&request);
    ck_assert_uint_eq(memory_used(account, MEMORY_PAGES), 0);
}

START_TEST(a_charge_without_memory_is_taken_back)
{
    struct memory_account account;

    memory_account_init(&account, UINT64_MAX, NULL);
    reclaimed = pages_cache("lru", 10, 0, 1);
    ck_assert_uint_ge(torture_walk(fill_in_vain, &account), 8);
    cache_destroy(reclaimed);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/torture_fill");
    TCase *tc = tcase_create("torture");

    tcase_add_unchecked_fixture(tc, make_piece, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, requesting_a_page);
    tcase_add_test(tc, a_body_with_a_window);
    tcase_add_test(tc, refreshing_a_page);
    tcase_add_test(tc, following);
    tcase_add_test(tc, varying);
    tcase_add_test(tc, tagging);
    tcase_add_test(tc, filling_evicts_others_where_memory_fails);
    tcase_add_test(tc, a_charge_without_memory_is_taken_back);
    suite_add_tcase(suite, tc);
    return suite;
}
