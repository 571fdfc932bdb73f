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
#include "server/http_upgrade.h"

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
    x->arrived_us = c->net.read_us;
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
drop(struct http_exchange *x, struct http_kept *kept)
{
    if (kept->bytes)
        memory_uncharge(account_of(x->connection->worker), MEMORY_REQUESTS, kept->len);
    free(kept->bytes);
    kept->bytes = NULL;
}

static void
free_exchange(struct http_exchange *x)
{
    struct http_connection *c = x->connection;
    struct http_worker *worker = c->worker;

    if (x->logged)
        http_log_add(x);
    exchange_end(&x->exchange);
    drop(x, &x->kept_head);
    drop(x, &x->kept_fields);
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

/* Copies what stands in the net's or the worker's memory. */
static bool
copy(struct http_exchange *x, struct http_kept *kept, struct span from)
{
    struct memory_account *account = account_of(x->connection->worker);

    if (kept->bytes || !from.len)
        return true;
    if (!memory_charge(account, MEMORY_REQUESTS, from.len))
        return false;
    kept->bytes = memory_realloc(account, NULL, from.len);
    if (!kept->bytes) {
        memory_uncharge(account, MEMORY_REQUESTS, from.len);
        return false;
    }
    kept->len = from.len;
    memcpy(kept->bytes, from.ptr, from.len);
    return true;
}

/* For a request that is not answered at once, or is logged when it has been answered. */
static bool
keep_head(struct http_exchange *x, struct span head)
{
    struct http_refusal refusal;
    size_t searched = 0;

    if (!copy(x, &x->kept_head, head))
        return false;
    /* It was read before: it is read again into spans of the copy. */
    (void)http_request_head_read(&x->request, span_of(x->kept_head.bytes, x->kept_head.len),
                                 &searched, &http_service_of(x)->limits, &refusal);
    return true;
}

/* For a request that is not answered at once. */
static bool
keep(struct http_exchange *x, struct span head)
{
    if (!keep_head(x, head) || !copy(x, &x->kept_fields, x->fields))
        return false;
    x->fields = span_of(x->kept_fields.bytes, x->kept_fields.len);
    x->exchange.fields = x->fields;
    x->exchange.method = x->request.method;
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

/* ---- output ------------------------------------------------------------------------------------
 */

/* What has been read of the body has been written, or is not sent. */
static void
report_taken(struct http_exchange *x)
{
    if (x->has_head && !x->over && !x->cancelled)
        exchange_taken(&x->exchange, x->body.place.offset);
}

/* Queues what can be sent, once the output before it has been written. */
static void
advance(struct http_exchange *x)
{
    struct http_connection *c = x->connection;

    if (x->sending || x->finished || !x->has_head)
        return;
    if (x->broken || !net_connection_is_open(&c->net)) {
        finish(x);
        return;
    }
    if (http_output_fill(x))
        end_response(x);
    if (x->output.count) {
        set_waiting(x, false);
        x->sending = true;
        net_connection_send(&c->net, &x->output);
    } else if (x->last) {
        finish(x);
    } else {
        report_taken(x);
        set_waiting(x, true);
    }
}

static void
release(struct net_output *output)
{
    struct http_exchange *x = container_of(output, struct http_exchange, output);
    struct http_connection *c = x->connection;

    x->sending = false;
    report_taken(x);
    if (x->last)
        finish(x);
    else
        advance(x);
    if (c->net.held && !c->current && c->net.out.bytes < HTTP_QUEUED)
        net_connection_release_input(&c->net);
}

/* Sends the page that was made. */
static void
send_made(struct http_exchange *x)
{
    x->has_head = true;
    advance(x);
}

static void
send_page(struct http_exchange *x, unsigned status, struct span reason, const char *detail)
{
    if (x->connection->in_body)
        x->persistent = false;
    http_page_make(x, &(struct http_page){.status = status, .reason = reason, .detail = detail});
    send_made(x);
}

static bool start_next(struct http_exchange *x);

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

/*
 * Where no connection can be made, the next URL of the origin is tried. Not for a request with a
 * body, some of which may have been taken.
 */
static bool
may_try_again(const struct http_exchange *x, enum failure why)
{
    return (why == FAILURE_CONNECT || why == FAILURE_RESOLVE || why == FAILURE_TLS) && x->origin &&
           !x->has_head && !x->exchange.has_body && x->urls_failed + 1 < x->origin->url_count;
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
    case FAILURE_NOT_CACHED:
        return (struct answer){504, "not-cached"};
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

    if (may_try_again(x, why)) {
        x->again = true;
        if (!x->starting)
            (void)start_next(x);
        return;
    }
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

/* Interim responses are of HTTP/1.1. */
static void
interim(struct exchange *exchange, unsigned status, struct span lines)
{
    struct http_exchange *x = http_exchange_of(exchange);

    if (x->request.minor && net_connection_is_open(&x->connection->net))
        http_interim_send(x->connection, status, lines);
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
    .interim = interim,
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
    struct http_connection *c = x->connection;
    struct buf *fields = &c->worker->fields;
    struct http_forwarding forwarding = {
        .method = x->request.method_id,
        .has_body = http_request_has_body(&x->request),
        .via = span_str(c->worker->http->via),
        .max_forwards = -1,
    };

    if (x->origin) {
        forwarding.for_ = http_client_name(c);
        forwarding.proto = span_str("http");
        forwarding.host = x->request.host;
    }
    if (x->request.has & HTTP_HAS_MAX_FORWARDS) {
        int64_t hops = http_max_forwards(x->request.fields);

        forwarding.max_forwards = hops > 0 ? hops - 1 : -1;
    }
    buf_reset(fields);
    if (!http_forward_fields(fields, x->request.fields, &forwarding))
        return false;
    x->fields = buf_span(fields);
    return true;
}

static void
set_exchange(struct http_exchange *x, struct span url)
{
    const struct http_request *request = &x->request;
    struct http_connection *c = x->connection;

    memset(&x->exchange, 0, sizeof(x->exchange));
    x->exchange.proxy = &c->worker->http->service->proxy;
    x->exchange.front = &front;
    x->exchange.url = url;
    x->exchange.raw = true;
    x->exchange.fields = x->fields;
    x->exchange.lacks = ~request->has;
    x->exchange.owned = x->origin != NULL;
    x->exchange.method = request->method;
    x->exchange.has_body = http_request_has_body(request);
    x->exchange.body_length = request->chunked ? -1 : request->content_length;
    x->exchange.client = c->net.peer.client;
    x->exchange.waiting_bytes = sizeof(*x) + request->head_len;
    x->exchange.arrived_us = x->arrived_us;
    x->exchange.worker = net_worker_number(c->net.set->worker);
}

/* Starts the exchange, and if no connection can be made, for the origin's next URL. True: the last
 * call has come. */
static bool
start(struct http_exchange *x, struct span url)
{
    bool ended;

    set_exchange(x, url);
    x->again = false;
    x->starting = true;
    ended = exchange_start(&x->exchange);
    x->starting = false;
    return x->again ? start_next(x) : ended;
}

/* The exchange has failed, and the origin has URLs that were not tried. */
static bool
start_next(struct http_exchange *x)
{
    struct http_worker *worker = x->connection->worker;
    size_t len;

    exchange_end(&x->exchange);
    x->url_number = http_origin_failed(x->origin, x->url_number);
    x->urls_failed++;
    len = http_origin_write_url(x->origin, x->url_number, x->request.path, worker->url,
                                sizeof(worker->url));
    return start(x, span_of(worker->url, len));
}

/* A request for this URL. False without memory. */
static bool
begin_exchange(struct http_exchange *x, struct span url, struct span head_bytes)
{
    struct http_connection *c = x->connection;

    if (!forward_fields(x)) {
        x->over = true;
        send_page(x, 431, span_str("the request has too many fields"), NULL);
        return true;
    }
    if (start(x, url))
        return true;
    set_waiting(x, true);
    if (!keep(x, head_bytes)) {
        finish(x);
        return false;
    }
    if (c->in_body && x->request.expects_continue)
        http_interim_send(c, 100, span_of(NULL, 0));
    if (x->exchange.has_body && !c->in_body)
        exchange_send_end(&x->exchange);
    return true;
}

/* Without an exchange of the proxy, at first. False without memory. */
static bool
begin_tunnel(struct http_exchange *x, struct span url, struct span head_bytes)
{
    if (x->origin && !forward_fields(x)) {
        send_page(x, 431, span_str("the request has too many fields"), NULL);
        return true;
    }
    set_waiting(x, true);
    if (!keep(x, head_bytes)) {
        finish(x);
        return false;
    }
    http_tunnel_begin(x, url);
    return true;
}

/* Is the proxy itself the recipient (RFC 9110, sections 7.6.2 and 9.3.7)? */
static bool
is_for_proxy(const struct http_request *request)
{
    return request->method_id == HTTP_OPTIONS &&
           (request->form == HTTP_ASTERISK_FORM || http_max_forwards(request->fields) == 0);
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
    x->over = true;
    x->logged = c->worker->http->service->access_log != NULL;
    if (x->logged && !keep_head(x, head_bytes)) {
        finish(x);
        return false;
    }
    if (request->method_id == HTTP_CONNECT)
        x->persistent = false;
    if (c->in_body && (is_for_proxy(request) || request->method_id == HTTP_PURGE))
        x->persistent = false;
    if (is_for_proxy(request)) {
        http_page_make(x, &(struct http_page){.status = 204, .empty = true});
        send_made(x);
        return true;
    }
    status = http_route_find(c, request, &route, &reason);
    if (status) {
        send_page(x, status, span_str(reason), NULL);
        return true;
    }
    if (request->method_id == HTTP_PURGE) {
        http_purge(x, route.url);
        send_made(x);
        return true;
    }
    x->origin = route.origin;
    x->url_number = route.url_number;
    if (request->method_id == HTTP_CONNECT)
        x->logged = false; /* the tunnel is */
    if (request->method_id == HTTP_CONNECT ||
        (x->origin && http_upgrade_is_wanted(request, route.url)))
        return begin_tunnel(x, route.url, head_bytes);
    x->over = false;
    return begin_exchange(x, route.url, head_bytes);
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
    x->logged = c->worker->http->service->access_log != NULL;
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

/* ---- tunnels --------------------------------------------------------------------------------- */

void
http_exchange_switch(struct http_exchange *x, unsigned status)
{
    struct http_connection *c = x->connection;

    x->status = status;
    x->logged = false; /* the tunnel is */
    finish(x);
    net_connection_release_input(&c->net);
}

void
http_exchange_serve(struct http_exchange *x)
{
    struct http_worker *worker = x->connection->worker;
    size_t len = http_origin_write_url(x->origin, x->url_number, x->request.path, worker->url,
                                       sizeof(worker->url));

    x->over = false;
    (void)start(x, span_of(worker->url, len));
}

unsigned
http_exchange_send_failure(struct http_exchange *x, enum failure why, struct span sentence)
{
    struct answer answer = answer_to(why);

    send_page(x, answer.status, sentence, answer.detail);
    return answer.status;
}

/* ---- early ends ------------------------------------------------------------------------------ */

void
http_exchange_abandon(struct http_exchange *x)
{
    x->broken = true;
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
