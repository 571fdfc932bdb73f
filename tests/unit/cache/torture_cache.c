/*
 * The cache with every allocation failing in turn: every failure is answered, no page is evicted
 * without need, no busy object stays without a fill and no waiter without an answer, and the leak
 * checker finds nothing.
 */
#include <errno.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/torture.h"

#define PAGES 60

static char urls[PAGES][32];

/* A body is PIECES of these. */
enum { PIECE = 350, PIECES = 200 };

static char piece[PIECE];

static void
make_urls(void)
{
    for (int i = 0; i < PIECE; i++)
        piece[i] = (char)('0' + i % 7);
    for (int i = 0; i < PAGES; i++)
        snprintf(urls[i], sizeof(urls[i]), "http://h/%d", i);
}

static struct stored
put(struct cache *cache, int i)
{
    return pages_put(cache, span_str(urls[i]), (size_t)(i * 37 % 101), INT64_MAX, NULL);
}

/* Nothing fails meanwhile. */
static void
put_all(struct cache *cache)
{
    for (int i = 0; i < PAGES; i++) {
        struct stored stored = put(cache, i);

        ck_assert_int_eq(stored.outcome, CACHE_STORED);
        stored_free(&stored);
    }
}

/* A lookup that is expected to be a hit allocates nothing; a miss would begin a fill. */
static bool
is_inside(struct cache *cache, int i)
{
    return pages_hit(cache, urls[i]);
}

static uint64_t
count_inside(struct cache *cache)
{
    return pages_stats(cache).pages;
}

