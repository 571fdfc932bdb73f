/*
 * The cache under several threads at once. Errors show in the counts, in cache_is_valid(), in an
 * object that is not the one asked for, in a waiter that is not answered exactly once, and under
 * the thread sanitizer.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

#define THREADS 4
#define URLS 400
#define STEPS 16 /* the number of pieces of a long body, about: most time goes into them */

static char letters[26 + 50 * (1 + URLS / STEPS)]; /* of which bodies consist */
static struct cache *cache;
static struct memory_account account;
static _Atomic bool stop;

/* How a thread uses the cache. */
struct user {
    pthread_t thread;
    uint64_t dice;
    unsigned rounds; /* at most */
    unsigned urls;
    bool until_stop;
    bool purges;
    bool alike; /* all threads draw the same */
    bool all;   /* failures, private responses, bypasses, waiters that leave */
    uint64_t hits, joined, stored, evicted, purged, retries, passed, fell_back, refreshed, varied;
    bool wrong; /* an object that is not the one asked for, or a waiter with a wrong answer */
};

/* A waiter whose thread sleeps until it is notified. */
struct sleeper {
    struct object_waiter waiter; /* first */
    sem_t wake;
};

static void
wake(struct object_waiter *waiter)
{
    sem_post(&((struct sleeper *)(void *)waiter)->wake);
}

/* The body of a URL: its number of bytes, and the bytes, depend on the URL's last digits. */
static bool
is_body_of(const struct object *object, unsigned number)
{
    struct object_place place = {0};
    struct span run;
    uint64_t at = 0;

    while (run = object_read(object, &place), run.len) {
        for (size_t i = 0; i < run.len; i += 97) {
            if (run.ptr[i] != (char)('a' + (at + i + number) % 26))
                return false;
        }
        at += run.len;
    }
    return at <= object_length(object) && at <= 50 * (uint64_t)number;
}

/* Fills; true if the whole body has arrived. */
static bool
fill_body(struct user *user, struct cache_fill *fill, unsigned number)
{
    struct object_head head = {
        .status = 200,
        .length = number % 3 ? (int64_t)number * 50 : -1,
        .max_length = 1 << 20,
        .account = &account,
        .fresh_until_us = unit_draw(&user->dice, 2), /* expired from the beginning, or unlimited */
    };
    const unsigned step = 1 + number / STEPS;
    char tags[32];

    snprintf(tags, sizeof(tags), "all t%u u%u", number % 8, unit_draw(&user->dice, 8));
    if (user->purges)
        head.tags = span_str(tags);
    if (user->all && unit_draw(&user->dice, 8) == 0)
        cache_fill_restrict(fill, unit_draw(&user->dice, 2) ? FILL_PRIVATE : FILL_VALIDATE,
                            unit_draw(&user->dice, 2) ? unit_draw(&user->dice, 9000) : 0);
    if (cache_fill_head(fill, &head) != 0)
        return false;
    /* Others may begin a later one. Now and then is enough: beside busy processes each yield is a
     * wait. */
    if (head.fresh_until_us && unit_draw(&user->dice, 4) == 0)
        sched_yield();
    for (unsigned i = 0; i < number; i += step) {
        unsigned parts = number - i < step ? number - i : step;

        if (user->all && unit_draw(&user->dice, 2000) < parts)
            return false;
        if (cache_fill_append(fill, letters + (i * 50 + number) % 26, 50 * parts) != 0)
            return false;
    }
    return true;
}

/* Ends a fill without a head of its own, by the object that was there before. */
static bool
end_by_previous(struct user *user, struct cache_fill *fill, int64_t now)
{
    const struct object_head head = {.status = 200, .account = &account};
    enum cache_outcome outcome;

    if (!user->all || !fill->previous || unit_draw(&user->dice, 2))
        return false;
    if (unit_draw(&user->dice, 2)) {
        cache_fill_fall_back(fill, 0);
        user->fell_back++;
        return true;
    }
    if (cache_fill_refresh(fill, &head, unit_draw(&user->dice, 8) != 0, 1, now,
                           1000 * unit_draw(&user->dice, 20), &outcome) != 0)
        return false;
    user->stored += outcome == CACHE_STORED;
    user->refreshed++;
    return true;
}

