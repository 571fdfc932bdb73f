/*
 * A request's life: begun, answered by an exchange of the proxy or by a page, and freed when its
 * response has been written or its connection is gone. A response is queued in parts of at most
 * HTTP_QUEUED bytes of the body, each when the one before has been written.
 */
#include <stdlib.h>
#include <sys/socket.h>

#include "base/container_of.h"
#include "http/hop_by_hop.h"
#include "server/http_front.h"

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
    x->charged = worker->uncharged >= HTTP_POOLED_EXCHANGES;
    if (x->charged)
        memory_charge_anyway(account_of(worker), MEMORY_REQUESTS, sizeof(*x));
    else
        worker->uncharged++;
    return x;
}

static void release(struct net_output *output);

static struct http_exchange *
create(struct http_connection *c)
{
    struct http_worker *worker = c->worker;
    struct http_exchange *x = SLIST_FIRST(&worker->pool);
    bool charged;

    if (x)
        SLIST_REMOVE_HEAD(&worker->pool, free);
    else
        x = allocate(worker);
    if (!x)
        return NULL;
    charged = x->charged;
    memset(x, 0, offsetof(struct http_exchange, pieces));
    x->charged = charged;
    x->connection = c;
    x->output.release = release;
    c->current = x;
    net_connection_begin_request(&c->net);
    return x;
}

static void
set_waiting(struct http_exchange *x, bool waiting)
{
    if (x->waiting == waiting)
        return;
    x->waiting = waiting;
    if (waiting)
        net_connection_defer_request(&x->connection->net);
    else
        net_connection_resume_request(&x->connection->net);
}

