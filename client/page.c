#include "client/page.h"

#include <stdlib.h>

#include "base/clock.h"

/* In a row, without a byte that the owner has not had: then the server cannot hold the object. */
#define MAX_ATTEMPTS 5

/* The server may keep bytes back as long (proxy.x), so they come later than the origin sends them.
 */
#define GATHER_US ((int64_t)1000000)

/* ---- results --------------------------------------------------------------------------------- */

static proxy_page *
page_of(struct page *page)
{
    return &page->result.proxy_fetch_result_u.page;
}

static void
free_read(struct page *page)
{
    xdr_free((xdrproc_t)xdr_proxy_read_result, &page->read);
    page->read = (proxy_read_result){0};
}

static void
free_result(struct page *page)
{
    xdr_free((xdrproc_t)xdr_proxy_fetch_result, &page->result);
    page->result = (proxy_fetch_result){0};
}

static void
fail_by_rpc(struct page *page, enum rpc_client_status status)
{
    free_result(page);
    free_read(page);
    page->piece = span_of(NULL, 0);
    page->held = false;
    page->rpc = status;
    page->state = PAGE_FAILED;
}

static void
fail(struct page *page, proxy_status status, const char *sentence)
{
    fail_by_rpc(page, RPC_CLIENT_OK);
    page->result.status = status;
    page->result.proxy_fetch_result_u.sentence = strdup(sentence);
    if (!page->result.proxy_fetch_result_u.sentence) {
        page->result = (proxy_fetch_result){0};
        page->rpc = RPC_CLIENT_NO_MEMORY;
    }
}

