#include "server/http/http_exchange.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "server/http/http_count.h"
#include "server/http/http_hold.h"
#include "server/http/http_log.h"
#include "server/http/http_output.h"
#include "server/http/http_page.h"
#include "server/http/http_stream.h"
#include "server/http/http_user.h"
#include "server/http/http_worker.h"

enum { POOLED_EXCHANGES = 256 }; /* kept by a worker for reuse, and not charged */

/* ---- memory ---------------------------------------------------------------------------------- */

static struct memory_account *
account_of(const struct http_worker *worker)
{
    return &worker->http->service->memory;
}

/* The first ones of a worker are not charged; they are what its pool keeps. NULL without memory. */
static struct http_exchange *
allocate(struct http_worker *worker)
{
    struct http_exchange *x = memory_realloc(account_of(worker), NULL, sizeof(*x));

    if (!x)
        return NULL;
    x->charged = worker->uncharged >= POOLED_EXCHANGES;
    if (x->charged)
        memory_charge_anyway(account_of(worker), MEMORY_REQUESTS, sizeof(*x));
    else
        worker->uncharged++;
    return x;
}

static void release(struct net_output *output);

struct http_exchange *
http_exchange_create(struct http_connection *c, struct http_worker *worker)
{
    struct http_exchange *x = SLIST_FIRST(&worker->pool);
    bool charged;

    if (x)
        SLIST_REMOVE_HEAD(&worker->pool, free);
    else
        x = allocate(worker);
    if (!x)
        return NULL;
    charged = x->charged;
    memset(x, 0, offsetof(struct http_exchange, check));
    x->charged = charged;
    http_stream_begin(&x->stream, c);
    x->stream.output.release = release;
    x->arrived_us = http_stream_arrived_us(&x->stream);
    return x;
}

static void
stop_waiting(struct http_exchange *x)
{
    if (x->serving == HTTP_AWAITED)
        x->serving = x->stop_waiting(x) ? HTTP_OVER : HTTP_CANCELLED;
}

static void
drop(struct http_exchange *x, struct http_kept *kept)
{
    if (kept->bytes)
        memory_uncharge(account_of(x->stream.worker), MEMORY_REQUESTS, kept->len);
    free(kept->bytes);
    kept->bytes = NULL;
}

void
http_exchange_discard(struct http_exchange *x)
{
    struct http_worker *worker = x->stream.worker;

    if (x->logged)
        http_log_add(x);
    stop_waiting(x);
    http_hold_cancel(x);
    exchange_end(&x->exchange);
    client_release(&x->client);
    http_user_release(&x->user);
    shared_release(&x->kept_config);
    free(x->stated);
    x->stated = NULL;
    drop(x, &x->kept_head);
    drop(x, &x->kept_fields);
    drop(x, &x->kept_lines);
    http_stream_free(&x->stream);
    if (x->charged) {
        memory_uncharge(account_of(worker), MEMORY_REQUESTS, sizeof(*x));
        free(x);
    } else {
        SLIST_INSERT_HEAD(&worker->pool, x, free);
    }
}

void
http_worker_free_pool(struct http_worker *worker)
{
    struct http_exchange *x;

    while ((x = SLIST_FIRST(&worker->pool))) {
        SLIST_REMOVE_HEAD(&worker->pool, free);
        free(x);
    }
}

void
http_exchange_await(struct http_exchange *x, bool (*stop)(struct http_exchange *x))
{
    x->stop_waiting = stop;
    x->serving = HTTP_AWAITED;
}

bool
http_exchange_end_wait(struct http_exchange *x)
{
    const bool goes_on = x->serving == HTTP_AWAITED;

    x->serving = HTTP_OVER;
    if (!goes_on && x->stage == HTTP_FINISHED)
        http_exchange_discard(x);
    return goes_on;
}

bool
http_exchange_allocate(struct http_exchange *x, struct http_kept *kept, size_t len)
{
    struct memory_account *account = account_of(x->stream.worker);

    if (!memory_charge(account, MEMORY_REQUESTS, len))
        return false;
    kept->bytes = memory_realloc(account, NULL, len);
    if (!kept->bytes) {
        memory_uncharge(account, MEMORY_REQUESTS, len);
        return false;
    }
    kept->len = len;
    return true;
}

/* Copies what stands in the net's or the worker's memory. */
static bool
copy(struct http_exchange *x, struct http_kept *kept, struct span from)
{
    if (kept->bytes || !from.len)
        return true;
    if (!http_exchange_allocate(x, kept, from.len))
        return false;
    memcpy(kept->bytes, from.ptr, from.len);
    return true;
}

/* For a request that is not answered at once, or is logged when it has been answered. */
bool
http_exchange_keep_head(struct http_exchange *x, struct span head)
{
    if (x->kept_head.bytes)
        return true;
    if (!copy(x, &x->kept_head, head))
        return false;
    http_request_move(&x->request, head, x->kept_head.bytes);
    return true;
}

bool
http_exchange_keep(struct http_exchange *x, struct span head)
{
    if (!http_exchange_keep_head(x, head))
        return false;
    if (!copy(x, &x->kept_fields, x->asked.fields))
        return false;
    if (x->kept_fields.bytes)
        x->asked.fields = span_of(x->kept_fields.bytes, x->kept_fields.len);
    return true;
}

