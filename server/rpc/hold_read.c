/*
 * PROXY_READ and PROXY_RELEASE of version 2: further pieces of a body whose first one has been the
 * answer to PROXY_GET.
 */
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "server/rpc/front_v2_result.h"
#include "server/rpc/hold.h"

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
request_of(struct hold_read *read)
{
    return rpc_request_of_data(read);
}

static void
remove_read(struct hold_read *read)
{
    TAILQ_REMOVE(&read->hold->reads, read, link);
}

static void
dismiss(struct hold *hold)
{
    struct hold_read *read;

    while ((read = TAILQ_FIRST(&hold->reads))) {
        remove_read(read);
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(no_object));
    }
}

static void
reply_failure(struct hold_read *read)
{
    struct hold *hold = read->hold;
    struct span sentence = hold->failure ? object_failure(hold->failure) : hold->sentence;

    if (hold->again)
        reply_without(request_of(read), PROXY_NO_OBJECT, span_str(not_shared));
    else
        reply_without(request_of(read), front_status_of(hold->why),
                      failure_for_client(hold->why, sentence));
}

static void
release_piece(void *held)
{
    struct hold_read *read = held;

    hold_unuse(read->hold);
}

static void
reply_piece(struct hold_read *read, uint64_t bytes)
{
    struct hold *hold = read->hold;
    struct front_exchange *front = &hold->front;
    const struct exchange *x = &front->exchange;
    const struct front_piece piece = {
        .object = x->object, .place = hold->place, .len = (size_t)bytes};
    static _Thread_local proxy_url victims[PROXY_MAX_VICTIMS];
    proxy_ending ending = {0};
    proxy_read_result result = {.status = PROXY_OK};

    result.proxy_read_result_u.piece.length = front_body_length(x);
    if (x->complete && hold->place.offset + bytes >= object_length(x->object)) {
        front_set_ending(&ending, front, victims);
        result.proxy_read_result_u.piece.ending = &ending;
    }
    hold->used++;
    hold->sent += bytes;
    front_pass(x->object, &hold->place, bytes);
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
find_offset(struct hold *hold, uint64_t offset)
{
    const struct exchange *x = &hold->front.exchange;

    if (x->complete && !object_is_windowed(x->object)) {
        if (offset < hold->place.offset)
            hold->place.segment = NULL;
        hold->place.offset = offset;
        return true;
    }
    if (offset < hold->place.offset)
        return false;
    front_pass(x->object, &hold->place, offset - hold->place.offset);
    return true;
}

/* Is the call answered now, with the `left` bytes that there are for it? `overdue`: the time until
 * which it waited is over. */
static bool
is_due(struct hold_read *read, uint64_t left, bool overdue)
{
    uint64_t worthwhile = read->count < HOLD_WORTHWHILE ? read->count : HOLD_WORTHWHILE;

    if (read->hold->front.exchange.complete || left >= worthwhile)
        return true;
    if (overdue && read->gathered)
        return true;
    read->gathered = read->gathered || overdue;
    return read->gathered && left;
}

/* Answers the call, or leaves it waiting: false. */
static bool
serve(struct hold_read *read, bool overdue)
{
    struct hold *hold = read->hold;
    struct exchange *x = &hold->front.exchange;
    uint64_t length, left;

    /* Before the length is read: it is the whole one if the object is complete. */
    if (!find_offset(hold, read->offset)) {
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
hold_serve(struct hold *hold, bool overdue)
{
    struct hold_read *read;
    bool failed = false, waits = false;

    hold->used++;
    while (!waits && (read = TAILQ_FIRST(&hold->reads))) {
        if (hold->why) {
            remove_read(read);
            reply_failure(read);
            failed = true;
        } else {
            waits = !serve(read, overdue);
            overdue = false;
        }
    }
    if (failed)
        hold_end(hold, HOLD_FAILED);
    hold_unuse(hold);
}

const struct hold_calls hold_reads = {.serve_reads = hold_serve, .dismiss_reads = dismiss};

/* ---- the procedures -------------------------------------------------------------------------- */

bool_t
proxy_read_2_svc(proxy_read_args *args, proxy_read_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct hold *hold = hold_find(request, args->object);
    struct hold_read *read = rpc_request_data(request);

    (void)result; /* sent below, or later */
    rpc_request_defer(request);
    if (!hold) {
        reply_without(request, PROXY_NO_OBJECT, span_str(no_object));
        return FALSE;
    }
    *read = (struct hold_read){
        .hold = hold,
        .offset = args->offset,
        .count = args->count < PROXY_MAX_PIECE ? args->count : PROXY_MAX_PIECE,
        .due_us = rpc_request_arrived_us(request) + hold->holds->wait_us,
    };
    hold->used_us = rpc_request_arrived_us(request);
    TAILQ_INSERT_TAIL(&hold->reads, read, link);
    hold_serve(hold, false);
    return FALSE;
}

bool_t
proxy_release_2_svc(char *name, proxy_status *result, struct svc_req *call)
{
    struct hold *hold = hold_find(rpc_request_of(call->rq_xprt), name);

    *result = hold ? PROXY_OK : PROXY_NO_OBJECT;
    if (hold)
        hold_end(hold, HOLD_RELEASED);
    return TRUE;
}
