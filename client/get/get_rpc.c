/*
 * `sunproxy get` over ONC RPC: calls of version 1 or 2, pipelined over one connection.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "base/clock.h"
#include "base/container_of.h"
#include "client/exit_status.h"
#include "client/get/get_transport.h"
#include "client/page.h"

/* A page on its way; freed when it was taken. */
struct rpc_fetch {
    struct rpc_transport *transport;
    struct get_answer *answer;
    bool arrived; /* `v1` is valid */
    webpageResponse v1;
    struct page page;               /* of version 2 */
    bool has_head;                  /* and that was reported */
    bool changed;                   /* the page is in another state, which is to be reported */
    struct rpc_fetch *next, **link; /* among those of the transport */
};

struct rpc_transport {
    struct get_transport base;
    struct rpc_client *client;
    const struct get_options *options;
    struct rpc_fetch *fetches;
    bool closing; /* calls that end are not reported */
};

static void
free_fetch(struct rpc_fetch *fetch)
{
    if (fetch->arrived)
        xdr_free((xdrproc_t)xdr_webpageResponse, &fetch->v1);
    page_free(&fetch->page);
    *fetch->link = fetch->next;
    if (fetch->next)
        fetch->next->link = fetch->link;
    free(fetch);
}

static void
report_end(struct rpc_fetch *fetch, const struct get_failure *failure)
{
    struct get_answer *answer = fetch->answer;

    get_queue_done(answer, failure);
    answer->fetch = NULL;
    free_fetch(fetch);
}

/* ---- failures -------------------------------------------------------------------------------- */

static const char *
sentence_of(enum rpc_client_status status, unsigned api)
{
    /* Version 1 carries no reason. */
    if (api == 1 && status == RPC_CLIENT_GARBAGE_ARGS)
        return "the server cannot fetch such a URL (--api 2 gives the reason)";
    if (api == 1 && status == RPC_CLIENT_SYSTEM_ERR)
        return "the server could not fetch the page (--api 2 gives the reason)";
    if (status == RPC_CLIENT_GARBAGE_ARGS)
        return "the URL or the headers are too long";
    return api == 1 ? rpc_client_strstatus(status) : rpc_status_sentence(status);
}

static struct get_failure
failure_of_call(enum rpc_client_status status, unsigned api)
{
    return (struct get_failure){
        .status = exit_of_rpc(status),
        .code = rpc_status_name(status),
        .sentence = sentence_of(status, api),
        .transient = status == RPC_CLIENT_TIMED_OUT,
        .lost = status == RPC_CLIENT_LOST,
    };
}

static struct get_failure
failure_of_result(const proxy_fetch_result *result)
{
    return (struct get_failure){
        .status = exit_of_proxy(result->status),
        .code = proxy_status_name(result->status),
        .sentence = result->proxy_fetch_result_u.sentence,
        .transient = result->status == PROXY_TIMED_OUT || result->status == PROXY_OVERLOADED,
    };
}

/* ---- version 1 ------------------------------------------------------------------------------- */

static void
offer_body(struct rpc_fetch *fetch)
{
    struct span body = span_str(fetch->v1.webPageContents);

    if (body.len == 0 || get_queue_body(fetch->answer, body) != GET_PAUSE)
        report_end(fetch, NULL);
}

static void
call_done(void *context, enum rpc_client_status status, void *result)
{
    struct rpc_fetch *fetch = context;
    struct get_failure failure;

    (void)result;
    fetch->arrived = status == RPC_CLIENT_OK;
    if (fetch->transport->closing) {
        free_fetch(fetch);
    } else if (status != RPC_CLIENT_OK) {
        failure = failure_of_call(status, 1);
        report_end(fetch, &failure);
    } else {
        fetch->answer->page.length = (int64_t)strlen(fetch->v1.webPageContents);
        get_queue_head(fetch->answer);
        offer_body(fetch);
    }
}

/* ---- version 2 ------------------------------------------------------------------------------- */

static const proxy_page *
page_of(const struct rpc_fetch *fetch)
{
    return &fetch->page.result.proxy_fetch_result_u.page;
}

