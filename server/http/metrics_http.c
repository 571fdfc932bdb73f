#include "server/http/metrics_http.h"

#include <stdlib.h>

#include "http/field.h"
#include "http/request_head.h"
#include "http/response_head.h"
#include "net/connection.h"
#include "metrics/openmetrics.h"

#define MAX_HEAD 8192u
#define MAX_TEXT (1u << 20)
#define MAX_REPLY_HEAD 512u

struct metrics_connection {
    struct net_connection net; /* first */
    bool replying;             /* a reply is queued: the next request waits */
    size_t searched, len;      /* of the head that is being read */
    char head[MAX_HEAD];
};

/* A response; one allocation beside its text, both charged as a reply. */
struct reply {
    struct net_output output; /* first */
    struct metrics_connection *connection;
    struct iovec pieces[2];
    struct buf text;
    size_t charged;
    char head[HTTP_ERROR_PAGE_MAX];
};

static struct memory_account *
account_of(const struct metrics_connection *c)
{
    return c->net.set->limits->memory;
}

static void
drop_reply(struct metrics_connection *c, struct reply *reply)
{
    memory_uncharge(account_of(c), MEMORY_REPLIES, reply->charged);
    buf_free(&reply->text);
    free(reply);
}

static void
release(struct net_output *output)
{
    struct reply *reply = (struct reply *)output;
    struct metrics_connection *c = reply->connection;

    drop_reply(c, reply);
    c->replying = false;
    net_connection_end_request(&c->net);
    net_connection_release_input(&c->net);
}

static void
send_reply(struct metrics_connection *c, struct reply *reply, struct span head)
{
    reply->pieces[0] = (struct iovec){.iov_base = reply->head, .iov_len = head.len};
    reply->pieces[1] = (struct iovec){.iov_base = reply->text.data, .iov_len = reply->text.len};
    reply->output = (struct net_output){
        .pieces = reply->pieces,
        .count = reply->text.len ? 2 : 1,
        .len = head.len + reply->text.len,
        .release = release,
    };
    c->replying = true;
    net_connection_begin_request(&c->net);
    net_connection_send(&c->net, &reply->output);
}

/* NULL without memory. */
static struct reply *
make_reply(struct metrics_connection *c)
{
    struct memory_account *account = account_of(c);
    struct reply *reply;

    if (!memory_charge(account, MEMORY_REPLIES, sizeof(*reply)))
        return NULL;
    reply = memory_calloc(account, sizeof(*reply));
    if (!reply) {
        memory_uncharge(account, MEMORY_REPLIES, sizeof(*reply));
        return NULL;
    }
    reply->connection = c;
    reply->charged = sizeof(*reply);
    buf_init(&reply->text, MAX_TEXT);
    return reply;
}

/* False without memory. */
static bool
write_text(struct metrics_connection *c, struct reply *reply, enum exposition format)
{
    const struct metrics_http *context = c->net.context;
    size_t len;

    if (!exposition_write(context->metrics, format, &reply->text))
        return false;
    len = reply->text.len;
    if (!memory_charge(account_of(c), MEMORY_REPLIES, len))
        return false;
    reply->charged += len;
    return true;
}

/* Answers with an error. False without memory. */
static bool
refuse(struct metrics_connection *c, const struct http_request *request, unsigned status,
       const char *reason, bool close)
{
    struct reply *reply = make_reply(c);
    struct http_writer writer;

    if (!reply)
        return false;
    writer = http_writer_of(reply->head, sizeof(reply->head));
    http_write_error_page(&writer,
                          &(struct http_error_page){
                              .status = status,
                              .detail = span_str(reason),
                              .lines = span_str(status == 405 ? "Allow: GET, HEAD\r\n" : ""),
                              .close = close,
                              .no_body = request->method_id == HTTP_HEAD,
                          });
    send_reply(c, reply, http_written(&writer));
    return true;
}

