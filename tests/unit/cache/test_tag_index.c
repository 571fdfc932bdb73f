/* Tags of objects, and purges by them. */
#define UNIT_STARTS_NO_THREAD

#include <errno.h>

#include "cache/shard.h"
#include "tests/unit/cache/pages.h"
#include "tests/unit/cache/purge.h"

static struct cache *cache;

static void
set_up(void)
{
    cache = pages_cache("lru", 1000, 0, 5);
}

static void
tear_down(void)
{
    pages_end(cache);
}

static int
head(struct requester *request, const char *tags)
{
    int error =
        cache_fill_head(request->found.fill,
                        &(struct object_head){
                            .status = 200, .length = 10, .max_length = 10, .tags = span_str(tags)});

    ck_assert(cache_is_valid(cache));
    return error;
}

/* Fresh until 5000. */
static enum cache_outcome
finish(struct requester *request)
{
    enum cache_outcome outcome;

    fill_letters(request->found.fill, 10);
    outcome = cache_fill_finish(request->found.fill, true, 1, 0, 5000);
    cache_fill_free(request->found.fill);
    ck_assert(request_take(request) & WAITER_END);
    request_end(request);
    ck_assert(cache_is_valid(cache));
    return outcome;
}

static enum cache_outcome
put(const char *url, const char *tags)
{
    struct requester request = {0};

    ck_assert_ptr_null(request.found.fill);
    request_lookup(&request, cache, url, INT64_MAX / 2, false);
    ck_assert_int_eq(head(&request, tags), 0);
    return finish(&request);
}

static uint64_t
purge(const char *tag)
{
    uint64_t count = purge_by(cache, CACHE_BY_TAG, span_str(tag));

    ck_assert(cache_is_valid(cache));
    return count;
}

static uint64_t
expire(const char *tag)
{
    uint64_t count = expire_by(cache, CACHE_BY_TAG, span_str(tag), 1000);

    ck_assert(cache_is_valid(cache));
    return count;
}

START_TEST(a_purge_removes_the_objects_with_the_tag)
{
    put("a", "x");
    put("b", "x y");
    put("c", "y z");
    put("d", "xy");
    put("e", "");
    ck_assert_uint_eq(purge("none"), 0);
    ck_assert_uint_eq(purge(""), 0);
    ck_assert_uint_eq(purge("x y"), 0);
    ck_assert_uint_eq(purge("x"), 2);
    ck_assert(!pages_hit(cache, "a") && !pages_hit(cache, "b"));
    ck_assert(pages_hit(cache, "c") && pages_hit(cache, "d") && pages_hit(cache, "e"));
    ck_assert_uint_eq(purge("x"), 0);
    ck_assert_uint_eq(purge("z"), 1);
    ck_assert_uint_eq(purge("y"), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 2);
    ck_assert_uint_eq(pages_stats(cache).evictions, 0);
}
END_TEST

static enum cache_fate
begins(struct object *object, const void *context)
{
    return span_starts_with(object_url(object), span_str(context)) ? CACHE_REMOVED : CACHE_SPARED;
}

/* Of each three objects one is spared, one expires and one goes; meanwhile there are hits. */
static enum cache_fate
thirds(struct object *object, const void *context)
{
    static const enum cache_fate fates[] = {CACHE_SPARED, CACHE_EXPIRED, CACHE_REMOVED};
    unsigned *decided = (unsigned *)(uintptr_t)context;

    (*decided)++;
    ck_assert(pages_hit(cache, "other"));
    return fates[(unsigned char)object_url(object).ptr[0] % 3];
}

START_TEST(a_purge_of_many_objects_is_in_parts)
{
    enum { MANY = 1500 };
    unsigned decided = 0;
    const struct cache_scope scope = {.decide = thirds, .context = &decided};
    const struct span x = span_str("x");
    char url[16];

    cache_destroy(cache);
    cache = pages_cache("lru", 10000, 0, 2);
    put("other", "y");
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(url, sizeof(url), "%c%u", 'a' + (int)(i % 7), i);
        put(url, i % 2 ? "x x y" : "x");
    }
    ck_assert_uint_eq(
        cache_purge(
            cache,
            &(struct cache_purge){.by = CACHE_BY_TAG, .name = x, .scope = &scope, .now_us = 1000}),
        MANY - count_by(cache, CACHE_BY_PREFIX, span_str("c")) -
            count_by(cache, CACHE_BY_PREFIX, span_str("f")));
    ck_assert_uint_ge(decided, MANY);
    ck_assert_uint_lt(decided, 2 * MANY);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(url, sizeof(url), "%c%u", 'a' + (int)(i % 7), i);
        ck_assert_int_eq(pages_hit_at(cache, url, 2000), url[0] % 3 == 0);
        ck_assert_uint_eq(count_by(cache, CACHE_BY_URL, span_str(url)), url[0] % 3 != 2);
    }
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(count_by(cache, CACHE_BY_TAG, x),
                      count_by(cache, CACHE_BY_PREFIX, span_of(NULL, 0)) - 1);
    ck_assert_uint_gt(purge("x"), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 1);
}
END_TEST

