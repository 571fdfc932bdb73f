#include "cache/page.h"

#include <errno.h>
#include <stdlib.h>

#define PAGE_MAX_BODY 2147483647u
#define PAGE_MAX_FIRST_ROOM 1048576u
#define PAGE_MIN_ROOM 1024u

/* Bytes of the whole allocation with a body of that length. */
static size_t
size_with(const struct page *page, size_t body)
{
    return sizeof(*page) + page->url_len + page->final_url_len + page->headers_len + body + 1;
}

size_t
page_size(const struct page *page)
{
    return size_with(page, page->body_len);
}

/* Drops a reference; true for the last one. */
static bool
page_unref(struct page *page)
{
    /* Acquire as well as release: what other holders did with the page happens before the free. */
    return atomic_fetch_sub_explicit(&page->references, 1, memory_order_acq_rel) == 1;
}

void
page_release(struct page **page)
{
    struct page *p = *page;

    *page = NULL;
    if (p && page_unref(p)) {
        memory_uncharge(p->account, MEMORY_PAGES, page_size(p));
        free(p);
    }
}

struct page *
page_enter_cache(struct page *page)
{
    memory_uncharge(page->account, MEMORY_PAGES, page_size(page));
    return page_retain(page);
}

void
page_leave_cache(struct page *page)
{
    memory_charge_anyway(page->account, MEMORY_PAGES, page_size(page));
}

void
page_release_from_cache(struct page **page)
{
    struct page *p = *page;
    struct memory_account *account;
    size_t size;

    *page = NULL;
    if (!p)
        return;
    account = p->account;
    size = page_size(p);
    /*
     * Charged only if others refer to it. They may have freed it by now, and uncharged it: the sum
     * is the same whichever comes first.
     */
    if (page_unref(p))
        free(p);
    else
        memory_charge_anyway(account, MEMORY_PAGES, size);
}

static char *
page_put(char *at, struct span part)
{
    if (part.len)
        memcpy(at, part.ptr, part.len);
    return at + part.len;
}

bool
page_begin(struct page_builder *builder, struct memory_account *account, struct span url,
           struct span final_url, struct span headers, uint16_t status, size_t body_hint,
           size_t body_ceiling)
{
    struct page *page;
    size_t room = body_hint, size;
    char *at;

    *builder = (struct page_builder){.error = EINVAL};
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

    size = sizeof(*page) + url.len + final_url.len + headers.len + room + 1;
    builder->error = ENOBUFS;
    if (!memory_charge(account, MEMORY_PAGES, size))
        return false;
    builder->error = ENOMEM;
    page = memory_realloc(account, NULL, size);
    if (!page) {
        memory_uncharge(account, MEMORY_PAGES, size);
        return false;
    }
    *page = (struct page){
        .account = account,
        .references = 1,
        .status = status,
        .url_len = (uint32_t)url.len,
        .final_url_len = (uint32_t)final_url.len,
        .headers_len = (uint32_t)headers.len,
        .lifetime_ms = PAGE_UNLIMITED,
    };
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

/* Doubles the memory of the body until `need` bytes fit, within the ceiling: 0 or an errno. */
static int
page_grow(struct page_builder *builder, size_t need)
{
    size_t room = builder->body_room < PAGE_MIN_ROOM ? PAGE_MIN_ROOM : builder->body_room;
    struct memory_account *account = builder->page->account;
    struct page *page;

    while (room < need)
        room *= 2;
    if (room > builder->body_ceiling)
        room = builder->body_ceiling;
    if (!memory_charge(account, MEMORY_PAGES, room - builder->body_room))
        return ENOBUFS;
    page = memory_realloc(account, builder->page, size_with(builder->page, room));
    if (!page) {
        memory_uncharge(account, MEMORY_PAGES, room - builder->body_room);
        return ENOMEM;
    }
    builder->page = page;
    builder->body_room = room;
    return 0;
}

int
page_append(struct page_builder *builder, const void *bytes, size_t len)
{
    struct page *page = builder->page;
    int error = 0;

    if (len == 0)
        return 0;
    if (len > builder->body_ceiling - page->body_len)
        return EFBIG;
    if (len > builder->body_room - page->body_len)
        error = page_grow(builder, page->body_len + len);
    if (error)
        return error;
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
        struct page *trimmed = realloc(page, page_size(page));

        if (trimmed)
            page = trimmed;
        /* Charged as trimmed in any case: the page knows no other size. */
        memory_uncharge(page->account, MEMORY_PAGES, builder->body_room - page->body_len);
    }
    page->bytes[page_size(page) - sizeof(*page) - 1] = '\0';
    page->fetch_us = fetch_us > UINT32_MAX ? UINT32_MAX : (uint32_t)fetch_us;
    page->fetched_us = fetched_us;
    *builder = (struct page_builder){0};
    return page;
}

size_t
page_builder_size(const struct page_builder *builder)
{
    return builder->page ? size_with(builder->page, builder->body_room) : 0;
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
    if (builder->page) {
        memory_uncharge(builder->page->account, MEMORY_PAGES, page_builder_size(builder));
        free(builder->page);
    }
    *builder = (struct page_builder){0};
}
