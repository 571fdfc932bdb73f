/* Setting up a transfer: what libcurl is given for it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/descriptors.h"
#include "fetch/headers.h"
#include "fetch/transfer.h"

#define RECEIVE_BUFFER 65536L
#define PIN_SPARE_S 60 /* how long a pin outlives the time to connect */

/* ---- its connection ------------------------------------------------------------------ */

static bool
is_chosen(const struct transfer *t, const union address *address)
{
    char chosen[INET6_ADDRSTRLEN], wanted[INET6_ADDRSTRLEN];

    address_format(address, wanted, sizeof(wanted));
    for (size_t i = 0; i < t->addresses->count; i++)
        if (strcmp(address_format(&t->addresses->list[i], chosen, sizeof(chosen)), wanted) == 0)
            return true;
    return false;
}

static curl_socket_t give_none(struct transfer *t, enum fetch_error why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static curl_socket_t
give_none(struct transfer *t, enum fetch_error why, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    sentence_format(t->sentence, sizeof(t->sentence), format, args);
    va_end(args);
    t->no_socket = why;
    return CURL_SOCKET_BAD;
}

/*
 * False, with a failure, if the request has been given to a connection, which did not answer, and
 * must not be sent again, as libcurl would.
 */
static bool
may_begin(struct transfer *t)
{
    if (!t->asked || request_may_repeat(t->request))
        return true;
    transfer_fail(t, FETCH_ORIGIN_BROKE,
                  "%s closed the connection before it answered; the request is not sent again",
                  t->target->host);
    return false;
}

/* Has a new socket of the transfer watched. False without memory, the kernel's included. */
static bool
register_socket(struct transfer *t, int fd)
{
    struct connection *connection = connections_add(&t->place->connections, &t->lease, fd);

    return connection && poller_add(&t->place->poller, connection);
}

/*
 * CURLOPT_OPENSOCKETFUNCTION: a socket, if the address may be connected to, and the request has not
 * been sent before unless it may be repeated.
 */
static curl_socket_t
open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct transfer *t = context;
    union address address = {0};
    char why[SENTENCE_MAX];
    bool permitted = false;
    int fd;

    if (purpose != CURLSOCKTYPE_IPCXN || to->addrlen > sizeof(address))
        return CURL_SOCKET_BAD;
    if (!may_begin(t))
        return CURL_SOCKET_BAD;
    /* A kept connection turned out to be dead, and libcurl tries again with a new one. */
    if (t->stage == TRANSFER_ASKED || t->stage == TRANSFER_SENDING)
        transfer_enter(t, TRANSFER_CONNECTING);
    memcpy(&address, &to->addr, to->addrlen);
    if (address.any.sa_family == AF_INET || address.any.sa_family == AF_INET6)
        permitted = address_policy_permits(t->settings->config.addresses, &address.any) ||
                    (t->route->by_operator && is_chosen(t, &address));
    if (!permitted)
        return give_none(t, FETCH_DENIED, "%s",
                         sentence_refuse(why, sizeof(why), t->settings->config.addresses,
                                         t->target->host, &address));
    fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd >= 0 && descriptors_is_reserved(fd, t->settings->config.reserved_descriptors)) {
        close(fd);
        fd = -1;
        errno = EMFILE;
    }
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        return give_none(t, FETCH_OVERLOADED, "no descriptor is left for a connection; try again");
    if (fd >= 0 && !register_socket(t, fd)) {
        (void)connections_on_close(&t->place->connections, fd);
        return give_none(t, FETCH_INTERNAL, "out of memory");
    }
    return fd;
}

/* CURLOPT_CLOSESOCKETFUNCTION */
static int
close_socket(void *context, curl_socket_t fd)
{
    struct transfer_place *place = context;

    poller_remove(&place->poller, fd);
    return connections_on_close(&place->connections, fd);
}

int
transfer_on_request(void *context, char *to, char *from, int to_port, int from_port)
{
    struct transfer *t = context;

    if (!may_begin(t))
        return CURL_PREREQFUNC_ABORT;
    if (!connections_may_serve(t->easy, &t->lease, to, from, to_port, from_port)) {
        t->stage = TRANSFER_UNCLEAN;
        return CURL_PREREQFUNC_ABORT; /* which closes the connection */
    }
    transfer_enter(t, t->upload.stage == UPLOAD_COMPLETE ? TRANSFER_ASKED : TRANSFER_SENDING);
    t->asked_us = t->last_byte_us;
    t->asked++;
    return CURL_PREREQFUNC_OK;
}

