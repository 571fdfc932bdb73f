#include "server/http/http_response.h"

#include "base/clock.h"
#include "base/hash.h"
#include "http/cache_status.h"
#include "http/conditional.h"
#include "http/date.h"
#include "http/field.h"
#include "http/known_fields.h"
#include "server/http/http_exchange.h"
#include "server/http/http_location.h"
#include "server/http/http_page.h"
#include "server/http/http_peer_response.h"
#include "server/http/http_rules.h"
#include "server/http/http_service.h"

#define COPIED_FIELDS 1024u /* bytes of an object's field lines that are copied into the head */
#define MAX_PART_TYPE 256u  /* bytes of a Content-Type that is repeated in each part */

/* ---- the object's fields --------------------------------------------------------------------- */

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
 * Which fields an object has: as was found when it was stored, so that a hit does not search them.
 */
static unsigned
known_fields(const struct object *object)
{
    return object->notes & HTTP_KNOWN ? object->notes : http_known_fields(object_fields(object));
}

/*
 * Copies the object's field lines without those in `drop` into one run; HTTP_KNOWN_LOCATION in
 * `drop` are rewritten. False without memory.
 */
static bool
copy_fields(struct http_exchange *x, unsigned drop)
{
    struct span rest = object_fields(x->exchange.object), line;
    size_t more = drop & HTTP_KNOWN_LOCATION ? http_location_more(x, rest) : 0;
    char *end;

    if (!http_exchange_allocate(x, &x->kept_lines, rest.len + more))
        return false;
    end = x->kept_lines.bytes;
    while (http_next_whole_line(&rest, &line)) {
        unsigned field = http_known_field(line) & drop;

        if (field & HTTP_KNOWN_LOCATION) {
            end += http_location_write(x, line, http_whole_line_value(line), end);
        } else if (!field) {
            memcpy(end, line.ptr, line.len);
            end += line.len;
        }
    }
    add_run(x, x->kept_lines.bytes, end);
    return true;
}

/*
 * Adds the object's field lines without those in `drop`: the runs between these, from where they
 * stand, or a copy, if there are more than HTTP_FIELD_RUNS. False without memory for the copy.
 */
static bool
add_fields(struct http_exchange *x, unsigned drop)
{
    struct span rest = object_fields(x->exchange.object), line;
    const char *begin = rest.ptr;
    unsigned before = x->piece_count;
    size_t bytes_before = x->head_bytes;

    if (drop & HTTP_KNOWN_LOCATION)
        return copy_fields(x, drop);
    while (http_next_whole_line(&rest, &line)) {
        if (!(http_known_field(line) & drop))
            continue;
        if (x->piece_count - before == HTTP_FIELD_RUNS - 1 && line.ptr != begin) {
            x->piece_count = before;
            x->head_bytes = bytes_before;
            return copy_fields(x, drop);
        }
        add_run(x, begin, line.ptr);
        begin = line.ptr + line.len;
    }
    add_run(x, begin, rest.ptr);
    return true;
}

/* The field lines as the origin has sent them. False without memory. */
static bool
copy_for_peer(struct http_exchange *x, unsigned drop)
{
    struct span rest, line;
    struct buf restored;
    char *end;

    buf_init(&restored, 2 * OBJECT_MAX_META);
    http_peer_restore(x, &restored);
    if (buf_failed(&restored) || !http_exchange_allocate(x, &x->kept_lines, restored.len)) {
        buf_free(&restored);
        return false;
    }
    rest = buf_span(&restored);
    end = x->kept_lines.bytes;
    while (http_next_whole_line(&rest, &line))
        if (!(http_known_field(line) & drop))
            end = span_put(end, line);
    buf_free(&restored);
    add_run(x, x->kept_lines.bytes, end);
    return true;
}

/* ---- fields of our own ----------------------------------------------------------------------- */

static int64_t
wall_s(const struct http_exchange *x)
{
    const struct proxy_clock *clock = &x->exchange.proxy->config.clock;

    return clock->wall_us(clock->context) / 1000000;
}

/* What has come after the request is older than the request says. */
static int64_t
age_of(const struct http_exchange *x)
{
    const struct exchange *exchange = &x->exchange;
    bool hit = exchange->outcome == OUTCOME_HIT;

    return object_age(exchange->object, hit ? exchange->as_of_us : proxy_now_us(exchange->proxy));
}

