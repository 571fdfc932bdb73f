/* Where requests are routed, and which clients may send them. */
#include "http/hop_by_hop.h"
#include "http/target.h"
#include "server/http_front.h"

/* May the client use the forward proxy? */
static bool
may_forward(const struct http_connection *c)
{
    return service_is_client(c->worker->http->service, http_peer(c));
}

static unsigned
refuse(unsigned status, const char *sentence, const char **reason)
{
    *reason = sentence;
    return status;
}

/* By a row of --origin. */
static unsigned
find_reverse(struct http_connection *c, const struct http_request *request,
             struct http_route *route, const char **reason)
{
    struct http_worker *worker = c->worker;

    if (http_origins_path_leads_up(request->path))
        return refuse(400, "the path has a segment \"..\"", reason);
    route->origin = http_origins_find(&worker->http->origins, request->host, request->path);
    if (!route->origin)
        return refuse(421, "this server does not serve that host and path", reason);
    route->url_number = atomic_load(&route->origin->preferred);
    route->url =
        span_of(worker->url, http_origin_write_url(route->origin, route->url_number, request->path,
                                                   worker->url, sizeof(worker->url)));
    return 0;
}

static unsigned
find_forward(struct http_connection *c, const struct http_request *request,
             struct http_route *route, const char **reason)
{
    struct http_worker *worker = c->worker;

    if (request->form != HTTP_ABSOLUTE_FORM)
        return refuse(400, "this is a proxy: the request has to name a whole URL", reason);
    /* The rule for PURGE has been applied. */
    if (request->method_id != HTTP_PURGE && !may_forward(c))
        return refuse(403, "this client may not use the proxy", reason);
    route->url =
        span_of(worker->url, http_write_url(worker->url, sizeof(worker->url), request->https,
                                            request->host, request->port, request->path));
    return 0;
}

/* The URL is one that leads to the host and port. */
static unsigned
find_tunnel(struct http_connection *c, const struct http_request *request, struct http_route *route,
            const char **reason)
{
    struct http_worker *worker = c->worker;

    if (worker->http->origins.count)
        return refuse(405, "this is a reverse proxy: it makes no tunnels", reason);
    if (!may_forward(c))
        return refuse(403, "this client may not use the proxy", reason);
    if (!http_ports_have(&worker->http->connect_ports, request->port))
        return refuse(403, "tunnels to that port are not allowed (--connect-port)", reason);
    route->url = span_of(worker->url, http_write_url(worker->url, sizeof(worker->url), false,
                                                     request->host, request->port, span_str("/")));
    return 0;
}

static unsigned
find_url(struct http_connection *c, const struct http_request *request, struct http_route *route,
         const char **reason)
{
    if (request->method_id == HTTP_CONNECT)
        return find_tunnel(c, request, route, reason);
    return c->worker->http->origins.count ? find_reverse(c, request, route, reason)
                                          : find_forward(c, request, route, reason);
}

unsigned
http_route_find(struct http_connection *c, const struct http_request *request,
                struct http_route *route, const char **reason)
{
    unsigned status;

    *route = (struct http_route){0};
    if (request->method_id == HTTP_PURGE && !http_purge_is_allowed(c))
        return refuse(403, "this client may not purge", reason);
    if ((request->has & HTTP_HAS_VIA) &&
        http_via_has(request->fields, span_str(c->worker->http->pseudonym)))
        return refuse(508, "the request has been here before", reason);
    if (request->method_id == HTTP_TRACE)
        return refuse(405, "this proxy does not answer TRACE", reason);
    status = find_url(c, request, route, reason);
    if (!status && route->url.len == 0)
        return refuse(414, "the URL is longer than 8,192 bytes", reason);
    return status;
}