/* The response is that of the variant "x", or of none. */
static void
vary(struct user *user, struct cache_fill *fill)
{
    const char *names = unit_draw(&user->dice, 3) ? "n" : "m";

    if (!user->all || unit_draw(&user->dice, 4))
        return;
    if (unit_draw(&user->dice, 3))
        user->wrong |= !cache_fill_vary(fill, span_str(names), span_str("x"));
    else
        user->wrong |= !cache_fill_vary(fill, span_str(""), span_str(""));
}

static bool
retry_some(const struct object_waiter *waiter, void *context)
{
    (void)context;
    return waiter->streams;
}

static void
fill(struct user *user, struct cache_fill *fill, unsigned number, int64_t now)
{
    vary(user, fill);
    if (end_by_previous(user, fill, now)) {
        cache_fill_free(fill);
        return;
    }
    if (fill_body(user, fill, number)) {
        bool store = !user->all || (fill->disposition == FILL_SHARED && unit_draw(&user->dice, 10));
        int64_t lifetime =
            unit_draw(&user->dice, 2) ? INT64_MAX : 1000 * unit_draw(&user->dice, 20);

        if (user->all && unit_draw(&user->dice, 20) == 0)
            cache_fill_restrict(fill, FILL_PRIVATE, now + 500);
        user->stored += cache_fill_finish(fill, store, 1, now, lifetime) == CACHE_STORED;
    } else {
        cache_fill_fail(fill, 5, "failed", retry_some, NULL);
    }
    cache_fill_free(fill);
}

/* Waits for the last event, and reads along; true: it is to retry. */
static bool
wait_for_end(struct user *user, struct sleeper *sleeper, unsigned number)
{
    unsigned events, taken = 0;

    do {
        while (sem_wait(&sleeper->wake) != 0)
            continue;
        events = object_waiter_take(&sleeper->waiter);
        user->wrong |= events == 0;
        if (events & (WAITER_HEAD | WAITER_MORE | WAITER_END))
            user->wrong |= !is_body_of(sleeper->waiter.object, number);
        taken |= events;
        if (user->all && !(events & WAITER_LAST) && unit_draw(&user->dice, 40) == 0 &&
            cache_leave(&sleeper->waiter))
            return false;
    } while (!(events & WAITER_LAST));
    user->wrong |= ((taken & WAITER_END) != 0) + ((taken & WAITER_FAILED) != 0) +
                       ((taken & WAITER_RETRY) != 0) !=
                   1;
    if (taken & WAITER_END)
        user->wrong |= object_length(sleeper->waiter.object) != 50 * (uint64_t)number ||
                       object_state(sleeper->waiter.object) != OBJECT_READY;
    if (taken & WAITER_FAILED)
        user->wrong |= sleeper->waiter.failure->status != 5;
    user->evicted += sleeper->waiter.evicted;
    user->wrong |= sleeper->waiter.evicted != sleeper->waiter.victims.count;
    return taken & WAITER_RETRY;
}

