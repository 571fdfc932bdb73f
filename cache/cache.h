/*
 * The store: URL to page, bounded in pages, in bytes or both, with a replacement policy that
 * decides who leaves. Split into shards by the URL's hash, each with its lock, its table (table.h),
 * its instance of the policy and its share of the capacity, so that threads seldom meet. With one
 * shard the outcome of a sequence of requests is exactly the policy's.
 *
 * Bytes count a page whole: URL, final URL, headers, body and cache_page_overhead() of bookkeeping;
 * or the body alone, for studies in which a cache has to count as a trace does.
 *
 * Every function is safe on any thread. None blocks on anything but the locks.
 */
#ifndef SUNPROXY_CACHE_CACHE_H
#define SUNPROXY_CACHE_CACHE_H

#include "cache/page.h"
#include "policies/policy.h"

#define CACHE_MAX_SHARDS 64u

struct cache;

struct cache_config {
    struct policy_spec policy; /* without ops no cache at all: nothing is ever stored */
    uint64_t capacity_pages;   /* 0: not bounded in pages; one of the two must be bounded */
    uint64_t capacity_bytes;   /* 0: not bounded in bytes */
    unsigned shards;           /* 1 to CACHE_MAX_SHARDS, which share the capacity equally */
    uint64_t seed;             /* shard i draws from seed + i */
    bool body_only;            /* bytes count bodies alone */
};

struct cache_stats {
    uint64_t pages;
    uint64_t bytes;
    uint64_t insertions; /* pages stored, replacements included */
    uint64_t evictions;  /* pages that left as victims */
};

enum cache_error {
    CACHE_OK = 0,
    CACHE_NO_MEMORY,
    CACHE_BAD_CONFIG, /* no bound, or shards out of range, or fewer pages or bytes than shards, or
                         a policy that needs the future */
};

/* What came of storing a page. */
enum cache_outcome {
    CACHE_STORED,
    CACHE_REPLACED,   /* stored in place of an older page of the same URL, which is no eviction */
    CACHE_NOT_STORED, /* no cache, larger than a shard's share, refused by the policy, or no memory;
                        nothing has changed: nothing was evicted, and an older page of the same URL
                        is still there */
    CACHE_PASSED_ON,  /* it entered, and was itself the one to leave, perhaps with others: so do
                         policies whose newcomers compete (policy.h, enters_first). It counts neither
                         as an insertion nor as an eviction; an older page of the same URL is gone */
};

/* The pages that had to leave for another, each with a reference that the holder drops. */
struct cache_victims {
    struct page **pages; /* owned; NULL if none */
    size_t count;
    size_t room;
};

/*
 * What a page is charged beyond its own bytes under a policy, see policies/charge.h: at most 176
 * for LRU, whose mean is about 160.
 */
uint64_t cache_page_overhead(const struct policy_ops *ops);

/* NULL, with the reason in *error, if it cannot be made. */
struct cache *cache_create(const struct cache_config *config, enum cache_error *error);

/* No other thread may be inside. Pages still held elsewhere live on. NULL is harmless. */
void cache_destroy(struct cache *cache);

/*
 * The page of this URL with a reference that the caller drops, and the policy told of the request;
 * NULL on a miss. Where a policy lets others leave for it (SLRU may, see policy.h, has_surplus)
 * they are counted as evictions, and not named.
 *
 * A page whose lifetime has ended by `now_us` of the monotonic clock is a miss, and to the policy
 * the request has not happened: the page keeps its place among the candidates for eviction until
 * cache_store() replaces it, and what replaces it enters as a new page.
 */
struct page *cache_lookup(struct cache *cache, struct span url, int64_t now_us);

/*
 * Stores a page under its URL; the cache takes a reference of its own. Victims leave first, until
 * the page fits (or, if the policy says so, right afterwards). They are handed over in *victims if
 * that is not NULL (it must be empty; without memory for the list they are released and only
 * counted), and *evicted, if not NULL, is set to their number.
 */
enum cache_outcome cache_store(struct cache *cache, struct page *page,
                               struct cache_victims *victims, size_t *evicted);

/* Releases what a list holds and leaves it empty. */
void cache_victims_free(struct cache_victims *victims);

/*
 * Evicts pages, by the policy, until `bytes` of them have left, but at most a sixteenth of the
 * capacity in bytes (of what is inside, where bytes are not bounded) and a page more: for a process
 * that has run out of memory. They count as evictions. Returns the bytes of the evicted pages, and
 * their number in *pages; those that others refer to are not free yet. The caller holds no lock of
 * a cache.
 */
uint64_t cache_reclaim(struct cache *cache, uint64_t bytes, uint64_t *pages);

/*
 * Purging: the number of pages that left. They are not counted as evictions. cache_purge_expired()
 * spares a page that is still fresh at `now_us`; it is for an answer that replaces an expired page
 * and may not be stored itself.
 */
uint64_t cache_purge_expired(struct cache *cache, struct span url, int64_t now_us);
uint64_t cache_purge(struct cache *cache, struct span url);
uint64_t cache_purge_prefix(struct cache *cache, struct span prefix);
uint64_t cache_purge_all(struct cache *cache);

/* The number of pages that cache_purge() or cache_purge_prefix() would remove now. */
uint64_t cache_count(struct cache *cache, struct span url);
uint64_t cache_count_prefix(struct cache *cache, struct span prefix);

/* False for a configuration that is refused with CACHE_BAD_CONFIG. */
bool cache_config_is_valid(const struct cache_config *config);

/*
 * Changes policy, capacity and number of shards while others use the cache. Pages that fit the new
 * capacity stay; those that do not leave by the new policy, and count as evictions. (Pages may
 * count more under one policy than under another: cache_page_overhead().) The pages enter the new
 * policy in the order in which they entered the cache; where only the capacity changes, the policy
 * stays as it is, with what it knows of them. Requests wait meanwhile: for a new policy or number
 * of shards about a microsecond for each page. On an error nothing has changed.
 */
enum cache_error cache_configure(struct cache *cache, const struct cache_config *config);

/* The configuration in force. */
void cache_get_config(struct cache *cache, struct cache_config *config);

/* Sums over the shards; each shard's numbers are consistent in themselves. */
void cache_get_stats(struct cache *cache, struct cache_stats *stats);

/* Sets insertions and evictions to zero. */
void cache_reset_stats(struct cache *cache);

/* True if every table, tree, policy and count agrees with the others. For tests; O(n). */
bool cache_is_valid(struct cache *cache);

#endif
