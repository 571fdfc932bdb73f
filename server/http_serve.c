/* The front of HTTP: exchanges that are served by the proxy, from their start to their failure. */
#include "base/container_of.h"
#include "server/http_front.h"
#include "server/http_upgrade.h"

static bool start_next(struct http_exchange *x);
static void make_fields(struct exchange *exchange);

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
    const struct http_exchange *x = http_exchange_of(exchange);

    return x->has_token ? NULL : x->connection->net.client;
}

static void
head(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    x->over = exchange->complete;
    if (x->connection->in_body || x->connection->net.set->draining)
        x->persistent = false;
    http_response_make(x);
    x->has_head = true;
    http_count_response(x);
    http_exchange_advance(x);
}

static void
more(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    x->over = exchange->complete;
    http_exchange_advance(x);
}

static bool
is_unconnected(enum failure why)
{
    return why == FAILURE_CONNECT || why == FAILURE_CONNECT_TIMEOUT || why == FAILURE_RESOLVE ||
           why == FAILURE_TLS;
}

/*
 * Where no connection can be made, the next URL of the origin is tried. Not for a request with a
 * body, some of which may have been taken.
 */
static bool
may_try_again(const struct http_exchange *x, enum failure why)
{
    return is_unconnected(why) && x->origin && !x->has_head && !x->exchange.has_body &&
           x->urls_failed + 1 < x->origin->url_count;
}

/* Where the last URL fails, too, a response that is stored for an earlier one may be used. */
static bool
may_take_older(const struct http_exchange *x, enum failure why)
{
    return (is_unconnected(why) || why == FAILURE_TIMEOUT || why == FAILURE_ORIGIN) && x->older &&
           !x->has_head && !x->exchange.older;
}

static bool
repeats(struct exchange *exchange, enum failure why)
{
    const struct http_exchange *x = http_exchange_of(exchange);

    return may_try_again(x, why) || may_take_older(x, why);
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
    case FAILURE_CONNECT_TIMEOUT:
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

    if (repeats(exchange, why)) {
        x->takes_older = !may_try_again(x, why);
        if (exchange->older && !x->older) {
            x->older = object_retain(exchange->older);
            x->older_number = x->url_number;
        }
        x->again = true;
        if (!x->starting)
            (void)start_next(x);
        return;
    }
    if (x->origin && exchange->has_body && is_unconnected(why))
        (void)http_origin_failed(x->origin, x->url_number); /* for the next request */
    x->over = true;
    if (why != FAILURE_CANCELLED)
        x->failure = why;
    if (x->finished) {
        http_exchange_discard(x);
    } else if (why == FAILURE_CANCELLED) {
        return; /* the response is the proxy's own, and under way */
    } else if (x->has_head) {
        http_exchange_break_off(x);
    } else {
        http_exchange_send_page(x, answer.status, sentence, answer.detail);
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
    .fields = make_fields,
    .limits = limits,
    .head = head,
    .more = more,
    .fail = fail,
    .repeats = repeats,
    .interim = interim,
    .space = space,
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* Not made for a hit: -4 % CPU per hit of 1 KiB at 32 connections, with what else a hit does not
 * search any more. */
static void
make_fields(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    http_fields_make(x);
    exchange->fields = x->fields;
}

static void
set_exchange(struct http_exchange *x, struct span url, int64_t as_of_us)
{
    const struct http_request *request = &x->request;
    struct http_connection *c = x->connection;

    memset(&x->exchange, 0, sizeof(x->exchange));
    x->exchange.proxy = &c->worker->http->service->proxy;
    x->exchange.front = &front;
    x->exchange.url = url;
    x->exchange.raw = true;
    x->exchange.fields = x->fields;
    x->exchange.fields_later = !x->has_fields;
    x->exchange.lacks = ~request->has;
    x->exchange.owned = x->origin != NULL;
    if (x->origin)
        x->exchange.row = (struct invalidation_row){
            .bases = x->origin->urls, .count = x->origin->url_count, .used = x->url_number};
    x->exchange.method = request->method;
    x->exchange.whole_server = http_request_is_for_server(request);
    x->exchange.has_body = http_request_has_body(request);
    x->exchange.body_length = request->chunked ? -1 : request->content_length;
    x->exchange.client = http_peer(c)->client;
    x->exchange.waiting_bytes = sizeof(*x) + request->head_len;
    x->exchange.arrived_us = x->arrived_us;
    x->exchange.as_of_us = as_of_us;
    x->exchange.worker = net_worker_number(c->net.set->worker);
}

static bool
start(struct http_exchange *x, struct span url, int64_t as_of_us)
{
    bool ended;

    set_exchange(x, url, as_of_us);
    x->again = false;
    x->starting = true;
    ended = exchange_start(&x->exchange);
    x->starting = false;
    return x->again ? start_next(x) : ended;
}

bool
http_exchange_start(struct http_exchange *x, struct span url)
{
    return start(x, url, 0);
}

/* After a wait. */
static bool
start_late(struct http_exchange *x, struct span url)
{
    return start(x, url, proxy_now_us(&x->connection->worker->http->service->proxy));
}

/* No connection can be made for the URL of the exchange, and the origin has others. */
static struct span
next_url(struct http_exchange *x)
{
    struct http_worker *worker = x->connection->worker;

    x->url_number = http_origin_failed(x->origin, x->url_number);
    x->urls_failed++;
    return span_of(worker->url, http_origin_write_url(x->origin, x->url_number, x->request.path,
                                                      worker->url, sizeof(worker->url)));
}

/* No connection can be made for any URL. */
static void
serve_older(struct http_exchange *x)
{
    struct object *older = x->older;

    x->older = NULL;
    x->url_number = x->older_number;
    set_exchange(x, object_url(older), 0);
    exchange_start_with(&x->exchange, older);
}

/*
 * The exchange has failed, and another URL of the origin is tried, or the older response used.
 * True: the last call has come.
 */
static bool
start_next(struct http_exchange *x)
{
    exchange_end(&x->exchange);
    if (x->takes_older) {
        serve_older(x);
        return true;
    }
    return start_late(x, next_url(x));
}

/* ---- tunnels --------------------------------------------------------------------------------- */

void
http_exchange_switch(struct http_exchange *x, unsigned status)
{
    struct http_connection *c = x->connection;

    x->status = status;
    http_count_response(x);
    x->logged = false; /* the tunnel is */
    http_exchange_finish(x);
    net_connection_release_input(&c->net);
}

bool
http_exchange_take_next_url(struct http_exchange *x, enum failure why, struct span *url)
{
    if (!may_try_again(x, why))
        return false;
    *url = next_url(x);
    return true;
}

void
http_exchange_serve(struct http_exchange *x)
{
    struct http_worker *worker = x->connection->worker;
    size_t len = http_origin_write_url(x->origin, x->url_number, x->request.path, worker->url,
                                       sizeof(worker->url));

    x->over = false;
    (void)start_late(x, span_of(worker->url, len));
}

unsigned
http_exchange_send_failure(struct http_exchange *x, enum failure why, struct span sentence)
{
    struct answer answer = answer_to(why);

    x->failure = why;
    http_exchange_send_page(x, answer.status, sentence, answer.detail);
    return answer.status;
}
