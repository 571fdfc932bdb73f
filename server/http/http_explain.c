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

struct explained {
    struct explain_call call; /* first */
    struct http_exchange *x;
};

static void
end(struct explained *explained)
{
    explain_end(&explained->call);
    free(explained);
}

static void
make_page(struct http_exchange *x, const struct explain_call *call)
{
    const struct span body = buf_span(&call->out);

    if (!http_exchange_allocate(x, &x->kept_lines, body.len)) {
        http_page_make(x, &(struct http_page){.status = 503, .reason = span_str("out of memory")});
        return;
    }
    span_put(x->kept_lines.bytes, body);
    http_page_make(x, &(struct http_page){
                          .status = call->ok ? 200 : 400,
                          .type = "text/plain; charset=utf-8",
                          .body = span_of(x->kept_lines.bytes, body.len),
                      });
}

/* What is on disk has been read. */
static void
answer(struct explain_call *call)
{
    struct explained *explained = (struct explained *)call;
    struct http_exchange *x = explained->x;

    if (http_exchange_end_wait(x)) {
        make_page(x, call);
        end(explained);
        http_exchange_send_made(x);
    } else {
        end(explained);
    }
}

/* The read ends by itself. */
static bool
stop(struct http_exchange *x)
{
    (void)x;
    return false;
}

static struct explained *
make(struct http_exchange *x)
{
    struct explained *explained = calloc(1, sizeof(*explained));

    if (!explained)
        return NULL;
    explained->x = x;
    explained->call.service = http_service_of(x)->service;
    explained->call.worker = http_stream_net_worker(&x->stream);
    explained->call.done = answer;
    buf_init(&explained->call.out, PROXY_MAX_LINES);
    return explained;
}

/* True: it is over. */
static bool
begin(struct http_exchange *x, struct explained *explained)
{
    const struct http_request *request = &x->request;
    char url[PROXY_MAX_URL];
    struct explain_request asked = {
        .method = http_first_value(request->fields, "Explain-Method"),
        .last = last_of(request->fields),
    };
    struct buf lines;
    bool over;

    asked.url = span_of(url, http_write_url(url, sizeof(url), request->https, request->host,
                                            request->port, request->path));
    buf_init(&lines, HTTP_FIELDS_MAX);
    /* As they would go on. */
    http_fields_make(x, asked.url);
    write_lines(x->asked.fields, &lines);
    asked.lines = buf_span(&lines);
    over = explain_begin(&explained->call, &asked);
    buf_free(&lines);
    return over;
}

bool
http_explain(struct http_exchange *x)
{
    struct explained *explained;

    if (!service_is_admin(http_service_of(x)->service, http_peer(x))) {
        http_page_make(
            x, &(struct http_page){.status = 403,
                                   .reason = span_str("this client may not ask for explanations")});
        return true;
    }
    explained = make(x);
    if (!explained) {
        http_page_make(x, &(struct http_page){.status = 503, .reason = span_str("out of memory")});
        return true;
    }
    if (!begin(x, explained)) {
        http_exchange_await(x, stop);
        return false;
    }
    make_page(x, &explained->call);
    end(explained);
    return true;
}
