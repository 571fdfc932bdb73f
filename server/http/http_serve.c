#include "server/http/http_serve.h"

#include "base/container_of.h"
#include "server/http/http_client.h"
#include "server/http/http_count.h"
#include "server/http/http_exchange.h"
#include "server/http/http_fields.h"
#include "server/http/http_hold.h"
#include "server/http/http_interim.h"
#include "server/http/http_response.h"
#include "server/http/http_route.h"
#include "server/http/http_rules.h"
#include "server/http/http_stream.h"
#include "server/http/http_user.h"

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
    http_stream_post(&x->stream, &x->task);
}

static struct client *
client(struct exchange *exchange)
{
    return http_client(http_exchange_of(exchange));
}

static bool
is_bounded(struct exchange *exchange)
{
    return http_client_is_bounded(http_exchange_of(exchange));
}

static void
begin_response(struct http_exchange *x)
{
    if (http_stream_awaits_body(&x->stream) || http_stream_is_draining(&x->stream))
        x->persistent = false;
    if (x->exchange.object->status >= 400 && http_rules_send_instead(x))
        return;
    http_response_make(x);
    x->stage = HTTP_STARTED;
    http_count_response(x);
    http_exchange_advance(x);
}

static void
head(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    if (exchange_is_complete(exchange))
        x->serving = HTTP_OVER;
    if (http_method_is_safe(x->request.method_id) || !http_hold(x, begin_response))
        begin_response(x);
}

static void
more(struct exchange *exchange)
{
    struct http_exchange *x = http_exchange_of(exchange);

    if (exchange_is_complete(exchange))
        x->serving = HTTP_OVER;
    http_exchange_advance(x);
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
    case FAILURE_OVERLOADED:
        return (struct answer){503, "overloaded"};
    case FAILURE_STOPPING:
        return (struct answer){503, "stopping"};
    case FAILURE_DOWN:
        return (struct answer){503, "down"};
    case FAILURE_NOT_CACHED:
        return (struct answer){504, "not-cached"};
    case FAILURE_INTERNAL:
    case FAILURE_CANCELLED:
    case FAILURE_REDIRECT: /* clients of this protocol follow redirects themselves */
        break;
    }
    return (struct answer){500, "internal"};
}

static void
fail(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct http_exchange *x = http_exchange_of(exchange);
    struct answer answer = answer_to(why);

    x->serving = HTTP_OVER;
    if (why != FAILURE_CANCELLED)
        x->failure = why;
    if (x->stage == HTTP_FINISHED) {
        http_exchange_discard(x);
    } else if (why == FAILURE_CANCELLED) {
        return; /* the response is the proxy's own, and under way */
    } else if (x->stage != HTTP_PENDING) {
        http_exchange_break_off(x);
    } else {
        http_rules_send_page(x, exchange->url, answer.status, sentence, answer.detail);
    }
}

/* Interim responses are of HTTP/1.1. */
static void
interim(struct exchange *exchange, unsigned status, struct span lines)
{
    struct http_exchange *x = http_exchange_of(exchange);

    if (x->request.minor && http_stream_is_open(&x->stream))
        http_interim_send(&x->stream, status, lines);
}

static void
space(struct exchange *exchange)
{
    http_stream_read_on(&http_exchange_of(exchange)->stream);
}

static const struct front front = {
    .wake = wake,
    .fields = make_fields,
    .client = client,
    .is_bounded = is_bounded,
    .head = head,
    .more = more,
    .fail = fail,
    .interim = interim,
    .space = space,
};

/* ---- beginning ------------------------------------------------------------------------------- */

/* Not made for a hit: -4 % CPU per hit of 1 KiB at 32 connections, with what else a hit does not
 * search any more. */
static void
make_fields(struct exchange *exchange)
{
    http_fields_make(http_exchange_of(exchange), exchange->url);
}

static void
set_exchange(struct http_exchange *x, struct span url, int64_t as_of_us)
{
    const struct http_request *request = &x->request;
    x->serving = HTTP_SERVED;
    x->asked.client = x->user                 ? x->user->client
                      : x->stated || x->peer ? x->client
                                             : http_stream_client(&x->stream);
    x->asked.method = request->method_id;
    x->asked.method_name = request->method;
    x->asked.url = url;
    x->asked.lacks = ~request->has;
    x->asked.flags = REQUEST_STREAMS |
                     (http_request_is_for_server(request) ? REQUEST_WHOLE_SERVER : 0u) |
                     (x->origin ? REQUEST_OWNED : 0u);
    x->asked.passes = x->ruled & HTTP_RULED_PASS ? HTTP_REASON_RULE : HTTP_REASON_NONE;
    x->asked.body = (struct request_body){
        .kind = http_request_has_body(request) ? REQUEST_BODY_SUPPLIED : REQUEST_BODY_NONE,
        .length = request->chunked ? -1 : request->content_length,
    };
    x->asked.rules = &x->config->rules.shared;
    x->asked.settings = x->config->settings;
    x->asked.peers = x->peer ? NULL : config_peers_of(&x->config->peers);
    x->asked.route = x->origin ? &x->origin->route : NULL;
    x->asked.waiting_bytes = sizeof(*x) + request->head_len;
    x->asked.arrived_us = x->arrived_us;
    memset(&x->exchange, 0, sizeof(x->exchange));
    x->exchange.proxy = &x->stream.worker->http->service->proxy;
    x->exchange.front = &front;
    x->exchange.request = &x->asked;
    x->exchange.as_of_us = as_of_us;
    x->exchange.worker = http_stream_worker_number(&x->stream);
}

bool
http_exchange_start(struct http_exchange *x, struct span url)
{
    set_exchange(x, url, 0);
    return exchange_start(&x->exchange);
}

/* ---- tunnels --------------------------------------------------------------------------------- */

void
http_exchange_switch(struct http_exchange *x, unsigned status)
{
    x->status = status;
    http_count_response(x);
    x->logged = false; /* the tunnel is */
    http_exchange_finish(x);
}

void
http_exchange_serve(struct http_exchange *x)
{
    const struct proxy *proxy = &x->stream.worker->http->service->proxy;

    set_exchange(x, http_rules_url_again(x), proxy_now_us(proxy));
    (void)exchange_start(&x->exchange);
}

unsigned
http_exchange_send_failure(struct http_exchange *x, enum failure why, struct span sentence)
{
    struct answer answer = answer_to(why);

    x->failure = why;
    http_rules_send_page(x, http_route_url_again(x), answer.status, sentence, answer.detail);
    return answer.status;
}
