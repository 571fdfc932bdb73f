/* What tests of cursors share: calls of PROXY_READ and PROXY_RELEASE, and an origin's
 * responses. */
#ifndef SUNPROXY_TESTS_SERVER_RPC_CURSOR_SCENE_H
#define SUNPROXY_TESTS_SERVER_RPC_CURSOR_SCENE_H

#include "server/rpc/cursor.h"
#include "tests/unit/net/stream.h"
#include "tests/unit/server/front_server.h"

#define URL "http://host/large"

enum { LARGE = 3 << 20, PIECE = PROXY_MAX_PIECE, MOST = 8 << 20 };

static char bytes[MOST];

static inline void
begin(const struct scene_options *options)
{
    if (bytes[MOST - 1] == 0) /* they have not been made yet */
        for (size_t i = 0; i < MOST; i++)
            bytes[i] = (char)(i * 7 + i / 251 + i / 65536);
    front_server_start(options, VICTIMS_ALL);
}

/* Bodies of at most 4 MiB are stored; or none that comes in pieces. */
static inline void
set_up(void)
{
    begin(&(struct scene_options){.capacity_pages = 1, .max_body = 4 * MIB});
}

static inline void
set_up_unstored(void)
{
    begin(&(struct scene_options){.capacity_pages = 1, .max_page = 4096});
}

