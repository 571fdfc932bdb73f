/*
 * The procedures that rpcgen's dispatchers call, for fetching (both versions). Each turns its
 * version's words into the common request of serve.h and back. Those of administrators are in
 * admin.c.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "proxy.h"
#include "server/serve.h"

/*
 * Results refer to pages, outcomes and static text, which are held by the request: there is never
 * anything to free.
 */
int
proxy_fetchprog_1_freeresult(SVCXPRT *transport, xdrproc_t encode, caddr_t result)
{
    (void)transport;
    (void)encode;
    (void)result;
    return TRUE;
}

int
proxy_fetchprog_2_freeresult(SVCXPRT *transport, xdrproc_t encode, caddr_t result)
{
    (void)transport;
    (void)encode;
    (void)result;
    return TRUE;
}

/* XDR's types are not const; encoding does not change what they point at. */
static char *
unconst(struct span span)
{
    return (char *)(uintptr_t)span.ptr;
}

/* ---- version 1 ------------------------------------------------------------------------------- */

/*
 * The URL as it was counted on the wire: a C string would hide a zero byte and all that follows.
 * RFC 4506, section 4.11.
 */
static struct span
counted_string(const struct rpc_request *rpc)
{
    struct span raw = rpc_request_arguments(rpc);
    const unsigned char *p = (const unsigned char *)raw.ptr;
    size_t len;

    if (raw.len < 4)
        return span_of("", 0);
    len = (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3];
    if (len > raw.len - 4)
        return span_of("", 0);
    return span_of(raw.ptr + 4, len);
}

/* True if version 1 can carry the page: a string of at most 20 MiB without a zero byte. */
static bool
fits_version_1(const struct page *page)
{
    return !page->has_zero_byte && page->body_len <= PROXY_MAX_PAGE;
}

static enum rpc_error
error_of_status(proxy_status status)
{
    return status == PROXY_BAD_URL ? RPC_ERROR_GARBAGE_ARGS : RPC_ERROR_SYSTEM_ERR;
}

bool_t
proxy_fetch_1_svc(char **url, webpageResponse *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct serve_request request = {.rpc = rpc, .version = 1, .url = counted_string(rpc)};
    struct serve_answer answer;

    (void)url;
    memset(result, 0, sizeof(*result));
    switch (serve(service_of(rpc), &request, &answer)) {
    case SERVE_PAGE:
        if (!fits_version_1(answer.page)) {
            rpc_request_error(rpc, RPC_ERROR_SYSTEM_ERR);
            return FALSE;
        }
        result->webPageContents = unconst(page_body(answer.page));
        return TRUE;
    case SERVE_FAILURE:
        rpc_request_error(rpc, error_of_status(answer.status));
        return FALSE;
    case SERVE_DEFERRED:
        break;
    }
    return FALSE;
}

void
serve_reply_1(const struct serve_late_answer *answer)
{
    struct outcome *outcome = answer->outcome;
    webpageResponse result;

    if (outcome->status != PROXY_OK || !fits_version_1(outcome->page)) {
        proxy_status status = outcome->status;

        outcome_release(outcome);
        rpc_request_error(answer->rpc, error_of_status(status));
        return;
    }
    rpc_request_hold(answer->rpc, outcome_release, outcome);
    result.webPageContents = unconst(page_body(outcome->page));
    rpc_request_reply(answer->rpc, (xdrproc_t)xdr_webpageResponse, &result);
}

/* ---- version 2 ------------------------------------------------------------------------------- */

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
    reply->final_url.proxy_url_val = unconst(url);
    reply->final_url.proxy_url_len = (u_int)url.len;
    reply->headers.proxy_headers_val = unconst(headers);
    reply->headers.proxy_headers_len = (u_int)headers.len;
    reply->body.body_val = unconst(body);
    reply->body.body_len = (u_int)body.len;
}

static u_int
age_of(const struct page *page, const struct rpc_request *rpc)
{
    int64_t age_us = rpc_request_arrived_us(rpc) - page->fetched_us;

    return age_us > 0 ? (u_int)(age_us / 1000000) : 0;
}

bool_t
proxy_get_2_svc(proxy_fetch_args *args, proxy_fetch_result *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct serve_request request = {
        .rpc = rpc,
        .version = 2,
        .url = span_of(args->url.proxy_url_val, args->url.proxy_url_len),
        .headers = span_of(args->headers.proxy_headers_val, args->headers.proxy_headers_len),
        .flags = args->flags,
    };
    struct serve_answer answer;

    switch (serve(service_of(rpc), &request, &answer)) {
    case SERVE_PAGE:
        result->status = PROXY_OK;
        fill_page(&result->proxy_fetch_result_u.page, answer.page, PROXY_HIT, rpc);
        result->proxy_fetch_result_u.page.stored = TRUE;
        result->proxy_fetch_result_u.page.age = age_of(answer.page, rpc);
        return TRUE;
    case SERVE_FAILURE:
        result->status = answer.status;
        result->proxy_fetch_result_u.sentence = unconst(span_str(answer.sentence));
        return TRUE;
    case SERVE_DEFERRED:
        break;
    }
    return FALSE;
}

void
serve_reply_2(const struct serve_late_answer *answer)
{
    struct outcome *outcome = answer->outcome;
    proxy_fetch_result result = {.status = outcome->status};
    proxy_url victims[PROXY_MAX_VICTIMS];

    rpc_request_hold(answer->rpc, outcome_release, outcome);
    if (outcome->status != PROXY_OK) {
        result.proxy_fetch_result_u.sentence = outcome->sentence;
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

                victims[named].proxy_url_val = unconst(url);
                victims[named].proxy_url_len = (u_int)url.len;
                named++;
            }
        }
        reply->victims.victims_val = victims;
        reply->victims.victims_len = named;
    }
    rpc_request_reply(answer->rpc, (xdrproc_t)xdr_proxy_fetch_result, &result);
}
