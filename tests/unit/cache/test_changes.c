/*
 * Purges, other configurations and evictions while an object is in each of its states: its waiters
 * get all of it, and it is stored, joined and kept as cache.h has it.
 */
#define UNIT_STARTS_NO_THREAD

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

#define URL "http://a/1"
#define VARIANT "v"

enum state {
    BUSY,
    BUSY_WITH_HEAD,
    BUSY_WITH_BODY,
    SUCCESSOR, /* of an expired page */
    SUCCESSOR_WITH_BODY,
    PASSING, /* a mark is in the table */
    ORPHAN,  /* a successor whose expired page was evicted */
    VARYING, /* its fill was moved to a variant */
    READY,
    STATES
};

static const char *const state_names[STATES] = {
    "busy",    "busy with head", "busy with body", "successor", "successor with body",
    "passing", "orphan",         "varying",        "ready"};

enum { NOW = 6000 };

struct scene {
    enum state state;
    struct cache *cache;
    struct requester leader, late; /* the second streams, and has joined if it could */
    struct memory_account account;
    size_t filled;
    bool has_head;
};

static void
append(struct scene *scene)
{
    if (!scene->has_head)
        fill_head(scene->leader.found.fill, -1, &scene->account);
    scene->has_head = true;
    fill_letters(scene->leader.found.fill, 20000);
    scene->filled += 20000;
}

/* Looks the URL up, and if there is a record of its variants, the variant. */
static enum cache_answer
look_up(struct requester *request, struct cache *cache)
{
    bool streams = request->waiter.streams;

    if (request_lookup(request, cache, URL, NOW, streams) != CACHE_VARIES)
        return request->answer;
    request_end(request);
    return request_lookup_variant(request, cache, URL, VARIANT, NOW, (struct cache_request){0});
}

static void
scene_set_up(struct scene *scene, enum state state)
{
    enum cache_answer answer = CACHE_MISS;

    *scene = (struct scene){.state = state, .cache = pages_cache("lru", 20, 0, 1)};
    memory_account_init(&scene->account, UINT64_MAX, NULL);
    pages_store_many(scene->cache, 0, 5, 10);
    if (state == READY) {
        pages_store(scene->cache, URL, 10);
        return;
    }
    if (state == SUCCESSOR || state == SUCCESSOR_WITH_BODY || state == ORPHAN) {
        pages_store_until(scene->cache, URL, 10, 5000);
        answer = CACHE_STALE;
    }
    if (state == PASSING) {
        struct requester request = {0};

        request_lookup(&request, scene->cache, URL, NOW, false);
        cache_fill_restrict(request.found.fill, FILL_PRIVATE, INT64_MAX);
        fill_fail(request.found.fill);
        request_take(&request);
        request_end(&request);
        answer = CACHE_PASS;
    }
    ck_assert_int_eq(request_lookup(&scene->leader, scene->cache, URL, NOW, false), answer);
    object_release(&scene->leader.found.object);
    if (state == VARYING)
        ck_assert(cache_fill_vary(scene->leader.found.fill, span_str("names"), span_str(VARIANT)));
    scene->late.waiter.streams = true;
    if (state != PASSING)
        ck_assert_int_eq(look_up(&scene->late, scene->cache), CACHE_BUSY);
    if (state == BUSY_WITH_HEAD) {
        fill_head(scene->leader.found.fill, -1, &scene->account);
        scene->has_head = true;
    }
    if (state == BUSY_WITH_BODY || state == SUCCESSOR_WITH_BODY)
        append(scene);
    if (state == ORPHAN) {
        pages_store_many(scene->cache, 100, 115, 1);
        ck_assert_uint_eq(pages_stats(scene->cache).pages, 20);
        pages_store_many(scene->cache, 115, 130, 1);
    }
}

/* Lookups after the change: is the fill of the scene joined? A fill that this begins fails. */
static bool
is_joined(struct scene *scene)
{
    struct requester request = {0};
    bool joined = false;

    switch (look_up(&request, scene->cache)) {
    case CACHE_BUSY:
        joined = request.waiter.fill == scene->leader.found.fill;
        ck_assert(joined);
        ck_assert(cache_leave(&request.waiter));
        break;
    case CACHE_MISS:
    case CACHE_STALE:
    case CACHE_PASS:
        ck_assert(cache_is_valid(scene->cache));
        fill_fail(request.found.fill);
        request_take(&request);
        break;
    case CACHE_HIT:
    case CACHE_VARIES:
    case CACHE_ABSENT:
    case CACHE_FULL:
    case CACHE_NO_MEMORY:
        break;
    }
    request_end(&request);
    return joined;
}

