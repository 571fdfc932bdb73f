/*
 * The pages of the thread-pool server, as "Exploiting Parallelism in a Proxy Server" describes
 * them: a table of hashes, whose entries count requests, with one read-write lock. A hash is at its
 * index or at one of the four entries behind it; if all are taken, it replaces the one with the
 * fewest requests. Where the paper has files named by the hash there are chains in memory, in which
 * pages stay until the end. Any thread may call the functions but the first and the last.
 */
#ifndef SUNPROXY_TESTS_BENCH_POOL_PAGES_H
#define SUNPROXY_TESTS_BENCH_POOL_PAGES_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"

#define POOL_CHAINS 4096u
#define POOL_PROBES 5u

/*
 * Bytes of an entry of the table: a hash and a count. With an unused character behind them, 12,
 * some entries lie in two cache lines: the paper's misaligned table.
 */
#define POOL_ENTRY_ALIGNED 8u
#define POOL_ENTRY_MISALIGNED 12u

struct pool_page {
    struct pool_page *next; /* of its chain */
    struct buf body;
    char url[];
};

struct pool_pages {
    pthread_rwlock_t lock;
    size_t entry_bytes;
    unsigned char *table; /* owned; POOL_CHAINS entries; begins at a cache line */
    struct pool_page *chains[POOL_CHAINS];
};

/* `entry_bytes` is one of the two above. False without memory. */
bool pool_pages_init(struct pool_pages *pages, size_t entry_bytes);

/* The page of a URL, which does not change and stays; NULL if the table does not have its hash. */
const struct pool_page *pool_pages_find(struct pool_pages *pages, const char *url);

/*
 * Stores a body, which is taken over in any case, and puts the hash of the URL into the table.
 * Returns the page that is stored: another one, if the URL has been stored meanwhile. NULL without
 * memory.
 */
const struct pool_page *pool_pages_add(struct pool_pages *pages, const char *url, struct buf *body);

void pool_pages_free(struct pool_pages *pages);

#endif
