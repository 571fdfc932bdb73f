/*
 * The front of version 2: the procedure that rpcgen's dispatcher calls for a fetch, and its late
 * answers. The procedures of statistics and administration are in admin.c.
 */
#include <string.h>

#include "base/clock.h"
#include "server/front.h"

/* A result refers to a page, an outcome or static text, which the request holds. */
int
proxy_fetchprog_2_freeresult(SVCXPRT *transport, xdrproc_t encode, caddr_t result)
{
    (void)transport;
    (void)encode;
    (void)result;
    return TRUE;
}

static void
fill_page(proxy_page *reply, const struct page *page, proxy_source source,
          const struct rpc_request *rpc)
{
    struct span url = page_final_url(page);
    struct span headers = page_headers(page);
    struct span body = page_body(page);

    memset(reply, 0, sizeof(*reply));
    reply->http_status = page->status;
    reply->source = source;
    reply->total_us = (uint64_t)(clock_monotonic_us() - rpc_request_arrived_us(rpc));
    reply->fetch_us = page->fetch_us;
    reply->final_url.proxy_url_val = front_bytes(url);
    reply->final_url.proxy_url_len = (u_int)url.len;
    reply->headers.proxy_headers_val = front_bytes(headers);
    reply->headers.proxy_headers_len = (u_int)headers.len;
    reply->body.body_val = front_bytes(body);
    reply->body.body_len = (u_int)body.len;
}

static u_int
age_of(const struct page *page, const struct rpc_request *rpc)
{
    int64_t age_us = rpc_request_arrived_us(rpc) - page->fetched_us;

    return age_us > 0 ? (u_int)(age_us / 1000000) : 0;
}

static void
reply_late(const struct serve_late_answer *answer)
{
    struct outcome *outcome = answer->outcome;
    proxy_fetch_result result = {.status = answer->status};
    proxy_url victims[PROXY_MAX_VICTIMS];

    rpc_request_hold(answer->rpc, outcome_release, outcome);
    if (answer->status != PROXY_OK) {
        result.proxy_fetch_result_u.sentence = front_bytes(span_str(answer->sentence));
    } else {
        proxy_page *reply = &result.proxy_fetch_result_u.page;
        u_int named = 0;

        fill_page(reply, outcome->page, answer->source, answer->rpc);
        reply->stored = outcome->stored;
        if (answer->source == PROXY_MISS)
            reply->evicted = (u_int)outcome->evicted;
        if (answer->show_victims) {
            while (named < PROXY_MAX_VICTIMS && named < outcome->victims.count) {
                struct span url = page_url(outcome->victims.pages[named]);

                victims[named].proxy_url_val = front_bytes(url);
                victims[named].proxy_url_len = (u_int)url.len;
                named++;
            }
        }
        reply->victims.victims_val = victims;
        reply->victims.victims_len = named;
    }
    rpc_request_reply(answer->rpc, (xdrproc_t)xdr_proxy_fetch_result, &result);
}

bool_t
proxy_get_2_svc(proxy_fetch_args *args, proxy_fetch_result *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct serve_request request = {
        .rpc = rpc,
        .reply_late = reply_late,
        .url = span_of(args->url.proxy_url_val, args->url.proxy_url_len),
        .headers = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len),
        .flags = args->flags,
    };
    struct service *service = service_of(rpc);
    struct serve_answer answer;

    switch (serve(service, &request, &answer)) {
    case SERVE_PAGE:
        result->status = PROXY_OK;
        fill_page(&result->proxy_fetch_result_u.page, answer.page, PROXY_HIT, rpc);
        /* The answer states the time, so it is at hand; hits of version 1 read no clock. */
        metrics_observe(service->metrics, net_worker_number(rpc_request_worker(rpc)),
                        HISTOGRAM_HIT_DURATION,
                        (int64_t)result->proxy_fetch_result_u.page.total_us);
        result->proxy_fetch_result_u.page.stored = TRUE;
        result->proxy_fetch_result_u.page.age = age_of(answer.page, rpc);
        return TRUE;
    case SERVE_FAILURE:
        result->status = answer.status;
        result->proxy_fetch_result_u.sentence = front_bytes(span_str(answer.sentence));
        return TRUE;
    case SERVE_DEFERRED:
        break;
    }
    return FALSE;
}
