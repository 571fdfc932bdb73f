/* Setting up a hop: what libcurl is given for it. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "fetch/connect.h"
#include "fetch/headers.h"
#include "fetch/method_rules.h"
#include "fetch/transfer.h"
#include "http/method.h"

#define RECEIVE_BUFFER 65536L
#define PIN_SPARE_S 60 /* how long a pin outlives the time to connect */

static bool
add(struct curl_slist **list, const struct buf *text)
{
    struct curl_slist *longer = buf_failed(text) ? NULL : curl_slist_append(*list, buf_str(text));

    if (longer)
        *list = longer;
    return longer != NULL;
}

/*
 * "+host:port:address,...": replaces what any earlier transfer pinned under that name. The plus
 * lets it age, or the cache would keep every name ever fetched.
 */
static bool
pin(struct transfer *t, const struct route *route)
{
    char text[INET6_ADDRSTRLEN];
    struct buf line;
    bool ok;

    buf_init(&line, HOST_MAX + 16 + RESOLVED_MAX * (INET6_ADDRSTRLEN + 3));
    buf_printf(&line, "+%s:%u:", route->host, route->port);
    for (size_t i = 0; i < t->addresses->count; i++) {
        const union address *address = &t->addresses->list[i];

        address_format(address, text, sizeof(text));
        buf_printf(&line, address->any.sa_family == AF_INET6 ? "%s[%s]" : "%s%s", i ? "," : "",
                   text);
    }
    ok = add(&t->pins, &line);
    buf_free(&line);
    return ok;
}

static bool
redirect_connection(struct transfer *t, const struct route *route)
{
    struct buf line;
    bool ok;

    buf_init(&line, HOST_MAX + 32);
    buf_printf(&line, strchr(route->host, ':') ? "::[%s]:%u" : "::%s:%u", route->host, route->port);
    ok = add(&t->connect_to, &line);
    buf_free(&line);
    return ok;
}

/*
 * The system's authorities beside the operator's: those of the default folder, which OpenSSL looks
 * into by need, with the operator's file in place of the default bundle, which holds the same as
 * the folder. Without a file of the operator's the bundle alone, since only that is kept parsed
 * between connections.
 */
static CURLcode
set_authorities(CURL *easy, const struct settings *settings)
{
    struct curl_blob blob = {.data = settings->authorities.data, .len = settings->authorities.len};
    CURLcode code;

    if (settings->authorities.len == 0) {
        code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        return code ? code : curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL);
    }
    code = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &blob);
    return code ? code : curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO_BLOB, &blob);
}

#define SET(option, value)                                      \
    do {                                                        \
        CURLcode code_ = curl_easy_setopt(easy, option, value); \
        if (code_)                                              \
            return code_;                                       \
    } while (0)

/* libcurl 7.88 may leave a paused stream of HTTP/2 stalled, in either direction. */
static bool
may_use_http_2(const struct transfer *t)
{
    return t->target->https && !t->binds && !(t->request->flags & FETCH_MAY_PAUSE) &&
           t->request->body.kind != FETCH_BODY_SUPPLIED;
}

/*
 * A tunnel's connection must not have served another purpose, nor one that is authenticated by its
 * request.
 */
static bool
wants_new_connection(const struct transfer *t)
{
    return t->binds || t->request->flags & FETCH_CONNECT_ONLY;
}

/* Behind a proxy the connections for http are to the proxy, whatever the origin. */
static bool
choose_pool(struct transfer *t, const struct route *route)
{
    enum pool_wish wish = may_use_http_2(t) ? POOL_SHARED : POOL_IDLE;

    return pool_choose(&t->owner.connections->pools, &t->lease,
                       route->proxied && !t->target->https ? "" : t->target->origin,
                       wants_new_connection(t) ? POOL_NEW : wish);
}

static CURLcode
set_connection(struct transfer *t, CURL *easy, const struct route *route)
{
    const struct fetch_config *config = &t->settings->config;
    long connect_ms = (long)(config->connect_timeout_us / 1000);

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_HTTP_VERSION,
        may_use_http_2(t) ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    /* No CURLOPT_PIPEWAIT: a connection that hangs would hold up all that wait to share it. */
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : 1L);
    SET(CURLOPT_DNS_CACHE_TIMEOUT, connect_ms / 1000 + PIN_SPARE_S);
    /* Empty is off; unset would be the environment's. */
    SET(CURLOPT_PROXY, route->proxied ? config->upstream_proxy : "");
    SET(CURLOPT_NOPROXY, "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (t->pins)
        SET(CURLOPT_RESOLVE, t->pins);
    if (t->connect_to)
        SET(CURLOPT_CONNECT_TO, t->connect_to);
    SET(CURLOPT_SHARE, pool_share(t->lease.pool));
    SET(CURLOPT_OPENSOCKETFUNCTION, connect_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, t);
    SET(CURLOPT_CLOSESOCKETFUNCTION, connections_on_close);
    SET(CURLOPT_CLOSESOCKETDATA, t->owner.connections);
    SET(CURLOPT_RESOLVER_START_FUNCTION, connect_begin_lookup);
    SET(CURLOPT_RESOLVER_START_DATA, t);
    SET(CURLOPT_PREREQFUNCTION, connect_begin_request);
    SET(CURLOPT_PREREQDATA, t);
    return set_authorities(easy, t->settings);
}

