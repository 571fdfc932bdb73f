#include "tests/unit/cache/pages.h"

/* ---- requests step by step ------------------------------------------------------------------- */

static void
count_notify(struct object_waiter *waiter)
{
    struct requester *request = (struct requester *)(void *)waiter;

    atomic_fetch_add(&request->notified, 1);
}

enum cache_answer
request_lookup_variant(struct requester *request, struct cache *cache, const char *url,
                       const char *variant, int64_t now_us, struct cache_request with)
{
    struct cache_key key = cache_key_of_variant(span_str(url), span_str(variant));
    const struct object_waiter set = request->waiter;

    *request = (struct requester){
        .waiter = {.notify = count_notify, .streams = set.streams, .wants_head = set.wants_head}};
    with.waiter = &request->waiter;
    if (with.fill_size == 0)
        with.fill_size = sizeof(struct cache_fill);
    request->answer = cache_lookup(cache, &key, &with, now_us, &request->found);
    return request->answer;
}

enum cache_answer
request_lookup_with(struct requester *request, struct cache *cache, const char *url, int64_t now_us,
                    struct cache_request with)
{
    return request_lookup_variant(request, cache, url, "", now_us, with);
}

enum cache_answer
request_lookup(struct requester *request, struct cache *cache, const char *url, int64_t now_us,
               bool streams)
{
    request->waiter.streams = streams;
    return request_lookup_with(request, cache, url, now_us, (struct cache_request){0});
}

unsigned
request_take(struct requester *request)
{
    unsigned events;

    if (atomic_exchange(&request->notified, 0) == 0)
        return 0;
    events = object_waiter_take(&request->waiter);
    request->taken |= events;
    return events;
}

void
request_end(struct requester *request)
{
    object_waiter_clear(&request->waiter);
    object_release(&request->found.object);
}

void
fill_head(struct cache_fill *fill, int64_t length, struct memory_account *account)
{
    ck_assert_int_eq(cache_fill_head(fill, &(struct object_head){.status = 200,
                                                                 .length = length,
                                                                 .max_length = 1 << 30,
                                                                 .account = account}),
                     0);
}

static int
append_letters(struct cache_fill *fill, size_t len)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    int error = 0;

    while (len && !error) {
        size_t at = (size_t)(object_length(fill->object) % 26);
        size_t part = len < 26 - at ? len : 26 - at;

        error = cache_fill_append(fill, letters + at, part);
        len -= part;
    }
    return error;
}

void
fill_letters(struct cache_fill *fill, size_t len)
{
    ck_assert_int_eq(append_letters(fill, len), 0);
}

enum cache_outcome
fill_page(struct cache_fill *fill, size_t body)
{
    enum cache_outcome outcome;

    fill_head(fill, (int64_t)body, NULL);
    fill_letters(fill, body);
    outcome = cache_fill_finish(fill, true, 1, 1, INT64_MAX);
    cache_fill_free(fill);
    return outcome;
}

void
fill_fail(struct cache_fill *fill)
{
    cache_fill_fail(fill, 7, "it failed", NULL, NULL);
    cache_fill_free(fill);
}

/* ---- pages in one call ----------------------------------------------------------------------- */

static void
ignore(struct object_waiter *waiter)
{
    (void)waiter;
}

struct stored
pages_put(struct cache *cache, struct span url, size_t body, int64_t until_us,
          struct memory_account *account)
{
    struct cache_key key = cache_key_of(url);
    struct object_waiter waiter = {.notify = ignore};
    struct cache_request request = {.waiter = &waiter, .fill_size = sizeof(struct cache_fill)};
    struct object_head head = {
        .status = 200, .length = (int64_t)body, .max_length = body, .account = account};
    struct stored stored = {.outcome = CACHE_NOT_STORED};
    struct cache_found found;
    enum cache_answer answer = cache_lookup(cache, &key, &request, INT64_MAX / 2, &found);

    if (answer == CACHE_NO_MEMORY)
        return stored;
    ck_assert(answer == CACHE_MISS || answer == CACHE_STALE);
    ck_assert(waiter.leader);
    object_release(&found.object);
    if (cache_fill_head(found.fill, &head) == 0 && append_letters(found.fill, body) == 0) {
        cache_fill_finish(found.fill, true, 1, 1,
                          until_us == INT64_MAX ? PAGES_LIFETIME : until_us - 1);
        ck_assert_uint_eq(object_waiter_take(&waiter), WAITER_END);
        stored = (struct stored){waiter.outcome, waiter.evicted, waiter.victims,
                                 object_retain(waiter.object)};
        waiter.victims = (struct cache_victims){0};
    } else {
        cache_fill_fail(found.fill, 1, "no memory", NULL, NULL);
        ck_assert_uint_eq(object_waiter_take(&waiter), WAITER_FAILED);
    }
    cache_fill_free(found.fill);
    object_waiter_clear(&waiter);
    return stored;
}