START_TEST(a_purge_in_a_scope_leaves_other_urls)
{
    const struct cache_scope scope = {.decide = begins, .context = "http://a/"};
    const struct span x = span_str("x");
    struct requester inside = {0}, outside = {0};

    put("http://a/1", "x x y");
    put("http://b/1", "x");
    put("http://a/2", "y x");
    put("http://a/3", "y");
    request_lookup(&inside, cache, "http://a/4", 0, false);
    request_lookup(&outside, cache, "http://b/4", 0, false);
    ck_assert_int_eq(head(&inside, "x"), 0);
    ck_assert_int_eq(head(&outside, "x"), 0);
    ck_assert_uint_eq(
        cache_purge(cache, &(struct cache_purge){.by = CACHE_BY_TAG, .name = x, .scope = &scope}),
        2);
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(
        cache_purge(cache, &(struct cache_purge){.by = CACHE_BY_TAG, .name = x, .scope = &scope}),
        0);
    ck_assert(pages_hit(cache, "http://b/1") && pages_hit(cache, "http://a/3"));
    ck_assert_int_eq(finish(&inside), CACHE_NOT_STORED);
    /* Of what is being fetched, other URLs are concerned, too. */
    ck_assert_int_eq(finish(&outside), CACHE_NOT_STORED);
    ck_assert_uint_eq(purge("x"), 1);
    ck_assert_uint_eq(purge("y"), 1);
}
END_TEST

START_TEST(a_purge_names_the_tags_of_what_it_removes)
{
    struct requester busy = {0}, successor = {0};
    struct buf tags;

    buf_init(&tags, 13);
    put("a", "x y");
    put("b", "z");
    ck_assert_uint_eq(
        cache_purge(
            cache, &(struct cache_purge){.by = CACHE_BY_URL, .name = span_str("a"), .tags = &tags}),
        1);
    ck_assert_str_eq(buf_str(&tags), "x y");
    ck_assert_uint_eq(
        cache_purge(
            cache, &(struct cache_purge){.by = CACHE_BY_URL, .name = span_str("a"), .tags = &tags}),
        0);
    ck_assert_str_eq(buf_str(&tags), "x y");
    request_lookup(&busy, cache, "c", 0, false);
    ck_assert_int_eq(head(&busy, "w"), 0);
    ck_assert_uint_eq(
        cache_purge(
            cache, &(struct cache_purge){.by = CACHE_BY_URL, .name = span_str("c"), .tags = &tags}),
        0);
    ck_assert_int_eq(finish(&busy), CACHE_NOT_STORED);
    ck_assert_str_eq(buf_str(&tags), "x y w");
    /* What is fetched for an expired object has no entry of its own. */
    put("d", "w");
    ck_assert_int_eq(request_lookup(&successor, cache, "d", 6000, false), CACHE_STALE);
    ck_assert_int_eq(head(&successor, "v"), 0);
    ck_assert_uint_eq(
        cache_purge(
            cache, &(struct cache_purge){.by = CACHE_BY_URL, .name = span_str("d"), .tags = &tags}),
        1);
    ck_assert_int_eq(finish(&successor), CACHE_NOT_STORED);
    ck_assert_str_eq(buf_str(&tags), "x y w v w");
    ck_assert(!buf_failed(&tags));
    put("a", "long tag");
    ck_assert_uint_eq(
        cache_purge(
            cache, &(struct cache_purge){.by = CACHE_BY_URL, .name = span_str("a"), .tags = &tags}),
        1);
    ck_assert(buf_failed(&tags));
    buf_free(&tags);
}
END_TEST

