/* Purges of tests that consist of a name alone. */
#ifndef SUNPROXY_TESTS_CACHE_PURGE_H
#define SUNPROXY_TESTS_CACHE_PURGE_H

#include "cache/cache.h"

static inline uint64_t
purge_by(struct cache *cache, enum cache_by by, struct span name)
{
    return cache_purge(cache, &(struct cache_purge){.by = by, .name = name});
}

static inline uint64_t
expire_by(struct cache *cache, enum cache_by by, struct span name, int64_t now_us)
{
    return cache_purge(cache, &(struct cache_purge){
                                  .by = by, .name = name, .fate = CACHE_EXPIRED, .now_us = now_us});
}

static inline uint64_t
count_by(struct cache *cache, enum cache_by by, struct span name)
{
    return cache_purge(cache, &(struct cache_purge){.by = by, .name = name, .fate = CACHE_COUNTED});
}

#endif
