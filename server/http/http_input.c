#include "server/http/http_connection.h"

#include <stdlib.h>

#include "base/container_of.h"
#include "server/http/http_begin.h"
#include "server/http/http_exchange.h"
#include "server/http/http_forwarded.h"
#include "server/http/http_service.h"
#include "server/http/http_source.h"
#include "server/http/http_tunnel.h"
#include "server/http/http_user.h"
#include "server/http/http_worker.h"

/* A request's body must grow by that much in the time that a message has (--record-timeout). */
#define BODY_PROGRESS 4096u

/* Of a chunked body. They are dropped (RFC 9112, section 7.1.2). */
#define MAX_TRAILER_BYTES 16384u
#define MAX_TRAILER_LINES 100u

#define FIRST_HEAD 2048u /* bytes allocated for a part of a head */

static struct http_connection *
connection_of(struct net_connection *net)
{
    return container_of(net, struct http_connection, net);
}

/* NULL: every response is queued whole. */
static struct http_exchange *
current_exchange(const struct http_connection *c)
{
    return c->current ? http_exchange_of_stream(c->current) : NULL;
}

static void
opened(struct net_connection *net)
{
    const struct http_service *http = net->context;

    connection_of(net)->worker = &http->workers[net_worker_number(net->set->worker)];
}

