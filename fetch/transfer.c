#include "fetch/transfer.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "base/clock.h"
#include "fetch/connect.h"
#include "fetch/headers.h"

#define MAX_INTERIM 16u /* 1xx answers before the final one */
#define MAX_LINES 1000u /* of all heads and trailers: libcurl keeps those that it sees */
#define WINDOW_LEAST ((size_t)1 << 18) /* charged at first for a decoder's window */
#define REDIRECT_BODY_MAX 65536u       /* read to keep the connection; more is not worth it */
#define RECEIVE_BUFFER 65536L
#define TURN_ALLOWANCE ((size_t)1 << 20) /* bytes decoded or passed on for a transfer in a turn */
#define PIN_SPARE_S 60                   /* how long a pin outlives the time to connect */

void
transfer_enter(struct transfer *t, enum transfer_stage stage)
{
    t->last_byte_us = clock_monotonic_us();
    t->stage = stage;
    t->owner.stage(t->owner.context, stage);
}

/* ---- the head ------------------------------------------------------------------------ */

static bool
is_redirect(unsigned status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* What the bytes that follow the head are. */
static bool
prepare_body(struct transfer *t)
{
    uint32_t max_bytes = t->settings->config.max_headers;
    bool has_body = status_has_body(t->status.status);
    enum coding coding = t->redirecting || !has_body ? CODING_IDENTITY : t->head.coding;

    if (coding == CODING_UNKNOWN) {
        transfer_fail(
            t, FETCH_ORIGIN_BROKE,
            "%s sent content in a coding that was not asked for, unknown or one of several",
            t->target->host);
        return false;
    }
    if (body_init(&t->body, t->head.chunked && has_body, coding,
                  max_bytes - (uint32_t)t->line_bytes, MAX_LINES - t->line_count))
        return true;
    transfer_fail(t, FETCH_INTERNAL, "out of memory");
    return false;
}

/* Only a request for a part is answered by a part, and one with a condition by its failure. */
static bool
was_asked_for(struct transfer *t)
{
    if (t->status.status == 206 && !t->ranged)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent a part of the page (status 206) unasked",
                      t->target->host);
    else if (t->status.status == 304 && !t->conditional)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent \"not modified\" (status 304) unasked",
                      t->target->host);
    return !t->error;
}

static bool
judge_head(struct transfer *t)
{
    const struct fetch_config *config = &t->settings->config;
    struct fetch_head head;
    const char *malformed;
    bool no_memory;

    answer_head_free(&t->head);
    malformed = answer_head_read(&t->head, t->status.version, buf_span(&t->lines), &no_memory);
    if (malformed) {
        transfer_fail(t, no_memory ? FETCH_INTERNAL : FETCH_ORIGIN_BROKE, "the answer of %s: %s",
                      t->target->host, malformed);
        return false;
    }
    /* Ended by CR LF, lines that came with a bare LF have grown. */
    if (t->head.fields.len > config->max_headers) {
        transfer_fail(t, FETCH_TOO_LARGE, "the headers of %s are over %u bytes", t->target->host,
                      (unsigned)config->max_headers);
        return false;
    }
    if (!status_has_body(t->status.status))
        t->head.content_length = 0;
    t->head_read = true;
    if (!was_asked_for(t))
        return false;
    /* What another reading of the framing takes for an answer must not become one (section 6.3). */
    if (t->head.ambiguous)
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    t->redirecting = is_redirect(t->status.status) && t->head.location;
    if (!prepare_body(t))
        return false;
    t->owner.hop(t->owner.context, &(struct fetch_hop){
                                       .status = t->status.status,
                                       .lines = buf_span(&t->lines),
                                       .has_user = t->target->has_user,
                                       .waited_us = clock_monotonic_us() - t->asked_us,
                                   });
    if (t->redirecting)
        return true;
    if (t->head.content_length > 0 && (uint64_t)t->head.content_length > config->max_body) {
        transfer_fail(t, FETCH_TOO_LARGE, "%s states a body of %lld bytes, the bound is %llu",
                      t->target->host, (long long)t->head.content_length,
                      (unsigned long long)config->max_body);
        return false;
    }
    head = (struct fetch_head){
        .status = t->status.status,
        .final_url = t->final_url,
        .headers = buf_span(&t->head.fields),
        .content_length = t->head.content_length,
        .no_store = t->head.ambiguous,
    };
    if (!t->owner.head(t->owner.context, &head)) {
        transfer_fail(t, FETCH_INTERNAL, "the answer of %s could not be taken", t->target->host);
        return false;
    }
    return true;
}