/* Is the route's host an address, so that there is nothing to pin? */
static bool
is_literal(const struct route *route)
{
    union address literal;

    return address_parse(route->host, route->port, &literal);
}

/* CURLOPT_RESOLVER_START_FUNCTION: libcurl resolves no name, since it could stall others: all are
 * pinned. */
static int
begin_lookup(void *resolver, void *reserved, void *context)
{
    const struct transfer *t = context;

    (void)resolver;
    (void)reserved;
    return !is_literal(t->route);
}

int
transfer_take_socket(struct transfer *t)
{
    curl_socket_t fd = CURL_SOCKET_BAD;
    int own;

    if (curl_easy_getinfo(t->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK ||
        fd == CURL_SOCKET_BAD) {
        errno = ENOTCONN;
        return -1;
    }
    poller_remove(&t->place->poller, fd);
    /* libcurl closes its own descriptor, and the connection stays. */
    own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own >= 0 && descriptors_is_reserved(own, t->settings->config.reserved_descriptors)) {
        close(own);
        errno = EMFILE;
        return -1;
    }
    return own;
}

/* ---- what libcurl is given ----------------------------------------------------------- */

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
pin(struct transfer *t)
{
    const struct route *route = t->route;
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
redirect_connection(struct transfer *t)
{
    const struct route *route = t->route;
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

/*
 * A tunnel's connection must not have served another purpose, nor one that is authenticated by its
 * request. libcurl 7.88 may leave a paused stream of HTTP/2 stalled, in either direction: only
 * others share a connection.
 */
static enum pool_wish
wish_of(const struct transfer *t)
{
    if (t->request->flags & REQUEST_CONNECT_ONLY || headers_authenticate_connection(t->fields))
        return POOL_NEW;
    return t->target->https && !(t->request->flags & REQUEST_STREAMS) &&
                   !request_has_body(t->request)
               ? POOL_SHARED
               : POOL_IDLE;
}

/* Behind a proxy the connections for http are to the proxy, whatever the origin. */
static bool
choose_pool(struct transfer *t)
{
    return connections_lease(&t->place->connections, &t->lease,
                             t->route->proxied && !t->target->https ? "" : t->target->origin,
                             t->wish);
}

/* What is the same for all transfers of a fetcher. */
static CURLcode
set_constants(CURL *easy, struct transfer_place *place, const struct settings *settings)
{
    const struct fetch_config *config = &settings->config;
    long connect_ms = (long)(config->connect_timeout_us / 1000);

    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    /* No CURLOPT_PIPEWAIT: a connection that hangs would hold up all that wait to share it. */
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms > 0 ? connect_ms : 1L);
    SET(CURLOPT_DNS_CACHE_TIMEOUT, connect_ms / 1000 + PIN_SPARE_S);
    SET(CURLOPT_NOPROXY, "");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_CLOSESOCKETFUNCTION, close_socket);
    SET(CURLOPT_CLOSESOCKETDATA, place);
    SET(CURLOPT_RESOLVER_START_FUNCTION, begin_lookup);
    SET(CURLOPT_PREREQFUNCTION, transfer_on_request);
    /* The body comes as it was sent; transfer_on_body() checks the end of a chunked one. */
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 0L);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    SET(CURLOPT_HEADERFUNCTION, transfer_on_header);
    SET(CURLOPT_WRITEFUNCTION, transfer_on_body);
    SET(CURLOPT_DEBUGFUNCTION, transfer_on_debug);
    return set_authorities(easy, settings);
}

static CURL *
make_handle(struct transfer_place *place, const struct settings *settings)
{
    CURL *easy = curl_easy_init();

    if (!easy || set_constants(easy, place, settings) == CURLE_OK)
        return easy;
    curl_easy_cleanup(easy);
    return NULL;
}

