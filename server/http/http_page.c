#include "server/http/http_page.h"

#include <stdio.h>

#include "http/cache_status.h"
#include "http/date.h"
#include "http/field.h"
#include "http/response_head.h"
#include "server/http/http_count.h"
#include "server/http/http_exchange.h"
#include "server/http/http_peer.h"
#include "server/http/http_peer_response.h"
#include "server/http/http_service.h"

void
http_write_date(struct http_writer *writer, int64_t seconds)
{
    char text[HTTP_DATE_SIZE];

    http_date_format(seconds, text);
    http_write_field(writer, "Date", span_str(text));
}

static void
write_retry_after(struct http_writer *writer, unsigned seconds)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", seconds);
    http_write_field(writer, "Retry-After", span_str(text));
}

/* Does the request accept HTML? Without a closer look at weights: a browser says so by name. */
static bool
accepts_html(struct span fields)
{
    struct span value = http_first_value(fields, "Accept");

    return value.len && memmem(value.ptr, value.len, "text/html", 9) != NULL;
}

/* The field lines of a page beside those that each one has. */
static void
write_lines(struct http_writer *lines, const struct http_exchange *x, const struct http_page *page)
{
    const struct proxy_clock *clock = &http_service_of(x)->service->proxy.config.clock;

    http_write_date(lines, clock->wall_us(clock->context) / 1000000);
    if (page->status == 405)
        http_write_text(lines, "Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS\r\n");
    if (x->failure == FAILURE_DOWN && x->origin)
        write_retry_after(lines, origin_route_retry_after_s(&x->origin->route));
    else if (x->failure == FAILURE_OVERLOADED)
        write_retry_after(lines, 1);
    http_write(lines, page->lines);
    http_peer_write(lines, x, page->status == HTTP_PEER_TAKEN ? PEER_SERVED : PEER_FAILED);
    if (page->detail)
        http_write_cache_status(lines, &(struct http_cache_status){
                                           .cache = HTTP_CACHE_NAME,
                                           .forwarded = x->exchange.forwarded,
                                           .collapsed = x->exchange.outcome == OUTCOME_COALESCED,
                                           .detail = span_str(page->detail),
                                       });
    if (x->persistent && !x->request.minor)
        http_write_text(lines, "Connection: keep-alive\r\n");
}

/* A status that has no body, or a response to HEAD. */
static void
make_empty(struct http_exchange *x, unsigned status, struct span lines, struct http_writer *writer)
{
    http_write_status(writer, status);
    http_write(writer, lines);
    if (status != 204)
        http_write_text(writer, "Content-Length: 0\r\n");
    if (!x->persistent)
        http_write_text(writer, "Connection: close\r\n");
    http_write_end(writer);
}

/* The head of a response with a body that stands elsewhere. */
static void
make_head(struct http_exchange *x, const struct http_page *page, struct span lines,
          struct http_writer *writer)
{
    http_write_status(writer, page->status);
    http_write(writer, lines);
    http_write_field(writer, "Content-Type", span_str(page->type));
    http_write_number(writer, "Content-Length", page->body.len);
    http_write_field(writer, "Cache-Control", span_str("no-store"));
    if (!x->persistent)
        http_write_text(writer, "Connection: close\r\n");
    http_write_end(writer);
}

static void
make_page(struct http_exchange *x, const struct http_page *about, struct span lines,
          struct http_writer *writer)
{
    struct http_error_page page = {
        .status = about->status,
        .detail = about->reason,
        .lines = lines,
        .html = accepts_html(x->request.fields),
        .close = !x->persistent,
        .no_body = x->request.method_id == HTTP_HEAD,
    };

    http_write_error_page(writer, &page);
    if (!writer->full)
        return;
    page.detail = span_of(NULL, 0);
    *writer = http_writer_of(writer->bytes, writer->size);
    http_write_error_page(writer, &page);
}

/* Bytes behind the head. */
static size_t
body_of(const struct http_writer *writer)
{
    const char *end = memmem(writer->bytes, writer->len, "\r\n\r\n", 4);

    return end ? writer->len - (size_t)(end + 4 - writer->bytes) : 0;
}

void
http_page_make(struct http_exchange *x, const struct http_page *page)
{
    char bytes[512 + HTTP_PAGE_LINES];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));
    struct http_writer writer = http_writer_of(x->head, sizeof(x->head));

    write_lines(&lines, x, page);
    if (page->empty)
        make_empty(x, page->status, http_written(&lines), &writer);
    else if (page->type)
        make_head(x, page, http_written(&lines), &writer);
    else
        make_page(x, page, http_written(&lines), &writer);
    x->status = page->status;
    x->pieces[0] = (struct iovec){.iov_base = x->head, .iov_len = writer.len};
    x->piece_count = 1;
    x->head_bytes = writer.len;
    x->body = (struct http_body){.sent = body_of(&writer)};
    if (page->type && page->body.len && x->request.method_id != HTTP_HEAD) {
        x->pieces[x->piece_count++] = (struct iovec){.iov_base = (char *)(uintptr_t)page->body.ptr,
                                                     .iov_len = page->body.len};
        x->head_bytes += page->body.len;
        x->body.sent = page->body.len;
    }
    http_count_bytes(x, x->body.sent);
}