static void
opened_by_balancer(struct net_connection *net)
{
    opened(net);
    connection_of(net)->awaits_source = true;
    net_connection_begin_partial(net);
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void
drop_head(struct http_connection *c)
{
    if (c->head)
        memory_uncharge(c->net.set->limits->memory, MEMORY_RECORDS, c->head_size);
    free(c->head);
    c->head = NULL;
    c->head_len = c->head_size = c->searched = 0;
}

/* Adds input to the part of a head that has come; false without memory. */
static bool
keep_head(struct http_connection *c, struct span input)
{
    struct memory_account *memory = c->net.set->limits->memory;
    size_t size = c->head_size ? c->head_size : FIRST_HEAD;
    char *grown;

    while (size < c->head_len + input.len)
        size *= 2;
    if (size != c->head_size) {
        if (!memory_charge(memory, MEMORY_RECORDS, size - c->head_size))
            return false;
        grown = memory_realloc(memory, c->head, size);
        if (!grown) {
            memory_uncharge(memory, MEMORY_RECORDS, size - c->head_size);
            return false;
        }
        c->head = grown;
        c->head_size = size;
    }
    memcpy(c->head + c->head_len, input.ptr, input.len);
    c->head_len += input.len;
    return true;
}

static void
begin_body(struct http_connection *c, const struct http_request *request)
{
    c->in_body = true;
    c->body_is_chunked = request->chunked;
    c->body_left = request->chunked ? 0 : (uint64_t)request->content_length;
    c->body_progress = 0;
    if (request->chunked) {
        chunked_init(&c->chunked, MAX_TRAILER_BYTES, MAX_TRAILER_LINES);
        c->chunked.no_padding = true;
    }
}

/* A head has been read. */
static enum net_input
begin_request(struct http_connection *c, const struct http_request *request, struct span head)
{
    bool has_body = request->chunked || request->content_length > 0;

    if (has_body)
        begin_body(c, request);
    if (!http_exchange_begin(c, c->worker, request, head) || c->ending)
        return NET_INPUT_END;
    if (!c->in_body)
        return NET_INPUT_MESSAGE;
    net_connection_excuse(&c->net);
    return NET_INPUT_PARTIAL;
}

static enum net_input
take_head(struct http_connection *c, struct span *input)
{
    const struct http_head_limits *limits = &c->worker->http->limits;
    size_t before = c->head_len;
    struct span bytes = *input;
    struct http_request request;
    struct http_refusal refusal;
    enum net_input result;

    if (before) {
        if (bytes.len > limits->max_bytes + 2 - before)
            bytes.len = limits->max_bytes + 2 - before;
        if (!keep_head(c, bytes))
            return NET_INPUT_NO_MEMORY;
        bytes = span_of(c->head, c->head_len);
    }
    switch (http_request_head_read(&request, bytes, &c->searched, limits, &refusal)) {
    case HTTP_HEAD_PARTIAL:
        if (!before && !keep_head(c, bytes)) {
            c->searched = 0;
            return NET_INPUT_NO_MEMORY;
        }
        *input = span_of(input->ptr + input->len, 0);
        return NET_INPUT_PARTIAL;
    case HTTP_HEAD_COMPLETE:
        *input = span_of(input->ptr + (request.head_len - before),
                         input->len - (request.head_len - before));
        c->searched = 0;
        result = begin_request(c, &request, span_of(bytes.ptr, request.head_len));
        drop_head(c);
        return result;
    default:
        net_connection_set_unread(&c->net);
        http_exchange_refuse(c, c->worker, &request, &refusal);
        drop_head(c);
        return NET_INPUT_END;
    }
}

/* A header of the PROXY protocol, before the first request. */
static enum net_input
take_source(struct http_connection *c, struct span *input)
{
    size_t before = c->head_len, len;
    struct span bytes = *input;

    if (before) {
        if (bytes.len > PROXY_HEADER_MAX - before)
            bytes.len = PROXY_HEADER_MAX - before;
        if (!keep_head(c, bytes))
            return NET_INPUT_NO_MEMORY;
        bytes = span_of(c->head, c->head_len);
    }
    switch (http_source_read(c, bytes, &len)) {
    case PROXY_HEADER_PARTIAL:
        if (!before && !keep_head(c, bytes))
            return NET_INPUT_NO_MEMORY;
        *input = span_of(input->ptr + input->len, 0);
        return NET_INPUT_PARTIAL;
    case PROXY_HEADER_COMPLETE:
        *input = span_of(input->ptr + (len - before), input->len - (len - before));
        drop_head(c);
        c->awaits_source = false;
        return NET_INPUT_STREAM;
    default:
        drop_head(c);
        return NET_INPUT_END;
    }
}

/* ---- bodies ---------------------------------------------------------------------------------- */

static enum net_input
end_body(struct http_connection *c)
{
    c->in_body = false;
    http_exchange_send_end(current_exchange(c));
    return NET_INPUT_MESSAGE;
}

/* Passes data on; false if not all of it is taken now. */
static bool
pass_data(struct http_connection *c, struct span data, size_t *taken)
{
    *taken = http_exchange_send(current_exchange(c), data);
    c->body_progress += (uint32_t)*taken;
    if (c->body_progress >= BODY_PROGRESS) {
        c->body_progress = 0;
        net_connection_excuse(&c->net);
    }
    return *taken == data.len;
}

static enum net_input
take_chunks(struct http_connection *c, struct span *input)
{
    struct span data;
    size_t taken;
    bool all;

    for (;;) {
        switch (chunked_read(&c->chunked, input, &data)) {
        case CHUNKED_WANTS:
            return NET_INPUT_PARTIAL;
        case CHUNKED_DATA:
            all = pass_data(c, data, &taken);
            chunked_take(&c->chunked, input, taken);
            if (!all)
                return NET_INPUT_HOLD;
            break;
        case CHUNKED_END:
            return end_body(c);
        default:
            http_exchange_break(current_exchange(c), c->chunked.too_large ? 431 : 400,
                                c->chunked.reason);
            return NET_INPUT_END;
        }
    }
}

static enum net_input
take_bytes(struct http_connection *c, struct span *input)
{
    struct span data = *input;
    size_t taken;
    bool all;

    if (data.len > c->body_left)
        data.len = (size_t)c->body_left;
    all = pass_data(c, data, &taken);
    *input = span_of(input->ptr + taken, input->len - taken);
    c->body_left -= taken;
    if (!all)
        return NET_INPUT_HOLD;
    return c->body_left ? NET_INPUT_PARTIAL : end_body(c);
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static enum net_input
received(struct net_connection *net, struct span *input)
{
    struct http_connection *c = connection_of(net);
    enum net_input result;

    if (c->tunnel)
        return http_tunnel_received(c->tunnel, input);
    if (c->awaits_source)
        return take_source(c, input);
    c->receiving = true;
    if (c->in_body && current_exchange(c)->serving == HTTP_AWAITED)
        result = NET_INPUT_HOLD;
    else if (c->in_body)
        result = c->body_is_chunked ? take_chunks(c, input) : take_bytes(c, input);
    else if (!http_connection_takes_request(c))
        result = NET_INPUT_HOLD;
    else
        result = take_head(c, input);
    c->receiving = false;
    return c->ending ? NET_INPUT_END : result;
}

/* Does the response depend on a check or a fetch? */
static bool
waits_for_others(const struct http_connection *c)
{
    const struct http_exchange *x = current_exchange(c);

    return x && x->serving != HTTP_OVER;
}

/*
 * A client that has ended its side has left, as far as a response depends on an origin: it is not
 * known from one that has gone until something is sent to it, which an origin that is silent delays
 * without a bound. A body of the request is passed on to its end before that is seen, and so are
 * the bytes that a tunnel has got.
 */
static bool
left(struct net_connection *net)
{
    const struct http_connection *c = connection_of(net);

    return !c->tunnel && !c->in_body && waits_for_others(c);
}

/*
 * A request whose body has not come whole cannot be completed any more. For a client that has left
 * no fetch goes on. What is queued is still sent, and the rest of a response that is complete.
 */
static void
stopped(struct net_connection *net)
{
    struct http_connection *c = connection_of(net);
    struct http_exchange *x = current_exchange(c);
    bool incomplete = c->in_body;
    bool gone = !net_connection_is_open(net) || (net->ended && waits_for_others(c));

    drop_head(c);
    c->in_body = false;
    if (c->tunnel)
        http_tunnel_stopped(c->tunnel);
    else if (x && (incomplete || gone))
        http_exchange_abandon(x);
}

/* Only a tunnel, or a request whose exchange has not ended, can be left. */
static void
closed(struct net_connection *net)
{
    struct http_connection *c = connection_of(net);
    struct http_exchange *x = current_exchange(c);

    if (x)
        http_exchange_discard(x);
    if (c->tunnel)
        http_tunnel_closed(c->tunnel);
    http_user_release(&c->user);
    free(c->source);
    c->source = NULL;
}

const struct net_protocol http_protocol = {
    .connection_size = sizeof(struct http_connection),
    .for_others = http_forwarded_is_trusted,
    .opened = opened,
    .received = received,
    .left = left,
    .stopped = stopped,
    .closed = closed,
};

const struct net_protocol http_proxied_protocol = {
    .connection_size = sizeof(struct http_connection),
    .for_others = http_source_is_stated_by,
    .opened = opened_by_balancer,
    .received = received,
    .left = left,
    .stopped = stopped,
    .closed = closed,
};

/* ---- users after a reload -------------------------------------------------------------------- */

/* The user of the request in work, or of the tunnel; NULL: none. Not every connection is of HTTP. */
static const struct http_user *
user_of(struct net_connection *net)
{
    const struct http_connection *c = connection_of(net);
    const struct http_exchange *x;

    if (net->protocol != &http_protocol && net->protocol != &http_proxied_protocol)
        return NULL;
    x = current_exchange(c);
    return c->tunnel ? http_tunnel_user(c->tunnel) : x ? x->user : NULL;
}

static bool
is_removed(const struct http_user *user, const struct config *config)
{
    return user && !http_user_is_known(user, config);
}

static void
recheck(struct net_task *task)
{
    struct http_worker *worker = container_of(task, struct http_worker, recheck);
    const struct service *service = worker->http->service;
    const unsigned number = (unsigned)(worker - worker->http->workers);
    struct net_connections *set =
        net_server_connections(rpc_server_net(service->rpc), number);
    struct net_connection *net, *next;

    atomic_store(&worker->rechecks, false);
    for (net = TAILQ_FIRST(&set->open); net; net = next) {
        next = TAILQ_NEXT(net, link);
        if (is_removed(user_of(net), service_config(service)))
            net_connection_close(net);
    }
}

void
http_service_recheck_users(struct http_service *http)
{
    struct net_server *server = rpc_server_net(http->service->rpc);

    for (unsigned i = 0; i < http->service->workers; i++) {
        struct http_worker *worker = &http->workers[i];

        worker->recheck.run = recheck;
        if (!atomic_exchange(&worker->rechecks, true))
            net_worker_post(net_server_connections(server, i)->worker, &worker->recheck);
    }
}