static CURLcode
set_body(struct transfer *t, CURL *easy)
{
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)t->upload.length);
    SET(CURLOPT_READFUNCTION, transfer_on_send);
    SET(CURLOPT_READDATA, t);
    SET(CURLOPT_SEEKFUNCTION, transfer_on_rewind);
    SET(CURLOPT_SEEKDATA, t);
    return CURLE_OK;
}

static CURLcode
set_method(struct transfer *t, CURL *easy)
{
    char name[METHOD_MAX + 1];
    struct span method = t->request->method;

    if (wants_new_connection(t))
        SET(CURLOPT_FRESH_CONNECT, 1L);
    if (t->binds)
        SET(CURLOPT_FORBID_REUSE, 1L);
    if (http_method_of(method) == HTTP_HEAD) {
        SET(CURLOPT_NOBODY, 1L);
        return CURLE_OK;
    }
    SET(CURLOPT_HTTPGET, 1L);
    if (t->request->body.kind != FETCH_BODY_NONE) {
        CURLcode code = set_body(t, easy);

        if (code)
            return code;
    }
    snprintf(name, sizeof(name), "%.*s", (int)method.len, method.ptr);
    SET(CURLOPT_CUSTOMREQUEST, method.len ? name : "GET");
    return CURLE_OK;
}

/* Unless the body is to come undecoded, no coding is asked for; one that is sent all the same is
 * decoded in transfer_on_body(). */
static CURLcode
set_codings(struct transfer *t, CURL *easy)
{
    if (!(t->request->flags & FETCH_UNDECODED))
        SET(CURLOPT_ACCEPT_ENCODING, "identity");
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    /* libcurl finds the end of a chunked message; transfer_on_body() checks it. */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 0L);
    return CURLE_OK;
}

/* What stands in the request line, if it is not the URL or its path. */
static CURLcode
set_target(struct transfer *t, CURL *easy, const struct route *route)
{
    const char *url = t->target->text;
    CURLcode code;
    char *server;

    if (!(t->request->flags & FETCH_WHOLE_SERVER))
        return CURLE_OK;
    if (!route->proxied || t->target->https) {
        SET(CURLOPT_REQUEST_TARGET, "*");
        return CURLE_OK;
    }
    server = strndup(url, strlen(url) - 1); /* without the slash that is its path */
    if (!server)
        return CURLE_OUT_OF_MEMORY;
    code = curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, server); /* copied */
    free(server);
    return code;
}

static CURLcode
set_request(struct transfer *t, CURL *easy, const struct route *route)
{
    CURLcode code = set_method(t, easy);

    if (!code)
        code = set_codings(t, easy);
    if (!code)
        code = set_target(t, easy, route);
    if (code)
        return code;
    SET(CURLOPT_CURLU, t->target->url);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    if (t->request->flags & FETCH_CONNECT_ONLY) {
        SET(CURLOPT_CONNECT_ONLY, 1L);
        SET(CURLOPT_HTTPPROXYTUNNEL, 1L); /* where there is an upstream proxy */
    }
    if (t->settings->config.user_agent && !(t->request->flags & FETCH_UNDECODED))
        SET(CURLOPT_USERAGENT, t->settings->config.user_agent);
    if (t->headers)
        SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    SET(CURLOPT_HEADERFUNCTION, transfer_on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, transfer_on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_DEBUGFUNCTION, transfer_on_debug);
    SET(CURLOPT_DEBUGDATA, t);
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_ERRORBUFFER, t->error_text);
    SET(CURLOPT_PRIVATE, t->owner.context);
    return CURLE_OK;
}

static const char *const conditions[] = {"If-None-Match", "If-Modified-Since", NULL};
static const char *const ranges[] = {"Range", NULL};

bool
transfer_start(struct transfer *t, CURLM *multi, const struct settings *settings,
               const struct target *target, const struct route *route, struct resolved *addresses,
               const struct fetch_request *request, bool at_origin, struct span final_url,
               const struct transfer_owner *owner)
{
    int64_t now_us = clock_monotonic_us();
    const struct headers_for fields = {
        .credentials = at_origin,
        .host = at_origin && !(route->proxied && !target->https),
    };
    union address literal;

    *t = (struct transfer){
        .settings = settings,
        .target = target,
        .request = request,
        .conditional = headers_have(request->headers, conditions),
        .ranged = headers_have(request->headers, ranges),
        .binds = headers_authenticate_connection(request->headers),
        .owner = *owner,
        .asked_us = now_us,
        .last_byte_us = now_us,
        .addresses = resolved_retain(addresses),
        .by_operator = route->by_operator,
        .literal_route = address_parse(route->host, route->port, &literal),
        .final_url = final_url,
        .head = {.content_length = -1, .stated_length = -1},
    };
    upload_init(&t->upload, &request->body, owner->supply, owner->context);
    buf_init(&t->lines, settings->config.max_headers);
    t->easy = curl_easy_init();
    if (!t->easy || !choose_pool(t, route) || !headers_to_list(request, fields, &t->headers) ||
        (!t->literal_route && !pin(t, route)) ||
        (route->redirected && !redirect_connection(t, route)) ||
        set_connection(t, t->easy, route) != CURLE_OK ||
        set_request(t, t->easy, route) != CURLE_OK ||
        curl_multi_add_handle(multi, t->easy) != CURLM_OK) {
        transfer_clear(t, NULL);
        return false;
    }
    return true;
}
