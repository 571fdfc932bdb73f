/*
 * Pages, waiters and caches for the tests of cache/: short to make, checked as they are made.
 */
#ifndef SUNPROXY_TESTS_CACHE_PAGES_H
#define SUNPROXY_TESTS_CACHE_PAGES_H

#include <stdio.h>
#include <stdlib.h>

#include "cache/fill.h"
#include "tests/unit/cache/validity.h"
#include "tests/unit/unit.h"

/* ---- requests step by step ------------------------------------------------------------------- */

/* A waiter that counts what it is notified of, and the fill that its lookup began. */
struct requester {
    struct object_waiter waiter; /* first */
    struct cache_found found;
    enum cache_answer answer;
    _Atomic unsigned notified; /* calls of notify() */
    unsigned taken;            /* events taken by request_take(), together */
};

/* Looks up with the request as the waiter, which may have wants_head; `streams` as in struct
 * object_waiter. */
enum cache_answer request_lookup(struct requester *request, struct cache *cache, const char *url,
                                 int64_t now_us, bool streams);

/* The same with every part of struct cache_request given; its waiter is set to the request's. */
enum cache_answer request_lookup_with(struct requester *request, struct cache *cache,
                                      const char *url, int64_t now_us, struct cache_request with);

/* The same for a URL and a variant. */
enum cache_answer request_lookup_variant(struct requester *request, struct cache *cache,
                                         const char *url, const char *variant, int64_t now_us,
                                         struct cache_request with);

/* Takes the waiter's events if it has been notified; returns them. */
unsigned request_take(struct requester *request);

/* Releases what the request has; its last event has been taken, or it left. */
void request_end(struct requester *request);

/* The head of a page: status 200, this length, at most 1 GiB. Asserts success. */
void fill_head(struct cache_fill *fill, int64_t length, struct memory_account *account);

/* Appends this many letters. Asserts success. */
void fill_letters(struct cache_fill *fill, size_t len);

/* The whole of it, stored without a limit of its lifetime; and the fill is freed. */
enum cache_outcome fill_page(struct cache_fill *fill, size_t body);

/* Fails with number 7 and "it failed", and frees. */
void fill_fail(struct cache_fill *fill);

/* ---- pages in one call ----------------------------------------------------------------------- */

/* The lifetime of pages without one: 40 days. */
#define PAGES_LIFETIME ((int64_t)40 * 86400 * 1000000)

/* What came of storing a page; to be freed. */
struct stored {
    enum cache_outcome outcome;
    size_t evicted;
    struct cache_victims victims;
    struct object *object; /* a reference; NULL if it could not be made */
};

/*
 * Looks a URL up as a miss (an object that is there counts as expired, unless its lifetime is
 * unlimited), fills it with this many letters, and stores it: as fetched at 1 us and fresh until
 * `until_us`. Without memory for it `object` is NULL and the outcome CACHE_NOT_STORED.
 */
struct stored pages_put(struct cache *cache, struct span url, size_t body, int64_t until_us,
                        struct memory_account *account);
void stored_free(struct stored *stored);

/* Stores such a page. */
enum cache_outcome pages_store(struct cache *cache, const char *url, size_t body);

/* Stores a page that is fresh until that moment. */
enum cache_outcome pages_store_until(struct cache *cache, const char *url, size_t body,
                                     int64_t until_us);

/* Stores pages of the URLs `from` to `to` - 1. */
void pages_store_many(struct cache *cache, int from, int to, size_t body);

/* The object of a hit at `now_us`, with a reference, or NULL; a miss changes nothing. */
struct object *pages_get(struct cache *cache, struct span url, int64_t now_us);

/* Looks a page up: is it a hit? */
bool pages_hit(struct cache *cache, const char *url);
bool pages_hit_at(struct cache *cache, const char *url, int64_t now_us);

/* ---- caches ---------------------------------------------------------------------------------- */

/* A cache of that policy (NULL: none), with bounds in pages and bytes (0: none). */
struct cache *pages_cache(const char *policy, uint64_t pages, uint64_t bytes, unsigned shards);

/* Destroys a cache that is valid and in which nothing is busy, or the test fails. */
void pages_end(struct cache *cache);

struct cache_stats pages_stats(struct cache *cache);

/* One URL for each number; valid until the next one. */
const char *pages_url(int i);

/* Stores an empty page with tags, separated by spaces. */
void pages_store_tagged(struct cache *cache, const char *url, const char *tags);

#endif