/* Via and Cache-Status. */
static void
write_passage(struct http_writer *writer, const struct http_exchange *x)
{
    const struct http_service *http = http_service_of(x);
    const struct exchange *exchange = &x->exchange;
    const struct object *object = exchange->object;
    const bool is_1_0 = object->notes & HTTP_KNOWN_VERSION_1_0;
    struct http_cache_status status = {
        .cache = HTTP_CACHE_NAME,
        .hit = exchange->forwarded == HTTP_FORWARDED_NOT,
        .forwarded = exchange->forwarded,
        .origin_status = exchange->origin_status,
        .stored = exchange->outcome != OUTCOME_STALE && exchange_is_stored(exchange),
        .collapsed = exchange->outcome == OUTCOME_COALESCED,
    };

    /* What `fwd` says is not repeated. */
    if (exchange->outcome == OUTCOME_STALE || !status.stored)
        status.detail = span_str(http_reason_word(exchange_reason(exchange)));

    if (exchange_is_complete(exchange) && exchange_is_stored(exchange) &&
        object_lifetime(object) != INT64_MAX) {
        status.has_ttl = true;
        status.ttl_s = (object_lifetime(object) - age_of(x)) / 1000000;
    }
    if (exchange->outcome == OUTCOME_HIT && !is_1_0) {
        http_write(writer, http->hit_lines);
        if (status.has_ttl)
            http_write_cache_status_ttl(writer, status.ttl_s);
        http_write_end(writer);
        return;
    }
    http_write_field(writer, "Via", span_str(http->via[!is_1_0]));
    http_write_cache_status(writer, &status);
}

/* A stored response that is used without a validation has Age in any case: RFC 9111 section 4. */
static void
write_age(struct http_writer *writer, const struct http_exchange *x)
{
    enum outcome outcome = x->exchange.outcome;
    int64_t age_us = age_of(x);

    if (outcome == OUTCOME_HIT || outcome == OUTCOME_STALE || age_us >= 1000000)
        http_write_age(writer, age_us > 0 ? age_us : 0);
}

static void
write_connection(struct http_writer *writer, const struct http_exchange *x)
{
    if (!x->persistent)
        http_write_text(writer, "Connection: close\r\n");
    else if (!x->request.minor)
        http_write_text(writer, "Connection: keep-alive\r\n");
}

/* ---- the body -------------------------------------------------------------------------------- */

/* The whole, and by what the client finds its end. */
static void
frame_whole(struct http_exchange *x, struct http_writer *writer, unsigned known)
{
    const struct exchange *exchange = &x->exchange;
    struct http_body *body = &x->body;

    body->end = UINT64_MAX;
    if (x->status == 204 || x->status == 304) {
        body->end = 0;
    } else if (x->request.method_id == HTTP_HEAD) {
        body->end = 0;
        if (!(known & HTTP_KNOWN_LENGTH) && exchange_is_complete(exchange) &&
            exchange->outcome != OUTCOME_BYPASS)
            http_write_number(writer, "Content-Length", object_length(exchange->object));
    } else if (known & HTTP_KNOWN_LENGTH) {
        return;
    } else if (exchange_is_complete(exchange)) {
        http_write_number(writer, "Content-Length", object_length(exchange->object));
    } else if (x->request.minor) {
        body->chunked = true;
        http_write_text(writer, "Transfer-Encoding: chunked\r\n");
    } else {
        body->until_close = true;
        x->persistent = false;
    }
}

static void
frame_range(struct http_exchange *x, struct http_writer *writer, const struct http_range *range,
            int64_t length)
{
    struct http_body *body = &x->body;

    body->next = (uint64_t)range->first;
    body->end = (uint64_t)range->last + 1;
    /* The reader of an object that grows begins at its beginning, since segments may be freed. */
    if (exchange_is_complete(&x->exchange))
        body->place.offset = body->next;
    http_write_content_range(
        writer,
        &(struct http_content_range){.first = range->first, .last = range->last, .length = length});
    http_write_number(writer, "Content-Length", body->end - body->next);
}