/* ---- one fill -------------------------------------------------------------------------------- */

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
        .final_url = span_str("f"),
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
    struct request leader = {0}, late = {0};
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
        cache_fill_isolate(fill, 9000);
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
    struct request request = {0};

    cache_purge_all(plan->cache);
    if (plan->answer == CACHE_STALE)
        pages_store_until(plan->cache, "u", 10, 2000);
    if (plan->answer != CACHE_PASS)
        return;
    request_lookup(&request, plan->cache, "u", 5000, false);
    cache_fill_isolate(request.found.fill, 9000);
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
open_window(struct cache_fill *fill, struct request *whole)
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
    struct request leader = {0}, whole = {0};
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
    struct request leader = {0}, late = {0};
    enum cache_outcome outcome;

    if (request_lookup(&leader, cache, "u", 5000, false) == CACHE_NO_MEMORY)
        request_lookup(&leader, cache, "u", 5000, false);
    ck_assert_int_eq(leader.answer, CACHE_STALE);
    ck_assert_int_eq(request_lookup(&late, cache, "u", 5000, true), CACHE_BUSY);
    if (cache_fill_refresh(leader.found.fill, &head, true, 1, 5000, 0, &outcome) != 0) {
        ck_assert(torture_failed());
        ck_assert(cache_is_valid(cache));
        cache_fill_fall_back(leader.found.fill);
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

/* A response that varies is stored under its variant, or without memory given to its leader alone.
 */
static void
vary_page(struct cache *cache)
{
    struct request leader = {0}, late = {0};
    struct cache_fill *fill;
    bool varies;

    if (request_lookup(&leader, cache, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&leader, cache, "u", 0, false);
    fill = leader.found.fill;
    ck_assert_int_eq(request_lookup(&late, cache, "u", 0, true), CACHE_BUSY);
    varies = cache_fill_vary(fill, span_str(""), span_str("names"), span_str("variant"));
    ck_assert(varies || torture_failed());
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
    request_end(&late);
    ck_assert_uint_eq(pages_stats(cache).records, varies);
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
    ck_assert_uint_ge(n - 2, 9); /* a fill, its objects and entry; two objects, an entry; a page */
    cache_destroy(cache);
}
END_TEST

/* A page with tags is stored with all of them in the index, or not at all. */
static void
tag_page(void *context)
{
    struct cache *cache = context;
    const struct object_head head = {.status = 200, .tags = span_str("old new1 new2")};
    struct request request = {0};

    if (request_lookup(&request, cache, "u", 0, false) == CACHE_NO_MEMORY)
        request_lookup(&request, cache, "u", 0, false);
    if (cache_fill_head(request.found.fill, &head) == 0) {
        enum cache_outcome outcome = cache_fill_finish(request.found.fill, true, 1, 0, INT64_MAX);

        ck_assert(outcome == CACHE_STORED || (outcome == CACHE_NOT_STORED && torture_failed()));
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(cache_purge_tag(cache, span_str("new2")), outcome == CACHE_STORED);
    } else {
        cache_fill_fail(request.found.fill, 1, "no memory", NULL, NULL);
    }
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
}

static void
put_tagged(struct cache *cache)
{
    struct request request = {0};

    request_lookup(&request, cache, "other", 0, false);
    cache_fill_head(request.found.fill,
                    &(struct object_head){.status = 200, .tags = span_str("old one")});
    cache_fill_finish(request.found.fill, true, 1, 0, INT64_MAX);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
}

START_TEST(tagging)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);

    put_tagged(cache);
    /* The fill, its objects and entry; the head; an entry with links, and two tags. */
    ck_assert_uint_ge(torture_walk(tag_page, cache), 8);
    ck_assert_uint_eq(cache_purge_tag(cache, span_str("old")), 1);
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
    struct request request = {0};
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
    cache_purge(reclaimed, span_str("u"));
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
    struct request request = {0};
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

/* ---- caches ---------------------------------------------------------------------------------- */

static void
create_cache(void *context)
{
    enum cache_error error = CACHE_BAD_CONFIG;
    struct cache *cache = cache_create(context, &error);

    ck_assert_int_eq(error, cache ? CACHE_OK : CACHE_CONFIG_NO_MEMORY);
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
    ck_assert_uint_eq(torture_walk(create_cache, &config), 3 + 1);
}
END_TEST

enum { FEW = 16 };

/* Stores a few pages; each that could not be stored has evicted nothing. */
static void
store_few(void *context)
{
    const struct cache_config *config = context;
    enum cache_error error;
    struct cache *cache = cache_create(config, &error);
    uint64_t refused = 0, handed = 0, evicted_in_all = 0;
    bool chooses = config->policy.ops->admit != NULL; /* so that a refusal says nothing */
    struct cache_stats stats;

    if (!cache)
        return;
    for (int i = 0; i < FEW; i++) {
        uint64_t before = count_inside(cache);
        struct stored stored = put(cache, i);

        if (stored.outcome == CACHE_NOT_STORED) {
            refused += !chooses;
            ck_assert_uint_eq(stored.evicted, 0);
            ck_assert_uint_eq(stored.victims.count, 0);
            ck_assert_uint_eq(count_inside(cache), before);
        } else if (stored.outcome == CACHE_PASSED_ON) {
            ck_assert(config->policy.ops->enters_first);
            ck_assert_uint_eq(count_inside(cache), before - stored.evicted);
        } else {
            ck_assert_uint_eq(count_inside(cache), before + 1 - stored.evicted);
            ck_assert(is_inside(cache, i)); /* a request: with a surplus others are evicted */
        }
        /* Without memory for the list victims are only counted. */
        ck_assert(stored.victims.count == stored.evicted ||
                  (stored.victims.count == 0 && torture_failed()));
        handed += stored.victims.count;
        evicted_in_all += stored.evicted;
        stored_free(&stored);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_eq(pages_stats(cache).busy, 0);
    }
    cache_get_stats(cache, &stats);
    if (config->policy.ops->hit_has_surplus)
        ck_assert_uint_ge(stats.evictions, evicted_in_all);
    else
        ck_assert_uint_eq(stats.evictions, evicted_in_all);
    ck_assert_uint_le(refused, torture_failed());
    ck_assert_uint_le(evicted_in_all - handed, 2 * torture_failed() + 3 * refused);

    /* Again: all of them replace or enter. */
    for (int i = 0; i < FEW; i++) {
        struct stored stored = put(cache, i);

        refused += stored.outcome == CACHE_NOT_STORED && !chooses;
        stored_free(&stored);
    }
    ck_assert_uint_le(refused, torture_failed());
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}

START_TEST(storing)
{
    for (size_t p = 0; policies[p]; p++) {
        if (policies[p]->needs_future)
            continue;
        ck_assert_uint_ge(
            torture_walk(store_few, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_pages = 10,
                                                           .shards = 1}),
            5 * FEW);
        ck_assert_uint_ge(
            torture_walk(store_few, &(struct cache_config){.policy = policy_spec_of(policies[p]),
                                                           .capacity_bytes = 3200,
                                                           .shards = 2}),
            5 * FEW);
    }
}
END_TEST

