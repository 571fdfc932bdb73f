/*
 * One fetch over HTTP: an easy handle of libcurl, which connects to the proxy as to an origin and
 * sends the URL as the target of the request. libcurl would ask a proxy for a tunnel to https.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/clock.h"
#include "client/get/get_cache_status.h"
#include "client/get/get_http.h"
#include "http/field.h"
#include "http/response_head.h"

#define MAX_HEAD (256u << 10)
#define MAX_REDIRECTS 50
#define BUFFER_BYTES (64L << 10)

static const struct get_failure no_memory = {
    .status = EX_SOFTWARE, .code = "no_memory", .sentence = "out of memory"};

/* ---- what libcurl calls ---------------------------------------------------------------------- */

/* False without memory. */
static bool
fill_page(struct http_fetch *fetch, unsigned status)
{
    struct get_page *page = &fetch->answer->page;
    curl_off_t length = -1;

    curl_easy_getinfo(fetch->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    page->status = status;
    page->length = length;
    page->redirects = fetch->redirects;
    page->head_bytes = fetch->head_bytes;
    buf_append(&page->head, fetch->head.data, fetch->head.len);
    if (fetch->redirects)
        buf_append_str(&page->final_url, fetch->target.url);
    get_read_cache_status(page);
    return !buf_failed(&page->head) && !buf_failed(&page->final_url) &&
           !buf_failed(&page->cache_status);
}

static bool
end_head(struct http_fetch *fetch)
{
    long status = 0;

    curl_easy_getinfo(fetch->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) { /* interim: RFC 9110 section 15.2 */
        buf_reset(&fetch->head);
        return true;
    }
    fetch->head_done = true;
    if (!fill_page(fetch, (unsigned)status)) {
        fetch->failure = no_memory;
        return false;
    }
    fetch->follows = fetch->transport->options->location &&
                     http_status_is_redirect((unsigned)status) &&
                     get_answer_field(fetch->answer, "Location").len != 0;
    if (!fetch->follows)
        get_queue_head(fetch->answer);
    return true;
}

static size_t
on_header(char *bytes, size_t size, size_t count, void *context)
{
    static const struct get_failure too_large = {
        .status = EX_PROTOCOL, .code = "too_large", .sentence = "the response's head is too large"};
    struct http_fetch *fetch = context;
    struct span rest = span_of(bytes, size * count), line = span_of("", 0);

    fetch->progress_us = clock_monotonic_us();
    fetch->head_bytes += rest.len;
    if (fetch->head_done) /* a trailer, which no cache merges: RFC 9112 section 7.1.2 */
        return rest.len;
    http_next_line(&rest, &line);
    get_queue_message(fetch->answer, '<', line);
    if (line.len == 0)
        return end_head(fetch) ? size * count : 0;
    if (buf_append(&fetch->head, line.ptr, line.len) && buf_append_str(&fetch->head, "\r\n"))
        return size * count;
    fetch->failure = fetch->head.len + line.len + 2 > MAX_HEAD ? too_large : no_memory;
    return 0;
}

static size_t
on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct http_fetch *fetch = context;

    fetch->progress_us = clock_monotonic_us();
    if (fetch->follows)
        return size * count;
    switch (get_queue_body(fetch->answer, span_of(bytes, size * count))) {
    case GET_PAUSE:
        fetch->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    case GET_STOP:
        fetch->stopped = true;
        return 0;
    default:
        return size * count;
    }
}

static size_t
on_read(char *bytes, size_t size, size_t count, void *context)
{
    static const struct get_failure unreadable = {
        .status = EX_NOINPUT,
        .code = "unreadable_data",
        .sentence = "the data cannot be read, or changed while it was sent"};
    struct http_fetch *fetch = context;
    size_t len = get_data_read(&fetch->data, bytes, size * count);

    fetch->progress_us = clock_monotonic_us();
    fetch->answer->sent += len;
    if (!fetch->data.failed)
        return len;
    fetch->failure = unreadable;
    return CURL_READFUNC_ABORT;
}

static int
on_seek(void *context, curl_off_t offset, int origin)
{
    struct http_fetch *fetch = context;

    if (offset != 0 || origin != SEEK_SET || !get_data_rewind(&fetch->data))
        return CURL_SEEKFUNC_FAIL;
    fetch->answer->sent = 0;
    return CURL_SEEKFUNC_OK;
}