/* The response to an earlier request than the lookup's. */
START_TEST(a_fill_may_date_from_before_a_purge)
{
    enum { NONE, BY_URL, BY_TAG, BY_PREFIX, EXPIRED, EXPIRED_PREFIX, ALL, BY_OTHER_URL, KINDS };
    const struct span url = span_str("a"), x = span_str("x");

    for (int kind = NONE; kind < KINDS; kind++) {
        /* By the writer of the response, which knows about it, or by another one. */
        for (unsigned own = 0; own < 2; own++) {
            const uint64_t epoch = cache_epoch(cache);
            struct cache_change change = {0}, *by = own ? &change : NULL;
            bool stored =
                kind == NONE || kind == BY_OTHER_URL || (own && (kind == BY_URL || kind == BY_TAG));
            struct requester request = {0}, joined = {0};

            if (kind == BY_URL)
                cache_purge(cache,
                            &(struct cache_purge){.by = CACHE_BY_URL, .name = url, .change = by});
            else if (kind == BY_TAG)
                cache_purge(cache,
                            &(struct cache_purge){.by = CACHE_BY_TAG, .name = x, .change = by});
            else if (kind == BY_PREFIX)
                purge_by(cache, CACHE_BY_PREFIX, url);
            else if (kind == EXPIRED)
                expire_by(cache, CACHE_BY_URL, url, 0);
            else if (kind == EXPIRED_PREFIX)
                expire_by(cache, CACHE_BY_PREFIX, url, 0);
            else if (kind == ALL)
                cache_purge_all(cache);
            else if (kind == BY_OTHER_URL)
                cache_purge(cache, &(struct cache_purge){
                                       .by = CACHE_BY_URL, .name = span_str("b"), .change = by});
            ck_assert_int_eq(request_lookup_with(&request, cache, "a", 0,
                                                 (struct cache_request){
                                                     .epoch = epoch,
                                                     .own_epoch = change.epoch,
                                                 }),
                             CACHE_MISS);
            /* The tags are not known before the head. */
            ck_assert_int_eq(request_lookup(&joined, cache, "a", 0, false),
                             stored || kind == BY_TAG ? CACHE_BUSY : CACHE_MISS);
            ck_assert_int_eq(head(&request, "x"), 0);
            ck_assert_int_eq(finish(&request), stored ? CACHE_STORED : CACHE_NOT_STORED);
            if (joined.found.fill) {
                ck_assert_int_eq(head(&joined, "x"), 0);
                ck_assert_int_eq(finish(&joined), CACHE_STORED);
            } else {
                ck_assert_uint_eq(request_take(&joined), stored ? WAITER_END : WAITER_RETRY);
                request_end(&joined);
            }
            cache_purge_all(cache);
        }
    }
}
END_TEST

START_TEST(a_soft_purge_expires_the_objects_with_the_tag)
{
    put("a", "x");
    put("b", "x y");
    put("c", "y z");
    ck_assert_uint_eq(expire("x"), 2);
    ck_assert_uint_eq(expire("x"), 0);
    ck_assert_uint_eq(expire("none"), 0);
    ck_assert_uint_eq(pages_stats(cache).pages, 3);
    ck_assert(!pages_hit(cache, "a") && !pages_hit(cache, "b") && pages_hit(cache, "c"));
    ck_assert_uint_eq(expire("y"), 1);
    /* They are still there to be removed. */
    ck_assert_uint_eq(purge("x"), 2);
}
END_TEST

START_TEST(many_objects_with_many_tags)
{
    char tags[64];

    for (int i = 0; i < 300; i++) { /* the whole cache is checked after each */
        snprintf(tags, sizeof(tags), "all half%d tenth%d own%d all", i % 2, i % 10, i);
        ck_assert_int_eq(put(pages_url(i), tags), CACHE_STORED);
    }
    ck_assert_uint_eq(purge("own77"), 1);
    ck_assert_uint_eq(purge("tenth3"), 30);
    ck_assert_uint_eq(purge("half1"), 150 - 31);
    ck_assert_uint_eq(expire("half0"), 150);
    ck_assert_uint_eq(purge("all"), 150); /* each once, though it says so twice */
    ck_assert_uint_eq(pages_stats(cache).pages, 0);
}
END_TEST