START_TEST(hits_and_purges_of_a_few_allocate_nothing)
{
    struct cache *cache = pages_cache("lru", 2 * PAGES, 0, 1);
    uint64_t gone;

    torture_fail_at(0);
    put_all(cache);
    torture_fail_at(1);
    for (int i = 0; i < PAGES; i++)
        ck_assert(is_inside(cache, i));
    ck_assert(!torture_failed());
    gone = cache_purge(cache, span_str(urls[7]));
    gone += cache_purge_prefix(cache, span_str("http://h/1"));
    torture_fail_at(0); /* returning memory of the table may allocate, and may be refused */
    ck_assert_uint_eq(gone, 1 + 11);
    ck_assert_uint_eq(count_inside(cache), PAGES - gone);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

START_TEST(joining_leaving_failing_and_isolating_allocate_nothing)
{
    struct cache *cache = pages_cache("lru", 10, 0, 1);
    struct request leader = {0}, late[3] = {0}, other = {0};

    torture_fail_at(0);
    request_lookup(&leader, cache, "u", 0, true);
    request_lookup(&other, cache, "v", 0, true);
    torture_fail_at(1);
    for (unsigned i = 0; i < 3; i++)
        ck_assert_int_eq(request_lookup(&late[i], cache, "u", 0, i % 2), CACHE_BUSY);
    ck_assert(cache_leave(cache, &late[2].waiter));
    cache_fill_isolate(leader.found.fill, 1000);
    cache_fill_fail(leader.found.fill, 1, "failed", NULL, NULL);
    cache_fill_fail(other.found.fill, 1, "failed", NULL, NULL);
    ck_assert(!torture_failed());
    torture_fail_at(0);
    ck_assert_uint_eq(pages_stats(cache).markers, 1);
    ck_assert_uint_eq(request_take(&late[0]), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&late[1]), WAITER_RETRY);
    ck_assert_uint_eq(request_take(&leader), WAITER_FAILED);
    ck_assert_uint_eq(request_take(&other), WAITER_FAILED);
    cache_fill_free(leader.found.fill);
    cache_fill_free(other.found.fill);
    for (unsigned i = 0; i < 3; i++)
        request_end(&late[i]);
    request_end(&leader);
    request_end(&other);
    cache_destroy(cache);
}
END_TEST

/* A page, a busy object and a marker are there. */
static bool
purge_all(unsigned n)
{
    struct cache *cache = pages_cache("lru", 1000, 0, 3);
    struct request busy = {0}, marked = {0};
    bool failed;

    put_all(cache);
    request_lookup(&busy, cache, "busy", 0, false);
    request_lookup(&marked, cache, "marked", 0, false);
    cache_fill_isolate(marked.found.fill, 1000);
    torture_fail_at(n);
    ck_assert_uint_eq(cache_purge_all(cache), PAGES);
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_uint_eq(count_inside(cache), 0);
    ck_assert_uint_eq(pages_stats(cache).busy + pages_stats(cache).markers, 0);
    ck_assert(cache_is_valid(cache));
    ck_assert_int_eq(fill_page(busy.found.fill, 1), CACHE_NOT_STORED);
    fill_fail(marked.found.fill);
    ck_assert_uint_eq(request_take(&busy), WAITER_END);
    ck_assert_uint_eq(request_take(&marked), WAITER_FAILED);
    request_end(&busy);
    request_end(&marked);
    cache_destroy(cache);
    return failed;
}

