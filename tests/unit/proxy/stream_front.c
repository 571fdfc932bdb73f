#include "tests/unit/proxy/stream_front.h"

#include "base/container_of.h"
#include "net/connection.h"
#include "net/protocol.h"
#include "proxy/exchange.h"
#include "tests/unit/net/stream.h"

#define LINE 512
#define RUNS 16 /* of a body, sent at once */

struct stream_front stream_front;

struct connection {
    struct net_connection net; /* first */
    char line[LINE];
    size_t len;
};

/* Everything but `task` while it is posted belongs to the connection's worker. */
struct visit {
    struct exchange exchange; /* first */
    struct request request;
    struct net_task task;
    struct connection *connection;
    struct object_place place;
    struct net_output output;
    struct iovec pieces[1 + RUNS];
    char frame[FAILURE_SENTENCE + 16]; /* what stands before the body's bytes */
    bool deferred;
    bool complete; /* the exchange is: it has had its last call */
    bool sending;  /* the output is queued */
    bool last;     /* and is the last one */
};

static void
free_request(struct visit *r)
{
    struct net_connection *net = &r->connection->net;

    exchange_end(&r->exchange);
    if (r->deferred)
        net_connection_resume_request(net);
    net_connection_end_request(net);
    net_connection_mark(net);
    atomic_fetch_add(&stream_front.ended, 1);
    free(r);
}

/* The connection is gone, or all is sent. Without a last call there may be another one to come. */
static void
finish(struct visit *r)
{
    if (r->complete) {
        free_request(r);
        return;
    }
    r->complete = true;
    atomic_fetch_add(&stream_front.cancelled, 1);
    if (exchange_cancel(&r->exchange))
        free_request(r);
}

static void
send_frame(struct visit *r, unsigned runs, size_t bytes)
{
    r->pieces[0] = (struct iovec){.iov_base = r->frame, .iov_len = strlen(r->frame)};
    r->output.pieces = r->pieces;
    r->output.count = 1 + runs;
    r->output.sent = 0;
    r->output.len = r->pieces[0].iov_len + bytes;
    r->sending = true;
    net_connection_send(&r->connection->net, &r->output);
}

/* Sends what has been published since the last output, which has been written. */
static void
advance(struct visit *r)
{
    unsigned runs = 0;
    size_t bytes = 0;
    struct span run;

    if (r->sending)
        return;
    if (!net_connection_is_open(&r->connection->net)) {
        finish(r);
        return;
    }
    while (runs < RUNS && (run = object_read(r->exchange.object, &r->place)).len) {
        r->pieces[++runs] =
            (struct iovec){.iov_base = (void *)(uintptr_t)run.ptr, .iov_len = run.len};
        bytes += run.len;
    }
    r->last = runs == 0 && r->complete;
    snprintf(r->frame, sizeof(r->frame), "%zx\n", bytes);
    if (runs || r->last)
        send_frame(r, runs, bytes);
}

static void
release(struct net_output *output)
{
    struct visit *r = container_of(output, struct visit, output);

    r->sending = false;
    if (!r->complete)
        exchange_taken(&r->exchange, r->place.offset);
    if (r->last)
        finish(r);
    else
        advance(r);
}

/* ---- the front ------------------------------------------------------------------------------- */

static void
run(struct net_task *task)
{
    exchange_run(&container_of(task, struct visit, task)->exchange);
}

static void
wake(struct exchange *exchange)
{
    struct visit *r = (struct visit *)exchange;

    r->task.run = run;
    net_worker_post(r->connection->net.set->worker, &r->task);
}

static void
more(struct exchange *exchange)
{
    struct visit *r = (struct visit *)exchange;

    r->complete = exchange_is_complete(exchange);
    advance(r);
}

static void
failed(struct exchange *exchange, enum failure why, struct span sentence)
{
    struct visit *r = (struct visit *)exchange;
    bool sending = r->sending;

    if (why == FAILURE_CANCELLED) {
        free_request(r);
        return;
    }
    r->complete = true;
    if (!exchange->object && net_connection_is_open(&r->connection->net)) {
        r->last = true;
        snprintf(r->frame, sizeof(r->frame), "!%.*s\n", (int)sentence.len, sentence.ptr);
        send_frame(r, 0, 0);
        return;
    }
    /* That releases the output, if it is queued. */
    net_connection_close(&r->connection->net);
    if (!sending)
        finish(r);
}

static const struct front front = {.wake = wake, .head = more, .more = more, .fail = failed};

static bool
begin(struct connection *c, struct span url)
{
    struct visit *r = calloc(1, sizeof(*r));

    if (!r)
        return false;
    r->connection = c;
    r->output.release = release;
    r->exchange.proxy = c->net.context;
    r->exchange.front = &front;
    r->exchange.request = &r->request;
    r->request = (struct request){.url = url,
                                  .client = unit_client((unsigned)c->net.fd),
                                  .flags = REQUEST_STREAMS | REQUEST_PAGE_ONLY,
                                  .waiting_bytes = sizeof(*r),
                                  .arrived_us = proxy_now_us(r->exchange.proxy)};
    r->exchange.worker = net_worker_number(c->net.set->worker);
    net_connection_begin_request(&c->net);
    atomic_fetch_add(&stream_front.requests, 1);
    if (!exchange_start(&r->exchange)) {
        r->deferred = true;
        net_connection_defer_request(&c->net);
    }
    return true;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void
nothing(struct net_connection *net)
{
    (void)net;
}

static void
forget_line(struct net_connection *net)
{
    ((struct connection *)net)->len = 0;
}

static enum net_input
take_line(struct net_connection *net, struct span *input)
{
    struct connection *c = (struct connection *)net;
    const char *end = memchr(input->ptr, '\n', input->len);
    size_t take = end ? (size_t)(end - input->ptr) : input->len;
    bool begun;

    if (take > sizeof(c->line) - c->len)
        return NET_INPUT_END;
    memcpy(c->line + c->len, input->ptr, take);
    c->len += take;
    take += end != NULL;
    *input = span_of(input->ptr + take, input->len - take);
    if (!end)
        return NET_INPUT_PARTIAL;
    begun = begin(c, span_of(c->line, c->len));
    forget_line(net);
    return begun ? NET_INPUT_MESSAGE : NET_INPUT_END;
}

static const struct net_protocol lines = {
    .connection_size = sizeof(struct connection),
    .opened = nothing,
    .received = take_line,
    .stopped = forget_line,
    .closed = nothing,
};

/* ---- the server ------------------------------------------------------------------------------ */

void
stream_front_start(struct proxy *proxy, unsigned workers)
{
    struct net_limits limits = NET_LIMITS_DEFAULT;

    /* One after the other on each connection: pieces of two would be mixed. */
    limits.max_requests = 1;
    memset(&stream_front, 0, sizeof(stream_front));
    stream_front.server = net_server_create(&limits, workers);
    ck_assert_ptr_nonnull(stream_front.server);
    ck_assert_int_eq(
        net_server_listen(stream_front.server, listen_tcp(&stream_front.port), &lines, proxy), 0);
    ck_assert_int_eq(net_server_start(stream_front.server), 0);
}

void
stream_front_stop(void)
{
    net_server_stop(stream_front.server, 5000000);
    net_server_destroy(stream_front.server);
    ck_assert_uint_eq(stream_front.requests, stream_front.ended);
}
