/*
 * The head of a response with an object: status line, the object's field lines from where they
 * stand, and those that depend on time and request; and which bytes of the body follow.
 */
#include "http/date.h"
#include "http/field.h"
#include "http/response_head.h"
#include "server/http_front.h"

/* What is to be known of an object's field lines. */
struct stored {
    bool has_date;
    bool has_length;
};

enum field { FIELD_OTHER, FIELD_AGE, FIELD_DATE, FIELD_CONTENT_LENGTH };

/* Most names are excluded by their length. */
static enum field
field_of(struct span line)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct span name = span_of(line.ptr, colon ? (size_t)(colon - line.ptr) : line.len);

    switch (name.len) {
    case sizeof("Age") - 1:
        return http_name_is(name, "Age") ? FIELD_AGE : FIELD_OTHER;
    case sizeof("Date") - 1:
        return http_name_is(name, "Date") ? FIELD_DATE : FIELD_OTHER;
    case sizeof("Content-Length") - 1:
        return http_name_is(name, "Content-Length") ? FIELD_CONTENT_LENGTH : FIELD_OTHER;
    default:
        return FIELD_OTHER;
    }
}

static void
add_run(struct http_exchange *x, const char *begin, const char *end)
{
    if (begin == end)
        return;
    x->pieces[x->piece_count++] =
        (struct iovec){.iov_base = (void *)(uintptr_t)begin, .iov_len = (size_t)(end - begin)};
    x->head_bytes += (size_t)(end - begin);
}

/*
 * Adds the object's field lines, without Age if it is ours to state. Should there be more runs
 * between lines that are left out than HTTP_FIELD_RUNS, the lines after the last one are left out.
 */
static void
add_fields(struct http_exchange *x, bool drop_age, struct stored *stored)
{
    struct span rest = object_fields(x->exchange.object);
    const char *begin = rest.ptr;
    unsigned runs = 0;

    while (rest.len) {
        const char *line = rest.ptr;
        const char *feed = memchr(line, '\n', rest.len);
        size_t len = feed ? (size_t)(feed + 1 - line) : rest.len;

        switch (field_of(span_of(line, len))) {
        case FIELD_AGE:
            if (drop_age) {
                if (runs + 1 == HTTP_FIELD_RUNS) {
                    rest = span_of(line, 0);
                    len = 0;
                    break;
                }
                runs += begin != line;
                add_run(x, begin, line);
                begin = line + len;
            }
            break;
        case FIELD_DATE:
            stored->has_date = true;
            break;
        case FIELD_CONTENT_LENGTH:
            stored->has_length = true;
            break;
        case FIELD_OTHER:
            break;
        }
        rest = span_of(line + len, rest.len - len);
    }
    add_run(x, begin, rest.ptr);
}

void
http_write_date(struct http_writer *writer, int64_t seconds)
{
    char text[HTTP_DATE_SIZE];

    http_date_format(seconds, text);
    http_write_field(writer, "Date", span_str(text));
}

static void
write_cache_status(struct http_writer *writer, const struct exchange *exchange)
{
    static const char *const text[] = {
        [OUTCOME_HIT] = "Cache-Status: sunproxy; hit\r\n",
        [OUTCOME_MISS] = "Cache-Status: sunproxy; fwd=uri-miss\r\n",
        [OUTCOME_COALESCED] = "Cache-Status: sunproxy; fwd=uri-miss; collapsed\r\n",
        [OUTCOME_BYPASS] = "Cache-Status: sunproxy; fwd=bypass\r\n",
    };

    http_write_text(writer, text[exchange->outcome]);
}

/* Whole seconds since the origin made the response, of an object that is complete. */
static uint64_t
age_of(const struct exchange *exchange)
{
    int64_t us = exchange->arrived_us - exchange->object->fetched_us;

    return us > 0 ? (uint64_t)us / 1000000 : 0;
}

/* Is there no body, whatever the field lines say (RFC 9112, section 6.3)? */
static bool
has_no_body(const struct http_exchange *x)
{
    unsigned status = x->exchange.object->status;

    return x->request.method_id == HTTP_HEAD || status == 204 || status == 304;
}

/* Which bytes follow, and by what the client finds their end. */
static void
frame_body(struct http_exchange *x, struct http_writer *writer, const struct stored *stored)
{
    const struct exchange *exchange = &x->exchange;
    struct http_body *body = &x->body;

    body->end = UINT64_MAX;
    if (has_no_body(x)) {
        body->end = 0;
        if (x->request.method_id == HTTP_HEAD && !stored->has_length && exchange->complete &&
            exchange->outcome != OUTCOME_BYPASS)
            http_write_number(writer, "Content-Length", object_length(exchange->object));
    } else if (stored->has_length) {
        return;
    } else if (exchange->complete) {
        http_write_number(writer, "Content-Length", object_length(exchange->object));
    } else if (x->request.minor) {
        body->chunked = true;
        http_write_text(writer, "Transfer-Encoding: chunked\r\n");
    } else {
        body->until_close = true;
        x->persistent = false;
    }
}

void
http_response_make(struct http_exchange *x)
{
    const struct exchange *exchange = &x->exchange;
    const struct proxy_clock *clock = &exchange->proxy->config.clock;
    struct http_writer writer = http_writer_of(x->head, sizeof(x->head));
    struct stored stored = {0};
    size_t status_line;

    x->status = exchange->object->status;
    http_write_status(&writer, x->status);
    status_line = writer.len;
    add_run(x, x->head, x->head + status_line);
    add_fields(x, exchange->complete, &stored);
    if (exchange->complete) {
        uint64_t age = age_of(exchange);

        if (age || exchange->outcome == OUTCOME_HIT)
            http_write_number(&writer, "Age", age);
    }
    if (!stored.has_date)
        http_write_date(&writer, clock->wall_us(clock->context) / 1000000);
    http_write_text(&writer, "Via: 1.1 sunproxy\r\n");
    write_cache_status(&writer, exchange);
    frame_body(x, &writer, &stored);
    if (!x->persistent)
        http_write_text(&writer, "Connection: close\r\n");
    else if (!x->request.minor)
        http_write_text(&writer, "Connection: keep-alive\r\n");
    http_write_end(&writer);
    add_run(x, x->head + status_line, x->head + writer.len);
}