static void
free_exchange(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    struct http_worker *worker = c->worker;

    exchange_end(&x->exchange);
    if (x->kept) {
        memory_uncharge(account_of(worker), MEMORY_REQUESTS, x->kept_len);
        free(x->kept);
    }
    set_waiting(x, false);
    if (c->current == x)
        c->current = NULL;
    net_connection_end_request(&c->net);
    net_connection_mark(&c->net);
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

/* Copies what stands in the net's memory, for a request that is not answered at once. */
static bool
keep(struct http_exchange *x, struct span head)
{
    struct memory_account *account = account_of(x->connection->worker);
    struct exchange *exchange = &x->exchange;
    size_t len = head.len + exchange->fields.len, searched = 0;
    struct http_refusal refusal;

    if (!memory_charge(account, MEMORY_REQUESTS, len))
        return false;
    x->kept = memory_realloc(account, NULL, len);
    if (!x->kept) {
        memory_uncharge(account, MEMORY_REQUESTS, len);
        return false;
    }
    x->kept_len = len;
    memcpy(x->kept, head.ptr, head.len);
    if (exchange->fields.len)
        memcpy(x->kept + head.len, exchange->fields.ptr, exchange->fields.len);
    /* It was read before: it is read again into spans of the copy. */
    (void)http_request_head_read(&x->request, span_of(x->kept, head.len), &searched,
                                 &http_service_of(x)->limits, &refusal);
    exchange->fields = span_of(x->kept + head.len, exchange->fields.len);
    exchange->method = x->request.method;
    return true;
}

/* ---- the end of a response ------------------------------------------------------------------- */

/* The exchange is not needed any more; it may still have a last call to come. */
static void
cancel(struct http_exchange *x)
{
    if (x->over || x->cancelled)
        return;
    x->cancelled = true;
    x->over = exchange_cancel(&x->exchange);
}

/* Nothing more is queued or sent. */
static void
finish(struct http_exchange *x)
{
    set_waiting(x, false);
    x->finished = true;
    cancel(x);
    if (x->over)
        free_exchange(x);
}

/* The end of the response is queued: the next request may be read, or the connection ends. */
static void
end_response(struct http_exchange *x)
{
    struct http_connection *c = x->connection;

    x->last = true;
    if (c->current != x)
        return;
    c->current = NULL;
    if (c->in_body || !x->persistent)
        c->ending = true;
    c->in_body = false;
    if (!c->ending)
        net_connection_release_input(&c->net);
    else if (!c->receiving)
        net_connection_finish(&c->net);
}

/*
 * The response cannot be completed after a part of it was queued. Without a length or chunks the
 * peer would take that part for the whole, so the connection is reset.
 */
static void
break_off(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    const struct linger reset = {.l_onoff = 1};

    c->ending = true;
    x->broken = true;
    if (x->body.until_close && net_connection_is_open(&c->net)) {
        (void)setsockopt(c->net.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        net_connection_close(&c->net);
        return;
    }
    if (!x->sending)
        finish(x);
    if (!c->receiving)
        net_connection_finish(&c->net);
}

/* ---- output ---------------------------------------------------------------------------------- */

static void
add_piece(struct http_exchange *x, const void *bytes, size_t len)
{
    x->pieces[x->output.count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
    x->output.len += len;
}

/* Adds what there is of the body, up to HTTP_QUEUED bytes; returns the number of bytes. */
static size_t
add_body(struct http_exchange *x)
{
    struct http_body *body = &x->body;
    size_t bytes = 0;

    for (unsigned runs = 0; runs < HTTP_RUNS && bytes < HTTP_QUEUED && body->next < body->end;
         runs++) {
        size_t len;

        if (body->run.len == 0)
            body->run = object_read(x->exchange.object, &body->place);
        len = body->run.len;
        if (len == 0)
            break;
        if (len > HTTP_QUEUED - bytes)
            len = HTTP_QUEUED - bytes;
        if (len > body->end - body->next)
            len = (size_t)(body->end - body->next);
        add_piece(x, body->run.ptr, len);
        body->run = span_of(body->run.ptr + len, body->run.len - len);
        body->next += len;
        bytes += len;
    }
    return bytes;
}

/* Hexadecimal, and CR LF; the chunk before it is ended first. Returns the number of bytes. */
static size_t
write_frame(char *frame, bool first, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *at = frame;
    unsigned shift = 60;

    if (!first) {
        *at++ = '\r';
        *at++ = '\n';
    }
    while (shift && !(size >> shift))
        shift -= 4;
    for (;; shift -= 4) {
        *at++ = digits[size >> shift & 15];
        if (shift == 0)
            break;
    }
    *at++ = '\r';
    *at++ = '\n';
    return (size_t)(at - frame);
}

/* Adds a chunk with what there is of the body. */
static size_t
add_chunk(struct http_exchange *x)
{
    bool first = x->body.next == x->body.begin;
    unsigned place = x->output.count++;
    size_t bytes = add_body(x), frame;

    if (bytes == 0) {
        x->output.count--;
        return 0;
    }
    frame = write_frame(x->frame, first, bytes);
    x->pieces[place] = (struct iovec){.iov_base = x->frame, .iov_len = frame};
    x->output.len += frame;
    return bytes;
}

static bool
body_is_complete(const struct http_exchange *x)
{
    const struct http_body *body = &x->body;

    return body->next == body->end ||
           (x->exchange.complete && body->next == object_length(x->exchange.object));
}

/* Queues what can be sent, once the output before it has been written. */
static void
advance(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    bool chunked = x->body.chunked;
    bool first = x->body.next == x->body.begin;

    if (x->sending || x->finished || !x->has_head)
        return;
    if (x->broken || !net_connection_is_open(&c->net)) {
        finish(x);
        return;
    }
    x->output.pieces = x->pieces;
    x->output.count = x->piece_count;
    x->output.len = x->head_bytes;
    x->output.sent = 0;
    x->piece_count = 0;
    x->head_bytes = 0;
    if (chunked)
        add_chunk(x);
    else
        add_body(x);
    if (body_is_complete(x)) {
        first = first && x->body.next == x->body.begin;
        if (chunked)
            add_piece(x, first ? "0\r\n\r\n" : "\r\n0\r\n\r\n", first ? 5 : 7);
        end_response(x);
    }
    if (x->output.count) {
        set_waiting(x, false);
        x->sending = true;
        net_connection_send(&c->net, &x->output);
    } else if (x->last) {
        finish(x);
    } else {
        set_waiting(x, true);
    }
}

static void
release(struct net_output *output)
{
    struct http_exchange *x = container_of(output, struct http_exchange, output);
    struct http_connection *c = x->connection;

    x->sending = false;
    if (!x->over && !x->cancelled)
        exchange_taken(&x->exchange, x->body.next);
    if (x->last)
        finish(x);
    else
        advance(x);
    if (c->net.held && !c->current && c->net.out.bytes < HTTP_QUEUED)
        net_connection_release_input(&c->net);
}

/* Sends a page that http_page_make() makes. */
static void
send_page(struct http_exchange *x, unsigned status, struct span reason, const char *detail)
{
    if (x->connection->in_body)
        x->persistent = false;
    http_page_make(x, status, reason, detail);
    x->has_head = true;
    advance(x);
}

/* ---- the front ------------------------------------------------------------------------------- */

static void
run(struct net_task *task)
{
    exchange_run(&container_of(task, struct http_exchange, task)->exchange);
}

static void
wake(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    x->task.run = run;
    net_worker_post(x->connection->net.set->worker, &x->task);
}

static struct client_entry *
limits(struct exchange *exchange)
{
    return http_exchange_of(exchange)->connection->net.client;
}

static void
head(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    x->over = exchange->complete;
    if (x->connection->in_body)
        x->persistent = false;
    http_response_make(x);
    x->has_head = true;
    advance(x);
}

static void
more(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    x->over = exchange->complete;
    advance(x);
}

struct answer {
    unsigned status;
    const char *detail; /* for Cache-Status */
};

static struct answer
answer_to(enum failure why)
{
    switch (why) {
    case FAILURE_BAD_URL:
        return (struct answer){400, "bad-url"};
    case FAILURE_BAD_FIELDS:
        return (struct answer){400, "bad-fields"};
    case FAILURE_DENIED:
        return (struct answer){403, "denied"};
    case FAILURE_RESOLVE:
        return (struct answer){502, "resolve-failed"};
    case FAILURE_CONNECT:
        return (struct answer){502, "connect-failed"};
    case FAILURE_TLS:
        return (struct answer){502, "tls-failed"};
    case FAILURE_TIMEOUT:
        return (struct answer){504, "timed-out"};
    case FAILURE_ORIGIN:
        return (struct answer){502, "origin-broke"};
    case FAILURE_TOO_LARGE:
        return (struct answer){502, "too-large"};
    case FAILURE_REDIRECT:
        return (struct answer){502, "bad-redirect"};
    case FAILURE_OVERLOADED:
        return (struct answer){503, "overloaded"};
    case FAILURE_STOPPING:
        return (struct answer){503, "stopping"};
    case FAILURE_INTERNAL:
    case FAILURE_CANCELLED:
        break;
    }
    return (struct answer){500, "internal"};
}

static void
fail(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct http_exchange *x = http_exchange_of(exchange);
    struct answer answer = answer_to(why);

    x->over = true;
    if (x->finished) {
        free_exchange(x);
    } else if (why == FAILURE_CANCELLED) {
        return; /* the response is the proxy's own, and under way */
    } else if (x->has_head) {
        break_off(x);
    } else {
        send_page(x, answer.status, sentence, answer.detail);
    }
}

static void
space(struct exchange *exchange)
{
    net_connection_release_input(&http_exchange_of(exchange)->connection->net);
}

static const struct front front = {
    .streams = true,
    .wake = wake,
    .limits = limits,
    .head = head,
    .more = more,
    .fail = fail,
    .space = space,
};

/* ---- beginning ------------------------------------------------------------------------------- */

/*
 * The field lines that go on to the origin, in the worker's memory. False if there are more than
 * can be passed on.
 */
static bool
forward_fields(struct http_exchange *x)
{
    struct buf *fields = &x->connection->worker->fields;
    const struct http_forwarding forwarding = {
        .method = x->request.method_id,
        .has_body = x->exchange.has_body,
        .via = span_str("1.1 sunproxy"),
        .max_forwards = -1,
    };

    buf_reset(fields);
    if (!http_forward_fields(fields, x->request.fields, &forwarding))
        return false;
    x->exchange.fields = buf_span(fields);
    return true;
}

/* Starts the exchange of a request for this URL. False without memory. */
static bool
start(struct http_exchange *x, struct span url, struct span head_bytes)
{
    const struct http_request *request = &x->request;
    struct http_connection *c = x->connection;
    struct exchange *exchange = &x->exchange;

    exchange->proxy = &c->worker->http->service->proxy;
    exchange->front = &front;
    exchange->url = url;
    exchange->raw = true;
    exchange->method = request->method;
    exchange->has_body = http_request_has_body(request);
    exchange->body_length = request->chunked ? -1 : request->content_length;
    exchange->client = c->net.peer.client;
    exchange->waiting_bytes = sizeof(*x) + head_bytes.len;
    exchange->arrived_us = c->net.read_us;
    exchange->worker = net_worker_number(c->net.set->worker);
    if (!forward_fields(x)) {
        x->over = true;
        send_page(x, 431, span_str("the request has too many fields"), NULL);
        return true;
    }
    if (!exchange_start(exchange)) {
        set_waiting(x, true);
        if (!keep(x, head_bytes)) {
            finish(x);
            return false;
        }
        if (exchange->has_body && !c->in_body)
            exchange_send_end(exchange);
    }
    return true;
}

bool
http_exchange_begin(struct http_connection *c, const struct http_request *request,
                    struct span head_bytes)
{
    struct http_exchange *x = create(c);
    struct http_route route;
    const char *reason;
    unsigned status;

    if (!x)
        return false;
    x->request = *request;
    x->persistent = request->persistent && !c->net.set->draining;
    status = http_route_find(c, request, &route, &reason);
    if (status) {
        x->over = true;
        send_page(x, status, span_str(reason), NULL);
        return true;
    }
    x->origin = route.origin;
    return start(x, route.url, head_bytes);
}

void
http_exchange_refuse(struct http_connection *c, const struct http_request *request,
                     const struct http_refusal *refusal)
{
    struct http_exchange *x = create(c);

    if (!x)
        return;
    x->request = *request;
    x->over = true;
    send_page(x, refusal->status, span_str(refusal->reason), NULL);
}

size_t
http_exchange_send(struct http_exchange *x, struct span bytes)
{
    return x->over ? bytes.len : exchange_send(&x->exchange, bytes.ptr, bytes.len);
}

void
http_exchange_send_end(struct http_exchange *x)
{
    if (!x->over)
        exchange_send_end(&x->exchange);
}

/* ---- early ends ------------------------------------------------------------------------------ */

void
http_exchange_abandon(struct http_exchange *x)
{
    x->broken = true;
    cancel(x);
    if (!x->sending)
        finish(x);
}

void
http_exchange_break(struct http_exchange *x, unsigned status, const char *reason)
{
    x->connection->in_body = false;
    x->persistent = false;
    if (x->has_head) {
        break_off(x);
        return;
    }
    cancel(x);
    send_page(x, status, span_str(reason), NULL);
}

void
http_exchange_discard(struct http_exchange *x)
{
    free_exchange(x);
}
