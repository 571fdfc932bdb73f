#include "server/http/http_route.h"

#include "http/dot_segments.h"
#include "http/hop_by_hop.h"
#include "http/target.h"
#include "server/http/http_client.h"
#include "server/http/http_exchange.h"
#include "server/http/http_forwarded.h"
#include "server/http/http_origins.h"
#include "server/http/http_ports.h"
#include "server/http/http_stream.h"
#include "server/http/http_worker.h"

/* May the client use the forward proxy? */
static bool
may_forward(const struct http_exchange *x)
{
    return x->peer || service_is_client(http_service_of(x)->service, http_peer(x));
}

/* May the client purge? */
static bool
may_purge(const struct http_exchange *x)
{
    const struct net_peer *peer = http_peer(x);

    return service_is_admin(http_service_of(x)->service, peer) ||
           networks_have_address(&x->config->purgers, (const struct sockaddr *)&peer->address);
}

static unsigned
refuse(unsigned status, const char *sentence, const char **reason)
{
    *reason = sentence;
    return status;
}

/* Has the client used TLS? A target in absolute form proves that as little as a field does. */
static bool
is_https(const struct http_exchange *x)
{
    return x->request.https && (x->request.form != HTTP_ABSOLUTE_FORM ||
                                http_stream_is_tls(&x->stream) || http_forwarded_are_read(x) ||
                                x->peer);
}

/* The client's URL, in the worker's memory, for a path of it; empty if it is too long. */
static struct span
write_url(const struct http_exchange *x, const struct http_origin *row, struct span path)
{
    struct http_worker *worker = x->stream.worker;
    const struct http_origin_request asked = {
        .https = is_https(x),
        .host = x->request.host,
        .port = x->request.port,
        .path = path,
    };

    return span_of(worker->url,
                   http_origin_write_url(row, &asked, worker->url, sizeof(worker->url)));
}

/* By a row of --origin. */
static unsigned
find_reverse(struct http_exchange *x, struct http_route *route, const char **reason)
{
    const struct http_request *request = &x->request;
    struct http_worker *worker = x->stream.worker;
    struct span path = request->path;

    if (path.len > sizeof(worker->path))
        return 0;
    path = http_path_clean(path, worker->path);
    if (http_path_leads_up(path))
        return refuse(400, "the path has a segment \"..\" in disguise", reason);
    route->origin = http_origins_find(&x->config->origins, request->host, path);
    if (!route->origin)
        return refuse(421, "this server does not serve that host and path", reason);
    route->url = write_url(x, route->origin, path);
    return 0;
}

/* The URL that a request to a forward proxy names, likewise; of a tunnel, one that leads to its host
 * and port. */
static struct span
write_whole_url(const struct http_exchange *x)
{
    const struct http_request *request = &x->request;
    const bool tunnel = request->method_id == HTTP_CONNECT;
    struct http_worker *worker = x->stream.worker;

    return span_of(worker->url,
                   http_write_url(worker->url, sizeof(worker->url), !tunnel && request->https,
                                  request->host, request->port,
                                  tunnel ? span_str("/") : request->path));
}

struct span
http_route_url_again(struct http_exchange *x)
{
    if (!x->origin)
        return write_whole_url(x);
    return write_url(x, x->origin,
                     http_path_clean(x->request.path, x->stream.worker->path));
}

static unsigned
find_forward(struct http_exchange *x, struct http_route *route, const char **reason)
{
    const struct http_request *request = &x->request;

    if (request->form != HTTP_ABSOLUTE_FORM)
        return refuse(400, "this is a proxy: the request has to name a whole URL", reason);
    /* The rule for PURGE has been applied. */
    if (request->method_id != HTTP_PURGE && !may_forward(x))
        return refuse(403, "this client may not use the proxy", reason);
    route->url = write_whole_url(x);
    return 0;
}

static unsigned
find_tunnel(struct http_exchange *x, struct http_route *route, const char **reason)
{
    const struct http_request *request = &x->request;

    if (x->config->origins.count)
        return refuse(405, "this is a reverse proxy: it makes no tunnels", reason);
    if (!may_forward(x))
        return refuse(403, "this client may not use the proxy", reason);
    if (!http_ports_have(&x->config->connect_ports, request->port))
        return refuse(403, "tunnels to that port are not allowed (--connect-port)", reason);
    route->url = write_whole_url(x);
    return 0;
}

static unsigned
find_url(struct http_exchange *x, struct http_route *route, const char **reason)
{
    if (x->request.method_id == HTTP_CONNECT)
        return find_tunnel(x, route, reason);
    return x->config->origins.count ? find_reverse(x, route, reason)
                                    : find_forward(x, route, reason);
}

unsigned
http_route_find(struct http_exchange *x, struct http_route *route, const char **reason)
{
    const struct http_request *request = &x->request;
    unsigned status;

    *route = (struct http_route){0};
    if (request->method_id == HTTP_PURGE && !may_purge(x))
        return refuse(403, "this client may not purge", reason);
    if ((request->has & HTTP_HAS_VIA) &&
        http_via_has(request->fields, span_str(http_service_of(x)->pseudonym)))
        return refuse(508, "the request has been here before", reason);
    if (request->method_id == HTTP_TRACE)
        return refuse(405, "this proxy does not answer TRACE", reason);
    status = find_url(x, route, reason);
    if (!status && route->url.len == 0)
        return refuse(414, "the URL is longer than 8,192 bytes", reason);
    return status;
}
