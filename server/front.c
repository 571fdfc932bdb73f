#include "server/front.h"

#include <string.h>

#include "base/clock.h"
#include "base/container_of.h"

struct front_exchange *
front_begin(struct rpc_request *request, const struct front_version *version)
{
    struct service *service = service_of(request);
    struct front_exchange *front = rpc_request_data(request);

    memset(front, 0, sizeof(*front));
    front->exchange.proxy = &service->proxy;
    front->exchange.front = &version->front;
    front->exchange.client = rpc_request_peer(request)->client;
    front->exchange.waiting_bytes = rpc_request_bytes(request);
    front->exchange.arrived_us = rpc_request_arrived_us(request);
    front->exchange.worker = net_worker_number(rpc_request_worker(request));
    return front;
}

bool_t
front_start(struct front_exchange *front, void *result)
{
    bool ended;

    front->result = result;
    ended = exchange_start(&front->exchange);
    front->result = NULL;
    if (ended)
        return front->has_result;
    /* Wake-ups are posted to this very thread, so none can come before the deferral. */
    rpc_request_defer(front_request(front));
    return FALSE;
}

static void
run_exchange(struct net_task *task)
{
    exchange_run(&container_of(task, struct front_exchange, task)->exchange);
}

void
front_wake(struct exchange *exchange)
{
    struct front_exchange *front = front_of(exchange);

    front->task.run = run_exchange;
    net_worker_post(rpc_request_worker(front_request(front)), &front->task);
}

struct client_entry *
front_limits(struct exchange *exchange)
{
    return rpc_request_client(front_request(front_of(exchange)));
}

/* ---- replies --------------------------------------------------------------------------------- */

static void
end_exchange(void *held)
{
    struct front_exchange *front = held;

    exchange_end(&front->exchange);
}

/* A result whose last field is the body of an object that stands in segments. */
struct in_segments {
    xdrproc_t encode;
    void *result; /* with an empty body */
    const struct object *object;
};

/* The empty body's length, 0, is the last word of the encoded result. */
static bool_t
encode_in_segments(XDR *xdr, struct in_segments *reply)
{
    static const char padding[BYTES_PER_XDR_UNIT];
    u_int len = (u_int)object_length(reply->object);
    struct object_place place = {0};
    struct span run;

    if (!reply->encode(xdr, reply->result, 0) ||
        !XDR_SETPOS(xdr, XDR_GETPOS(xdr) - BYTES_PER_XDR_UNIT) || !xdr_u_int(xdr, &len))
        return FALSE;
    while ((run = object_read(reply->object, &place)).len != 0)
        if (!XDR_PUTBYTES(xdr, front_bytes(run), (u_int)run.len))
            return FALSE;
    len %= BYTES_PER_XDR_UNIT;
    return len == 0 || XDR_PUTBYTES(xdr, (char *)(uintptr_t)padding, BYTES_PER_XDR_UNIT - len);
}

static const struct front_version *
version_of(const struct exchange *exchange)
{
    return container_of(exchange->front, struct front_version, front);
}

static void
count_answer(const struct exchange *exchange, uint64_t bytes)
{
    const struct front_version *version = version_of(exchange);
    struct metrics *metrics = exchange->proxy->config.metrics;

    metrics_add(metrics, exchange->worker, version->requests, 1);
    metrics_add(metrics, exchange->worker, version->bytes, bytes);
}

void
front_reply(struct front_exchange *front, xdrproc_t encode, void *result, size_t size,
            const struct object *object)
{
    struct rpc_request *request = front_request(front);
    bool segmented = object && object->segmented;

    count_answer(&front->exchange, object ? object_length(object) : 0);
    rpc_request_hold(request, end_exchange, front);
    if (front->result && !segmented) {
        memcpy(front->result, result, size);
        front->has_result = true;
        return;
    }
    if (front->result)
        rpc_request_defer(request);
    if (segmented) {
        struct in_segments reply = {encode, result, object};

        rpc_request_reply(request, (xdrproc_t)encode_in_segments, &reply);
    } else {
        rpc_request_reply(request, encode, result);
    }
}

void
front_error(struct front_exchange *front, enum rpc_error error)
{
    count_answer(&front->exchange, 0);
    exchange_end(&front->exchange);
    rpc_request_error(front_request(front), error);
}

/* ---- logs ------------------------------------------------------------------------------------ */

static void
log_request(struct front_exchange *front, struct access_entry *entry)
{
    const struct rpc_request *request = front_request(front);
    const struct exchange *exchange = &front->exchange;

    entry->peer = rpc_request_peer(request);
    entry->protocol = version_of(exchange)->protocol;
    entry->worker = exchange->worker;
    entry->url = exchange->url;
    entry->us = clock_monotonic_us() - exchange->arrived_us;
    entry->fetch_us = exchange_fetch_us(exchange, entry->us);
    service_log(service_of(request), entry);
}

void
front_log_object(struct front_exchange *front)
{
    const struct exchange *exchange = &front->exchange;

    if (service_of(front_request(front))->logs)
        log_request(front, &(struct access_entry){
                               .outcome = outcome_word(exchange->outcome),
                               .status = exchange->object->status,
                               .bytes = object_length(exchange->object),
                               .victims = exchange->victims,
                           });
}

void
front_log_failure(struct front_exchange *front, enum failure why)
{
    if (service_of(front_request(front))->logs)
        log_request(front, &(struct access_entry){.outcome = failure_word(why)});
}
