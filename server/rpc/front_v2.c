/*
 * The front of version 2: the procedure that rpcgen's dispatcher calls for a fetch, and its
 * replies. The procedures for the rest of a body are in cursor_read.c, those of statistics and
 * administration in admin.c.
 */
#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "server/rpc/cursor.h"
#include "server/rpc/front_follow.h"
#include "server/rpc/front_v2_result.h"
#include "server/rpc/front_way.h"

/* A result refers to an object or a failure, which the request holds, or to static text. */
int
proxy_fetchprog_2_freeresult(SVCXPRT *transport, xdrproc_t encode, caddr_t result)
{
    (void)transport;
    (void)encode;
    (void)result;
    return TRUE;
}

static proxy_source
source_of(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_HIT:
        return PROXY_HIT;
    case OUTCOME_MISS:
        return PROXY_MISS;
    case OUTCOME_COALESCED:
        return PROXY_COALESCED;
    case OUTCOME_REVALIDATED:
        return PROXY_REVALIDATED;
    case OUTCOME_STALE:
        return PROXY_STALE;
    case OUTCOME_BYPASS:
        break;
    }
    return PROXY_BYPASS;
}

static u_int
age_of(const struct exchange *exchange)
{
    int64_t age_us = exchange->as_of_us - exchange->object->fetched_us;

    return age_us > 0 ? (u_int)(age_us / 1000000) : 0;
}

/* All but the body, and what is known at its end. */
static void
begin_page(proxy_page *page, const struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;
    const struct object *object = exchange->object;
    int64_t total_us = clock_monotonic_us() - exchange->request->arrived_us;

    page->http_status = object->status;
    page->source = source_of(exchange->outcome);
    page->age = exchange->outcome == OUTCOME_HIT ? age_of(exchange) : 0;
    page->total_us = (uint64_t)total_us;
    FRONT_REFER(page->final_url, proxy_url, front_final_url(exchange));
    FRONT_REFER(page->headers, proxy_headers, content_fields(&front->content));
    if (exchange->outcome == OUTCOME_HIT)
        metrics_observe(exchange->proxy->config.metrics, exchange->worker, HISTOGRAM_HIT_DURATION,
                        total_us);
}

/* The body is complete, and has been found whole. */
static void
reply_whole(struct front_exchange *front)
{
    struct content_piece *piece = &front->piece;
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *page = &result.proxy_fetch_result_u.page;
    /* Not on the stack, where it would be cleared for each reply: 130 instructions of a hit. */
    static _Thread_local proxy_url victims[PROXY_MAX_VICTIMS];

    content_take(&front->content, piece);
    front_log_object(front, piece->len);
    begin_page(page, front);
    front_set_ending(&page->ending, front, victims);
    FRONT_REFER(page->body, body, content_piece_inline(piece));
    front_reply(front, (xdrproc_t)xdr_proxy_fetch_result, &result, sizeof(result), piece);
}

static void
reply_failure(struct exchange *exchange, enum failure why, struct span sentence)
{
    /* A result is encoded on this thread before it makes another. */
    static _Thread_local char text[FAILURE_SENTENCE];
    size_t len = sentence.len < sizeof(text) ? sentence.len : sizeof(text) - 1;
    proxy_fetch_result result = {.status = front_status_of(why)};

    memcpy(text, sentence.ptr, len);
    text[len] = '\0';
    result.proxy_fetch_result_u.sentence = text;
    front_log_failure(front_of(exchange), why);
    front_reply(front_of(exchange), (xdrproc_t)xdr_proxy_fetch_result, &result, sizeof(result),
                NULL);
}

/* ---- bodies that come in pieces ---------------------------------------------------------------
 */

static void
reply_refusal(struct cursor *cursor)
{
    struct exchange *exchange = &cursor->front.exchange;

    exchange->error = cursor->sentence;
    reply_failure(exchange, cursor->why, failure_for_client(cursor->why, cursor->sentence));
}

/* The request is not answered with a piece, but fails; the exchange may have to be cancelled. */
static void
refuse(struct cursor *cursor, enum failure why, const char *sentence)
{
    struct exchange *exchange = &cursor->front.exchange;

    net_timer_cancel(&cursor->timer);
    cursor->why = why;
    cursor->sentence = span_str(sentence);
    if (exchange_is_complete(exchange) || exchange_cancel(exchange))
        reply_refusal(cursor);
}

/* With what has been found. The cursor is open unless it has to be opened, at the price of another
 * one of its connection. */