START_TEST(purging_all_cannot_fail)
{
    unsigned n = 1;

    torture_fail_at(0);
    while (purge_all(n))
        n++;
    ck_assert_uint_ge(n - 1, 3 * 2);
}
END_TEST

static void
check_configured(struct cache *cache, const struct cache_config *config,
                 const struct cache_stats *before)
{
    struct cache_config reported;
    struct cache_stats after;

    cache_get_stats(cache, &after);
    cache_get_config(cache, &reported);
    ck_assert(policy_spec_equal(&reported.policy, &config->policy));
    ck_assert_uint_eq(reported.capacity_pages, config->capacity_pages);
    ck_assert_uint_eq(reported.capacity_bytes, config->capacity_bytes);
    ck_assert_uint_eq(reported.shards, config->shards);
    ck_assert_uint_eq(after.insertions, before->insertions);
    ck_assert_uint_eq(after.evictions, before->pages - after.pages);
    ck_assert(cache_is_valid(cache));
}

/*
 * With the n-th allocation failing: all of the change, or none of it, while an object is busy, an
 * expired one has a successor, and there is a marker. False if n is not reached.
 */
static bool
configure(const struct cache_config *from, const struct cache_config *to, unsigned n,
          unsigned *refused)
{
    enum cache_error error;
    struct cache *cache = cache_create(from, &error);
    struct request busy = {0}, successor = {0}, marked = {0};
    struct cache_stats before;
    bool failed;

    put_all(cache);
    put_tagged(cache);
    request_lookup(&busy, cache, "busy", 0, false);
    ck_assert_int_eq(request_lookup(&successor, cache, urls[9], INT64_MAX / 2, false), CACHE_STALE);
    object_release(&successor.found.object);
    request_lookup(&marked, cache, "marked", 0, false);
    cache_fill_isolate(marked.found.fill, 1000);
    cache_get_stats(cache, &before);
    torture_fail_at(n);
    error = cache_configure(cache, to);
    failed = torture_failed();
    torture_fail_at(0);
    ck_assert_uint_eq(pages_stats(cache).busy, 3);
    ck_assert_uint_eq(pages_stats(cache).markers, 1);
    if (error) {
        ck_assert(failed);
        ck_assert_int_eq(error, CACHE_CONFIG_NO_MEMORY);
        check_configured(cache, from, &before);
        for (int i = 0; i < PAGES; i++)
            ck_assert(is_inside(cache, i));
        ++*refused;
    } else {
        check_configured(cache, to, &before); /* a table that could not grow is no error */
    }
    fill_fail(marked.found.fill);
    fill_page(busy.found.fill, 1);
    fill_page(successor.found.fill, 1);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(request_take(&busy), WAITER_END);
    ck_assert_uint_eq(request_take(&successor), WAITER_END);
    ck_assert_uint_eq(request_take(&marked), WAITER_FAILED);
    request_end(&busy);
    request_end(&successor);
    request_end(&marked);
    cache_destroy(cache);
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
        {NULL, 0, 0, 1, 4},
        {"lfu", 0, 700, 3, 7},
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

    tcase_add_unchecked_fixture(tc, make_urls, NULL);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, requesting_a_page);
    tcase_add_test(tc, a_body_with_a_window);
    tcase_add_test(tc, refreshing_a_page);
    tcase_add_test(tc, varying);
    tcase_add_test(tc, tagging);
    tcase_add_test(tc, filling_evicts_others_where_memory_fails);
    tcase_add_test(tc, a_charge_without_memory_is_taken_back);
    tcase_add_test(tc, creating);
    tcase_add_test(tc, storing);
    tcase_add_test(tc, hits_and_purges_of_a_few_allocate_nothing);
    tcase_add_test(tc, joining_leaving_failing_and_isolating_allocate_nothing);
    tcase_add_test(tc, purging_all_cannot_fail);
    tcase_add_test(tc, configuring);
    suite_add_tcase(suite, tc);
    return suite;
}
