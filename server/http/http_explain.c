#include "server/http/http_explain.h"

#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "http/field.h"
#include "http/target.h"
#include "server/explain/explain_text.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_fields.h"
#include "server/http/http_page.h"

bool
http_explain_is_asked(const struct http_exchange *x)
{
    return span_equal(x->request.method, span_str("EXPLAIN"));
}

/* A number of latest misses; 0: none is stated. */
static unsigned
last_of(struct span fields)
{
    struct span value = http_first_value(fields, "Explain-Last");
    char text[16] = "";
    uint64_t last = 0;

    if (value.len && value.len < sizeof(text))
        memcpy(text, value.ptr, value.len);
    return units_parse_uint(text, 0, EXPLAIN_LAST, &last) ? (unsigned)last : 0;
}

/* The fields of the request that is explained. */
static void
write_lines(struct span fields, struct buf *lines)
{
    static const char *const own[] = {"Host", "Explain-Method", "Explain-Last", "Connection", NULL};
    struct span line, name, value;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value) || http_name_is_one_of(name, own))
            continue;
        buf_append(lines, line.ptr, line.len);
        buf_append_str(lines, "\r\n");
    }
}

/* The text is the exchange's from now on. */
static void
send_text(struct http_exchange *x, unsigned status, struct buf *text)
{
    const struct span body = buf_span(text);

    if (!http_exchange_allocate(x, &x->kept_lines, body.len)) {
        http_page_make(x, &(struct http_page){.status = 503, .reason = span_str("out of memory")});
    } else {
        span_put(x->kept_lines.bytes, body);
        http_page_make(x, &(struct http_page){
                              .status = status,
                              .type = "text/plain; charset=utf-8",
                              .body = span_of(x->kept_lines.bytes, body.len),
                          });
    }
    buf_free(text);
}

void
http_explain(struct http_exchange *x)
{
    struct service *service = http_service_of(x)->service;
    const struct http_request *request = &x->request;
    char url[PROXY_MAX_URL];
    struct explain_request asked = {
        .method = http_first_value(request->fields, "Explain-Method"),
        .last = last_of(request->fields),
    };
    struct buf lines, out;
    bool ok;

    if (!service_is_admin(service, http_peer(x))) {
        http_page_make(
            x, &(struct http_page){.status = 403,
                                   .reason = span_str("this client may not ask for explanations")});
        return;
    }
    asked.url = span_of(url, http_write_url(url, sizeof(url), request->https, request->host,
                                            request->port, request->path));
    buf_init(&lines, HTTP_FIELDS_MAX);
    buf_init(&out, PROXY_MAX_LINES);
    /* As they would go on. */
    http_fields_make(x, asked.url);
    write_lines(x->asked.fields, &lines);
    asked.lines = buf_span(&lines);
    ok = explain_write(service, http_stream_worker_number(&x->stream), &asked, &out);
    buf_free(&lines);
    send_text(x, ok ? 200 : 400, &out);
}
