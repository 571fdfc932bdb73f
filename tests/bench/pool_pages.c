#include "tests/bench/pool_pages.h"

#include <stdlib.h>
#include <string.h>

#include "base/djb.h"

void
pool_pages_init(struct pool_pages *pages)
{
    *pages = (struct pool_pages){.lock = PTHREAD_RWLOCK_INITIALIZER};
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
    page = find_in(*chain_of(pages, url), url);
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
    pthread_rwlock_destroy(&pages->lock);
}
