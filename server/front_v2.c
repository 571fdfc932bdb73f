/*
 * The front of version 2: the procedure that rpcgen's dispatcher calls for a fetch, and its
 * replies. The procedures of statistics and administration are in admin.c.
 */
#include <string.h>

#include "base/clock.h"
#include "proxy.h"
#include "server/front.h"

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

static proxy_status
status_of(enum failure why)
{
    switch (why) {
    case FAILURE_BAD_URL:
        return PROXY_BAD_URL;
    case FAILURE_BAD_FIELDS:
        return PROXY_BAD_HEADERS;
    case FAILURE_DENIED:
        return PROXY_DENIED;
    case FAILURE_RESOLVE:
        return PROXY_RESOLVE_FAILED;
    case FAILURE_CONNECT:
        return PROXY_CONNECT_FAILED;
    case FAILURE_TLS:
        return PROXY_TLS_FAILED;
    case FAILURE_TIMEOUT:
        return PROXY_TIMED_OUT;
    case FAILURE_ORIGIN:
        return PROXY_ORIGIN_BROKE;
    case FAILURE_TOO_LARGE:
        return PROXY_TOO_LARGE;
    case FAILURE_REDIRECT:
        return PROXY_BAD_REDIRECT;
    case FAILURE_OVERLOADED:
        return PROXY_OVERLOADED;
    case FAILURE_STOPPING:
        return PROXY_STOPPING;
    case FAILURE_NOT_CACHED: /* no request of this protocol demands it */
    case FAILURE_INTERNAL:
    case FAILURE_CANCELLED:
        break;
    }
    return PROXY_INTERNAL;
}

/* Lets a field of XDR's types refer to a span. */
#define REFER(field, name, what)                 \
    do {                                         \
        struct span span_ = (what);              \
        (field).name##_val = front_bytes(span_); \
        (field).name##_len = (u_int)span_.len;   \
    } while (0)

static u_int
age_of(const struct exchange *exchange)
{
    int64_t age_us = exchange->arrived_us - exchange->object->fetched_us;

    return age_us > 0 ? (u_int)(age_us / 1000000) : 0;
}

static void
reply_object(struct exchange *exchange)
{
    const struct object *object = exchange->object;
    struct front_exchange *front = front_of(exchange);
    int64_t total_us = clock_monotonic_us() - exchange->arrived_us;
    proxy_fetch_result result = {.status = PROXY_OK};
    proxy_page *page = &result.proxy_fetch_result_u.page;
    /* Not on the stack, where it would be cleared for each reply: 130 instructions of a hit. */
    static _Thread_local proxy_url victims[PROXY_MAX_VICTIMS];

    front_log_object(front);
    page->http_status = object->status;
    page->source = source_of(exchange->outcome);
    page->stored = exchange->stored;
    page->age = exchange->outcome == OUTCOME_HIT ? age_of(exchange) : 0;
    page->total_us = (uint64_t)total_us;
    page->fetch_us = object->fetch_us;
    page->evicted = (u_int)exchange->evicted;
    for (; front->show_victims && page->victims.victims_len < exchange->victims->count &&
           page->victims.victims_len < PROXY_MAX_VICTIMS;
         page->victims.victims_len++) {
        u_int i = page->victims.victims_len;

        REFER(victims[i], proxy_url, object_url(exchange->victims->pages[i]));
    }
    page->victims.victims_val = victims;
    REFER(page->final_url, proxy_url, object_final_url(object));
    REFER(page->headers, proxy_headers, object_fields(object));
    if (!object->segmented)
        REFER(page->body, body, object_body(object));
    if (exchange->outcome == OUTCOME_HIT)
        metrics_observe(exchange->proxy->config.metrics, exchange->worker, HISTOGRAM_HIT_DURATION,
                        total_us);
    front_reply(front, (xdrproc_t)xdr_proxy_fetch_result, &result, sizeof(result), object);
}

static void
reply_failure(struct exchange *exchange, enum failure why, struct span sentence)
{
    /* A result is encoded on this thread before it makes another. */
    static _Thread_local char text[FAILURE_SENTENCE];
    size_t len = sentence.len < sizeof(text) ? sentence.len : sizeof(text) - 1;
    proxy_fetch_result result = {.status = status_of(why)};

    memcpy(text, sentence.ptr, len);
    text[len] = '\0';
    result.proxy_fetch_result_u.sentence = text;
    front_log_failure(front_of(exchange), why);
    front_reply(front_of(exchange), (xdrproc_t)xdr_proxy_fetch_result, &result, sizeof(result),
                NULL);
}

static const struct front_version version_2 = {
    .front =
        {
            .wake = front_wake,
            .limits = front_limits,
            .head = reply_object,
            .fail = reply_failure,
        },
    .protocol = "rpc2",
    .requests = METRIC_FRONT_REQUESTS_RPC2,
    .bytes = METRIC_FRONT_BYTES_RPC2,
};

bool_t
proxy_get_2_svc(proxy_fetch_args *args, proxy_fetch_result *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct front_exchange *front = front_begin(request, &version_2);
    struct exchange *exchange = &front->exchange;

    exchange->url = span_of(args->url.proxy_url_val, args->url.proxy_url_len);
    exchange->fields = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len);
    exchange->no_store = args->flags & PROXY_FLAG_NO_STORE;
    front->show_victims = (args->flags & PROXY_FLAG_WANT_VICTIMS) &&
                          service_shows_victims(service_of(request), rpc_request_peer(request));
    return front_start(front, result);
}