/* One request; true: it is to be repeated. */
static bool
use_variant(struct user *user, const char *url, const char *variant, unsigned number, int64_t now)
{
    struct sleeper sleeper = {.waiter = {.notify = wake}};
    struct cache_key key = cache_key_of_variant(span_str(url), span_str(variant));
    struct cache_conditions conditions = {
        .no_cache = unit_draw(&user->dice, 4) == 0,
        .only_cached = unit_draw(&user->dice, 4) == 0,
        .max_age_us = unit_draw(&user->dice, 4000),
    };
    struct cache_request request = {
        .waiter = &sleeper.waiter,
        .fill_size = sizeof(struct cache_fill) + 8,
        .max_waiters = 3,
    };
    struct cache_found found;
    enum cache_answer answer;
    bool retry = false;

    sem_init(&sleeper.wake, 0, 0);
    sleeper.waiter.streams = unit_draw(&user->dice, 2);
    request.pass = user->all && unit_draw(&user->dice, 40) == 0;
    conditions.only_cached = conditions.only_cached && !request.pass;
    if (user->all && unit_draw(&user->dice, 8) == 0)
        request.conditions = &conditions;
    answer = cache_lookup(cache, &key, &request, now, &found);
    user->hits += answer == CACHE_HIT;
    user->joined += answer == CACHE_BUSY;
    user->passed += answer == CACHE_PASS;
    user->wrong |= answer == CACHE_NO_MEMORY;
    user->wrong |=
        (found.fill != NULL) !=
        (answer == CACHE_MISS || answer == CACHE_PASS ||
         (answer == CACHE_STALE && !(request.conditions && request.conditions->only_cached)));
    if (answer == CACHE_VARIES) {
        user->wrong |= !span_equal(object_url(found.object), key.url) ||
                       object_fields(found.object).len != 1 || variant[0] != '\0';
        object_release(&found.object);
        sem_destroy(&sleeper.wake);
        user->varied++;
        return use_variant(user, url, "x", number, now);
    }
    if (found.object) {
        user->wrong |= !span_equal(object_url(found.object), key.url) ||
                       object_length(found.object) != 50 * (uint64_t)number ||
                       !is_body_of(found.object, number);
        object_release(&found.object);
    }
    if (found.fill)
        fill(user, found.fill, number, now);
    if (found.fill || answer == CACHE_BUSY) {
        user->wrong |= !span_equal(object_url(sleeper.waiter.object), key.url);
        retry = wait_for_end(user, &sleeper, number);
        object_waiter_clear(&sleeper.waiter);
    }
    /* After a waiter left, a notification may have come that was not taken; otherwise none. */
    sem_destroy(&sleeper.wake);
    user->retries += retry;
    return retry;
}

static bool
use_url(struct user *user, const char *url, unsigned number, int64_t now)
{
    return use_variant(user, url, "", number, now);
}

static void *
use(void *context)
{
    struct user *user = context;

    for (unsigned i = 0; i < user->rounds && !(user->until_stop && stop); i++) {
        unsigned number = unit_draw(&user->dice, user->urls);
        char url[32];

        snprintf(url, sizeof(url), "http://h/%u", number);
        if (user->purges && unit_draw(&user->dice, 50) == 0)
            user->purged += purge_by(cache, CACHE_BY_URL, span_str(url));
        if (user->all && unit_draw(&user->dice, 50) == 0)
            expire_by(cache, CACHE_BY_URL, span_str(url), i);
        if (user->purges && unit_draw(&user->dice, 200) == 0) {
            char tag[8];

            snprintf(tag, sizeof(tag), "%c%u", unit_draw(&user->dice, 2) ? 't' : 'u',
                     unit_draw(&user->dice, 8));
            if (user->all && unit_draw(&user->dice, 2))
                expire_by(cache, CACHE_BY_TAG, span_str(tag), i);
            else
                user->purged += purge_by(cache, CACHE_BY_TAG, span_str(tag));
        }
        while (use_url(user, url, number, i))
            continue;
    }
    return NULL;
}

static void
users_start(struct user *users, const struct user *like)
{
    stop = false;
    for (size_t i = 0; i < sizeof(letters); i++)
        letters[i] = (char)('a' + i % 26);
    memory_account_init(&account, UINT64_MAX, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = *like;
        users[i].dice = like->alike ? 1 : i + 1;
        ck_assert_int_eq(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
}

/* Their sums; no object is busy any more and the account is even. */
static struct user
users_join(struct user *users)
{
    struct user sum = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(users[i].thread, NULL), 0);
        sum.wrong |= users[i].wrong;
        sum.hits += users[i].hits;
        sum.joined += users[i].joined;
        sum.stored += users[i].stored;
        sum.evicted += users[i].evicted;
        sum.purged += users[i].purged;
        sum.retries += users[i].retries;
        sum.passed += users[i].passed;
        sum.fell_back += users[i].fell_back;
        sum.refreshed += users[i].refreshed;
        sum.varied += users[i].varied;
    }
    ck_assert(!sum.wrong);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    ck_assert_int_eq(atomic_load(&account.kinds[MEMORY_PAGES]), 0);
    return sum;
}

