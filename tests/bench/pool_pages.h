/*
 * The pages of the thread-pool server: a hash table with a fixed number of chains and one
 * read-write lock. Pages stay until the end. Any thread may call the functions but the first and
 * the last.
 */
#ifndef SUNPROXY_TESTS_BENCH_POOL_PAGES_H
#define SUNPROXY_TESTS_BENCH_POOL_PAGES_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"

#define POOL_CHAINS 4096u

struct pool_page {
    struct pool_page *next; /* of its chain */
    struct buf body;
    char url[];
};

struct pool_pages {
    pthread_rwlock_t lock;
    struct pool_page *chains[POOL_CHAINS];
};

void pool_pages_init(struct pool_pages *pages);

/* The page of a URL, which does not change and stays; or NULL. */
const struct pool_page *pool_pages_find(struct pool_pages *pages, const char *url);

/*
 * Stores a body, which is taken over in any case. Returns the page that is stored: another one, if
 * the URL has been stored meanwhile. NULL without memory.
 */
const struct pool_page *pool_pages_add(struct pool_pages *pages, const char *url, struct buf *body);

void pool_pages_free(struct pool_pages *pages);

#endif
