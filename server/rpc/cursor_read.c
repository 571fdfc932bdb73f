/*
 * PROXY_READ and PROXY_RELEASE of version 2: further pieces of a body whose first one has been the
 * answer to PROXY_GET.
 */
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "server/rpc/front_v2_result.h"
#include "server/rpc/cursor.h"

static const char no_object[] =
    "there is no such object (any more) on this connection: fetch again";
static const char passed[] = "these bytes of the object are not kept (any more): fetch again";
static const char not_shared[] =
    "the object cannot be read together with other clients: fetch again";

/* ---- answers --------------------------------------------------------------------------------- */

static void
reply_without(struct rpc_request *request, proxy_status status, struct span sentence)
{
    char text[FAILURE_SENTENCE];
    size_t len = sentence.len < sizeof(text) ? sentence.len : sizeof(text) - 1;
    proxy_read_result result = {.status = status};

    memcpy(text, sentence.ptr, len);
    text[len] = '\0';
    result.proxy_read_result_u.sentence = text;
    rpc_request_reply(request, (xdrproc_t)xdr_proxy_read_result, &result);
}

static struct rpc_request *
request_of(struct cursor_read *read)
{
    return rpc_request_of_data(read);
}

static void
remove_read(struct cursor_read *read)
{
    TAILQ_REMOVE(&read->cursor->reads, read, link);
}

static void
dismiss(struct cursor *cursor)
{
    struct cursor_read *read;

    while ((read = TAILQ_FIRST(&cursor->reads))) {
        remove_read(read);
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(no_object));
    }
}

static void
reply_failure(struct cursor_read *read)
{
    struct cursor *cursor = read->cursor;
    struct span sentence = cursor->failure ? object_failure(cursor->failure) : cursor->sentence;

    if (cursor->again)
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(not_shared));
    else
        reply_without(request_of(read), front_status_of(cursor->why),
                      failure_for_client(cursor->why, sentence));
}

static void
release_piece(void *held)
{
    struct cursor_read *read = held;

    cursor_unuse(read->cursor);
}

static void
reply_piece(struct cursor_read *read, uint64_t bytes)
{
    struct cursor *cursor = read->cursor;
    struct front_exchange *front = &cursor->front;
    const struct exchange *x = &front->exchange;
    const struct front_piece piece = {
        .object = x->object, .place = cursor->place, .len = (size_t)bytes};
    static _Thread_local proxy_url victims[PROXY_MAX_VICTIMS];
    proxy_ending ending = {0};
    proxy_read_result result = {.status = PROXY_OK};

    result.proxy_read_result_u.piece.length = front_body_length(x);
    if (exchange_is_complete(x) && cursor->place.offset + bytes >= object_length(x->object)) {
        front_set_ending(&ending, front, victims);
        result.proxy_read_result_u.piece.ending = &ending;
    }
    cursor->used++;
    cursor->sent += bytes;
    front_pass(x->object, &cursor->place, bytes);
    front_count_bytes(front, bytes);
    rpc_request_hold(request_of(read), release_piece, read);
    front_reply_piece(request_of(read), (xdrproc_t)xdr_proxy_read_result, &result, &piece);
}

/* ---- the bytes to be sent -------------------------------------------------------------------- */

/*
 * Moves the place to the offset, or towards it as far as there are bytes. What is still growing, or
 * was not kept, has been freed before the place, and must be read through from there: false for an
 * offset that has been passed.
 */
static bool
find_offset(struct cursor *cursor, uint64_t offset)
{
    const struct exchange *x = &cursor->front.exchange;

    if (exchange_is_complete(x) && !object_is_windowed(x->object)) {
        if (offset < cursor->place.offset)
            cursor->place.segment = NULL;
        cursor->place.offset = offset;
        return true;
    }
    if (offset < cursor->place.offset)
        return false;
    front_pass(x->object, &cursor->place, offset - cursor->place.offset);
    return true;
}

/* Is the call answered now, with the `left` bytes that there are for it? `overdue`: the time until
 * which it waited is over. */
static bool
is_due(struct cursor_read *read, uint64_t left, bool overdue)
{
    uint64_t worthwhile = read->count < CURSOR_WORTHWHILE ? read->count : CURSOR_WORTHWHILE;

    if (exchange_is_complete(&read->cursor->front.exchange) || left >= worthwhile)
        return true;
    if (overdue && read->gathered)
        return true;
    read->gathered = read->gathered || overdue;
    return read->gathered && left;
}

/* Answers the call, or leaves it waiting: false. */
static bool
serve(struct cursor_read *read, bool overdue)
{
    struct cursor *cursor = read->cursor;
    struct exchange *x = &cursor->front.exchange;
    uint64_t length, left;

    /* Before the length is read: it is the whole one if the object is complete. */
    if (!find_offset(cursor, read->offset)) {
        remove_read(read);
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(passed));
        return true;
    }
    length = object_length(x->object);
    left = length > read->offset ? length - read->offset : 0;
    if (!is_due(read, left, overdue))
        return false;
    remove_read(read);
    reply_piece(read, left < read->count ? left : read->count);
    return true;
}

void
cursor_serve(struct cursor *cursor, bool overdue)
{
    struct cursor_read *read;
    bool failed = false, waits = false;

    cursor->used++;
    while (!waits && (read = TAILQ_FIRST(&cursor->reads))) {
        if (cursor->why) {
            remove_read(read);
            reply_failure(read);
            failed = true;
        } else {
            waits = !serve(read, overdue);
            overdue = false;
        }
    }
    if (failed)
        cursor_end(cursor, CURSOR_FAILED);
    cursor_unuse(cursor);
}

const struct cursor_calls cursor_reads = {.serve_reads = cursor_serve, .dismiss_reads = dismiss};

/* ---- the procedures -------------------------------------------------------------------------- */

bool_t
proxy_read_2_svc(proxy_read_args *args, proxy_read_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct cursor *cursor = cursor_find(request, args->object);
    struct cursor_read *read = rpc_request_data(request);

    (void)result; /* sent below, or later */
    rpc_request_defer(request);
    if (!cursor) {
        reply_without(request, PROXY_NO_OBJECT, span_str(no_object));
        return FALSE;
    }
    *read = (struct cursor_read){
        .cursor = cursor,
        .offset = args->offset,
        .count = args->count < PROXY_MAX_PIECE ? args->count : PROXY_MAX_PIECE,
        .due_us = rpc_request_arrived_us(request) + cursor->cursors->wait_us,
    };
    cursor->used_us = rpc_request_arrived_us(request);
    TAILQ_INSERT_TAIL(&cursor->reads, read, link);
    cursor_serve(cursor, false);
    return FALSE;
}

bool_t
proxy_release_2_svc(char *name, proxy_status *result, struct svc_req *call)
{
    struct cursor *cursor = cursor_find(rpc_request_of(call->rq_xprt), name);

    *result = cursor ? PROXY_OK : PROXY_NO_OBJECT;
    if (cursor)
        cursor_end(cursor, CURSOR_RELEASED);
    return TRUE;
}