static CURLcode
set_connection(struct transfer *t, CURL *easy)
{
    SET(CURLOPT_HTTP_VERSION,
        t->wish == POOL_SHARED ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
    /* Empty is off; unset would be the environment's. */
    SET(CURLOPT_PROXY, t->route->proxied ? t->settings->config.upstream_proxy : "");
    SET(CURLOPT_RESOLVE, t->pins);
    SET(CURLOPT_CONNECT_TO, t->connect_to);
    SET(CURLOPT_SHARE, pool_share(t->lease.pool));
    SET(CURLOPT_OPENSOCKETDATA, t);
    SET(CURLOPT_RESOLVER_START_DATA, t);
    SET(CURLOPT_PREREQDATA, t);
    return CURLE_OK;
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
    struct span method = t->request->method_name;

    SET(CURLOPT_FRESH_CONNECT, t->wish == POOL_NEW ? 1L : 0L);
    SET(CURLOPT_FORBID_REUSE,
        t->wish == POOL_NEW && !(t->request->flags & REQUEST_CONNECT_ONLY) ? 1L : 0L);
    if (t->request->method == HTTP_HEAD) {
        SET(CURLOPT_NOBODY, 1L);
        return CURLE_OK;
    }
    SET(CURLOPT_HTTPGET, 1L);
    if (request_has_body(t->request)) {
        CURLcode code = set_body(t, easy);

        if (code)
            return code;
    }
    snprintf(name, sizeof(name), "%.*s", (int)method.len, method.ptr);
    SET(CURLOPT_CUSTOMREQUEST, method.len ? name : "GET");
    return CURLE_OK;
}

/* A peer is asked as a proxy is, for any scheme. */
static CURLcode
set_whole_url(const struct transfer *t, CURL *easy)
{
    struct span url = request_fetched_url(t->request);
    char *text = strndup(url.ptr, url.len);
    CURLcode code = text ? curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, text) /* copied */
                         : CURLE_OUT_OF_MEMORY;

    free(text);
    return code;
}

/* What stands in the request line, if it is not the URL or its path. */
static CURLcode
set_target(struct transfer *t, CURL *easy)
{
    const char *url = t->target->text;
    CURLcode code;
    char *server;

    if (t->peers)
        return set_whole_url(t, easy);
    if (!(t->request->flags & REQUEST_WHOLE_SERVER))
        return CURLE_OK;
    if (!t->route->proxied || t->target->https) {
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
set_request(struct transfer *t, CURL *easy)
{
    CURLcode code = set_method(t, easy);

    if (!code)
        code = set_target(t, easy);
    if (code)
        return code;
    SET(CURLOPT_CURLU, t->target->url);
    if (t->request->flags & REQUEST_CONNECT_ONLY) {
        SET(CURLOPT_CONNECT_ONLY, 1L);
        SET(CURLOPT_HTTPPROXYTUNNEL, 1L); /* where there is an upstream proxy */
    }
    SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_DEBUGDATA, t);
    SET(CURLOPT_VERBOSE, 1L);
    SET(CURLOPT_ERRORBUFFER, t->error_text);
    SET(CURLOPT_PRIVATE, t->consumer);
    return CURLE_OK;
}

static enum fetch_supply
supply(void *context, void *buffer, size_t size, size_t *len)
{
    struct consumer *c = context;

    if (consumer_is_cancelled(c))
        return FETCH_SUPPLY_FAILED;
    c->send_seen = atomic_load(&c->resumes);
    return c->sink.supply(c->context, buffer, size, len);
}

bool
transfer_start(struct transfer *t, struct transfer_place *place, struct consumer *consumer,
               const struct transfer_order *order)
{
    const struct request *request = consumer->request;
    struct handles *handles = &place->handles;

    *t = (struct transfer){
        .place = place,
        .consumer = consumer,
        .request = request,
        .settings = order->settings,
        .target = order->target,
        .route = order->route,
        .fields = order->headers.fields,
        .peers = order->peers,
        .continues = consumer->continued,
        .last_byte_us = clock_monotonic_us(),
        .addresses = resolved_retain(order->addresses),
        .head.content_length = -1,
    };
    t->wish = wish_of(t);
    upload_init(&t->upload, &request->body, supply, consumer);
    buf_init(&t->lines, t->settings->config.max_headers);
    /* Those that are kept are set as the current settings say. */
    t->easy = transfer_is_plain(t) && handles->count && t->settings == place->settings
                  ? handles->kept[--handles->count]
                  : make_handle(place, t->settings);
    if (!t->easy || !choose_pool(t) ||
        !headers_to_list(request, &order->headers, &t->headers) ||
        (!is_literal(t->route) && !pin(t)) || (t->route->redirected && !redirect_connection(t)) ||
        set_connection(t, t->easy) != CURLE_OK || set_request(t, t->easy) != CURLE_OK ||
        curl_multi_add_handle(place->multi, t->easy) != CURLM_OK) {
        transfer_clear(t);
        return false;
    }
    return true;
}
