#include "tests/unit/cache/pages.h"

#include <stdio.h>
#include <stdlib.h>

struct page *
pages_make(const char *url, size_t body)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
    struct page_builder builder;

    if (!page_begin(&builder, NULL, span_str(url), span_str(url), span_of(NULL, 0), 200, body,
                    body))
        return NULL;
    while (body) {
        size_t len = body < 26 ? body : 26;

        if (page_append(&builder, letters, len) != 0) {
            page_abandon(&builder);
            return NULL;
        }
        body -= len;
    }
    return page_finish(&builder, 1, 1);
}

static enum cache_outcome
store(struct cache *cache, const char *url, size_t body, int64_t until_us)
{
    struct page *page = pages_make(url, body);
    enum cache_outcome outcome;

    ck_assert_ptr_nonnull(page);
    if (until_us != INT64_MAX)
        page_limit(page, until_us - page->fetched_us);
    outcome = cache_store(cache, page, NULL, NULL);
    page_release(&page);
    return outcome;
}

enum cache_outcome
pages_store(struct cache *cache, const char *url, size_t body)
{
    return store(cache, url, body, INT64_MAX);
}

enum cache_outcome
pages_store_until(struct cache *cache, const char *url, size_t body, int64_t until_us)
{
    return store(cache, url, body, until_us);
}

bool
pages_hit(struct cache *cache, const char *url)
{
    return pages_hit_at(cache, url, 0);
}

bool
pages_hit_at(struct cache *cache, const char *url, int64_t now_us)
{
    struct page *page = cache_lookup(cache, span_str(url), now_us);
    bool hit = page != NULL;

    if (hit)
        ck_assert(span_equal(page_url(page), span_str(url)));
    page_release(&page);
    return hit;
}

struct cache *
pages_cache(const char *policy, uint64_t pages, uint64_t bytes, unsigned shards)
{
    enum cache_error error = CACHE_NO_MEMORY;
    struct cache *cache = cache_create(
        &(struct cache_config){
            .policy = policy_spec_of(policy_find(policy)),
            .capacity_pages = pages,
            .capacity_bytes = bytes,
            .shards = shards,
        },
        &error);

    ck_assert_int_eq(error, CACHE_OK);
    ck_assert_ptr_nonnull(cache);
    return cache;
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
pages_store_many(struct cache *cache, int from, int to, size_t body)
{
    for (int i = from; i < to; i++)
        ck_assert_int_ne(pages_store(cache, pages_url(i), body), CACHE_NOT_STORED);
}