/* ---- the end of a response ------------------------------------------------------------------- */

/* Wait and exchange are not needed any more; a last call may still have to come. */
static void
cancel(struct http_exchange *x)
{
    stop_waiting(x);
    if (x->serving != HTTP_SERVED)
        return;
    x->serving = HTTP_CANCELLED;
    if (exchange_cancel(&x->exchange))
        x->serving = HTTP_OVER;
}

/* Nothing more is queued or sent. */
void
http_exchange_finish(struct http_exchange *x)
{
    http_stream_set_waiting(&x->stream, false);
    x->stage = HTTP_FINISHED;
    cancel(x);
    if (x->serving == HTTP_OVER)
        http_exchange_discard(x);
}

/*
 * The response cannot be completed after a part of it was queued. Without a length or chunks the
 * peer would take that part for the whole, so the connection is reset.
 */
void
http_exchange_break_off(struct http_exchange *x)
{
    struct http_connection *c = x->stream.connection;

    http_stream_set_last(&x->stream);
    x->stage = HTTP_BROKEN;
    if (x->body.until_close && http_stream_is_open(&x->stream)) {
        http_stream_reset(&x->stream);
        return;
    }
    if (x->stream.activity != HTTP_SENDING)
        http_exchange_finish(x);
    http_connection_end(c);
}

/* ---- output ------------------------------------------------------------------------------------
 */

/* What has been read of the body has been written, or is not sent. */
static void
report_taken(struct http_exchange *x)
{
    if (x->stage != HTTP_PENDING && x->serving == HTTP_SERVED)
        exchange_taken(&x->exchange, x->body.place.offset);
}

/* Queues what can be sent, once the output before it has been written. */
void
http_exchange_advance(struct http_exchange *x)
{
    if (x->stream.activity == HTTP_SENDING || x->stage == HTTP_FINISHED || x->stage == HTTP_PENDING)
        return;
    if (x->stage == HTTP_BROKEN || !http_stream_is_open(&x->stream)) {
        http_exchange_finish(x);
        return;
    }
    if (http_output_fill(x)) {
        x->stage = HTTP_ENDED;
        http_stream_end(&x->stream, x->persistent);
    }
    if (x->stream.output.count) {
        http_stream_send(&x->stream);
    } else if (x->stage == HTTP_ENDED) {
        http_exchange_finish(x);
    } else {
        report_taken(x);
        http_stream_set_waiting(&x->stream, true);
    }
}

/* What was queued of the body and is dropped, since the connection is closed, was not sent. */
static void
count_dropped(struct http_exchange *x)
{
    const struct net_output *output = &x->stream.output;
    size_t dropped = 0;

    for (unsigned i = output->sent; i < output->count; i++)
        dropped += output->pieces[i].iov_len;
    x->body.sent -= dropped < x->body.queued ? dropped : x->body.queued;
    x->body.queued = 0;
}

static void
release(struct net_output *output)
{
    struct http_exchange *x = container_of(output, struct http_exchange, stream.output);
    struct http_connection *c = x->stream.connection;

    x->stream.activity = HTTP_IDLE;
    count_dropped(x);
    report_taken(x);
    if (x->stage == HTTP_ENDED)
        http_exchange_finish(x);
    else
        http_exchange_advance(x);
    http_connection_read_next(c);
}

/* Sends the page that was made. */
void
http_exchange_send_made(struct http_exchange *x)
{
    const struct span unkept = x->stream.worker->unkept;

    /* Without an object, the logs have only the head. Without memory, they do without. */
    if (unkept.len && !x->exchange.object)
        (void)http_exchange_keep_head(x, unkept);
    if (x->stage == HTTP_PENDING)
        x->stage = HTTP_STARTED;
    http_count_response(x);
    http_exchange_advance(x);
}

void
http_exchange_send_page(struct http_exchange *x, unsigned status, struct span reason,
                        const char *detail)
{
    if (http_stream_awaits_body(&x->stream) || http_stream_is_draining(&x->stream))
        x->persistent = false;
    http_page_make(x, &(struct http_page){.status = status, .reason = reason, .detail = detail});
    http_exchange_send_made(x);
}

/* ---- bodies of requests ---------------------------------------------------------------------- */

size_t
http_exchange_send(struct http_exchange *x, struct span bytes)
{
    return x->serving == HTTP_SERVED ? exchange_send(&x->exchange, bytes.ptr, bytes.len)
                                     : bytes.len;
}

void
http_exchange_send_end(struct http_exchange *x)
{
    if (x->serving == HTTP_SERVED)
        exchange_send_end(&x->exchange);
}

/* ---- early ends ------------------------------------------------------------------------------ */

void
http_exchange_abandon(struct http_exchange *x)
{
    x->stage = HTTP_BROKEN;
    if (x->body.until_close)
        http_stream_set_reset(&x->stream);
    if (x->stream.activity != HTTP_SENDING)
        http_exchange_finish(x);
}

void
http_exchange_break(struct http_exchange *x, unsigned status, const char *reason)
{
    http_stream_drop_body(&x->stream);
    x->persistent = false;
    if (x->stage != HTTP_PENDING) {
        http_exchange_break_off(x);
        return;
    }
    cancel(x);
    http_exchange_send_page(x, status, span_str(reason), NULL);
}