START_TEST(tags_are_bounded)
{
    static char tags[OBJECT_MAX_TAG_BYTES + 2];
    struct requester request = {0};

    request_lookup(&request, cache, "a", 0, false);
    memset(tags, 'x', OBJECT_MAX_TAG_BYTES + 1);
    ck_assert_int_eq(head(&request, tags), EINVAL);
    for (size_t i = 0; i < 2 * (OBJECT_MAX_TAGS + 1); i += 2)
        tags[i] = ' ';
    tags[2 * (OBJECT_MAX_TAGS + 1)] = '\0';
    ck_assert_int_eq(head(&request, tags), EINVAL);
    ck_assert_int_eq(head(&request, tags + 2), 0);
    ck_assert_int_eq(finish(&request), CACHE_STORED);
    ck_assert_uint_eq(purge("x"), 1);
    memset(tags, 'y', OBJECT_MAX_TAG_BYTES);
    tags[OBJECT_MAX_TAG_BYTES] = '\0';
    ck_assert_int_eq(put("b", tags), CACHE_STORED);
    ck_assert_uint_eq(purge(tags), 1);
}
END_TEST

/* Whatever removes an object from the cache removes it from the index, which is_valid() counts. */
START_TEST(the_index_follows_the_objects)
{
    struct cache *before = cache;

    cache = pages_cache("lru", 3, 0, 1);
    for (int i = 0; i < 10; i++)
        put(pages_url(i), i % 2 ? "odd all" : "even all");
    ck_assert_uint_eq(expire("all"), 3);
    ck_assert_int_eq(put(pages_url(9), "other"), CACHE_REPLACED);
    ck_assert_uint_eq(purge("odd"), 1);
    ck_assert_uint_eq(purge("other"), 1);
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_URL, span_str(pages_url(8))), 1);
    ck_assert_uint_eq(purge("all"), 0);
    for (int i = 0; i < 3; i++)
        put(pages_url(i), "all");
    ck_assert_uint_eq(purge_by(cache, CACHE_BY_PREFIX, span_str(pages_url(1))), 1);
    ck_assert_uint_eq(cache_purge_all(cache), 2);
    ck_assert_uint_eq(purge("all"), 0);
    cache_destroy(cache);

    /* It is not stored, or not for long: too large, not admitted, passed on, no policy. */
    cache = pages_cache("lru", 0, 400, 1);
    ck_assert_int_eq(put("a", "x"), CACHE_STORED);
    ck_assert_int_eq(put("b", "x y z x y z x y z"), CACHE_NOT_STORED);
    ck_assert_uint_eq(purge("x"), 1);
    cache_destroy(cache);
    for (size_t p = 0; policies[p]; p++) {
        if (policies[p]->needs_future)
            continue;
        cache = pages_cache(policies[p]->name, 4, 0, 1);
        for (int i = 0; i < 20; i++)
            put(pages_url(i), "x y");
        ck_assert_uint_eq(pages_stats(cache).pages, purge("y"));
        ck_assert_uint_eq(purge("x"), 0);
        cache_destroy(cache);
    }
    cache = pages_cache(NULL, 0, 0, 1);
    ck_assert_int_eq(put("a", "x"), CACHE_NOT_STORED);
    ck_assert_uint_eq(purge("x"), 0);
    cache_destroy(cache);
    cache = before;
}
END_TEST

START_TEST(tags_survive_another_configuration)
{
    static const unsigned shards[] = {1, 64, 7};

    for (int i = 0; i < 100; i++)
        put(pages_url(i), i % 2 ? "odd all" : "even all");
    for (size_t i = 0; i < sizeof(shards) / sizeof(shards[0]); i++) {
        struct cache_config config = {
            .policy = policy_spec_of(policy_find(i ? "lfu" : "lru")),
            .capacity_pages = 10000,
            .shards = shards[i],
        };

        ck_assert_int_eq(cache_configure(cache, &config), CACHE_OK);
        ck_assert(cache_is_valid(cache));
    }
    ck_assert_uint_eq(purge("odd"), 50);
    ck_assert_int_eq(
        cache_configure(cache, &(struct cache_config){.policy = policy_spec_of(policy_find("lfu")),
                                                      .capacity_pages = 10,
                                                      .shards = 1}),
        CACHE_OK);
    ck_assert_uint_eq(purge("all"), 10);
}
END_TEST