START_TEST(counts_hold_under_load)
{
    static const unsigned shards[] = {1, 2, 16};

    for (size_t i = 0; i < 3; i++) {
        struct user users[THREADS], sum;
        struct cache_stats stats;

        cache = pages_cache("lru", 100, 0, shards[i]);
        users_start(users, &(struct user){.rounds = 1500, .urls = URLS, .purges = true});
        sum = users_join(users);
        cache_get_stats(cache, &stats);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_gt(sum.hits, 0);
        ck_assert_uint_eq(stats.evictions, sum.evicted);
        /* Each that was stored is there, evicted or purged; one that replaced took its place. */
        ck_assert_uint_eq(stats.pages, sum.stored - sum.evicted - sum.purged);
        cache_destroy(cache);
    }
}
END_TEST

/* Few URLs, so that most requests join, and every kind of end. */
START_TEST(every_waiter_is_answered_once)
{
    static const unsigned shards[] = {1, 8};

    for (size_t i = 0; i < 2; i++) {
        struct user users[THREADS], sum;

        cache = pages_cache("lru", 8, 0, shards[i]);
        users_start(users, &(struct user){.rounds = 4000, .urls = 12, .purges = true, .all = true});
        sum = users_join(users);
        ck_assert_uint_gt(sum.hits, 0);
        ck_assert_uint_gt(sum.passed, 0);
        ck_assert_uint_gt(sum.fell_back, 0);
        ck_assert_uint_gt(sum.refreshed, 0);
        ck_assert_uint_gt(sum.varied, 0);
        cache_destroy(cache);
    }
    /* The same requests on each thread, until some have met in one fill. */
    for (unsigned tries = 0; tries < 50; tries++) {
        struct user users[THREADS], sum;

        cache = pages_cache(NULL, 0, 0, 1);
        users_start(users, &(struct user){.rounds = 100, .urls = URLS, .all = true, .alike = true});
        sum = users_join(users);
        cache_destroy(cache);
        if (sum.joined && sum.retries)
            break;
    }
}
END_TEST

/* Every policy that a daemon can run, in pages and in bytes. */
START_TEST(every_policy_under_load)
{
    for (size_t p = 0; policies[p]; p++) {
        for (unsigned in_bytes = 0; in_bytes < 2; in_bytes++) {
            struct user users[THREADS], sum;
            struct cache_stats stats;

            if (policies[p]->needs_future)
                continue;
            cache = pages_cache(policies[p]->name, in_bytes ? 0 : 100, in_bytes ? 1000000 : 0, 2);
            users_start(users,
                        &(struct user){.rounds = 300, .urls = URLS, .purges = true, .all = true});
            sum = users_join(users);
            cache_get_stats(cache, &stats);
            ck_assert_msg(cache_is_valid(cache), "%s", policies[p]->name);
            ck_assert_msg(sum.hits > 0 && sum.stored > 0, "%s", policies[p]->name);
            ck_assert_uint_ge(stats.evictions, sum.evicted);
            ck_assert_uint_le(stats.pages, sum.stored - sum.purged);
            ck_assert_int_eq(atomic_load(&account.kinds[MEMORY_PAGES]), 0);
            cache_destroy(cache);
        }
    }
}
END_TEST

/* One that a daemon can run, or NULL for no cache. */
static const struct policy_ops *
draw_policy(uint64_t *dice)
{
    const struct policy_ops *ops;
    uint32_t count = 0;

    while (policies[count])
        count++;
    do
        ops = policies[unit_draw(dice, count + 1)];
    while (ops && ops->needs_future);
    return ops;
}