/* What is known when the body is complete, which may be at once. */
static void
fill_ending(struct get_page *into, const proxy_ending *ending)
{
    into->stored = ending->stored;
    into->fetch_us = ending->fetch_us;
    into->evicted = ending->evicted;
}

/* False without memory. */
static bool
fill_page(struct get_page *into, const struct rpc_fetch *fetch)
{
    const proxy_page *page = page_of(fetch);

    into->length = page_length(&fetch->page);
    into->status = page->http_status;
    into->source = (int)page->source;
    into->age = page->age;
    into->measured = true;
    into->total_us = page->total_us;
    fill_ending(into, &page->ending);
    /* A status line as in RFC 9112, whatever version the origin spoke. */
    buf_printf(&into->head, "HTTP/1.1 %u \r\n", page->http_status);
    if (page->headers.proxy_headers_len)
        buf_append(&into->head, page->headers.proxy_headers_val, page->headers.proxy_headers_len);
    into->head_bytes = into->head.len + 2; /* the empty line */
    if (page->final_url.proxy_url_len)
        buf_append(&into->final_url, page->final_url.proxy_url_val, page->final_url.proxy_url_len);
    return !buf_failed(&into->head) && !buf_failed(&into->final_url);
}

static void
report_page_failure(struct rpc_fetch *fetch)
{
    struct get_failure failure = fetch->page.rpc == RPC_CLIENT_OK
                                     ? failure_of_result(&fetch->page.result)
                                     : failure_of_call(fetch->page.rpc, 2);

    report_end(fetch, &failure);
}

/* Offers the piece that is there; it is kept if the queue cannot take it yet. */
static void
offer_piece(struct rpc_fetch *fetch)
{
    struct page *page = &fetch->page;
    enum get_take take = page->piece.len ? get_queue_body(fetch->answer, page->piece) : GET_TAKEN;
    bool last = page->last;

    if (take == GET_PAUSE)
        return;
    if (last)
        fill_ending(&fetch->answer->page, &page_of(fetch)->ending);
    if (take == GET_STOP)
        page_release(page);
    else
        page_next(page);
    if (last || take == GET_STOP)
        report_end(fetch, NULL);
    else if (page->state == PAGE_FAILED)
        report_page_failure(fetch);
}

/* Reported when the client does not run any more: what is reported may block, and the client has to
 * run meanwhile (rpc_keep()). */
static void
page_changed(struct page *page)
{
    container_of(page, struct rpc_fetch, page)->changed = true;
}