/* The empty line. */
static bool
end_head(struct transfer *t)
{
    const char *host = t->target->host;

    if (t->status.status >= 200) {
        if (!judge_head(t))
            return false;
        transfer_enter(t, TRANSFER_BODY);
        return true;
    }
    if (t->status.status == 101)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s switched protocols (status 101) unasked", host);
    else if (t->status.version < 11)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent an interim answer in HTTP/1.0", host);
    else if (++t->interim > MAX_INTERIM)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent interim answers without end", host);
    t->status = (struct status_line){0};
    buf_reset(&t->lines);
    return !t->error;
}

/*
 * Status lines, interim heads, the final head and trailers share one bound: libcurl keeps every
 * line until the transfer ends.
 */
static bool
count_line(struct transfer *t, size_t len)
{
    size_t max = t->settings->config.max_headers;

    if (len <= max - t->line_bytes && t->line_count < MAX_LINES) {
        t->line_bytes += len;
        t->line_count++;
        return true;
    }
    transfer_fail(t, FETCH_TOO_LARGE, "the %s of %s are over %zu bytes or %u lines",
                  t->head_read ? "trailers" : "headers", t->target->host, max, MAX_LINES);
    return false;
}

static size_t
on_header(char *line, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len = size * count;
    bool blank = len == 0 || line[0] == '\n' || (len >= 2 && line[0] == '\r' && line[1] == '\n');

    if (!count_line(t, len))
        return 0;
    /* Trailers: what they say may be of no consequence (RFC 9110 section 6.5.1). */
    if (t->head_read) {
        t->last_byte_us = clock_monotonic_us();
        return len;
    }
    if (t->stage < TRANSFER_ANSWERING)
        transfer_enter(t, TRANSFER_ANSWERING);
    t->last_byte_us = clock_monotonic_us();
    if (t->status.status == 0) {
        if (!status_line_read(&t->status, span_of(line, len)))
            transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered without a status line",
                          t->target->host);
        else if ((t->status.version >= 20) != connections_speak_http_2(t->easy))
            transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered in another version of HTTP",
                          t->target->host);
        else
            return len;
        return 0;
    }
    if (blank)
        return end_head(t) ? len : 0;
    if (!buf_append(&t->lines, line, len)) {
        transfer_fail(t, FETCH_INTERNAL, "out of memory");
        return 0;
    }
    return len;
}

/* ---- the body ------------------------------------------------------------------------ */

/*
 * Charges the account for what the decoder keeps of a body of this size, doubling as it grows.
 * False if that is more than the account has.
 */
static bool
charge_window(struct transfer *t, uint64_t size)
{
    size_t window = coding_window(t->body.coding), grown = t->window_charged;

    if (t->window_charged >= window || size <= t->window_charged)
        return true;
    while (grown < window && grown < size)
        grown = grown ? 2 * grown : WINDOW_LEAST;
    if (!memory_charge(t->settings->config.memory, MEMORY_FETCHES, grown - t->window_charged)) {
        transfer_fail(t, FETCH_OVERLOADED,
                      "there is no memory to decode the body from %s now; try again",
                      t->target->host);
        return false;
    }
    t->window_charged = grown;
    return true;
}

static bool
take_piece(void *context, const void *bytes, size_t len)
{
    struct transfer *t = context;
    uint64_t max = t->settings->config.max_body;

    if (t->redirecting) {
        t->body_bytes += len;
        return t->body_bytes <= REDIRECT_BODY_MAX;
    }
    if (len > max - t->body_bytes) {
        transfer_fail(t, FETCH_TOO_LARGE, "the body from %s is over the bound of %llu bytes",
                      t->target->host, (unsigned long long)max);
        return false;
    }
    if (!t->owner.body(t->owner.context, bytes, len)) {
        transfer_fail(t, FETCH_INTERNAL, "the answer of %s could not be taken", t->target->host);
        return false;
    }
    t->body_bytes += len;
    return charge_window(t, t->body_bytes);
}

/*
 * The bytes as they came. After a pause libcurl hands over the same piece again, perhaps with more
 * behind it.
 */
static size_t
on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len = size * count;
    struct span input = span_of(bytes + t->used, len - t->used);

    t->last_byte_us = clock_monotonic_us();
    if (t->turn != *t->owner.turn) {
        t->turn = *t->owner.turn;
        /*
         * libcurl 7.88 may leave paused streams of HTTP/2 stalled, and leaks what it holds for one
         * that is given up: there max_body alone bounds the work.
         */
        t->allowance = t->status.version < 20 ? TURN_ALLOWANCE : SIZE_MAX;
    }
    switch (body_read(&t->body, &input, &t->allowance, take_piece, t)) {
    case BODY_WANTS:
        t->used = 0;
        return len;
    case BODY_PAUSED:
        t->used = len - input.len;
        t->owner.pause(t->owner.context);
        return CURL_WRITEFUNC_PAUSE;
    case BODY_TOO_LARGE:
        transfer_fail(t, FETCH_TOO_LARGE,
                      "the headers and trailers of %s are over %u bytes or %u lines",
                      t->target->host, (unsigned)t->settings->config.max_headers, MAX_LINES);
        break;
    case BODY_BROKEN:
        transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s is broken: %s", t->target->host,
                      t->body.reason);
        break;
    case BODY_TAKER:
        break;
    }
    return 0;
}