/* The rest of the fill; the waiters get all of it, and the account is even at the end. */
static enum cache_outcome
scene_finish(struct scene *scene)
{
    enum cache_outcome outcome;

    append(scene);
    outcome = cache_fill_finish(scene->leader.found.fill, true, 1, NOW, INT64_MAX);
    cache_fill_free(scene->leader.found.fill);
    ck_assert_uint_eq(request_take(&scene->leader), WAITER_END);
    ck_assert_uint_eq(object_length(scene->leader.waiter.object), scene->filled);
    if (scene->late.answer == CACHE_BUSY && scene->state != PASSING) {
        ck_assert(request_take(&scene->late) & WAITER_END);
        ck_assert_uint_eq(object_length(scene->late.waiter.object), scene->filled);
    }
    ck_assert(cache_is_valid(scene->cache));
    return outcome;
}

static void
scene_tear_down(struct scene *scene)
{
    request_end(&scene->leader);
    request_end(&scene->late);
    ck_assert_uint_eq(pages_stats(scene->cache).busy, 0);
    cache_destroy(scene->cache);
    ck_assert_int_eq(atomic_load(&scene->account.kinds[MEMORY_PAGES]), 0);
}

static bool
is_successor(enum state state)
{
    return state == SUCCESSOR || state == SUCCESSOR_WITH_BODY;
}

/* ---- purges ---------------------------------------------------------------------------------- */

static uint64_t
purge_url(struct cache *cache)
{
    return purge_by(cache, CACHE_BY_URL, span_str(URL));
}

static uint64_t
purge_prefix(struct cache *cache)
{
    return purge_by(cache, CACHE_BY_PREFIX, span_str("http://a/"));
}

static void
check_purge(enum state state, uint64_t (*purge)(struct cache *cache), uint64_t others)
{
    bool was_ready = state == READY || state == SUCCESSOR || state == SUCCESSOR_WITH_BODY;
    struct scene scene;
    uint64_t pages;

    scene_set_up(&scene, state);
    pages = pages_stats(scene.cache).pages;
    if (others)
        others = pages - was_ready;
    ck_assert_msg(purge(scene.cache) == was_ready + others, "%s", state_names[state]);
    ck_assert_msg(cache_is_valid(scene.cache), "%s", state_names[state]);
    ck_assert_uint_eq(pages_stats(scene.cache).pages, pages - was_ready - others);
    ck_assert_uint_eq(pages_stats(scene.cache).passed, 0);
    ck_assert_uint_eq(pages_stats(scene.cache).varied, 0);
    ck_assert(!is_joined(&scene));
    if (state == READY) {
        ck_assert(!pages_hit(scene.cache, URL));
    } else {
        struct requester next = {0};

        /* A later request gets a new object, which the old one does not replace. */
        ck_assert_int_eq(request_lookup(&next, scene.cache, URL, NOW, false), CACHE_MISS);
        ck_assert_int_eq(scene_finish(&scene), CACHE_NOT_STORED);
        ck_assert_int_eq(fill_page(next.found.fill, 3), CACHE_STORED);
        request_take(&next);
        ck_assert_uint_eq(object_length(next.waiter.object), 3);
        request_end(&next);
        ck_assert(pages_hit(scene.cache, URL));
    }
    scene_tear_down(&scene);
}

START_TEST(a_purge_in_each_state)
{
    for (enum state state = 0; state < STATES; state++) {
        check_purge(state, purge_url, 0);
        check_purge(state, purge_prefix, 0);
        check_purge(state, cache_purge_all, 1);
    }
}
END_TEST

/* Pages stay, and have expired for requests of any time; the rest is as after a purge. */
static void
check_expire(enum state state, bool by_prefix)
{
    bool was_ready = state == READY || is_successor(state);
    struct requester next = {0};
    struct scene scene;
    uint64_t pages, count;

    scene_set_up(&scene, state);
    pages = pages_stats(scene.cache).pages;
    count = by_prefix ? expire_by(scene.cache, CACHE_BY_PREFIX, span_str("http://a/"), NOW)
                      : expire_by(scene.cache, CACHE_BY_URL, span_str(URL), NOW);
    ck_assert_msg(count == was_ready, "%s", state_names[state]);
    ck_assert_msg(cache_is_valid(scene.cache), "%s", state_names[state]);
    ck_assert_uint_eq(pages_stats(scene.cache).pages, pages);
    ck_assert_uint_eq(pages_stats(scene.cache).passed, 0);
    ck_assert_uint_eq(pages_stats(scene.cache).varied, 0);
    ck_assert(!is_joined(&scene));
    ck_assert_int_eq(request_lookup(&next, scene.cache, URL, 0, false),
                     was_ready ? CACHE_STALE : CACHE_MISS);
    if (state != READY)
        ck_assert_int_eq(scene_finish(&scene), CACHE_NOT_STORED);
    ck_assert_int_eq(fill_page(next.found.fill, 3), was_ready ? CACHE_REPLACED : CACHE_STORED);
    request_take(&next);
    request_end(&next);
    ck_assert(pages_hit(scene.cache, URL));
    scene_tear_down(&scene);
}

