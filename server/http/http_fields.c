#include "server/http/http_fields.h"

#include "http/hop_by_hop.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_forwarded.h"
#include "server/http/http_rules.h"
#include "server/http/http_service.h"
#include "server/http/http_stream.h"

void
http_fields_make(struct http_exchange *x, struct span url)
{
    const struct http_service *http = http_service_of(x);
    char client[INET6_ADDRSTRLEN];
    struct buf *fields = &x->stream.worker->fields;
    struct http_forwarding forwarding = {
        .method = x->request.method_id,
        .has_body = http_request_has_body(&x->request),
        .via = span_str(http->via[x->request.minor != 0]),
        .max_forwards = -1,
    };
    struct http_way way;

    if (x->asked.fields.ptr)
        return;
    if (x->origin) {
        if (http_forwarded_are_read(x))
            forwarding.chain = x->config->forwarded_field;
        /* It was well formed in http_forwarded_take(). */
        if (forwarding.chain == HTTP_WAY_FORWARDED &&
            http_forwarded_read(x->request.fields, forwarding.chain, &x->config->trusted, &way))
            forwarding.way = &way;
        /* X-Forwarded-For goes on with the sender's address behind those that it has. */
        forwarding.for_ = forwarding.chain == HTTP_WAY_X ? http_stream_sender_name(&x->stream)
                                                         : http_client_name(x, client);
        if (x->config->forwarded_field == HTTP_WAY_FORWARDED)
            forwarding.sender = http_stream_sender_name(&x->stream);
        /* A peer does not say for whom it asks, and its own address may be let in where that of its
         * client is not. */
        if (x->peer)
            forwarding.for_ = forwarding.sender = span_str("unknown");
        forwarding.proto =
            span_starts_with(url, span_str("https:")) ? span_str("https") : span_str("http");
        forwarding.host = origin_route_authority(url);
    }
    if (x->request.has & HTTP_HAS_MAX_FORWARDS) {
        int64_t hops = http_max_forwards(x->request.fields);

        forwarding.max_forwards = hops > 0 ? hops - 1 : -1;
    }
    buf_reset(fields);
    (void)http_forward_fields(fields, x->request.fields, &forwarding);
    http_rules_edit(x, fields);
    x->asked.fields = fields->len ? buf_span(fields) : span_str("");
}
