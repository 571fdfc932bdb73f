#include "server/http/http_rules.h"

#include "http/field.h"
#include "rules/rules.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_page.h"
#include "server/http/http_route.h"
#include "server/http/http_user.h"

static struct rules_request
to_rules(const struct http_exchange *x, struct span url, uint32_t has)
{
    return (struct rules_request){
        .method = x->request.method_id,
        .url = url,
        .lines = x->request.fields,
        .has = has,
        .now_us = x->arrived_us,
        .client = (const struct sockaddr *)&http_peer(x)->address,
        .user = x->user ? x->user->name : span_of(NULL, 0),
    };
}

/* ---- pages in place of errors ---------------------------------------------------------------- */

/* It stays as long as the configuration, which the exchange keeps then. */
static struct rules_page
find_page(struct http_exchange *x, const struct rules_response *response)
{
    struct rules_page page = {.type = NULL};

    if (response->status < 400 || x->peer || !x->config || !x->config->table || !response->url.len)
        return page;
    page = rules_error_page(x->config->table, response);
    if (page.type && !x->kept_config)
        x->kept_config = shared_retain(&x->config->rules.shared);
    return page;
}

static void
send_found(struct http_exchange *x, const struct rules_page *found, unsigned status,
           struct span lines, const char *detail)
{
    if (http_stream_awaits_body(&x->stream) || http_stream_is_draining(&x->stream))
        x->persistent = false;
    http_page_make(x, &(struct http_page){.status = status,
                                          .detail = detail,
                                          .lines = lines,
                                          .type = found->type,
                                          .body = found->body});
    http_exchange_send_made(x);
}

static struct rules_page
find_own(struct http_exchange *x, struct span url, unsigned status)
{
    return find_page(
        x, &(struct rules_response){.method = x->request.method_id, .url = url, .status = status});
}

void
http_rules_make_page(struct http_exchange *x, struct span url, struct http_page *page)
{
    const struct rules_page found = find_own(x, url, page->status);

    page->type = found.type;
    page->body = found.body;
    http_page_make(x, page);
}

void
http_rules_send_page(struct http_exchange *x, struct span url, unsigned status, struct span reason,
                     const char *detail)
{
    const struct rules_page found = find_own(x, url, status);

    if (found.type)
        send_found(x, &found, status, span_of(NULL, 0), detail);
    else
        http_exchange_send_page(x, status, reason, detail);
}

/* What a client needs of a response beside its body. */
static void
write_kept(struct http_writer *writer, struct span lines)
{
    static const char *const names[] = {"WWW-Authenticate",
                                        "Retry-After",
                                        "Allow",
                                        "Access-Control-Allow-Origin",
                                        "Access-Control-Allow-Credentials",
                                        NULL};
    struct span line, name, value;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !http_name_is_one_of(name, names))
            continue;
        http_write(writer, line);
        http_write_text(writer, "\r\n");
    }
}

bool
http_rules_send_instead(struct http_exchange *x)
{
    const struct object *object = x->exchange.object;
    const struct rules_response response = {.method = x->request.method_id,
                                            .url = object_url(object),
                                            .status = object->status,
                                            .lines = object_fields(object)};
    const struct rules_page found = find_page(x, &response);
    char bytes[HTTP_PAGE_LINES / 2];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));

    if (!found.type)
        return false;
    write_kept(&lines, response.lines);
    if (lines.full)
        return false;
    send_found(x, &found, object->status, http_written(&lines), "error-page");
    return true;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
redirect(struct http_exchange *x, const struct rules_answer *answer)
{
    char bytes[RULES_LOCATION_MAX + 16];
    struct http_writer lines = http_writer_of(bytes, sizeof(bytes));

    http_write_field(&lines, "Location", answer->location);
    if (http_stream_awaits_body(&x->stream) || http_stream_is_draining(&x->stream))
        x->persistent = false;
    http_page_make(x, &(struct http_page){.status = answer->status,
                                          .reason = span_str("the resource is at another URL"),
                                          .lines = http_written(&lines)});
    http_exchange_send_made(x);
}

/* A forward proxy serves many hosts and users, so it says which ones it has refused. */
static void
deny(struct http_exchange *x, struct span url, const struct rules_answer *answer)
{
    struct buf sentence;

    buf_init(&sentence, 4096);
    buf_append_str(&sentence, "this server refuses such requests");
    if (!x->origin)
        buf_printf(&sentence, " for %.*s", (int)x->request.host.len, x->request.host.ptr);
    if (x->user)
        buf_printf(&sentence, " of %.*s", (int)x->user->name.len, x->user->name.ptr);
    if (answer->reason.len)
        buf_printf(&sentence, ": %.*s", (int)answer->reason.len, answer->reason.ptr);
    http_rules_send_page(x, url, answer->status, buf_span(&sentence), "rule-deny");
    buf_free(&sentence);
}

static void
respond(struct http_exchange *x, struct span url, const struct rules_answer *answer)
{
    switch (answer->verdict) {
    case RULES_GO_ON:
    case RULES_DENY:
        deny(x, url, answer);
        break;
    case RULES_REDIRECT:
        redirect(x, answer);
        break;
    case RULES_LIMIT:
        http_rules_send_page(x, url, answer->status,
                             span_str("there are too many such requests; try again"), "rule-rate");
        break;
    }
}

bool
http_rules_demand_user(const struct http_exchange *x, struct span url)
{
    const struct rules_request request = to_rules(x, url, x->request.has);

    return !x->config->table || rules_demand_user(x->config->table, &request);
}

bool
http_rules_apply(struct http_exchange *x, struct span *url)
{
    struct http_worker *worker = x->stream.worker;
    const struct rules_request request = to_rules(x, *url, x->request.has);
    struct rules_answer answer;

    if (!x->config->table || x->peer)
        return true;
    rules_apply(x->config->table, &request, worker->ruled_url, sizeof(worker->ruled_url), &answer);
    if (answer.verdict != RULES_GO_ON) {
        respond(x, *url, &answer);
        return false;
    }
    /* What is removed is as good as not sent. */
    x->request.has = answer.has;
    x->ruled = (answer.passes ? HTTP_RULED_PASS : 0u) | (answer.edits ? HTTP_RULED_EDIT : 0u);
    *url = answer.url;
    return true;
}

void
http_rules_visit_keys(const struct http_exchange *x, struct span url,
                      void (*visit)(void *context, struct span key), void *context)
{
    struct http_worker *worker = x->stream.worker;

    if (x->config->table)
        rules_visit_keys(x->config->table, url, worker->ruled_url, sizeof(worker->ruled_url), visit,
                         context);
}

struct span
http_rules_url_again(struct http_exchange *x)
{
    struct http_worker *worker = x->stream.worker;
    struct span url = http_route_url_again(x);
    const struct rules_request request = to_rules(x, url, UINT32_MAX);

    return x->config->table && !x->peer
               ? rules_edit_url(x->config->table, &request, worker->ruled_url,
                                sizeof(worker->ruled_url))
               : url;
}

void
http_rules_edit(struct http_exchange *x, struct buf *lines)
{
    if (x->ruled & HTTP_RULED_EDIT) {
        const struct rules_request request = to_rules(x, http_route_url_again(x), UINT32_MAX);

        rules_edit_fields(x->config->table, &request, lines);
    }
}
