/*
 * The cache under several threads at once. What must not happen shows in the counts, in
 * cache_is_valid(), in a page that is not the one asked for, and under the thread sanitizer.
 */
#include <pthread.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"

#define THREADS 4
#define URLS 400

static struct cache *cache;
static _Atomic bool stop;

struct user {
    pthread_t thread;
    uint64_t dice;
    unsigned rounds; /* at most */
    bool until_stop;
    uint64_t hits, stored, evicted, purged;
    bool purges;
    bool wrong; /* a page that is not the one asked for */
};

static void *
use(void *context)
{
    struct user *user = context;

    for (unsigned i = 0; i < user->rounds && !(user->until_stop && stop); i++) {
        unsigned number = unit_draw(&user->dice, URLS);
        struct cache_victims victims = {0};
        struct page *page;
        char url[32];
        size_t evicted;

        snprintf(url, sizeof(url), "http://h/%u", number);
        if (user->purges && unit_draw(&user->dice, 50) == 0)
            user->purged += cache_purge(cache, span_str(url));
        if (user->purges && unit_draw(&user->dice, 50) == 0)
            user->purged += cache_purge_expired(cache, span_str(url), i);
        page = cache_lookup(cache, span_str(url), i);
        if (page) {
            user->hits++;
            if (!span_equal(page_url(page), span_str(url)) || page->body_len != number)
                user->wrong = true;
        } else {
            page = pages_make(url, number);
            if (unit_draw(&user->dice, 2))
                page_limit(page, unit_draw(&user->dice, 2 * user->rounds));
            if (cache_store(cache, page, &victims, &evicted) == CACHE_STORED)
                user->stored++;
            user->evicted += evicted;
            user->wrong |= evicted != victims.count;
            for (size_t v = 0; v < victims.count; v++)
                user->wrong |= page_body(victims.pages[v]).len != victims.pages[v]->body_len;
            cache_victims_free(&victims);
        }
        page_release(&page);
    }
    return NULL;
}

static void
users_start(struct user *users, const struct user *like)
{
    stop = false;
    for (unsigned i = 0; i < THREADS; i++) {
        users[i] = *like;
        users[i].dice = i + 1;
        ck_assert_int_eq(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
}

static struct user
users_join(struct user *users)
{
    struct user sum = {0};

    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(users[i].thread, NULL), 0);
        ck_assert(!users[i].wrong);
        sum.hits += users[i].hits;
        sum.stored += users[i].stored;
        sum.evicted += users[i].evicted;
        sum.purged += users[i].purged;
    }
    return sum;
}

START_TEST(counts_hold_under_load)
{
    static const unsigned shards[] = {1, 2, 16};

    for (size_t i = 0; i < 3; i++) {
        struct user users[THREADS], sum;
        struct cache_stats stats;

        cache = pages_cache("lru", 100, 0, shards[i]);
        users_start(users, &(struct user){.rounds = 5000, .purges = true});
        sum = users_join(users);
        cache_get_stats(cache, &stats);
        ck_assert(cache_is_valid(cache));
        ck_assert_uint_gt(sum.hits, 0);
        ck_assert_uint_eq(stats.evictions, sum.evicted);
        /* Each that was stored has left or is there; one that replaced took another's place. */
        ck_assert_uint_eq(stats.pages, sum.stored - sum.evicted - sum.purged);
        cache_destroy(cache);
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
            cache = pages_cache(policies[p]->name, in_bytes ? 0 : 100, in_bytes ? 40000 : 0, 2);
            users_start(users, &(struct user){.rounds = 1500, .purges = true});
            sum = users_join(users);
            cache_get_stats(cache, &stats);
            ck_assert_msg(cache_is_valid(cache), "%s", policies[p]->name);
            ck_assert_msg(sum.hits > 0 && sum.stored > 0, "%s", policies[p]->name);
            ck_assert_uint_ge(stats.evictions, sum.evicted);
            ck_assert_uint_le(stats.pages, sum.stored - sum.purged);
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
    users_start(users, &(struct user){.rounds = 1000000, .until_stop = true, .purges = true});
    for (int round = 0; round < 200; round++) {
        struct cache_config config = {
            .policy = policy_spec_of(draw_policy(&dice)),
            .shards = 1 + unit_draw(&dice, 12),
            .capacity_pages = unit_draw(&dice, 4) ? 12 + unit_draw(&dice, 200) : 0,
            .capacity_bytes = 20000 + unit_draw(&dice, 100000),
            .seed = unit_draw(&dice, 3),
        };
        struct cache_config told;
        struct cache_stats stats;

        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
        cache_get_config(cache, &told);
        ck_assert(policy_spec_equal(&told.policy, &config.policy));
        cache_get_stats(cache, &stats);
        if (config.capacity_pages && config.policy.ops)
            ck_assert_uint_le(stats.pages, config.capacity_pages);
        ck_assert_uint_le(stats.bytes, config.capacity_bytes);
        if (round % 10 == 0)
            cache_purge_prefix(cache, span_str("http://h/1"));
        if (round % 25 == 0)
            cache_purge_all(cache);
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
    ck_assert_uint_eq(cache_purge_prefix(cache, span_str("http://h/")), URLS);
    ck_assert(cache_is_valid(cache));
    cache_destroy(cache);
}
END_TEST

static void *
purge_until_stopped(void *context)
{
    uint64_t *purged = context;

    while (!stop)
        *purged += cache_purge_prefix(cache, span_str("http://h/"));
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
            ck_assert_int_eq(pages_store(cache, url, 1), CACHE_STORED);
            stored++;
        }
        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
    }
    stop = true;
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    purged += cache_purge_all(cache);
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
    tcase_add_test(tc, every_policy_under_load);
    tcase_add_test(tc, configuring_under_load);
    tcase_add_test(tc, two_may_configure_at_once_and_no_page_is_lost);
    tcase_add_test(tc, a_purge_misses_nothing_while_shards_are_rebuilt);
    suite_add_tcase(suite, tc);
    return suite;
}
