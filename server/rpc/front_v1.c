/*
 * The front of version 1: the procedure that rpcgen's dispatcher calls, and its late answers. The
 * version can say only "here is the page"; everything else is an RPC error (proxy.x).
 *
 * URLs are read as the paper's server reads them, which passes them to libcurl: its client sends
 * the lines of a file with their line ends, and a URL without a scheme is one of http.
 */
#include <ctype.h>
#include <string.h>

#include "http/target.h"
#include "proxy.h"
#include "server/rpc/front_follow.h"

/* A result refers to an object, which the request holds, or to static text. */
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

/* Does the URL begin with a scheme and "://"? */
static bool
has_scheme(struct span url)
{
    size_t len = http_scheme_length(url);

    return len && span_starts_with(span_of(url.ptr + len, url.len - len), span_str("://"));
}

/*
 * The URL that a client of version 1 means: without white space at both ends, with a scheme. Refers
 * to `sent`, or to memory of this thread until the next call. An empty URL, and one that would be
 * too long, is returned without a scheme: the proxy refuses it.
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

static void
reply_failure(struct exchange *exchange, enum failure why, struct span sentence)
{
    (void)sentence;
    front_log_failure(front_of(exchange), why);
    front_error(front_of(exchange),
                why == FAILURE_BAD_URL ? RPC_ERROR_GARBAGE_ARGS : RPC_ERROR_SYSTEM_ERR);
}

/* The body, or its beginning, has been found. The version can carry a string of at most 20 MiB
 * without a zero byte. */
static void
reply_body(struct front_exchange *front, bool whole)
{
    struct content_piece *piece = &front->piece;
    webpageResponse result = {.webPageContents = front_bytes(span_str(""))};
    struct span body;

    content_take(&front->content, piece);
    front_log_object(front, piece->len);
    if (!whole || content_piece_has_zero_byte(piece)) {
        front_error(front, RPC_ERROR_SYSTEM_ERR);
        return;
    }
    body = content_piece_inline(piece);
    if (body.ptr)
        result.webPageContents = front_bytes(body);
    front_reply(front, (xdrproc_t)xdr_webpageResponse, &result, sizeof(result), piece);
}

/* A body that is decoded may take several turns of the loop. */
static void
answer(struct front_exchange *front)
{
    const struct content *content = &front->content;
    enum content_step step = content_seek(&front->content, 0, PROXY_MAX_PAGE);

    if (step == CONTENT_BUSY) {
        front_answer_later(front);
    } else if (step == CONTENT_FAILED) {
        front_drop_broken(front);
        front->exchange.error = span_str(content->sentence);
        reply_failure(&front->exchange, content->why, front->exchange.error);
    } else {
        reply_body(front, step == CONTENT_LAST);
    }
}

static const struct front_version version_1 = {
    .front = FRONT_FOR_VERSIONS,
    .answer = answer,
    .fail = reply_failure,
    .protocol = "rpc1",
    .requests = METRIC_FRONT_REQUESTS_RPC1,
    .bytes = METRIC_FRONT_BYTES_RPC1,
};

bool_t
proxy_fetch_1_svc(char **url, webpageResponse *result, struct svc_req *call)
{
    struct rpc_request *request = rpc_request_of(call->rq_xprt);
    struct front_exchange *front = front_begin(request, &version_1);

    (void)url;
    front->request.url = complete_url(counted_string(request));
    return front_start(front, result);
}