START_TEST(tags_are_charged)
{
    uint64_t plain, one, two;

    put("a", "");
    plain = pages_stats(cache).bytes;
    cache_purge_all(cache);
    put("a", "x");
    one = pages_stats(cache).bytes;
    cache_purge_all(cache);
    put("a", "x yyyyyyyyyy");
    two = pages_stats(cache).bytes;
    /* The object has the words, and the index has them, each with a link and a node. */
    ck_assert_uint_eq(one - plain, 2 * 1 + TAGS_CHARGE);
    ck_assert_uint_eq(two - one, 2 * 11 + TAGS_CHARGE);
}
END_TEST

/* ---- busy objects ---------------------------------------------------------------------------- */

START_TEST(a_purge_finds_busy_objects_by_the_tags_of_their_heads)
{
    for (unsigned soft = 0; soft < 2; soft++) {
        struct requester tagged = {0}, other = {0}, late = {0}, next = {0};

        request_lookup(&tagged, cache, "a", 0, false);
        request_lookup(&late, cache, "a", 0, true);
        request_lookup(&other, cache, "b", 0, false);
        ck_assert_int_eq(head(&tagged, "x y"), 0);
        ck_assert_int_eq(head(&other, "y"), 0);
        ck_assert_uint_eq(soft ? expire("x") : purge("x"), 0);
        ck_assert_uint_eq(pages_stats(cache).busy, 2);
        ck_assert_int_eq(request_lookup(&next, cache, "a", 0, false), CACHE_MISS);
        ck_assert_int_eq(head(&next, "x"), 0);
        ck_assert_int_eq(finish(&tagged), CACHE_NOT_STORED);
        ck_assert_int_eq(finish(&other), CACHE_STORED);
        ck_assert_int_eq(finish(&next), CACHE_STORED);
        ck_assert(request_take(&late) & WAITER_END);
        request_end(&late);
        cache_purge_all(cache);
    }
}
END_TEST

