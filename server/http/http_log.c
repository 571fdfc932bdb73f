#include "server/http/http_log.h"

#include "base/clock.h"
#include "http/field.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_stream.h"
#include "server/http/http_user.h"

static void
read_fields(struct access_http *entry, struct span fields)
{
    struct span line, name, value;

    while (http_next_line(&fields, &line)) {
        if (!http_split_field(line, &name, &value))
            continue;
        if (http_name_is(name, "Referer"))
            entry->referer = value;
        else if (http_name_is(name, "User-Agent"))
            entry->agent = value;
    }
}

/* "local": the response is the proxy's own. */
static const char *
outcome(const struct http_exchange *x)
{
    if (x->failure)
        return failure_word(x->failure);
    if (x->exchange.object)
        return outcome_word(x->exchange.outcome);
    return x->status ? "local" : failure_word(FAILURE_CANCELLED);
}

/* The URL that was looked up or fetched; else what the client has sent, if that has been kept. */
static struct span
url_of(const struct exchange *exchange, struct span target)
{
    const struct object *object =
        exchange->object ? exchange->object : exchange->waiter.base.object;

    return object ? object_url(object) : target;
}

static const char *
reason(const struct http_exchange *x)
{
    if (x->failure)
        return NULL;
    return http_reason_word(x->reason ? x->reason : exchange_reason(&x->exchange));
}

void
http_log_add(struct http_exchange *x)
{
    const struct exchange *exchange = &x->exchange;
    struct access_http http = {.minor = x->request.minor};
    int64_t us = clock_monotonic_us() - x->arrived_us;

    /* The spans of a request that was refused have not been kept, nor those of a hit
     * (keep_for_logs() in http_begin.c). */
    if (x->kept_head.bytes) {
        http.method = x->request.method;
        http.target = x->request.target;
        http.fields = x->request.fields;
        read_fields(&http, x->request.fields);
    } else if (exchange->object) {
        http.method = span_str(x->request.method_id == HTTP_HEAD ? "HEAD" : "GET");
    }
    service_log(http_service_of(x)->service,
                &(struct access_entry){
                    .peer = http_peer(x),
                    .protocol = "http",
                    .worker = http_stream_worker_number(&x->stream),
                    .member = exchange_member(exchange),
                    .response =
                        exchange->object ? object_fields(exchange->object) : span_of(NULL, 0),
                    .url = url_of(exchange, http.target),
                    .outcome = outcome(x),
                    .reason = reason(x),
                    .user = x->user ? x->user->name : span_of(NULL, 0),
                    .error = x->failure ? exchange->error : span_of(NULL, 0),
                    .status = x->status ? x->status : HTTP_CLIENT_CLOSED,
                    .bytes = x->body.sent,
                    .us = us,
                    .fetch_us = exchange_fetch_us(exchange, us),
                    .victims = exchange->victims,
                    .http = &http,
                });
}