static inline void
tear_down(void)
{
    front_server_stop();
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Receives the first piece of a body, and returns the object's name. */
static inline const char *
receive_first(int fd, uint32_t xid, proxy_source source, int64_t length)
{
    static proxy_object name;
    proxy_fetch_result result;
    const proxy_page *page = &result.proxy_fetch_result_u.page;

    receive_page(fd, xid, PROXY_OK, &result);
    ck_assert_int_eq(page->source, source);
    ck_assert_uint_eq(page->body.body_len, PIECE);
    ck_assert(memcmp(page->body.body_val, bytes, PIECE) == 0);
    ck_assert(!page->ending.stored && page->ending.victims.victims_len == 0);
    ck_assert_ptr_nonnull(page->rest);
    ck_assert_int_eq(page->rest->length, length);
    memcpy(name, page->rest->object, sizeof(name));
    free_page(&result);
    return name;
}

static inline void
send_read(int fd, uint32_t xid, const char *name, uint64_t offset, uint32_t count)
{
    proxy_read_args args = {.offset = offset, .count = count};

    memcpy(args.object, name, sizeof(args.object));
    send_call(fd, xid, PROXY_READ, (xdrproc_t)xdr_proxy_read_args, &args);
}

/* Receives what is at the offset; returns the number of bytes. */
static inline size_t
receive_piece(int fd, uint32_t xid, uint64_t offset, bool ends)
{
    proxy_read_result result = {.status = PROXY_OK};
    const proxy_piece *piece = &result.proxy_read_result_u.piece;
    size_t len;

    receive_result(fd, xid, (xdrproc_t)xdr_proxy_read_result, &result);
    ck_assert_msg(result.status == PROXY_OK, "status %d: %s", (int)result.status,
                  result.status ? result.proxy_read_result_u.sentence : "");
    len = piece->bytes.bytes_len;
    ck_assert_uint_le(offset + len, MOST);
    ck_assert(len == 0 || memcmp(piece->bytes.bytes_val, bytes + offset, len) == 0);
    ck_assert_int_eq(piece->ending != NULL, ends);
    if (ends && len)
        ck_assert_int_eq(piece->length, (int64_t)(offset + len));
    xdr_free((xdrproc_t)xdr_proxy_read_result, &result);
    return len;
}

static inline void
receive_refusal(int fd, uint32_t xid, proxy_status status, const char *part)
{
    proxy_read_result result = {.status = PROXY_OK};

    receive_result(fd, xid, (xdrproc_t)xdr_proxy_read_result, &result);
    ck_assert_int_eq(result.status, status);
    ck_assert_msg(strstr(result.proxy_read_result_u.sentence, part), "%s",
                  result.proxy_read_result_u.sentence);
    xdr_free((xdrproc_t)xdr_proxy_read_result, &result);
}

static inline void
expect_refusal(int fd, uint32_t xid, const char *name, uint64_t offset, const char *part)
{
    send_read(fd, xid, name, offset, PIECE);
    receive_refusal(fd, xid, PROXY_NO_OBJECT, part);
}

static inline void
expect_release(int fd, uint32_t xid, const char *name, proxy_status expected)
{
    proxy_status status = PROXY_INTERNAL;

    send_call(fd, xid, PROXY_RELEASE, (xdrproc_t)xdr_proxy_object, (void *)(uintptr_t)name);
    receive_result(fd, xid, (xdrproc_t)xdr_proxy_status, &status);
    ck_assert_int_eq(status, expected);
}

static inline struct cursor_stats
stats(void)
{
    struct cursor_stats all;

    cursors_get_stats(front_service.cursors, &all);
    return all;
}

/* ---- the origin ------------------------------------------------------------------------------ */

/* The head of a response that may be stored, for the fetch of the URL. */
static inline struct scene_fetch *
respond_head(int64_t length)
{
    char lines[128] = MAX_AGE;

    if (length >= 0)
        snprintf(lines, sizeof(lines), MAX_AGE "Content-Length: %lld\r\n", (long long)length);
    return origin_begins(URL, lines, length);
}

/* Sends a text from one offset to another, or until `*flow` is not FETCH_CONTINUE; returns where it
 * is. */
static inline size_t
respond_text(struct scene_fetch *fetch, const char *text, size_t from, size_t to,
             enum fetch_flow *flow)
{
    const size_t most = 16384;

    *flow = FETCH_CONTINUE;
    while (from < to && *flow == FETCH_CONTINUE) {
        size_t now = to - from < most ? to - from : most;

        *flow = fetch->sink->body(fetch->context, text + from, now);
        from += now;
    }
    return from;
}

/* Sends the body from one offset to another, or until it is to pause; returns where it is. */
static inline size_t
respond_body(struct scene_fetch *fetch, size_t from, size_t to)
{
    enum fetch_flow flow;
    size_t at = respond_text(fetch, bytes, from, to, &flow);

    ck_assert_int_ne(flow, FETCH_ABORT);
    return at;
}

/* A body of MOST bytes that is not stored, for whose head a client waits. */
struct passing_body {
    struct scene_fetch *fetch;
    const char *text; /* that the origin sends */
    size_t len;       /* of that */
    size_t window;    /* the origin is less than that ahead of its reader */
    int64_t length;   /* that the client is told */
};

/* Receives the whole body: in the answer to the call `*xid`, and by calls of PROXY_READ, to the
 * last of which `*xid` is set. Returns the object's name. */
static inline const char *
read_passing(int fd, uint32_t *xid, const struct passing_body *body)
{
    struct scene_fetch *fetch = body->fetch;
    enum fetch_flow flow;
    size_t sent = respond_text(fetch, body->text, 0, body->len, &flow), got = PIECE;
    const char *name;
    unsigned resumes = 0;

    ck_assert_int_ne(flow, FETCH_ABORT);
    ck_assert_uint_lt(sent, body->window);
    name = receive_first(fd, *xid, PROXY_MISS, body->length);
    while (got < MOST) {
        size_t len;

        send_read(fd, ++*xid, name, got, PIECE);
        len = receive_piece(fd, *xid, got, sent == body->len && got + PIECE >= MOST);
        ck_assert_uint_gt(len, 0);
        got += len;
        ck_assert_uint_lt(memory_used(&scene.account, MEMORY_PAGES), 4 * MIB);
        if (sent == body->len || sent - got > MIB / 2)
            continue;
        AWAIT(scene_resumes(fetch) > resumes);
        resumes = scene_resumes(fetch);
        sent = respond_text(fetch, body->text, sent, body->len, &flow);
        ck_assert_int_ne(flow, FETCH_ABORT);
        ck_assert_uint_lt(sent - got, body->window);
        if (sent == body->len) {
            scene_done(fetch, FETCH_OK, "");
            AWAIT(scene_metric("requests{outcome=\"miss\"}") == 1);
        }
    }
    ck_assert_uint_eq(got, MOST);
    ck_assert_uint_eq(scene_stats().pages, 0);
    return name;
}

/* A page of LARGE bytes, complete, of which the first piece has been received. */
static inline const char *
cursor_stored(int fd)
{
    struct scene_fetch *fetch;

    send_get(fd, 1, URL, PROXY_FLAG_WANT_VICTIMS);
    fetch = respond_head(LARGE);
    ck_assert_uint_eq(respond_body(fetch, 0, LARGE), LARGE);
    scene_done(fetch, FETCH_OK, "");
    return receive_first(fd, 1, PROXY_MISS, LARGE);
}

#endif