START_TEST(a_soft_purge_in_each_state)
{
    for (enum state state = 0; state < STATES; state++) {
        check_expire(state, false);
        check_expire(state, true);
    }
}
END_TEST

START_TEST(a_purge_before_a_failure_and_of_others)
{
    for (enum state state = 0; state < READY; state++) {
        struct scene scene;

        scene_set_up(&scene, state);
        ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_URL, span_str("http://a/")), 0);
        ck_assert_uint_eq(purge_by(scene.cache, CACHE_BY_PREFIX, span_str("http://b")), 0);
        ck_assert_uint_eq(pages_stats(scene.cache).busy, 1);
        cache_purge_all(scene.cache);
        fill_fail(scene.leader.found.fill);
        ck_assert_uint_eq(request_take(&scene.leader), WAITER_FAILED);
        ck_assert(cache_is_valid(scene.cache));
        if (state != PASSING)
            ck_assert(request_take(&scene.late) & WAITER_FAILED);
        scene_tear_down(&scene);
    }
}
END_TEST

/* ---- configurations and evictions ------------------------------------------------------------ */

struct change {
    const char *policy; /* NULL: none */
    uint64_t pages, bytes;
    unsigned shards;
    uint64_t kept; /* at most */
};

static const struct change changes[] = {
    {"lru", 30, 0, 1, 30},  {"lru", 1, 0, 1, 1}, {"lru", 0, 100, 1, 0},    {"lru", 20, 0, 7, 20},
    {"lirs", 30, 0, 1, 30}, {"lfu", 1, 0, 1, 1}, {"maxs", 20, 100, 16, 0}, {NULL, 0, 0, 3, 0},
};

static void
check_change(enum state state, const struct change *change)
{
    struct cache_config config = {
        .policy = policy_spec_of(change->policy ? policy_find(change->policy) : NULL),
        .capacity_pages = change->pages,
        .capacity_bytes = change->bytes,
        .shards = change->shards,
    };
    enum cache_outcome outcome;
    struct scene scene;
    bool kept, joins;

    scene_set_up(&scene, state);
    ck_assert_int_eq(cache_configure(scene.cache, &config), CACHE_OK);
    ck_assert_msg(cache_is_valid(scene.cache), "%s", state_names[state]);
    ck_assert_uint_le(pages_stats(scene.cache).pages, change->kept);
    ck_assert_uint_eq(pages_stats(scene.cache).busy, state != READY);
    ck_assert_uint_eq(pages_stats(scene.cache).passed, state == PASSING);
    ck_assert_uint_eq(pages_stats(scene.cache).varied, state == VARYING);
    if (state == READY) {
        scene_tear_down(&scene);
        return;
    }
    /* Whether the expired page was kept shows in a lookup from before it expired. */
    kept = is_successor(state) && pages_hit_at(scene.cache, URL, 0);
    joins = state <= BUSY_WITH_BODY || state == VARYING || kept;
    ck_assert_msg(is_joined(&scene) == joins, "%s", state_names[state]);
    outcome = scene_finish(&scene);
    if (!change->policy || change->bytes)
        ck_assert_int_eq(outcome, CACHE_NOT_STORED);
    else if (kept)
        ck_assert_int_eq(outcome, CACHE_REPLACED);
    else
        ck_assert_msg(outcome == CACHE_STORED || outcome == CACHE_PASSED_ON, "%s",
                      state_names[state]);
    if (outcome == CACHE_STORED || outcome == CACHE_REPLACED) {
        struct requester request = {0};

        ck_assert_int_eq(look_up(&request, scene.cache), CACHE_HIT);
        request_end(&request);
        ck_assert_uint_eq(pages_stats(scene.cache).passed, 0);
    }
    scene_tear_down(&scene);
}

START_TEST(another_configuration_in_each_state)
{
    for (enum state state = 0; state < STATES; state++) {
        for (size_t c = 0; c < sizeof(changes) / sizeof(changes[0]); c++)
            check_change(state, &changes[c]);
    }
}
END_TEST

