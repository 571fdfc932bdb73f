/*
 * A page: what an origin answered for a URL, immutable once complete, counted by references and
 * freed by whoever drops the last one, on any thread. URL, final URL, header block and body stand
 * in one allocation behind the struct; the cache knows nothing of what is in them.
 */
#ifndef SUNPROXY_CACHE_PAGE_H
#define SUNPROXY_CACHE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/memory_account.h"
#include "base/span.h"

struct page {
    _Atomic uint32_t references;
    uint16_t status;        /* the origin's status code */
    bool has_zero_byte;     /* somewhere in the body, so that no C string can carry it */
    uint32_t url_len;       /* at most PAGE_MAX_META each */
    uint32_t final_url_len; /* 0: the same as the URL */
    uint32_t headers_len;
    uint32_t body_len;
    uint32_t fetch_us;              /* how long the origin took, saturating */
    uint32_t lifetime_ms;           /* how long it is fresh from fetched_us on, or PAGE_UNLIMITED */
    int64_t fetched_us;             /* monotonic clock: a change of the wall clock does no harm */
    struct memory_account *account; /* charged while no cache holds it; or NULL */
    char bytes[]; /* URL, final URL, headers, body, and a zero byte that is none of them */
};

#define PAGE_MAX_META 131072u
#define PAGE_UNLIMITED UINT32_MAX

/*
 * May the page still answer a request that came at `now_us` of the monotonic clock? Everything that
 * this reads stands in the page's first 40 bytes, where its length and its references are.
 */
static inline bool
page_is_fresh(const struct page *page, int64_t now_us)
{
    return page->lifetime_ms == PAGE_UNLIMITED ||
           now_us - page->fetched_us < (int64_t)page->lifetime_ms * 1000;
}

static inline struct span
page_url(const struct page *page)
{
    return span_of(page->bytes, page->url_len);
}

static inline struct span
page_final_url(const struct page *page)
{
    return page->final_url_len ? span_of(page->bytes + page->url_len, page->final_url_len)
                               : page_url(page);
}

static inline struct span
page_headers(const struct page *page)
{
    return span_of(page->bytes + page->url_len + page->final_url_len, page->headers_len);
}

/* A zero byte follows the body. */
static inline struct span
page_body(const struct page *page)
{
    return span_of(page->bytes + page->url_len + page->final_url_len + page->headers_len,
                   page->body_len);
}

/* One more reference. Any thread that holds one may take another. */
static inline struct page *
page_retain(struct page *page)
{
    atomic_fetch_add_explicit(&page->references, 1, memory_order_relaxed);
    return page;
}

/* Drops the reference in *page and clears it; the last one frees. *page may be NULL. */
void page_release(struct page **page);

/*
 * A page is charged to the account (MEMORY_PAGES) from page_begin() on, except while a cache holds
 * it, whose capacity counts it; and again when the cache has dropped it and references to it
 * remain. Any thread.
 */

/* A cache takes a reference of its own. */
struct page *page_enter_cache(struct page *page);

/* The cache passes its reference on. */
void page_leave_cache(struct page *page);

/* The cache drops its reference in *page and clears it. *page may be NULL. */
void page_release_from_cache(struct page **page);

/* Bytes of the allocation, as they are charged. */
size_t page_size(const struct page *page);

/*
 * Building: begin with everything but the body, append the body as it arrives, finish. The page
 * under construction belongs to one thread, is not yet shared, and moves as it grows.
 */
struct page_builder {
    struct page *page; /* owned until page_finish() */
    size_t body_room;
    size_t body_ceiling;
    int error; /* why page_begin() failed: ENOMEM, ENOBUFS (the account is used up) or EINVAL */
};

/*
 * Starts a page. `body_hint` is the length that is expected, 0 if unknown; it is not trusted beyond
 * 1 MiB at once. The body may grow to `body_ceiling` bytes (at most 2^31 - 1). The account is
 * charged now and as the body grows; NULL: none is. False, with builder->error, if the account or
 * the process has no memory, or a part is longer than PAGE_MAX_META.
 */
bool page_begin(struct page_builder *builder, struct memory_account *account, struct span url,
                struct span final_url, struct span headers, uint16_t status, size_t body_hint,
                size_t body_ceiling);

/*
 * Appends to the body: 0, ENOMEM, ENOBUFS (the account is used up) or EFBIG (over the ceiling); the
 * page keeps what it had.
 */
int page_append(struct page_builder *builder, const void *bytes, size_t len);

/*
 * Gives the finished page with one reference, trimmed to its size; the builder is empty then.
 * Cannot fail: if the trimming does, the page is as large as it was.
 */
struct page *page_finish(struct page_builder *builder, uint64_t fetch_us, int64_t fetched_us);

/*
 * Bounds how long a finished page is fresh, from fetched_us on; without this it is so for ever.
 * Called before the page is shared. The bound is kept in whole milliseconds, rounded down, and is
 * 49 days at most, since a cache may always end a lifetime early.
 */
void page_limit(struct page *page, int64_t fresh_us);

/* Bytes that the page under construction is charged; 0 for an empty builder. */
size_t page_builder_size(const struct page_builder *builder);

/* Drops a page under construction. Harmless on an empty builder. */
void page_abandon(struct page_builder *builder);

#endif