static void
reply_first(struct cursor *cursor)
{
    struct front_exchange *front = &cursor->front;
    struct rpc_request *request = front_request(front);
    struct content_piece *piece = &front->piece;
    proxy_rest rest = {.length = content_length(&front->content)};
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *page = &result.proxy_fetch_result_u.page;

    net_timer_cancel(&cursor->timer);
    if (!rpc_request_is_open(request)) {
        refuse(cursor, FAILURE_CANCELLED, "the client has gone");
        return;
    }
    if (!cursor->open && !cursor_open(cursor, true)) {
        atomic_fetch_add(&cursor->cursors->refused, 1);
        refuse(cursor, FAILURE_OVERLOADED, "too many large bodies are being read; try again");
        return;
    }
    if (front->result)
        rpc_request_defer(request);
    memcpy(rest.object, cursor->name, sizeof(rest.object));
    begin_page(page, front);
    page->rest = &rest;
    content_take(&front->content, piece);
    cursor->sent = piece->len;
    cursor->used++;
    front_count_answer(front, piece->len);
    rpc_request_hold(request, front_end_exchange, front);
    rpc_request_keep(request, &cursor_keeper);
    front_reply_piece(request, (xdrproc_t)xdr_proxy_fetch_result, &result, piece);
}

/*
 * PROXY_GET has waited for its first piece. Where there is no place for the cursor, the body may
 * end before it needs one.
 */
static void
end_wait(struct cursor *cursor)
{
    bool waits_on = !cursor->crowded && rpc_request_is_open(front_request(&cursor->front)) &&
                    !cursor_open(cursor, false);

    cursor->crowded = true;
    if (!waits_on || !net_timer_set(&cursor->timer, cursor->cursors->wait_us - CURSOR_GATHER_US))
        reply_first(cursor);
}

/* The time is over: of PROXY_GET, of a call of PROXY_READ, or of the cursor. */
static void
on_timer(struct net_timer *timer)
{
    struct cursor *cursor = container_of(timer, struct cursor, timer);

    if (!cursor->open)
        end_wait(cursor);
    else if (TAILQ_EMPTY(&cursor->reads))
        cursor_look(cursor);
    else
        cursor_serve(cursor, true);
}

static enum content_step
find_first(struct front_exchange *front)
{
    return content_seek(&front->content, 0, PROXY_MAX_PIECE);
}

/* PROXY_GET has not been answered, and its first piece has been sought. */
static void
wait_for_first(struct cursor *cursor, enum content_step step)
{
    struct front_exchange *front = &cursor->front;
    struct exchange *exchange = &front->exchange;

    exchange_taken(exchange, content_taken(&front->content));
    if (step == CONTENT_FAILED) {
        front_drop_broken(front);
        refuse(cursor, front->content.why, front->content.sentence);
    } else if (step == CONTENT_LAST && exchange_is_complete(exchange)) {
        net_timer_cancel(&cursor->timer);
        reply_whole(front);
    } else if (!rpc_request_is_open(front_request(front))) {
        refuse(cursor, FAILURE_CANCELLED, "the client has gone");
    } else if (step == CONTENT_THERE || step == CONTENT_BUSY) {
        reply_first(cursor);
    } else if (!cursor->timed) {
        cursor->timed = true;
        if (!net_timer_set(&cursor->timer, CURSOR_GATHER_US))
            reply_first(cursor);
    }
}

static void
answer(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;
    enum content_step step = find_first(front);

    if (step == CONTENT_LAST && exchange_is_complete(exchange)) {
        reply_whole(front);
    } else if (step == CONTENT_BUSY && exchange_is_complete(exchange)) {
        front_answer_later(front);
    } else {
        cursor_begin(cursor_of(exchange), &cursor_reads, on_timer);
        wait_for_first(cursor_of(exchange), step);
    }
}

static void
more(struct exchange *exchange)
{
    struct cursor *cursor = cursor_of(exchange);

    if (cursor->open)
        cursor_serve(cursor, false);
    else if (!cursor->ending && !cursor->why)
        wait_for_first(cursor, find_first(&cursor->front));
}

static void
fail(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct cursor *cursor = front_of(exchange)->begun ? cursor_of(exchange) : NULL;

    if (cursor && (cursor->open || cursor->ending)) {
        cursor_fail(cursor, why, sentence);
        return;
    }
    if (cursor)
        net_timer_cancel(&cursor->timer);
    if (cursor && cursor->why)
        reply_refusal(cursor);
    else
        reply_failure(exchange, why, sentence);
}

static const struct front_version version_2 = {
    .front = FRONT_FOR_VERSIONS,
    .answer = answer,
    .more = more,
    .fail = fail,
    .protocol = "rpc2",
    .requests = METRIC_FRONT_REQUESTS_RPC2,
    .bytes = METRIC_FRONT_BYTES_RPC2,
};

bool_t
proxy_get_2_svc(proxy_fetch_args *args, proxy_fetch_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct front_exchange *front = front_begin(request, &version_2);
    struct request *asked = &front->request;

    asked->url = span_of(args->url.proxy_url_val, args->url.proxy_url_len);
    front->own_fields = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len);
    asked->flags |= REQUEST_STREAMS;
    if (args->flags & PROXY_FLAG_NO_STORE)
        asked->passes = HTTP_REASON_REQUEST_NO_STORE;
    front->show_victims = (args->flags & PROXY_FLAG_WANT_VICTIMS) &&
                          service_shows_victims(service_of(request), rpc_request_peer(request));
    return front_start(front, result);
}