static int
on_debug(CURL *easy, curl_infotype type, char *bytes, size_t size, void *context)
{
    struct http_fetch *fetch = context;
    struct span rest = span_of(bytes, size), line;

    (void)easy;
    while (type == CURLINFO_HEADER_OUT && http_next_line(&rest, &line))
        get_queue_message(fetch->answer, '>', line);
    return 0;
}

/* ---- a request ------------------------------------------------------------------------------- */

static bool
make_lines(struct http_fetch *fetch)
{
    struct get_fields fields = {
        .target = &fetch->target, .has_body = fetch->has_body, .elsewhere = fetch->elsewhere};

    curl_slist_free_all(fetch->lines);
    fetch->lines = get_request_lines(fetch->transport->options, &fields);
    return fetch->lines != NULL;
}

/* True if every one of these settings was taken. */
#define SET(option, value) (curl_easy_setopt(fetch->easy, option, value) == CURLE_OK)

static bool
set_connection(struct http_fetch *fetch)
{
    const struct http_transport *transport = fetch->transport;

    return SET(CURLOPT_URL, transport->address.url) && SET(CURLOPT_PROXY, "") &&
           SET(CURLOPT_PROTOCOLS_STR, "http") && SET(CURLOPT_NOSIGNAL, 1L) &&
           SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) &&
           SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES) && SET(CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_BYTES) &&
           (!transport->address.socket || SET(CURLOPT_UNIX_SOCKET_PATH, transport->address.socket));
}

static bool
set_callbacks(struct http_fetch *fetch)
{
    return SET(CURLOPT_PRIVATE, fetch) && SET(CURLOPT_HEADERFUNCTION, on_header) &&
           SET(CURLOPT_HEADERDATA, fetch) && SET(CURLOPT_WRITEFUNCTION, on_body) &&
           SET(CURLOPT_WRITEDATA, fetch) && SET(CURLOPT_READFUNCTION, on_read) &&
           SET(CURLOPT_READDATA, fetch) && SET(CURLOPT_SEEKFUNCTION, on_seek) &&
           SET(CURLOPT_SEEKDATA, fetch) && SET(CURLOPT_DEBUGFUNCTION, on_debug) &&
           SET(CURLOPT_DEBUGDATA, fetch) &&
           SET(CURLOPT_VERBOSE, fetch->transport->options->verbose ? 1L : 0L);
}

/* Repeating another method than these on a new connection could apply it twice. */
static bool
may_be_repeated(const struct http_fetch *fetch)
{
    return !fetch->has_body &&
           (strcmp(fetch->method, "GET") == 0 || strcmp(fetch->method, "HEAD") == 0);
}

static bool
set_request(struct http_fetch *fetch)
{
    int64_t length = get_data_length(&fetch->transport->options->data);
    bool is_head = strcmp(fetch->method, "HEAD") == 0;
    bool set = make_lines(fetch);

    /* HTTPGET makes it a request without a body whatever the handle did before. */
    set = set && SET(CURLOPT_HTTPGET, 1L);
    if (fetch->has_body)
        set = set && SET(CURLOPT_UPLOAD, 1L) && SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)length);
    if (is_head)
        set = set && SET(CURLOPT_NOBODY, 1L);
    return set && SET(CURLOPT_CUSTOMREQUEST, fetch->method) &&
           SET(CURLOPT_REQUEST_TARGET, fetch->target.url) &&
           SET(CURLOPT_HTTPHEADER, fetch->lines) &&
           SET(CURLOPT_FRESH_CONNECT, may_be_repeated(fetch) ? 0L : 1L);
}

struct http_fetch *
http_fetch_new(struct http_transport *transport, struct get_answer *answer)
{
    struct http_fetch *fetch = calloc(1, sizeof(*fetch));
    struct get_failure bad_url = {.status = EX_USAGE, .code = "bad_url"};

    if (!fetch) {
        get_queue_done(answer, &no_memory);
        return NULL;
    }
    fetch->transport = transport;
    fetch->answer = answer;
    fetch->data.data = &transport->options->data;
    fetch->method = get_request_method(transport->options);
    fetch->has_body = transport->options->data.count != 0;
    fetch->progress_us = clock_monotonic_us();
    buf_init(&fetch->head, MAX_HEAD);
    bad_url.sentence = get_target_parse(&fetch->target, answer->url);
    if (!bad_url.sentence) {
        fetch->easy = curl_easy_init();
        if (fetch->easy && set_connection(fetch) && set_callbacks(fetch) && set_request(fetch))
            return fetch;
    }
    get_queue_done(answer, bad_url.sentence ? &bad_url : &no_memory);
    http_fetch_free(fetch);
    return NULL;
}