CURLcode
transfer_resume(struct transfer *t)
{
    return curl_easy_pause(t->easy, CURLPAUSE_CONT);
}

/*
 * libcurl does not report bytes past the stated length, nor of bytes that its decoder still holds:
 * the view of what comes from the network shows both.
 */
static int
on_debug(CURL *easy, curl_infotype type, char *bytes, size_t len, void *context)
{
    struct transfer *t = context;

    /*
     * libcurl 7.88 drops what follows an answer without a body in the same read, and keeps the
     * connection, where the rest of it would pass for the next answer (RFC 9112 section 9.2).
     */
    if (type == CURLINFO_TEXT && span_starts_with(span_of(bytes, len), span_str("Excess found")))
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    if (type == CURLINFO_DATA_IN) {
        t->wire_bytes += len;
        t->last_byte_us = clock_monotonic_us();
        atomic_fetch_add_explicit(t->owner.received, len, memory_order_relaxed);
    }
    return 0;
}

/* ---- setting up ---------------------------------------------------------------------- */

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
        t->target->https ? (long)CURL_HTTP_VERSION_2TLS : (long)CURL_HTTP_VERSION_1_1);
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
set_request(struct transfer *t, CURL *easy)
{
    SET(CURLOPT_CURLU, t->target->url);
    SET(CURLOPT_HTTPGET, 1L);
    SET(CURLOPT_HTTP09_ALLOWED, 0L);
    /* Asks for none. What is sent encoded all the same is decoded in on_body(). */
    SET(CURLOPT_ACCEPT_ENCODING, "identity");
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    /* libcurl finds the end of a chunked message, and leaves the checking to on_body(). */
    SET(CURLOPT_HTTP_TRANSFER_DECODING, 0L);
    if (t->settings->config.user_agent)
        SET(CURLOPT_USERAGENT, t->settings->config.user_agent);
    if (t->headers)
        SET(CURLOPT_HTTPHEADER, t->headers);
    SET(CURLOPT_BUFFERSIZE, RECEIVE_BUFFER);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_DEBUGFUNCTION, on_debug);
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
               struct span headers, bool credentials, struct span final_url,
               const struct transfer_owner *owner)
{
    int64_t now_us = clock_monotonic_us();
    union address literal;

    *t = (struct transfer){
        .settings = settings,
        .target = target,
        .conditional = headers_have(headers, conditions),
        .ranged = headers_have(headers, ranges),
        .owner = *owner,
        .asked_us = now_us,
        .last_byte_us = now_us,
        .addresses = resolved_retain(addresses),
        .by_operator = route->by_operator,
        .literal_route = address_parse(route->host, route->port, &literal),
        .final_url = final_url,
        .head = {.content_length = -1, .stated_length = -1},
    };
    buf_init(&t->lines, settings->config.max_headers);
    t->easy = curl_easy_init();
    if (!t->easy || !headers_to_list(headers, credentials, &t->headers) ||
        (!t->literal_route && !pin(t, route)) ||
        (route->redirected && !redirect_connection(t, route)) ||
        set_connection(t, t->easy, route) != CURLE_OK || set_request(t, t->easy) != CURLE_OK ||
        curl_multi_add_handle(multi, t->easy) != CURLM_OK) {
        transfer_clear(t, NULL);
        return false;
    }
    return true;
}

bool
transfer_restart(struct transfer *t, CURLM *multi)
{
    curl_multi_remove_handle(multi, t->easy);
    t->unclean = false;
    t->error_text[0] = '\0';
    return curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
           curl_multi_add_handle(multi, t->easy) == CURLM_OK;
}

void
transfer_clear(struct transfer *t, CURLM *multi)
{
    if (t->easy) {
        if (multi)
            curl_multi_remove_handle(multi, t->easy);
        curl_easy_cleanup(t->easy);
    }
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->pins);
    curl_slist_free_all(t->connect_to);
    resolved_release(&t->addresses);
    answer_head_free(&t->head);
    body_free(&t->body);
    if (t->window_charged)
        memory_uncharge(t->settings->config.memory, MEMORY_FETCHES, t->window_charged);
    buf_free(&t->lines);
    *t = (struct transfer){0};
}
