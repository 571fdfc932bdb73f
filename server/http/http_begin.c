#include "server/http/http_begin.h"

#include "base/container_of.h"
#include "http/hop_by_hop.h"
#include "http/request_rewrite.h"
#include "server/http/http_authenticate.h"
#include "server/http/http_exchange.h"
#include "server/http/http_explain.h"
#include "server/http/http_fields.h"
#include "server/http/http_forwarded.h"
#include "server/http/http_hold.h"
#include "server/http/http_interim.h"
#include "server/http/http_page.h"
#include "server/http/http_peer.h"
#include "server/http/http_purge.h"
#include "server/http/http_route.h"
#include "server/http/http_rules.h"
#include "server/http/http_serve.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"
#include "server/http/http_tunnel.h"
#include "server/http/http_upgrade.h"
#include "server/http/http_worker.h"

/* Can the fields of the request be passed on? Otherwise a page has been sent. */
static bool
can_forward(struct http_exchange *x)
{
    if (x->request.connection_options <= HTTP_CONNECTION_OPTIONS_MAX)
        return true;
    http_exchange_send_page(x, 431, span_str("Connection lists too many fields"), NULL);
    return false;
}

/*
 * The request is the one in a rewritten copy of its head. 0; or the status of a refusal: without
 * memory, or because it is too long with its bytes encoded.
 */
static unsigned
rewrite(struct http_exchange *x, const char **reason)
{
    size_t size = http_request_rewritten_size(&x->request), searched = 0;
    struct http_refusal refusal;
    struct span head;

    *reason = "the proxy has no memory for the request; try again";
    if (!http_exchange_allocate(x, &x->kept_head, size))
        return 503;
    head = span_of(x->kept_head.bytes, http_request_rewrite(&x->request, x->kept_head.bytes));
    if (http_request_head_read(&x->request, head, &searched, &http_service_of(x)->limits,
                               &refusal) == HTTP_HEAD_COMPLETE)
        return 0;
    *reason = refusal.reason;
    return refusal.status;
}

/* It is not answered at once. False without memory: a page has been sent. */
static bool
keep_waiting(struct http_exchange *x, struct span head_bytes)
{
    if (!x->kept_config)
        x->kept_config = shared_retain(&x->config->rules.shared);
    http_stream_set_waiting(&x->stream, true);
    if (http_exchange_keep_head(x, head_bytes))
        return true;
    http_exchange_break(x, 503, "the proxy has no memory for the request; try again");
    return false;
}

/* A request for this URL. False without memory. */
static bool
begin_exchange(struct http_exchange *x, struct span url, struct span head_bytes)
{
    if (!can_forward(x))
        return true;
    if (http_exchange_start(x, url))
        return true;
    if (!keep_waiting(x, head_bytes))
        return true;
    http_peer_reassure(x);
    if (http_stream_awaits_body(&x->stream) && x->request.expects_continue)
        http_interim_send(&x->stream, 100, span_of(NULL, 0));
    if (http_request_has_body(&x->request) && !http_stream_awaits_body(&x->stream))
        exchange_send_end(&x->exchange);
    return true;
}

/* Without an exchange of the proxy, at first. False without memory. */
static bool
begin_tunnel(struct http_exchange *x, struct span url, struct span head_bytes)
{
    if (x->request.method_id != HTTP_CONNECT) {
        if (!can_forward(x))
            return true;
        http_fields_make(x, url);
    }
    if (!x->kept_config)
        x->kept_config = shared_retain(&x->config->rules.shared);
    http_stream_set_waiting(&x->stream, true);
    if (!http_exchange_keep(x, head_bytes)) {
        http_exchange_finish(x);
        return false;
    }
    http_tunnel_begin(x, url);
    return true;
}

/*
 * Is the proxy itself the recipient (RFC 9110, sections 7.6.2 and 9.3.7)? For clients a reverse
 * proxy is the server.
 */
static bool
is_for_proxy(const struct config *config, const struct http_request *request)
{
    if (request->method_id != HTTP_OPTIONS)
        return false;
    return request->form == HTTP_ASTERISK_FORM || http_max_forwards(request->fields) == 0 ||
           (http_request_is_for_server(request) && config->origins.count);
}

/* Does a row of --origin have to match? A reverse proxy is the server of no other hosts. */
static bool
is_routed(const struct config *config, const struct http_request *request)
{
    return config->origins.count && request->form != HTTP_ASTERISK_FORM;
}

static void
send_no_content(struct http_exchange *x)
{
    http_page_make(x, &(struct http_page){.status = 204, .empty = true});
    http_exchange_send_made(x);
}

