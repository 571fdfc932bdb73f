/*
 * The front of version 1: the procedure that rpcgen's dispatcher calls, and its late answers. The
 * version can say only "here is the page"; everything else is an RPC error (proxy.x).
 *
 * URLs are read as the paper's server reads them, which passes them to libcurl: its client sends
 * the lines of a file with their line ends, and a URL without a scheme is one of http.
 */
#include <ctype.h>
#include <string.h>

#include "server/front.h"

/* A result refers to a page, an outcome or static text, which the request holds. */
int
proxy_fetchprog_1_freeresult(SVCXPRT *transport, xdrproc_t encode, caddr_t result)
{
    (void)transport;
    (void)encode;
    (void)result;
    return TRUE;
}

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

static struct span
trim_space(struct span text)
{
    while (text.len != 0 && isspace((unsigned char)text.ptr[0]))
        text = span_of(text.ptr + 1, text.len - 1);
    while (text.len != 0 && isspace((unsigned char)text.ptr[text.len - 1]))
        text.len--;
    return text;
}

/* True if the URL begins with a scheme (RFC 3986, section 3.1) and "://". */
static bool
has_scheme(struct span url)
{
    size_t len = 0;

    while (len < url.len &&
           (isalnum((unsigned char)url.ptr[len]) || memchr("+-.", url.ptr[len], 3)))
        len++;
    return len != 0 && isalpha((unsigned char)url.ptr[0]) &&
           span_starts_with(span_of(url.ptr + len, url.len - len), span_str("://"));
}

/*
 * The URL that a client of version 1 means: without white space at both ends, with a scheme. Refers
 * to `sent`, or to memory of this thread until the next call. An empty URL, and one that would be
 * too long, is returned without a scheme: serve() refuses it.
 */
static struct span
complete_url(struct span sent)
{
    static _Thread_local char text[PROXY_MAX_URL];
    static const char http[] = "http://";
    const size_t prefix = sizeof(http) - 1;
    struct span url = trim_space(sent);

    if (url.len == 0 || url.len > sizeof(text) - prefix || has_scheme(url))
        return url;
    memcpy(text, http, prefix);
    memcpy(text + prefix, url.ptr, url.len);
    return span_of(text, prefix + url.len);
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

static void
reply_late(const struct serve_late_answer *answer)
{
    struct outcome *outcome = answer->outcome;
    webpageResponse result;

    if (answer->status != PROXY_OK || !fits_version_1(outcome->page)) {
        outcome_release(outcome);
        rpc_request_error(answer->rpc, error_of_status(answer->status));
        return;
    }
    rpc_request_hold(answer->rpc, outcome_release, outcome);
    result.webPageContents = front_bytes(page_body(outcome->page));
    rpc_request_reply(answer->rpc, (xdrproc_t)xdr_webpageResponse, &result);
}

bool_t
proxy_fetch_1_svc(char **url, webpageResponse *result, struct svc_req *call)
{
    struct rpc_request *rpc = rpc_request_of(call->rq_xprt);
    struct serve_request request = {
        .rpc = rpc,
        .reply_late = reply_late,
        .url = complete_url(counted_string(rpc)),
    };
    struct serve_answer answer;

    (void)url;
    memset(result, 0, sizeof(*result));
    switch (serve(service_of(rpc), &request, &answer)) {
    case SERVE_PAGE:
        if (!fits_version_1(answer.page)) {
            rpc_request_error(rpc, RPC_ERROR_SYSTEM_ERR);
            return FALSE;
        }
        result->webPageContents = front_bytes(page_body(answer.page));
        return TRUE;
    case SERVE_FAILURE:
        rpc_request_error(rpc, error_of_status(answer.status));
        return FALSE;
    case SERVE_DEFERRED:
        break;
    }
    return FALSE;
}
