#include "trace/totals.h"

#include <stdlib.h>

/* An infinite cache, and which URLs came before. */
struct infinite {
    const struct trace_requests *requests;
    uint64_t *seen;     /* bits by URL */
    uint64_t *stored;   /* likewise; NULL: what was seen is stored */
    int64_t *stored_us; /* by URL; NULL: pages do not expire */
    uint64_t *misses;   /* by URL; NULL: a page is stored at the first */
};

static bool
infinite_begin(struct infinite *cache, const struct trace_requests *r)
{
    size_t words = r->url_count / 64 + 1;
    bool plain = !r->ttl_us && !r->max_page && r->min_uses < 2;

    *cache = (struct infinite){.requests = r, .seen = calloc(words, sizeof(*cache->seen))};
    if (!plain)
        cache->stored = calloc(words, sizeof(*cache->stored));
    if (r->ttl_us)
        cache->stored_us = calloc(r->url_count + 1, sizeof(*cache->stored_us));
    if (r->min_uses > 1)
        cache->misses = calloc(r->url_count + 1, sizeof(*cache->misses));
    return cache->seen && (plain || cache->stored) && (!r->ttl_us || cache->stored_us) &&
           (r->min_uses < 2 || cache->misses);
}

static void
infinite_end(struct infinite *cache)
{
    free(cache->seen);
    free(cache->stored);
    free(cache->stored_us);
    free(cache->misses);
}

/* Is this request a hit where not every page is stored at once and for ever? Stores the page. */
static bool
infinite_lookup(struct infinite *cache, size_t i, uint32_t bytes)
{
    const struct trace_requests *r = cache->requests;
    uint32_t id = r->ids[i];
    uint64_t *word = &cache->stored[id / 64], bit = 1ull << (id % 64);

    if ((*word & bit) && (!cache->stored_us || r->times_us[i] - cache->stored_us[id] < r->ttl_us))
        return true;
    *word &= ~bit;
    if ((r->max_page && bytes > r->max_page) ||
        (cache->misses && ++cache->misses[id] < r->min_uses))
        return false;
    *word |= bit;
    if (cache->stored_us)
        cache->stored_us[id] = r->times_us[i];
    return false;
}

bool
trace_totals_make(const struct trace_requests *r, struct trace_totals *totals)
{
    struct infinite cache;

    *totals = (struct trace_totals){.smallest = UINT32_MAX};
    if (!infinite_begin(&cache, r)) {
        infinite_end(&cache);
        return false;
    }
    for (size_t i = 0; i < r->count; i++) {
        uint32_t id = r->ids[i], bytes = r->sizes ? r->sizes[i] : 1;
        uint64_t bit = 1ull << (id % 64);
        bool seen = cache.seen[id / 64] & bit, hit = seen;

        cache.seen[id / 64] |= bit;
        if (bytes == TRACE_SIZE_UNKNOWN)
            bytes = 0;
        if (cache.stored)
            hit = infinite_lookup(&cache, i, bytes);
        totals->bytes_of_all += bytes;
        if (!seen)
            totals->distinct_bytes += bytes;
        if (bytes < totals->smallest)
            totals->smallest = bytes;
        if (bytes > totals->largest)
            totals->largest = bytes;
        if (i < r->warmup)
            continue;
        totals->requests++;
        totals->bytes += bytes;
        totals->hits += hit;
        totals->bytes_hit += hit ? bytes : 0;
    }
    infinite_end(&cache);
    return true;
}

double
trace_totals_hit_ratio(const struct trace_totals *totals)
{
    return totals->requests ? (double)totals->hits / (double)totals->requests : 0;
}

double
trace_totals_byte_hit_ratio(const struct trace_totals *totals)
{
    return totals->bytes ? (double)totals->bytes_hit / (double)totals->bytes : 0;
}
