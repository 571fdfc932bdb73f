#include "tests/bench/pool_pages.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/djb.h"

#define LINE 64u

/* The first fields of an entry; requests are counted under the lock for reading. */
struct entry {
    _Atomic uint32_t hash; /* 0: the entry is free */
    _Atomic uint32_t requests;
};

bool
pool_pages_init(struct pool_pages *pages, size_t entry_bytes)
{
    size_t size = POOL_CHAINS * entry_bytes;

    *pages = (struct pool_pages){.lock = PTHREAD_RWLOCK_INITIALIZER, .entry_bytes = entry_bytes};
    pages->table = aligned_alloc(LINE, size);
    if (pages->table)
        memset(pages->table, 0, size);
    return pages->table;
}

/* That of a URL in the table: not 0. */
static uint32_t
hash_of(const char *url)
{
    uint32_t hash = djb_hash(span_str(url));

    return hash ? hash : 1;
}

static struct entry *
entry_at(const struct pool_pages *pages, uint32_t hash, uint32_t probe)
{
    size_t index = (hash + probe) % POOL_CHAINS;

    return (struct entry *)(void *)(pages->table + index * pages->entry_bytes);
}

/* Counts a request for a hash. False if the table does not have it. */
static bool
count_request(struct pool_pages *pages, uint32_t hash)
{
    for (uint32_t probe = 0; probe < POOL_PROBES; probe++) {
        struct entry *entry = entry_at(pages, hash, probe);

        if (atomic_load_explicit(&entry->hash, memory_order_relaxed) == hash) {
            atomic_fetch_add_explicit(&entry->requests, 1, memory_order_relaxed);
            return true;
        }
    }
    return false;
}

/* Puts a hash that the table does not have into it. Under the lock for writing. */
static void
put_hash(struct pool_pages *pages, uint32_t hash)
{
    struct entry *victim = entry_at(pages, hash, 0);

    for (uint32_t probe = 0; probe < POOL_PROBES; probe++) {
        struct entry *entry = entry_at(pages, hash, probe);

        if (entry->hash == 0) {
            victim = entry;
            break;
        }
        if (entry->requests < victim->requests)
            victim = entry;
    }
    victim->hash = hash;
    victim->requests = 1;
}

static struct pool_page **
chain_of(struct pool_pages *pages, const char *url)
{
    return &pages->chains[djb_hash(span_str(url)) % POOL_CHAINS];
}

static struct pool_page *
find_in(struct pool_page *page, const char *url)
{
    while (page && strcmp(page->url, url) != 0)
        page = page->next;
    return page;
}

const struct pool_page *
pool_pages_find(struct pool_pages *pages, const char *url)
{
    const struct pool_page *page;

    pthread_rwlock_rdlock(&pages->lock);
    page = count_request(pages, hash_of(url)) ? find_in(*chain_of(pages, url), url) : NULL;
    pthread_rwlock_unlock(&pages->lock);
    return page;
}

static struct pool_page *
make_page(const char *url, struct buf *body)
{
    size_t size = strlen(url) + 1;
    struct pool_page *page = malloc(sizeof(*page) + size);

    if (!page)
        return NULL;
    page->body = *body;
    buf_init(body, 0);
    memcpy(page->url, url, size);
    return page;
}

static void
free_page(struct pool_page *page)
{
    if (page)
        buf_free(&page->body);
    free(page);
}

const struct pool_page *
pool_pages_add(struct pool_pages *pages, const char *url, struct buf *body)
{
    struct pool_page *page = make_page(url, body);
    struct pool_page **chain = chain_of(pages, url), *found;

    buf_free(body);
    if (!page)
        return NULL;
    pthread_rwlock_wrlock(&pages->lock);
    if (!count_request(pages, hash_of(url)))
        put_hash(pages, hash_of(url));
    found = find_in(*chain, url);
    if (!found) {
        page->next = *chain;
        *chain = page;
    }
    pthread_rwlock_unlock(&pages->lock);
    if (!found)
        return page;
    free_page(page);
    return found;
}

void
pool_pages_free(struct pool_pages *pages)
{
    for (size_t i = 0; i < POOL_CHAINS; i++) {
        struct pool_page *page;

        while ((page = pages->chains[i])) {
            pages->chains[i] = page->next;
            free_page(page);
        }
    }
    free(pages->table);
    pthread_rwlock_destroy(&pages->lock);
}