static void
fail_changed(struct page *page)
{
    page_release(page);
    fail(page, PROXY_ORIGIN_BROKE,
         "the page has changed while it was read, and had to be fetched again");
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Compares what the owner has had already; what remains of the piece is new. False: it differs. */
static bool
pass_over(struct page *page, struct span *bytes, bool last)
{
    uint64_t left = page->known - page->once_more.length;
    struct span known = span_of(bytes->ptr, left < bytes->len ? (size_t)left : bytes->len);

    if (left == 0)
        return true;
    digest_add(&page->once_more, known);
    *bytes = span_of(bytes->ptr + known.len, bytes->len - known.len);
    if (page->once_more.length < page->known)
        return !last;
    return digest_equal(&page->once_more, &page->seen);
}

/* Calls PROXY_READ for what follows. */
static void ask_for_more(struct page *page);

static void
take_piece(struct page *page, struct span bytes, bool last)
{
    page->at += bytes.len;
    if (bytes.len)
        page->heard_us = clock_monotonic_us();
    if (page_of(page)->http_status != page->status || !pass_over(page, &bytes, last)) {
        fail_changed(page);
        page->notify(page);
        return;
    }
    page->piece = bytes;
    page->last = last;
    if (bytes.len == 0 && !last) {
        ask_for_more(page);
        if (page->state == PAGE_FAILED)
            page->notify(page);
        return;
    }
    page->attempts = 0;
    page->state = PAGE_PIECE;
    page->notify(page);
}

static void
note_page(void *context, enum rpc_client_status status, void *result)
{
    struct page *page = context;
    proxy_page *got = page_of(page);

    (void)result;
    if (status != RPC_CLIENT_OK) {
        page->result = (proxy_fetch_result){0};
        fail_by_rpc(page, status);
        page->notify(page);
        return;
    }
    if (page->result.status != PROXY_OK) {
        page->state = PAGE_FAILED;
        page->notify(page);
        return;
    }
    if (got->rest) {
        page->held = true;
        memcpy(page->object, got->rest->object, sizeof(page->object));
    }
    if (page->offset == 0)
        page->status = got->http_status;
    take_piece(page, span_of(got->body.body_val, got->body.body_len), !got->rest);
}

/* The ending is the page's now. */
static void
move_ending(struct page *page, proxy_piece *piece)
{
    proxy_ending *ending = &page_of(page)->ending;

    xdr_free((xdrproc_t)xdr_proxy_ending, ending);
    *ending = *piece->ending;
    free(piece->ending);
    piece->ending = NULL;
}

static void
fetch_again(struct page *page)
{
    free_read(page);
    page->held = false;
    if (++page->attempts > MAX_ATTEMPTS)
        fail(page, PROXY_OVERLOADED,
             "the server does not keep the page long enough for it to be read");
    else
        page_begin(page);
    if (page->state == PAGE_FAILED)
        page->notify(page);
}

static void
note_read(void *context, enum rpc_client_status status, void *result)
{
    struct page *page = context;
    proxy_piece *piece = &page->read.proxy_read_result_u.piece;
    bool last;

    (void)result;
    if (status != RPC_CLIENT_OK) {
        page->read = (proxy_read_result){0};
        fail_by_rpc(page, status);
        page->notify(page);
        return;
    }
    if (page->read.status == PROXY_NO_OBJECT) {
        fetch_again(page);
        return;
    }
    if (page->read.status != PROXY_OK) {
        proxy_read_result read = page->read;

        page->read = (proxy_read_result){0};
        fail_by_rpc(page, RPC_CLIENT_OK);
        page->result.status = read.status;
        page->result.proxy_fetch_result_u.sentence = read.proxy_read_result_u.sentence;
        page->notify(page);
        return;
    }
    page_of(page)->rest->length = piece->length;
    last = piece->ending != NULL;
    if (last)
        move_ending(page, piece);
    take_piece(page, span_of(piece->bytes.bytes_val, piece->bytes.bytes_len), last);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static void
ask_for_more(struct page *page)
{
    proxy_read_args args = {.offset = page->at, .count = PROXY_MAX_PIECE};
    int64_t left_us = page->heard_us - clock_monotonic_us();
    enum rpc_client_status status;

    free_read(page);
    /* Only its head is used any more. */
    free(page_of(page)->body.body_val);
    page_of(page)->body.body_val = NULL;
    page_of(page)->body.body_len = 0;
    page->piece = span_of(NULL, 0);
    page->state = PAGE_WAITS;
    memcpy(args.object, page->object, sizeof(args.object));
    /* Answers without a byte do not begin the time anew. */
    left_us += page->timeout_us < INT64_MAX / 2 ? page->timeout_us + GATHER_US : INT64_MAX / 2;
    status = left_us <= 0 ? RPC_CLIENT_TIMED_OUT
                          : rpc_client_call(page->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_READ,
                                            (xdrproc_t)xdr_proxy_read_args, &args,
                                            (xdrproc_t)xdr_proxy_read_result, &page->read, left_us,
                                            note_read, page);
    if (status != RPC_CLIENT_OK)
        fail_by_rpc(page, status);
}

enum rpc_client_status
page_begin(struct page *page)
{
    proxy_fetch_args args = {
        .url = {(u_int)page->url.len, (char *)(uintptr_t)page->url.ptr},
        .headers = {(u_int)page->headers.len, (char *)(uintptr_t)page->headers.ptr},
        .flags = page->flags,
    };
    enum rpc_client_status status;

    free_result(page);
    page->rpc = RPC_CLIENT_OK;
    page->at = 0;
    page->known = page->offset;
    page->once_more = (struct digest){0};
    page->heard_us = clock_monotonic_us();
    page->state = PAGE_WAITS;
    status = rpc_client_call(
        page->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_GET, (xdrproc_t)xdr_proxy_fetch_args,
        &args, (xdrproc_t)xdr_proxy_fetch_result, &page->result, page->timeout_us, note_page, page);
    if (status != RPC_CLIENT_OK)
        fail_by_rpc(page, status);
    return status;
}

void
page_next(struct page *page)
{
    struct span piece = page->piece;

    if (page->held)
        digest_add(&page->seen, piece);
    page->offset += piece.len;
    page->heard_us = clock_monotonic_us();
    if (!page->last) {
        ask_for_more(page);
        return;
    }
    page_release(page);
    page->piece = span_of(NULL, 0);
    page->state = PAGE_IDLE;
}

/* A call for no bytes. Its page may be gone when it is answered. */
struct page_keep {
    struct page *page; /* NULL: gone */
    proxy_read_result result;
};

/* What it says the next call for bytes will say, too. */
static void
note_kept(void *context, enum rpc_client_status status, void *result)
{
    struct page_keep *keep = context;

    if (status == RPC_CLIENT_OK)
        xdr_free((xdrproc_t)xdr_proxy_read_result, result);
    if (keep->page)
        keep->page->keep = NULL;
    free(keep);
}

void
page_keep(struct page *page)
{
    proxy_read_args args = {.offset = page->at};
    struct page_keep *keep;

    if (!page->held || page->state != PAGE_PIECE || page->keep)
        return;
    keep = calloc(1, sizeof(*keep));
    if (!keep)
        return;
    keep->page = page;
    memcpy(args.object, page->object, sizeof(args.object));
    if (rpc_client_call(page->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_READ,
                        (xdrproc_t)xdr_proxy_read_args, &args, (xdrproc_t)xdr_proxy_read_result,
                        &keep->result, page->timeout_us, note_kept, keep) == RPC_CLIENT_OK)
        page->keep = keep;
    else
        free(keep);
}

int64_t
page_length(const struct page *page)
{
    const proxy_page *got = &page->result.proxy_fetch_result_u.page;

    return got->rest ? got->rest->length : (int64_t)got->body.body_len;
}

static void
note_released(void *context, enum rpc_client_status status, void *result)
{
    (void)context;
    (void)status;
    free(result);
}

void
page_release(struct page *page)
{
    proxy_status *released;

    if (!page->held)
        return;
    page->held = false;
    /* Without memory for the call, the server forgets the object in time. */
    released = calloc(1, sizeof(*released));
    if (released &&
        rpc_client_call(page->client, PROXY_FETCHPROG, PROXY_VERS2, PROXY_RELEASE,
                        (xdrproc_t)xdr_proxy_object, page->object, (xdrproc_t)xdr_proxy_status,
                        released, page->timeout_us, note_released, NULL) != RPC_CLIENT_OK)
        free(released);
}

void
page_free(struct page *page)
{
    free_result(page);
    free_read(page);
    if (page->keep)
        page->keep->page = NULL;
    page->keep = NULL;
    page->piece = span_of(NULL, 0);
    page->held = false;
    page->state = PAGE_IDLE;
}