void
stored_free(struct stored *stored)
{
    cache_victims_free(&stored->victims);
    object_release(&stored->object);
}

enum cache_outcome
pages_store_until(struct cache *cache, const char *url, size_t body, int64_t until_us)
{
    struct stored stored = pages_put(cache, span_str(url), body, until_us, NULL);

    ck_assert_ptr_nonnull(stored.object);
    stored_free(&stored);
    return stored.outcome;
}

enum cache_outcome
pages_store(struct cache *cache, const char *url, size_t body)
{
    return pages_store_until(cache, url, body, INT64_MAX);
}

void
pages_store_many(struct cache *cache, int from, int to, size_t body)
{
    for (int i = from; i < to; i++)
        ck_assert_int_ne(pages_store(cache, pages_url(i), body), CACHE_NOT_STORED);
}

struct object *
pages_get(struct cache *cache, struct span url, int64_t now_us)
{
    struct cache_key key = cache_key_of(url);
    struct object_waiter waiter = {.notify = ignore};
    struct cache_request request = {.waiter = &waiter, .fill_size = sizeof(struct cache_fill)};
    struct cache_found found;

    switch (cache_lookup(cache, &key, &request, now_us, &found)) {
    case CACHE_HIT:
        ck_assert_ptr_null(found.fill);
        ck_assert_int_eq(object_state(found.object), OBJECT_READY);
        ck_assert(span_equal(object_url(found.object), url));
        return found.object;
    case CACHE_STALE:
    case CACHE_MISS:
    case CACHE_PASS:
        object_release(&found.object);
        cache_fill_fail(found.fill, 1, "not wanted", NULL, NULL);
        cache_fill_free(found.fill);
        object_waiter_clear(&waiter);
        break;
    case CACHE_BUSY:
        object_release(&found.object);
        ck_assert(cache_leave(&waiter));
        object_waiter_clear(&waiter);
        break;
    case CACHE_VARIES:
        object_release(&found.object);
        break;
    case CACHE_ABSENT:
    case CACHE_FULL:
    case CACHE_NO_MEMORY:
        break;
    }
    return NULL;
}

bool
pages_hit(struct cache *cache, const char *url)
{
    return pages_hit_at(cache, url, 0);
}

bool
pages_hit_at(struct cache *cache, const char *url, int64_t now_us)
{
    struct object *object = pages_get(cache, span_str(url), now_us);
    bool hit = object != NULL;

    object_release(&object);
    return hit;
}

/* ---- caches ---------------------------------------------------------------------------------- */

struct cache *
pages_cache(const char *policy, uint64_t pages, uint64_t bytes, unsigned shards)
{
    enum cache_error error = CACHE_BAD_CONFIG;
    struct cache *cache = cache_create(
        &(struct cache_config){
            .policy = policy_spec_of(policy ? policy_find(policy) : NULL),
            .capacity_pages = pages,
            .capacity_bytes = bytes,
            .shards = shards,
        },
        &error);

    ck_assert_int_eq(error, CACHE_OK);
    ck_assert_ptr_nonnull(cache);
    return cache;
}

void
pages_end(struct cache *cache)
{
    ck_assert(cache_is_valid(cache));
    ck_assert_uint_eq(pages_stats(cache).busy, 0);
    cache_destroy(cache);
}

struct cache_stats
pages_stats(struct cache *cache)
{
    struct cache_stats stats;

    cache_get_stats(cache, &stats);
    return stats;
}

const char *
pages_url(int i)
{
    static char url[64];

    snprintf(url, sizeof(url), "http://www.example.com/%d", i);
    return url;
}

void
pages_store_tagged(struct cache *cache, const char *url, const char *tags)
{
    struct requester request = {0};

    request_lookup(&request, cache, url, 0, false);
    cache_fill_head(request.found.fill,
                    &(struct object_head){.status = 200, .tags = span_str(tags)});
    cache_fill_finish(request.found.fill, true, 1, 0, INT64_MAX);
    cache_fill_free(request.found.fill);
    request_take(&request);
    request_end(&request);
}
