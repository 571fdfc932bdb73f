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

    content_piece_release(&read->piece);
    cursor_unuse(read->cursor);
}

/* With what has been found. */
static void
reply_piece(struct cursor_read *read, bool last)
{
    struct cursor *cursor = read->cursor;
    struct front_exchange *front = &cursor->front;
    static _Thread_local proxy_url victims[PROXY_MAX_VICTIMS];
    proxy_ending ending = {0};
    proxy_read_result result = {.status = PROXY_OK};

    result.proxy_read_result_u.piece.length = content_length(&front->content);
    if (last) {
        front_set_ending(&ending, front, victims);
        result.proxy_read_result_u.piece.ending = &ending;
    }
    content_take(&front->content, &read->piece);
    cursor->used++;
    cursor->sent += read->piece.len;
    front_count_bytes(front, read->piece.len);
    rpc_request_hold(request_of(read), release_piece, read);
    front_reply_piece(request_of(read), (xdrproc_t)xdr_proxy_read_result, &result, &read->piece);
}

/* ---- the bytes to be sent -------------------------------------------------------------------- */

/* Is the call answered now, with what has been found for it? `found`: it is what was asked for, or
 * all to the end. `overdue`: the time until which it waited is over. */
static bool
is_due(struct cursor_read *read, bool found, bool overdue)
{
    const struct front_exchange *front = &read->cursor->front;
    uint64_t worthwhile = read->count < CURSOR_WORTHWHILE ? read->count : CURSOR_WORTHWHILE;
    size_t there = front->content.there;

    if ((found && exchange_is_complete(&front->exchange)) || there >= worthwhile)
        return true;
    if (overdue && read->gathered)
        return true;
    read->gathered = read->gathered || overdue;
    return read->gathered && there;
}

static void go_on(struct net_task *later);

/* The calls that wait are served in another turn of the loop. */
static void
serve_later(struct cursor *cursor)
{
    if (front_run_later(&cursor->front, go_on))
        cursor->used++;
}

/* Answers the call, or leaves it waiting: false. */
static bool
serve(struct cursor_read *read, bool overdue)
{
    struct cursor *cursor = read->cursor;
    struct front_exchange *front = &cursor->front;
    enum content_step step = content_seek(&front->content, read->offset, read->count);

    switch (step) {
    case CONTENT_PASSED:
        remove_read(read);
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(passed));
        return true;
    case CONTENT_FAILED:
        cursor_break(cursor);
        return true;
    case CONTENT_THERE:
    case CONTENT_LAST:
    case CONTENT_WAITS:
    case CONTENT_BUSY:
        break;
    }
    if (!is_due(read, step == CONTENT_THERE || step == CONTENT_LAST, overdue)) {
        if (step == CONTENT_BUSY)
            serve_later(cursor);
        return false;
    }
    remove_read(read);
    reply_piece(read, step == CONTENT_LAST && exchange_is_complete(&front->exchange));
    return true;
}

/* In a turn of the loop a body is decoded for one call. */
static bool
leaves_rest(struct cursor *cursor)
{
    if (cursor->why || cursor->front.content.stage != CONTENT_CODED || TAILQ_EMPTY(&cursor->reads))
        return false;
    serve_later(cursor);
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
            waits = !serve(read, overdue) || leaves_rest(cursor);
            overdue = false;
        }
    }
    if (failed)
        cursor_end(cursor, CURSOR_FAILED);
    cursor_unuse(cursor);
}

static void
go_on(struct net_task *later)
{
    struct cursor *cursor = container_of(later, struct cursor, front.later);

    later->run = NULL;
    cursor_serve(cursor, false);
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