/* All there are, one after the other, while one object is being filled. */
START_TEST(many_configurations_during_one_fill)
{
    for (enum state state = 0; state < READY; state++) {
        struct scene scene;

        scene_set_up(&scene, state);
        for (unsigned i = 0; i < 40; i++) {
            const struct change *change = &changes[(i * 5 + state) % 8];
            struct cache_config config = {
                .policy = policy_spec_of(change->policy ? policy_find(change->policy) : NULL),
                .capacity_pages = change->pages,
                .capacity_bytes = change->bytes,
                .shards = change->shards,
            };

            ck_assert_int_eq(cache_configure(scene.cache, &config), CACHE_OK);
            ck_assert(cache_is_valid(scene.cache));
            append(&scene);
        }
        scene_finish(&scene);
        scene_tear_down(&scene);
    }
}
END_TEST

START_TEST(evicting_an_expired_page_keeps_its_successor)
{
    struct requester next = {0};
    struct scene scene;
    uint64_t pages;

    scene_set_up(&scene, SUCCESSOR);
    cache_reclaim(scene.cache, UINT64_MAX, &pages); /* a sixteenth, by bytes: the oldest page */
    while (pages_hit_at(scene.cache, URL, 0))
        cache_reclaim(scene.cache, UINT64_MAX, &pages);
    ck_assert(cache_is_valid(scene.cache));
    ck_assert_uint_eq(pages_stats(scene.cache).busy, 1);
    /* No request joins it: the next one fetches, and both may be stored. */
    ck_assert_int_eq(request_lookup(&next, scene.cache, URL, NOW, false), CACHE_MISS);
    ck_assert_int_eq(fill_page(next.found.fill, 3), CACHE_STORED);
    request_take(&next);
    request_end(&next);
    ck_assert_int_eq(scene_finish(&scene), CACHE_REPLACED);
    scene_tear_down(&scene);
}
END_TEST

START_TEST(a_busy_object_is_not_evicted)
{
    for (enum state state = 0; state <= BUSY_WITH_BODY; state++) {
        struct scene scene;
        uint64_t pages;

        scene_set_up(&scene, state);
        do {
            ck_assert(is_joined(&scene));
            cache_reclaim(scene.cache, UINT64_MAX, &pages);
            ck_assert(cache_is_valid(scene.cache));
        } while (pages);
        ck_assert_uint_eq(pages_stats(scene.cache).pages, 0);
        ck_assert_int_eq(scene_finish(&scene), CACHE_STORED);
        scene_tear_down(&scene);
    }
}
END_TEST

START_TEST(a_successor_that_comes_after_another_one_replaces_it)
{
    struct requester first = {0}, second = {0}, third = {0};
    struct cache *cache = pages_cache("lru", 5, 0, 1);

    /* The first one's expired page is evicted; the second is stored, and expires in turn. */
    pages_store_until(cache, "a", 1, 1000);
    request_lookup(&first, cache, "a", 2000, false);
    pages_store_many(cache, 0, 5, 1);
    request_lookup(&second, cache, "a", 2000, false);
    fill_head(second.found.fill, 0, NULL);
    ck_assert_int_eq(cache_fill_finish(second.found.fill, true, 1, 2000, 1000), CACHE_STORED);
    cache_fill_free(second.found.fill);
    request_take(&second);
    ck_assert_int_eq(request_lookup(&third, cache, "a", 4000, false), CACHE_STALE);
    fill_head(first.found.fill, 0, NULL);
    ck_assert_int_eq(cache_fill_finish(first.found.fill, true, 2000, 1, INT64_MAX), CACHE_REPLACED);
    cache_fill_free(first.found.fill);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 1);
    ck_assert(pages_hit_at(cache, "a", 4000));
    ck_assert_int_eq(fill_page(third.found.fill, 2), CACHE_REPLACED);
    request_take(&first);
    request_take(&third);
    ck_assert_uint_eq(pages_stats(cache).pages, 5);
    ck_assert(cache_is_valid(cache));
    request_end(&first);
    request_end(&second);
    request_end(&third);
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/changes");
    TCase *tc = tcase_create("changes");

    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_purge_in_each_state);
    tcase_add_test(tc, a_soft_purge_in_each_state);
    tcase_add_test(tc, a_purge_before_a_failure_and_of_others);
    tcase_add_test(tc, another_configuration_in_each_state);
    tcase_add_test(tc, many_configurations_during_one_fill);
    tcase_add_test(tc, evicting_an_expired_page_keeps_its_successor);
    tcase_add_test(tc, a_busy_object_is_not_evicted);
    tcase_add_test(tc, a_successor_that_comes_after_another_one_replaces_it);
    suite_add_tcase(suite, tc);
    return suite;
}