static void
frame_parts(struct http_exchange *x, struct http_writer *writer, const struct http_ranges *ranges,
            int64_t length)
{
    struct http_body *body = &x->body;
    struct span type = http_known_value(object_fields(x->exchange.object), HTTP_KNOWN_TYPE);
    uint64_t random = hash64_uint((uint64_t)clock_monotonic_us() ^ (uint64_t)(uintptr_t)x);

    http_boundary_make(body->boundary, random);
    body->parts = *ranges;
    body->multipart = (struct http_multipart){
        .boundary = body->boundary,
        .content_type = type.len <= MAX_PART_TYPE ? type : span_of(NULL, 0),
        .length = length,
    };
    http_write_multipart_type(writer, &body->multipart);
    http_write_number(writer, "Content-Length",
                      (uint64_t)http_multipart_length(&body->multipart, ranges));
}

/* ---- what the request asks for --------------------------------------------------------------- */

/*
 * The ranges to send, if the request asks for some and they can be sent: the length of the whole
 * must be known, and for several ranges all of its bytes.
 */
static enum http_range_result
find_ranges(const struct http_exchange *x, struct http_ranges *ranges, int64_t *length)
{
    const struct exchange *exchange = &x->exchange;
    const struct http_request *request = &x->request;
    const struct span fields = object_fields(exchange->object);
    struct http_ranges requested;
    enum http_range_result result;
    uint64_t whole;

    if (!(request->has & HTTP_HAS_RANGE) || request->method_id != HTTP_GET || x->status != 200 ||
        exchange->evaluated == EVALUATED_ALL || !http_ranges_read(&requested, request->fields) ||
        !http_accepts_ranges(fields) ||
        ((request->has & HTTP_HAS_IF_RANGE) && !http_if_range(request->fields, fields, wall_s(x))))
        return HTTP_RANGE_WHOLE;
    if (exchange_is_complete(exchange))
        whole = object_length(exchange->object);
    else if (!http_known_length(fields, &whole))
        return HTTP_RANGE_WHOLE;
    *length = (int64_t)whole;
    result = http_ranges_resolve(&requested, *length, ranges);
    if (result == HTTP_RANGE_PARTIAL && ranges->count > 1 && !exchange_is_complete(exchange))
        return HTTP_RANGE_WHOLE;
    return result;
}

static enum http_condition
evaluate_conditions(const struct http_exchange *x)
{
    const struct http_request *request = &x->request;

    if (!(request->has & HTTP_HAS_CONDITION) || x->exchange.evaluated != EVALUATED_NOTHING ||
        x->exchange.object->notes & HTTP_KNOWN_PASSING ||
        (request->method_id != HTTP_GET && request->method_id != HTTP_HEAD) || x->status / 100 != 2)
        return HTTP_CONDITION_PROCEED;
    return http_evaluate_conditions(request->fields, request->has,
                                    object_fields(x->exchange.object), wall_s(x));
}

/* Of the fetch standard of browsers, section 3.3. */
static bool
is_of_cors(struct span name)
{
    static const char prefix[] = "Access-Control-";

    return name.len >= sizeof(prefix) &&
           http_name_is(span_of(name.ptr, sizeof(prefix) - 1), prefix);
}

/*
 * The stored fields by which a browser lets a page of another origin see a response, as far as
 * there is space: without them a script finds an error of the network in place of the status.
 */
static void
write_cross_origin(struct http_writer *lines, const struct http_exchange *x)
{
    static const char *const names[] = {"Vary", "Timing-Allow-Origin",
                                        "Cross-Origin-Resource-Policy", NULL};
    struct span rest = object_fields(x->exchange.object), line, name, value;

    while (http_next_line(&rest, &line))
        if (http_split_field(line, &name, &value) &&
            (http_name_is_one_of(name, names) || is_of_cors(name)) &&
            line.len + 2 <= lines->size - lines->len) {
            http_write(lines, line);
            http_write_text(lines, "\r\n");
        }
}

static void
refuse_range(struct http_exchange *x, int64_t length)
{
    char bytes[HTTP_PAGE_LINES];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));

    http_write_content_range(
        &lines, &(struct http_content_range){.first = -1, .last = -1, .length = length});
    write_cross_origin(&lines, x);
    http_rules_make_page(x, object_url(x->exchange.object),
                         &(struct http_page){
                             .status = 416,
                             .reason = span_str("no requested range is in the content"),
                             .lines = http_written(&lines),
                         });
}

/*
 * Status line and fields; the body is framed by the caller in between. *added: bytes of x->head
 * that are among the pieces. A few short fields are copied, since each piece costs the kernel more:
 * -5 % CPU per hit of 1 KiB with 5,000 connections. False without memory.
 */