/* What began before the purge may be older than it, though its tags are known only afterwards. */
START_TEST(a_purge_finds_fills_whose_heads_come_later)
{
    for (unsigned soft = 0; soft < 2; soft++) {
        struct requester tagged = {0}, other = {0}, after = {0}, late = {0}, again = {0};
        struct requester streaming = {.waiter.streams = true};

        request_lookup(&tagged, cache, "a", 0, false);
        request_lookup(&late, cache, "a", 0, false);
        request_lookup(&streaming, cache, "a", 0, true);
        request_lookup(&other, cache, "b", 0, false);
        ck_assert_uint_eq(soft ? expire("x") : purge("x"), 0);
        request_lookup(&after, cache, "c", 0, false);
        ck_assert_int_eq(head(&tagged, "y x"), 0);
        ck_assert_int_eq(head(&other, "y"), 0);
        ck_assert_int_eq(head(&after, "x"), 0);
        ck_assert_uint_eq(request_take(&late), WAITER_RETRY);
        ck_assert_uint_eq(request_take(&streaming), WAITER_RETRY);
        ck_assert_int_eq(request_lookup(&again, cache, "a", 0, false), CACHE_MISS);
        ck_assert_int_eq(head(&again, "x"), 0);
        ck_assert_int_eq(finish(&tagged), CACHE_NOT_STORED);
        ck_assert_int_eq(finish(&other), CACHE_STORED);
        ck_assert_int_eq(finish(&after), CACHE_STORED);
        ck_assert_int_eq(finish(&again), CACHE_STORED);
        request_end(&late);
        request_end(&streaming);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(a_fill_during_many_purges_of_other_tags_is_stored)
{
    struct requester tagged = {0}, plain = {0};

    request_lookup(&tagged, cache, "a", 0, false);
    request_lookup(&plain, cache, "b", 0, false);
    for (unsigned i = 0; i < 2000; i++) {
        char tag[16];

        snprintf(tag, sizeof(tag), "%u", i);
        purge_by(cache, CACHE_BY_TAG, span_str(tag));
    }
    ck_assert_int_eq(head(&tagged, "x"), 0);
    ck_assert_int_eq(head(&plain, ""), 0);
    ck_assert_int_eq(finish(&tagged), CACHE_STORED);
    ck_assert_int_eq(finish(&plain), CACHE_STORED);
}
END_TEST

START_TEST(the_successor_of_a_purged_object_is_not_joined)
{
    for (unsigned soft = 0; soft < 2; soft++) {
        struct requester successor = {0}, joined = {0}, next = {0};

        put("a", "x");
        ck_assert_int_eq(request_lookup(&successor, cache, "a", 6000, false), CACHE_STALE);
        ck_assert_int_eq(request_lookup(&joined, cache, "a", 6000, false), CACHE_BUSY);
        ck_assert_uint_eq(soft ? expire("x") : purge("x"), 1);
        ck_assert_int_eq(request_lookup(&next, cache, "a", 6000, false),
                         soft ? CACHE_STALE : CACHE_MISS);
        /* It is stored if it lacks the tag now. */
        ck_assert_int_eq(head(&successor, "y"), 0);
        ck_assert_int_eq(finish(&successor), soft ? CACHE_REPLACED : CACHE_STORED);
        ck_assert_int_eq(head(&next, "x"), 0);
        ck_assert_int_eq(finish(&next), CACHE_REPLACED);
        ck_assert_uint_eq(request_take(&joined), WAITER_END);
        request_end(&joined);
        cache_purge_all(cache);
    }
}
END_TEST

START_TEST(a_confirmed_object_with_a_purged_tag_is_not_stored)
{
    for (unsigned purged = 0; purged < 2; purged++) {
        const struct object_head fresh = {.status = 200, .tags = span_str("x new")};
        struct requester request = {0}, late = {0};
        enum cache_outcome outcome;

        put("a", "x");
        ck_assert_int_eq(request_lookup(&request, cache, "a", 6000, false), CACHE_STALE);
        ck_assert_int_eq(request_lookup(&late, cache, "a", 6000, false), CACHE_BUSY);
        if (purged)
            expire("x");
        ck_assert_int_eq(
            cache_fill_refresh(request.found.fill, &fresh, true, 1, 6000, 9000, &outcome), 0);
        ck_assert_int_eq(outcome, purged ? CACHE_NOT_STORED : CACHE_REPLACED);
        cache_fill_free(request.found.fill);
        ck_assert_uint_eq(request_take(&request), WAITER_END);
        ck_assert_uint_eq(request_take(&late), purged ? WAITER_RETRY : WAITER_END);
        ck_assert_uint_eq(object_length(request.waiter.object), 10);
        request_end(&request);
        request_end(&late);
        ck_assert_int_eq(pages_hit_at(cache, "a", 6000), !purged);
        ck_assert_uint_eq(purge("new"), !purged);
        cache_purge_all(cache);
    }
}
END_TEST

/* A body in segments that ends small is copied: with its tags. */
START_TEST(a_compacted_object_has_its_tags)
{
    struct requester request = {0};

    request_lookup(&request, cache, "a", 0, false);
    ck_assert_int_eq(
        cache_fill_head(request.found.fill, &(struct object_head){.status = 200,
                                                                  .length = -1,
                                                                  .max_length = 100,
                                                                  .tags = span_str("x y")}),
        0);
    ck_assert(request.found.fill->object->segmented);
    ck_assert_int_eq(finish(&request), CACHE_STORED);
    ck_assert_uint_eq(purge("y"), 1);
}
END_TEST

Suite *
unit_suite(void)
{
    Suite *suite = suite_create("cache/tags");
    TCase *tc = tcase_create("tags");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_purge_removes_the_objects_with_the_tag);
    tcase_add_test(tc, a_purge_in_a_scope_leaves_other_urls);
    tcase_add_test(tc, a_purge_of_many_objects_is_in_parts);
    tcase_add_test(tc, a_purge_names_the_tags_of_what_it_removes);
    tcase_add_test(tc, a_fill_may_date_from_before_a_purge);
    tcase_add_test(tc, a_soft_purge_expires_the_objects_with_the_tag);
    tcase_add_test(tc, many_objects_with_many_tags);
    tcase_add_test(tc, tags_are_bounded);
    tcase_add_test(tc, the_index_follows_the_objects);
    tcase_add_test(tc, tags_survive_another_configuration);
    tcase_add_test(tc, tags_are_charged);
    tcase_add_test(tc, a_purge_finds_busy_objects_by_the_tags_of_their_heads);
    tcase_add_test(tc, a_purge_finds_fills_whose_heads_come_later);
    tcase_add_test(tc, a_fill_during_many_purges_of_other_tags_is_stored);
    tcase_add_test(tc, the_successor_of_a_purged_object_is_not_joined);
    tcase_add_test(tc, a_confirmed_object_with_a_purged_tag_is_not_stored);
    tcase_add_test(tc, a_compacted_object_has_its_tags);
    suite_add_tcase(suite, tc);
    return suite;
}
