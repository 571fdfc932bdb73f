#include "cache/page.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_MAX_BODY 2147483647u
#define PAGE_MAX_FIRST_ROOM 1048576u
#define PAGE_MIN_ROOM 1024u

/* Bytes of the whole allocation with a body of that length. */
static size_t
page_size(const struct page *page, size_t body)
{
    return sizeof(*page) + page->url_len + page->final_url_len + page->headers_len + body + 1;
}

/* Changed when a page is made, grows or goes, never for a hit. */
static _Atomic uint64_t bytes_alive;

uint64_t
page_bytes_alive(void)
{
    return atomic_load_explicit(&bytes_alive, memory_order_relaxed);
}

static void
page_count(size_t more, size_t less)
{
    atomic_fetch_add_explicit(&bytes_alive, (uint64_t)more - less, memory_order_relaxed);
}

/* `room` is what was allocated for the body. */
static void
page_free(struct page *page, size_t room)
{
    page_count(0, page_size(page, room));
    free(page);
}

void
page_release(struct page **page)
{
    struct page *p = *page;

    *page = NULL;
    /* Acquire as well as release: what other holders did with the page happens before the free. */
    if (p && atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) == 1)
        page_free(p, p->body_len);
}

static char *
page_put(char *at, struct span part)
{
    if (part.len)
        memcpy(at, part.ptr, part.len);
    return at + part.len;
}

bool
page_begin(struct page_builder *builder, struct span url, struct span final_url,
           struct span headers, uint16_t status, size_t body_hint, size_t body_ceiling)
{
    struct page *page;
    size_t room = body_hint;
    char *at;

    *builder = (struct page_builder){0};
    if (url.len > PAGE_MAX_META || final_url.len > PAGE_MAX_META || headers.len > PAGE_MAX_META)
        return false;
    if (body_ceiling > PAGE_MAX_BODY)
        body_ceiling = PAGE_MAX_BODY;
    if (room > PAGE_MAX_FIRST_ROOM)
        room = PAGE_MAX_FIRST_ROOM;
    if (room > body_ceiling)
        room = body_ceiling;
    if (span_equal(final_url, url))
        final_url.len = 0;

    page = malloc(sizeof(*page) + url.len + final_url.len + headers.len + room + 1);
    if (!page)
        return false;
    *page = (struct page){
        .references = 1,
        .status = status,
        .url_len = (uint32_t)url.len,
        .final_url_len = (uint32_t)final_url.len,
        .headers_len = (uint32_t)headers.len,
        .lifetime_ms = PAGE_UNLIMITED,
    };
    page_count(page_size(page, room), 0);
    at = page_put(page->bytes, url);
    at = page_put(at, final_url);
    page_put(at, headers);
    *builder = (struct page_builder){
        .page = page,
        .body_room = room,
        .body_ceiling = body_ceiling,
    };
    return true;
}

/* Doubles the room for the body until `need` bytes fit, within the ceiling. */
static bool
page_grow(struct page_builder *builder, size_t need)
{
    size_t room = builder->body_room < PAGE_MIN_ROOM ? PAGE_MIN_ROOM : builder->body_room;
    struct page *page;

    while (room < need)
        room *= 2;
    if (room > builder->body_ceiling)
        room = builder->body_ceiling;
    page = realloc(builder->page, page_size(builder->page, room));
    if (!page)
        return false;
    page_count(room, builder->body_room);
    builder->page = page;
    builder->body_room = room;
    return true;
}

int
page_append(struct page_builder *builder, const void *bytes, size_t len)
{
    struct page *page = builder->page;

    if (len == 0)
        return 0;
    if (len > builder->body_ceiling - page->body_len)
        return EFBIG;
    if (len > builder->body_room - page->body_len && !page_grow(builder, page->body_len + len))
        return ENOMEM;
    page = builder->page;
    memcpy(page->bytes + page->url_len + page->final_url_len + page->headers_len + page->body_len,
           bytes, len);
    page->body_len += (uint32_t)len;
    if (!page->has_zero_byte)
        page->has_zero_byte = memchr(bytes, 0, len) != NULL;
    return 0;
}

struct page *
page_finish(struct page_builder *builder, uint64_t fetch_us, int64_t fetched_us)
{
    struct page *page = builder->page;

    if (builder->body_room > page->body_len) {
        struct page *trimmed = realloc(page, page_size(page, page->body_len));

        if (trimmed)
            page = trimmed;
        /* Counted as trimmed in any case: the page knows no other size. */
        page_count(page->body_len, builder->body_room);
    }
    page->bytes[page_size(page, page->body_len) - sizeof(*page) - 1] = '\0';
    page->fetch_us = fetch_us > UINT32_MAX ? UINT32_MAX : (uint32_t)fetch_us;
    page->fetched_us = fetched_us;
    *builder = (struct page_builder){0};
    return page;
}

void
page_limit(struct page *page, int64_t fresh_us)
{
    int64_t ms = fresh_us > 0 ? fresh_us / 1000 : 0;

    page->lifetime_ms = ms < PAGE_UNLIMITED ? (uint32_t)ms : PAGE_UNLIMITED - 1;
}

void
page_abandon(struct page_builder *builder)
{
    if (builder->page)
        page_free(builder->page, builder->body_room);
    *builder = (struct page_builder){0};
}