void
http_fetch_free(struct http_fetch *fetch)
{
    curl_easy_cleanup(fetch->easy);
    curl_slist_free_all(fetch->lines);
    get_target_free(&fetch->target);
    get_data_close(&fetch->data);
    buf_free(&fetch->head);
    free(fetch);
}

/* ---- its end --------------------------------------------------------------------------------- */

/* The method of the request that follows a redirect: RFC 9110 section 15.4. */
static void
change_method(struct http_fetch *fetch, unsigned status)
{
    bool to_get = status == 303 ? strcmp(fetch->method, "HEAD") != 0
                                : status < 307 && strcmp(fetch->method, "POST") == 0;

    if (!to_get)
        return;
    fetch->method = "GET";
    fetch->has_body = false;
}

/* Makes the next request. NULL, or a sentence that says why there is none. */
static const char *
follow(struct http_fetch *fetch)
{
    struct get_answer *answer = fetch->answer;
    unsigned status = answer->page.status;
    const char *sentence;
    bool elsewhere = false;

    if (++fetch->redirects > MAX_REDIRECTS)
        return "there were more than 50 redirects";
    sentence = get_target_follow(&fetch->target, get_answer_field(answer, "Location"), &elsewhere);
    if (sentence)
        return sentence;
    fetch->elsewhere |= elsewhere;
    change_method(fetch, status);
    if (fetch->has_body && !get_data_rewind(&fetch->data))
        return "the data of standard input cannot be sent again after a redirect";
    buf_reset(&fetch->head);
    fetch->head_done = fetch->follows = false;
    get_answer_reset(answer);
    return set_request(fetch) ? NULL : "out of memory";
}

/* What a connection did that ended before the response's head was complete, or could not be made.
 */
static struct get_failure
lost(const struct http_fetch *fetch, bool connected, char *text, size_t size)
{
    long error = 0;

    curl_easy_getinfo(fetch->easy, CURLINFO_OS_ERRNO, &error);
    if (connected)
        snprintf(text, size, "the connection broke before the response came");
    else
        snprintf(text, size, "cannot connect to the server%s%s", error ? ": " : "",
                 error ? strerror((int)error) : "");
    return (struct get_failure){.status = EX_UNAVAILABLE,
                                .code = connected ? "lost" : "unreachable",
                                .sentence = text,
                                .lost = true};
}

static struct get_failure
broken(const struct http_fetch *fetch, CURLcode code, char *text, size_t size)
{
    const struct get_answer *answer = fetch->answer;
    bool cut = code == CURLE_PARTIAL_FILE;
    long error = 0;

    /* libcurl reports chunks that are none as an error of receiving, too. */
    curl_easy_getinfo(fetch->easy, CURLINFO_OS_ERRNO, &error);
    if (code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR)
        cut = error != 0;
    if (cut && answer->page.length >= 0)
        snprintf(text, size, "the response was cut short after %llu of %lld bytes",
                 (unsigned long long)answer->size, (long long)answer->page.length);
    else if (cut)
        snprintf(text, size, "the response was cut short after %llu bytes",
                 (unsigned long long)answer->size);
    else
        snprintf(text, size, "the response breaks the protocol of HTTP");
    return (struct get_failure){.status = EX_PROTOCOL, .code = "origin_broke", .sentence = text};
}

static struct get_failure
failure_of(const struct http_fetch *fetch, CURLcode code, char *text, size_t size)
{
    if (fetch->failure.status != EX_OK)
        return fetch->failure;
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return no_memory;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return lost(fetch, false, text, size);
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_FAIL_REWIND:
        return fetch->head_done ? broken(fetch, code, text, size) : lost(fetch, true, text, size);
    default:
        return broken(fetch, code, text, size);
    }
}

enum http_next
http_fetch_ended(struct http_fetch *fetch, CURLcode code, struct get_failure *failure, char *text,
                 size_t size)
{
    *failure = (struct get_failure){.status = EX_OK};
    if (fetch->stopped)
        return HTTP_NEXT_NONE;
    if (code == CURLE_OK && fetch->head_done && fetch->follows) {
        const char *sentence = follow(fetch);

        if (!sentence)
            return HTTP_NEXT_REQUEST;
        *failure = (struct get_failure){
            .status = EX_PROTOCOL, .code = "bad_redirect", .sentence = sentence};
    } else if (code != CURLE_OK || !fetch->head_done) {
        *failure =
            failure_of(fetch, code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code, text, size);
    }
    return HTTP_NEXT_NONE;
}
