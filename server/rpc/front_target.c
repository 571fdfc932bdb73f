#include "server/rpc/front_target.h"

#include "base/container_of.h"
#include "http/dot_segments.h"
#include "http/field.h"
#include "http/request_head.h"
#include "http/target.h"
#include "proxy.h"
#include "server/rpc/front_rules.h"
#include "server/rpc/front_way.h"

/* ---- fields ---------------------------------------------------------------------------------- */

/* Writes a field that the client has not sent itself. */
static char *
put_field(char *end, struct span own, const char *name, struct span value)
{
    const char *const names[] = {name, NULL};

    if (http_has_field(own, names))
        return end;
    end = span_put(span_put(end, span_str(name)), span_str(": "));
    return span_put(span_put(end, value), span_str("\r\n"));
}

void
front_target_fields(struct exchange *exchange)
{
    static _Thread_local char text[FRONT_FIELDS];
    struct front_exchange *front = front_of(exchange);
    const char *user_agent = front_config(front)->options->user_agent;
    const struct span agent = user_agent ? span_str(user_agent) : span_of(NULL, 0);
    const struct span own = front->own_fields;
    char *end = text;

    if (agent.len && agent.len < PROXY_MAX_HEADERS / 2)
        end = put_field(end, own, "User-Agent", agent);
    end = put_field(end, own, "Accept", span_str("*/*"));
    end = put_field(end, own, "Accept-Encoding", span_str("identity"));
    if (own.len <= (size_t)(text + sizeof(text) - end))
        end = span_put(end, own);
    front->request.fields = front_rules_edit(front, text, (size_t)(end - text), sizeof(text));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static enum failure
refuse(enum failure failure, const char *sentence, const char **why)
{
    *why = sentence;
    return failure;
}

enum failure
front_target_row(const struct http_origins *origins, struct request *request,
                 struct span fetched, const char **why)
{
    static const char too_long[] = "the URL is longer than 8,192 bytes";
    static _Thread_local char url[PROXY_MAX_URL], normal[FETCH_NORMAL_SIZE], path[PROXY_MAX_URL];
    struct http_origin_request asked;
    struct http_authority authority;
    struct span text = fetch_normal_url(fetched, normal, sizeof(normal));
    struct http_origin *row;
    size_t len;

    asked.https = span_starts_with(text, span_str("https://"));
    if ((!asked.https && !span_starts_with(text, span_str("http://"))) ||
        !http_authority_read(origin_route_authority(text), &authority))
        return refuse(FAILURE_DENIED, "this server serves no such URL", why);
    (void)origin_route_client(text, &asked.path);
    if (asked.path.len > sizeof(path))
        return refuse(FAILURE_BAD_URL, too_long, why);
    asked.path = http_path_clean(asked.path, path);
    asked.host = authority.host;
    asked.port = authority.port;
    row = http_path_leads_up(asked.path)
              ? NULL
              : http_origins_find(origins, asked.host, asked.path);
    if (!row)
        return refuse(FAILURE_DENIED, "this server does not serve that host and path", why);
    len = http_origin_write_url(row, &asked, url, sizeof(url));
    if (!len)
        return refuse(FAILURE_BAD_URL, too_long, why);
    request->url = span_of(url, len);
    request->route = &row->route;
    request->flags |= REQUEST_OWNED;
    return 0;
}

static bool
have_same_host(struct span url, struct span other)
{
    struct http_authority one, two;

    return http_authority_read(origin_route_authority(url), &one) &&
           http_authority_read(origin_route_authority(other), &two) &&
           http_same_name(one.host, two.host);
}

/* A row for any host is for those that clients name: a redirect may lead to another server. */
static bool
stays_in_row(const struct front_exchange *front)
{
    const struct http_origin *row = container_of(front->request.route, struct http_origin, route);

    return row->host.len || have_same_host(front->request.url, front_url(front));
}

static void
leave_row(struct front_exchange *front)
{
    front->request.url = buf_span(&front->way->url);
    front->request.route = NULL;
    front->request.flags &= ~(unsigned)REQUEST_OWNED;
}

enum failure
front_target_set(struct front_exchange *front, const char **why)
{
    struct proxy *proxy = front->exchange.proxy;
    struct config *config = service_config(service_of(front_request(front)));
    const struct http_origins *origins = &config->origins;
    struct request *request = &front->request;
    const struct front_way *way = front->way;
    enum failure failure = 0;

    if (way) {
        request->url = buf_span(&way->url);
        front->own_fields = buf_span(&way->fields);
    }
    request->flags &= ~(unsigned)(REQUEST_OWNED | REQUEST_OWN_FIELDS);
    request->flags |= front->own_fields.len ? (unsigned)REQUEST_OWN_FIELDS : 0;
    request->lacks = front->own_fields.len ? 0 : ~(uint32_t)HTTP_HAS_ACCEPT_ENCODING;
    request->fields = span_of(NULL, 0);
    request->target = span_of(NULL, 0);
    request->route = NULL;
    front->edits = false;
    request->rules = &config->rules.shared;
    request->peers = config_peers_of(&config->peers);
    request->settings = config->settings;
    if (origins->count)
        failure = front_target_row(origins, request, request->url, why);
    if (way && !failure && request->route && !stays_in_row(front))
        leave_row(front);
    /* What no row has is another server's, which a redirect may lead to, but no client. */
    if (way && failure == FAILURE_DENIED)
        failure = 0;
    if (!failure && !request->route)
        request->url = proxy_normal_url(proxy, request->url);
    if (!failure && front_rules_demand_user(front))
        failure = refuse(FAILURE_DENIED, "this proxy needs a user, whom HTTP can name", why);
    if (!failure)
        failure = front_rules_apply(front, why);
    if (way && !proxy->config.follows_http) {
        request->target = request->url;
        request->url = front_url(front);
    }
    return failure;
}
