/*
 * Pages and caches for the tests of cache/: short to make, checked as they are made.
 */
#ifndef SUNPROXY_TESTS_CACHE_PAGES_H
#define SUNPROXY_TESTS_CACHE_PAGES_H

#include <stdio.h>
#include <stdlib.h>

#include "cache/cache.h"
#include "tests/unit/unit.h"

/* A page of that URL with a body of so many bytes; NULL only if an allocation was made to fail. */
struct page *pages_make(const char *url, size_t body);

/* Stores such a page. */
enum cache_outcome pages_store(struct cache *cache, const char *url, size_t body);

/* Asks for a page: is it there? */
bool pages_hit(struct cache *cache, const char *url);

/* The same for a request that comes at that moment. */
bool pages_hit_at(struct cache *cache, const char *url, int64_t now_us);

/* Stores a page that is fresh until that moment. */
enum cache_outcome pages_store_until(struct cache *cache, const char *url, size_t body,
                                     int64_t until_us);

/* A cache of that policy, with bounds in pages and bytes (0: none). */
struct cache *pages_cache(const char *policy, uint64_t pages, uint64_t bytes, unsigned shards);

struct cache_stats pages_stats(struct cache *cache);

/* One URL for each number; valid until the next one. */
const char *pages_url(int i);

/* Stores pages of the URLs `from` to `to` - 1. */
void pages_store_many(struct cache *cache, int from, int to, size_t body);

#endif