static void
report_change(struct rpc_fetch *fetch)
{
    static const struct get_failure no_memory = {
        .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
    struct page *page = &fetch->page;

    if (page->state == PAGE_FAILED) {
        report_page_failure(fetch);
    } else if (fetch->has_head) {
        offer_piece(fetch);
    } else if (!fill_page(&fetch->answer->page, fetch)) {
        page_release(page);
        report_end(fetch, &no_memory);
    } else {
        fetch->has_head = true;
        get_queue_head(fetch->answer);
        offer_piece(fetch);
    }
}

/* True if there was a page in another state. */
static bool
report_changes(struct rpc_transport *transport)
{
    struct rpc_fetch *fetch, *next;
    bool any = false;

    /* No other fetch ends or begins in a report. */
    for (fetch = transport->fetches; fetch; fetch = next) {
        next = fetch->next;
        if (!fetch->changed)
            continue;
        fetch->changed = false;
        any = true;
        report_change(fetch);
    }
    return any;
}

/* ---- the transport --------------------------------------------------------------------------- */

static enum rpc_client_status
call(struct rpc_fetch *fetch)
{
    struct rpc_transport *transport = fetch->transport;
    const struct get_options *options = transport->options;
    char *url = (char *)(uintptr_t)fetch->answer->url; /* rpcgen knows no const */

    if (options->api == 1)
        return rpc_client_call(transport->client, PROXY_FETCHPROG, PROXY_FETCHVERS, PROXY_FETCH,
                               (xdrproc_t)xdr_wrapstring, &url, (xdrproc_t)xdr_webpageResponse,
                               &fetch->v1, options->server.timeout_us, call_done, fetch);

    fetch->page.client = transport->client;
    fetch->page.url = span_str(fetch->answer->url);
    fetch->page.headers = buf_span(&options->headers);
    fetch->page.flags = options->no_store ? PROXY_FLAG_NO_STORE : 0;
    fetch->page.timeout_us = options->server.timeout_us;
    fetch->page.notify = page_changed;
    return page_begin(&fetch->page);
}

static void
rpc_begin(struct get_transport *base, struct get_answer *answer)
{
    struct rpc_transport *transport = container_of(base, struct rpc_transport, base);
    struct rpc_fetch *fetch = calloc(1, sizeof(*fetch));
    struct get_failure failure = failure_of_call(RPC_CLIENT_NO_MEMORY, transport->options->api);
    enum rpc_client_status status;

    if (!fetch) {
        get_queue_done(answer, &failure);
        return;
    }
    fetch->transport = transport;
    fetch->answer = answer;
    fetch->next = transport->fetches;
    fetch->link = &transport->fetches;
    if (fetch->next)
        fetch->next->link = &fetch->next;
    transport->fetches = fetch;
    answer->fetch = fetch;
    status = call(fetch);
    if (status == RPC_CLIENT_OK)
        return;
    failure = failure_of_call(status, transport->options->api);
    report_end(fetch, &failure);
}

static void
rpc_resume(struct get_transport *base, struct get_answer *answer)
{
    struct rpc_transport *transport = container_of(base, struct rpc_transport, base);

    if (transport->options->api == 1)
        offer_body(answer->fetch);
    else
        offer_piece(answer->fetch);
}

static void
rpc_run(struct get_transport *base, int64_t timeout_us)
{
    struct rpc_transport *transport = container_of(base, struct rpc_transport, base);
    const struct timespec pause = clock_timespec(timeout_us);

    if (report_changes(transport))
        return;
    if (rpc_client_pending(transport->client) != 0) {
        rpc_client_run(transport->client, timeout_us);
        report_changes(transport);
    } else if (timeout_us != INT64_MAX) {
        nanosleep(&pause, NULL);
    }
}

static void
rpc_keep(struct get_transport *base, struct get_answer *answer)
{
    struct rpc_transport *transport = container_of(base, struct rpc_transport, base);
    struct rpc_fetch *fetch = answer->fetch;

    /* Version 1, which holds nothing, reports while the client runs. */
    if (transport->options->api == 1 || !fetch)
        return;
    rpc_client_run(transport->client, 0); /* the answer to the last call has come meanwhile */
    page_keep(&fetch->page);
    rpc_client_run(transport->client, 0);
}

static void
rpc_close(struct get_transport *base)
{
    struct rpc_transport *transport = container_of(base, struct rpc_transport, base);

    transport->closing = true;
    rpc_client_close(transport->client);
    while (transport->fetches)
        free_fetch(transport->fetches);
    free(transport);
}

struct get_transport *
get_rpc_over(struct rpc_client *client, const struct get_options *options)
{
    struct rpc_transport *transport = calloc(1, sizeof(*transport));

    if (!transport) {
        rpc_client_close(client);
        return NULL;
    }
    transport->base = (struct get_transport){.begin = rpc_begin,
                                             .resume = rpc_resume,
                                             .keep = rpc_keep,
                                             .run = rpc_run,
                                             .close = rpc_close};
    transport->client = client;
    transport->options = options;
    return &transport->base;
}

struct get_transport *
get_rpc_open(const struct get_options *options, char *name, size_t size,
             struct get_failure *failure)
{
    struct server server;
    struct rpc_client *client =
        server_find(&options->server, SERVER_ANY, &server, &failure->status);
    struct get_transport *transport;

    if (client) {
        snprintf(name, size, "%s", server.name);
        transport = get_rpc_over(client, options);
        if (!transport)
            *failure = (struct get_failure){
                .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};
        return transport;
    }
    if (failure->status == EX_USAGE) {
        failure->code = "usage";
        failure->sentence = "SUNPROXY_SERVER names no server";
    } else {
        failure->code = rpc_status_name(RPC_CLIENT_UNREACHABLE);
        failure->sentence = rpc_client_strstatus(RPC_CLIENT_UNREACHABLE);
    }
    return NULL;
}