static bool
begin_head(struct http_exchange *x, unsigned known, unsigned drop, struct http_writer *writer,
           size_t *added)
{
    struct span fields = object_fields(x->exchange.object);

    if (known & HTTP_KNOWN_LOCATION && http_location_is_rewritten(x))
        drop |= HTTP_KNOWN_LOCATION;
    drop |= x->peer ? 0 : known & HTTP_KNOWN_ORIGIN_CONTROL;
    *writer = http_writer_of(x->head, sizeof(x->head));
    http_write_status(writer, x->status);
    *added = 0;
    if (!drop && !x->peer && !(known & HTTP_KNOWN_AGE) && fields.len <= COPIED_FIELDS) {
        http_write(writer, fields);
        return true;
    }
    add_run(x, x->head, x->head + writer->len);
    *added = writer->len;
    if (x->peer && http_peer_restores(x, known))
        return copy_for_peer(x, drop | HTTP_KNOWN_AGE);
    return add_fields(x, drop | HTTP_KNOWN_AGE);
}

static void
end_head(struct http_exchange *x, struct http_writer *writer, size_t added, unsigned known)
{
    if (!(known & HTTP_KNOWN_DATE))
        http_write_date(writer, wall_s(x));
    write_age(writer, x);
    write_passage(writer, x);
    http_peer_write(writer, x, PEER_SERVED);
    write_connection(writer, x);
    http_write_end(writer);
    add_run(x, x->head + added, x->head + writer->len);
    x->head_len = writer->len;
}

static bool
make_not_modified(struct http_exchange *x, unsigned known)
{
    struct http_writer writer;
    size_t added;

    x->status = 304;
    if (!begin_head(x, known,
                    HTTP_KNOWN_LENGTH | HTTP_KNOWN_TYPE | HTTP_KNOWN_RANGE | HTTP_KNOWN_CODING |
                        HTTP_KNOWN_LANGUAGE,
                    &writer, &added))
        return false;
    x->body.end = 0;
    end_head(x, &writer, added, known);
    return true;
}

static bool
make_partial(struct http_exchange *x, unsigned known, const struct http_ranges *ranges,
             int64_t length)
{
    struct http_writer writer;
    size_t added;

    x->status = 206;
    if (!begin_head(x, known,
                    HTTP_KNOWN_LENGTH | HTTP_KNOWN_RANGE |
                        (ranges->count > 1 ? HTTP_KNOWN_TYPE : 0),
                    &writer, &added))
        return false;
    if (ranges->count == 1)
        frame_range(x, &writer, &ranges->of[0], length);
    else
        frame_parts(x, &writer, ranges, length);
    end_head(x, &writer, added, known);
    return true;
}

static bool
make_whole(struct http_exchange *x, unsigned known)
{
    struct http_writer writer;
    size_t added;

    if (!begin_head(x, known, 0, &writer, &added))
        return false;
    frame_whole(x, &writer, known);
    end_head(x, &writer, added, known);
    return true;
}

/* False without memory. */
static bool
make(struct http_exchange *x, unsigned known)
{
    struct http_ranges ranges;
    int64_t length;

    switch (evaluate_conditions(x)) {
    case HTTP_CONDITION_NOT_MODIFIED:
        return make_not_modified(x, known);
    case HTTP_CONDITION_FAILED:
        http_rules_make_page(
            x, object_url(x->exchange.object),
            &(struct http_page){.status = 412,
                                .reason = span_str("a condition of the request is false")});
        return true;
    case HTTP_CONDITION_PROCEED:
        break;
    }
    switch (find_ranges(x, &ranges, &length)) {
    case HTTP_RANGE_PARTIAL:
        return make_partial(x, known, &ranges, length);
    case HTTP_RANGE_UNSATISFIABLE:
        refuse_range(x, length);
        return true;
    case HTTP_RANGE_WHOLE:
        break;
    }
    return make_whole(x, known);
}

void
http_response_make(struct http_exchange *x)
{
    const unsigned known = known_fields(x->exchange.object);

    x->status = x->exchange.object->status;
    if (!make(x, known))
        http_page_make(x, &(struct http_page){.status = 503,
                                              .reason = span_str("the proxy is out of memory"),
                                              .detail = "overloaded"});
}
