#include "server/rpc/front.h"

#include <string.h>

#include "base/clock.h"
#include "proxy.h"
#include "proxy/purging.h"
#include "server/rpc/front_way.h"

struct front_exchange *
front_begin(struct rpc_request *request, const struct front_version *version)
{
    struct service *service = service_of(request);
    struct front_exchange *front = rpc_request_data(request);

    memset(front, 0, sizeof(*front));
    front->exchange.proxy = &service->proxy;
    front->exchange.front = &version->front;
    front->exchange.request = &front->request;
    front->request.flags = REQUEST_PAGE_ONLY;
    front->request.client = rpc_request_client(request);
    front->request.waiting_bytes = rpc_request_bytes(request);
    front->request.arrived_us = rpc_request_arrived_us(request);
    front->exchange.worker = net_worker_number(rpc_request_worker(request));
    return front;
}

/* ---- content --------------------------------------------------------------------------------- */

void
front_begin_content(struct front_exchange *front)
{
    struct exchange *exchange = &front->exchange;
    struct proxy *proxy = exchange->proxy;

    content_begin(&front->content, exchange->object,
                  &(struct content_limits){
                      .share = &proxy->waiting,
                      .client = front->request.client,
                      .turn = exchange_is_complete(exchange)
                                  ? &rpc_request_worker(front_request(front))->turn
                                  : NULL,
                      .max_body = proxy->config.max_body,
                      .ratio = request_streams(exchange->request) ? CONTENT_MAX_RATIO : 0,
                  });
}

void
front_drop_broken(const struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;

    if (front->content.decoding && front->content.why == FAILURE_ORIGIN &&
        exchange_is_stored(exchange))
        purging_apply(exchange->proxy,
                      &(struct purging){.by = CACHE_BY_URL, .name = object_url(exchange->object)});
}

bool
front_run_later(struct front_exchange *front, void (*run)(struct net_task *later))
{
    if (front->later.run)
        return false;
    front->later.run = run;
    net_worker_post(rpc_request_worker(front_request(front)), &front->later);
    return true;
}

static void
answer(struct net_task *later)
{
    struct front_exchange *front = container_of(later, struct front_exchange, later);
    const struct front_version *version = front_version_of(front);

    later->run = NULL;
    if (rpc_request_is_open(front_request(front)))
        version->answer(front);
    else
        version->fail(&front->exchange, FAILURE_CANCELLED, span_str("the client has gone"));
}

void
front_answer_later(struct front_exchange *front)
{
    if (front->result)
        rpc_request_defer(front_request(front));
    (void)front_run_later(front, answer);
}

/* ---- replies --------------------------------------------------------------------------------- */

void
front_end_exchange(void *held)
{
    struct front_exchange *front = held;

    content_piece_release(&front->piece);
    content_end(&front->content);
    exchange_end(&front->exchange);
    front_way_free(front);
}

/* A result whose last field is a piece of a body. */
struct with_piece {
    xdrproc_t encode;
    void *result; /* with an empty body */
    const struct content_piece *piece;
};

/* The empty body's length, 0, is the last word of the encoded result. */
static bool_t
encode_with_piece(XDR *xdr, struct with_piece *reply)
{
    static const char padding[BYTES_PER_XDR_UNIT];
    struct content_piece rest = *reply->piece;
    u_int len = (u_int)rest.len;

    if (!reply->encode(xdr, reply->result, 0) ||
        !XDR_SETPOS(xdr, XDR_GETPOS(xdr) - BYTES_PER_XDR_UNIT) || !xdr_u_int(xdr, &len))
        return FALSE;
    while (rest.len) {
        struct span run = content_piece_read(&rest);

        if (run.len == 0 || !XDR_PUTBYTES(xdr, front_bytes(run), (u_int)run.len))
            return FALSE;
    }
    len %= BYTES_PER_XDR_UNIT;
    return len == 0 || XDR_PUTBYTES(xdr, (char *)(uintptr_t)padding, BYTES_PER_XDR_UNIT - len);
}

void
front_reply_piece(struct rpc_request *request, xdrproc_t encode, void *result,
                  const struct content_piece *piece)
{
    struct with_piece reply = {encode, result, piece};

    rpc_request_reply(request, (xdrproc_t)encode_with_piece, &reply);
}

void
front_count_bytes(struct front_exchange *front, uint64_t bytes)
{
    const struct exchange *exchange = &front->exchange;

    if (bytes == 0)
        return;
    metrics_add(exchange->proxy->config.metrics, exchange->worker, front_version_of(front)->bytes,
                bytes);
    if (request_streams(exchange->request))
        exchange_count_sent(exchange, bytes);
}

void
front_count_answer(struct front_exchange *front, uint64_t bytes)
{
    const struct exchange *exchange = &front->exchange;

    metrics_add(exchange->proxy->config.metrics, exchange->worker,
                front_version_of(front)->requests, 1);
    front_count_bytes(front, bytes);
}

void
front_reply(struct front_exchange *front, xdrproc_t encode, void *result, size_t size,
            const struct content_piece *piece)
{
    struct rpc_request *request = front_request(front);
    bool apart = piece && !content_piece_inline(piece).ptr;

    front_count_answer(front, piece ? piece->len : 0);
    rpc_request_hold(request, front_end_exchange, front);
    if (front->result && !apart) {
        memcpy(front->result, result, size);
        front->has_result = true;
        return;
    }
    if (front->result)
        rpc_request_defer(request);
    if (apart)
        front_reply_piece(request, encode, result, piece);
    else
        rpc_request_reply(request, encode, result);
}

void
front_error(struct front_exchange *front, enum rpc_error error)
{
    front_count_answer(front, 0);
    front_end_exchange(front);
    rpc_request_error(front_request(front), error);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void
log_request(struct front_exchange *front, struct access_entry *entry)
{
    const struct rpc_request *request = front_request(front);
    const struct exchange *exchange = &front->exchange;

    entry->peer = rpc_request_peer(request);
    entry->protocol = front_version_of(front)->protocol;
    entry->worker = exchange->worker;
    entry->url = front_url(front);
    entry->member = exchange_member(exchange);
    entry->us = clock_monotonic_us() - front->request.arrived_us;
    entry->fetch_us = front_fetch_us(front, entry->us);
    service_log(service_of(request), entry);
}

void
front_log_object(struct front_exchange *front, uint64_t bytes)
{
    const struct exchange *exchange = &front->exchange;

    if (service_of(front_request(front))->logs)
        log_request(front, &(struct access_entry){
                               .outcome = outcome_word(exchange->outcome),
                               .reason = http_reason_word(exchange_reason(exchange)),
                               .status = exchange->object->status,
                               .response = object_fields(exchange->object),
                               .bytes = bytes,
                               .victims = exchange->victims,
                           });
}

void
front_log_failure(struct front_exchange *front, enum failure why)
{
    if (service_of(front_request(front))->logs)
        log_request(front, &(struct access_entry){.outcome = failure_word(why),
                                                  .error = front->exchange.error});
}