START_TEST(configuring_under_load)
{
    struct user users[THREADS];
    uint64_t dice = 99;

    cache = pages_cache("lru", 200, 0, 4);
    users_start(
        users,
        &(struct user){
            .rounds = 1000000, .urls = URLS, .until_stop = true, .purges = true, .all = true});
    for (int round = 0; round < 200; round++) {
        struct cache_config config = {
            .policy = policy_spec_of(draw_policy(&dice)),
            .shards = 1 + unit_draw(&dice, 12),
            .capacity_pages = unit_draw(&dice, 4) ? 12 + unit_draw(&dice, 200) : 0,
            .capacity_bytes = 200000 + unit_draw(&dice, 1000000),
            .seed = unit_draw(&dice, 3),
        };
        struct cache_config reported;
        struct cache_stats stats;

        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
        cache_get_config(cache, &reported);
        ck_assert(policy_spec_equal(&reported.policy, &config.policy));
        cache_get_stats(cache, &stats);
        if (config.capacity_pages && config.policy.ops)
            ck_assert_uint_le(stats.pages, config.capacity_pages);
        ck_assert_uint_le(stats.bytes, config.capacity_bytes);
        if (round % 10 == 0)
            purge_by(cache, CACHE_BY_PREFIX, span_str("http://h/1"));
        if (round % 25 == 0)
            cache_purge_all(cache);
        if (round % 8 == 3)
            expire_by(cache, CACHE_BY_PREFIX, span_str("http://h/2"), 1);
        if (round % 10 == 5)
            ck_assert(cache_is_valid(cache));
    }
    stop = true;
    users_join(users);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

static void *
configure_often(void *context)
{
    unsigned *shards = context;

    for (int i = 0; i < 60; i++) {
        struct cache_config config = {.policy = policy_spec_of(policy_find("lru")),
                                      .shards = *shards,
                                      .capacity_pages = 10000};

        if (cache_configure(cache, &config) != CACHE_OK)
            return context;
    }
    return NULL;
}

START_TEST(two_may_configure_at_once_and_no_page_is_lost)
{
    unsigned few = 2, many = 64;
    pthread_t one, two;
    struct cache_stats stats;
    void *failed;
    char url[32];

    cache = pages_cache("lru", 10000, 0, 1);
    for (unsigned i = 0; i < URLS; i++) {
        snprintf(url, sizeof(url), "http://h/%u", i);
        pages_store(cache, url, i);
    }
    ck_assert_int_eq(pthread_create(&one, NULL, configure_often, &few), 0);
    ck_assert_int_eq(pthread_create(&two, NULL, configure_often, &many), 0);
    for (unsigned i = 0; i < 10 * URLS; i++) {
        snprintf(url, sizeof(url), "http://h/%u", i % URLS);
        ck_assert_msg(pages_hit(cache, url), "%s was lost", url);
        if (i % 50 == 0) {
            cache_get_stats(cache, &stats);
            ck_assert_uint_eq(stats.pages, URLS);
        }
    }
    ck_assert_int_eq(pthread_join(one, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_assert_int_eq(pthread_join(two, &failed), 0);
    ck_assert_ptr_null(failed);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str("http://h/")), URLS);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

static void *
purge_until_stopped(void *context)
{
    uint64_t *purged = context;

    while (!stop)
        *purged += purge_by(cache, CACHE_BY_PREFIX, span_str("http://h/"));
    return NULL;
}

START_TEST(a_purge_misses_nothing_while_shards_are_rebuilt)
{
    unsigned shards[] = {1, 64, 3, 32};
    uint64_t purged = 0, stored = 0;
    pthread_t thread;
    char url[32];

    cache = pages_cache("lru", 10000, 0, 1);
    stop = false;
    ck_assert_int_eq(pthread_create(&thread, NULL, purge_until_stopped, &purged), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct cache_config config = {.policy = policy_spec_of(policy_find("lru")),
                                      .shards = shards[i % 4],
                                      .capacity_pages = 10000};

        for (unsigned n = 0; n < 20; n++) {
            snprintf(url, sizeof(url), "http://h/%u/%u", i, n);
            /* Not if the purge comes while it is filled. */
            stored += pages_store(cache, url, 1) == CACHE_STORED;
        }
        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    }
    stop = true;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    purged += cache_purge_all(cache);
    ck_assert_uint_gt(stored, 0);
    ck_assert_uint_eq(purged, stored);
    cache_destroy(cache);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/threads");
    TCase *tc = tcase_create("threads");

    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, counts_hold_under_load);
    tcase_add_test(tc, every_waiter_is_answered_once);
    tcase_add_test(tc, every_policy_under_load);
    tcase_add_test(tc, configuring_under_load);
    tcase_add_test(tc, two_may_configure_at_once_and_no_page_is_lost);
    tcase_add_test(tc, a_purge_misses_nothing_while_shards_are_rebuilt);
    suite_add_tcase(suite, tc);
    return suite;
}