/*
 * The access log needs the head of each request. For the request database, a method of which the
 * number says all and the URL of the object will do: so a hit copies no head.
 */
static bool
keep_for_logs(struct http_exchange *x, struct span head_bytes)
{
    const struct http_request *request = &x->request;

    if (http_service_of(x)->service->access_log ||
        (request->method_id != HTTP_GET && request->method_id != HTTP_HEAD))
        return http_exchange_keep_head(x, head_bytes);
    x->stream.worker->unkept = head_bytes;
    return true;
}

/* The user is known, or none is needed. False without memory. */
static bool
admit(struct http_exchange *x, struct span url, struct span head_bytes)
{
    if (!http_rules_apply(x, &url))
        return true;
    if (x->request.method_id == HTTP_CONNECT || http_upgrade_is_wanted(&x->request))
        return begin_tunnel(x, url, head_bytes);
    return begin_exchange(x, url, head_bytes);
}

/* The user is known now. */
static void
resume(struct http_exchange *x)
{
    struct http_connection *c = x->stream.connection;

    /* Of the body, too, which was held. */
    http_stream_read_on(&x->stream);
    if (!admit(x, http_route_url_again(x), span_of(x->kept_head.bytes, x->kept_head.len)))
        http_connection_end(c);
}

/* The peers have taken it. */
static void
finish_purge(struct http_exchange *x)
{
    if (http_purge_is_noted(x))
        http_exchange_send_made(x);
}

static bool
begin_request(struct http_connection *c, struct http_worker *worker,
              const struct http_request *request, struct span head_bytes)
{
    struct http_exchange *x = http_exchange_create(c, worker);
    struct http_route route;
    const char *reason;
    unsigned status;
    struct config *config = service_config(worker->http->service);
    bool for_proxy = is_for_proxy(config, request);

    if (!x)
        return false;
    x->config = config;
    x->request = *request;
    x->persistent = request->persistent && !http_stream_is_draining(&x->stream);
    x->logged = worker->http->service->logs;
    status = http_request_is_rewritten(request) ? rewrite(x, &reason) : 0;
    if (x->logged && !keep_for_logs(x, head_bytes)) {
        http_exchange_finish(x);
        return false;
    }
    if (request->method_id == HTTP_CONNECT)
        x->persistent = false;
    if (http_stream_awaits_body(&x->stream) && (for_proxy || request->method_id == HTTP_PURGE))
        x->persistent = false;
    if (!status)
        status = http_forwarded_take(x, &reason);
    if (!status && request->has & HTTP_HAS_PEER)
        status = http_peer_take(x, &reason);
    if (status == HTTP_PEER_TAKEN) {
        if (http_peer_is_noted(x))
            http_exchange_send_made(x);
        else
            (void)keep_waiting(x, head_bytes);
        return true;
    }
    if (!status && for_proxy && !is_routed(config, request)) {
        send_no_content(x);
        return true;
    }
    if (!status)
        status = http_route_find(x, &route, &reason);
    if (status) {
        http_exchange_send_page(x, status, span_str(reason), NULL);
        return true;
    }
    if (for_proxy) {
        send_no_content(x);
        return true;
    }
    if (request->method_id == HTTP_PURGE) {
        http_purge(x, &route);
        if (http_hold(x, finish_purge) || !http_purge_is_noted(x))
            (void)keep_waiting(x, head_bytes);
        else
            http_exchange_send_made(x);
        return true;
    }
    x->origin = route.origin;
    if (http_explain_is_asked(x)) {
        if (http_explain(x))
            http_exchange_send_made(x);
        else
            (void)keep_waiting(x, head_bytes);
        return true;
    }
    switch (http_authenticate(x, route.url, resume)) {
    case HTTP_USER_SETTLED:
        return admit(x, route.url, head_bytes);
    case HTTP_USER_AWAITED:
        (void)keep_waiting(x, head_bytes);
        break;
    case HTTP_USER_ANSWERED:
        break;
    }
    return true;
}

bool
http_exchange_begin(struct http_connection *c, struct http_worker *worker,
                    const struct http_request *request, struct span head_bytes)
{
    bool begun = begin_request(c, worker, request, head_bytes);

    worker->unkept = span_of(NULL, 0);
    return begun;
}

void
http_exchange_refuse(struct http_connection *c, struct http_worker *worker,
                     const struct http_request *request, const struct http_refusal *refusal)
{
    struct http_exchange *x = http_exchange_create(c, worker);

    if (!x)
        return;
    x->request = *request;
    x->logged = worker->http->service->logs;
    http_exchange_send_page(x, refusal->status, span_str(refusal->reason), NULL);
}