static bool
answer(struct metrics_connection *c, const struct http_request *request)
{
    enum exposition format = exposition_choose(http_first_value(request->fields, "Accept"));
    struct reply *reply = make_reply(c);
    struct http_writer writer;

    if (!reply)
        return false;
    if (!write_text(c, reply, format)) {
        drop_reply(c, reply);
        return refuse(c, request, 503, "there is no memory for the metrics; try again",
                      !request->persistent);
    }
    writer = http_writer_of(reply->head, MAX_REPLY_HEAD);
    http_write_status(&writer, 200);
    http_write_field(&writer, "Content-Type", span_str(exposition_media_type(format)));
    http_write_number(&writer, "Content-Length", reply->text.len);
    http_write_text(&writer, "Cache-Control: no-store\r\nVary: Accept\r\n");
    if (!request->persistent)
        http_write_text(&writer, "Connection: close\r\n");
    http_write_end(&writer);
    if (request->method_id == HTTP_HEAD)
        buf_reset(&reply->text);
    send_reply(c, reply, http_written(&writer));
    return true;
}

static bool
answer_health(struct metrics_connection *c, const struct http_request *request)
{
    const struct metrics_http *context = c->net.context;
    bool stopping = atomic_load(&context->stopping);
    struct span text = span_str(stopping ? "stopping\n" : "serving\n");
    struct reply *reply = make_reply(c);
    struct http_writer writer;

    if (!reply)
        return false;
    writer = http_writer_of(reply->head, sizeof(reply->head));
    http_write_status(&writer, stopping ? 503 : 200);
    http_write_field(&writer, "Content-Type", span_str("text/plain"));
    http_write_number(&writer, "Content-Length", text.len);
    http_write_text(&writer, "Cache-Control: no-store\r\n");
    if (!request->persistent)
        http_write_text(&writer, "Connection: close\r\n");
    http_write_end(&writer);
    if (request->method_id != HTTP_HEAD)
        http_write_text(&writer, text.ptr);
    send_reply(c, reply, http_written(&writer));
    return true;
}

/* False if nothing more is to be read. */
static bool
take_request(struct metrics_connection *c, const struct http_request *request)
{
    struct span path = request->path; /* none, of CONNECT */
    const char *query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    bool health;

    if (query)
        path.len = (size_t)(query - path.ptr);
    if (request->chunked || request->content_length > 0) {
        refuse(c, request, 413, "no request here has a body", true);
        return false;
    }
    health = span_equal(path, span_str("/healthz"));
    if (!health && !span_equal(path, span_str("/metrics")))
        return refuse(c, request, 404, "the metrics are at /metrics", !request->persistent) &&
               request->persistent;
    if (request->method_id != HTTP_GET && request->method_id != HTTP_HEAD)
        return refuse(c, request, 405, "metrics are read with GET", !request->persistent) &&
               request->persistent;
    return (health ? answer_health(c, request) : answer(c, request)) && request->persistent;
}

/* ---- the protocol ---------------------------------------------------------------------------- */

static void
opened(struct net_connection *net)
{
    (void)net;
}

static enum net_input
received(struct net_connection *net, struct span *input)
{
    static const struct http_head_limits limits = {
        .max_bytes = MAX_HEAD, .max_line = MAX_HEAD, .max_fields = 100};
    struct metrics_connection *c = (struct metrics_connection *)net;
    size_t before = c->len;
    size_t len = input->len < MAX_HEAD - before ? input->len : MAX_HEAD - before;
    struct http_request request;
    struct http_refusal refusal;

    if (c->replying)
        return NET_INPUT_HOLD;
    memcpy(c->head + before, input->ptr, len);
    c->len += len;
    switch (http_request_head_read(&request, span_of(c->head, c->len), &c->searched, &limits,
                                   &refusal)) {
    case HTTP_HEAD_COMPLETE:
        len = request.head_len - before;
        break;
    case HTTP_HEAD_PARTIAL:
        if (c->len < MAX_HEAD) {
            *input = span_of(input->ptr + len, input->len - len);
            return NET_INPUT_PARTIAL;
        }
        refusal = (struct http_refusal){431, "the head of the request is too long"};
        /* fall through */
    default:
        refuse(c, &request, refusal.status, refusal.reason, true);
        return NET_INPUT_END;
    }
    *input = span_of(input->ptr + len, input->len - len);
    c->len = c->searched = 0;
    return take_request(c, &request) ? NET_INPUT_MESSAGE : NET_INPUT_END;
}

static void
stopped(struct net_connection *net)
{
    struct metrics_connection *c = (struct metrics_connection *)net;

    c->len = c->searched = 0;
}

static void
closed(struct net_connection *net)
{
    (void)net;
}

const struct net_protocol metrics_http_protocol = {
    .connection_size = sizeof(struct metrics_connection),
    .opened = opened,
    .received = received,
    .stopped = stopped,
    .closed = closed,
};
