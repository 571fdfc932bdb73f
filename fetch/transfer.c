#include "fetch/transfer.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "http/field.h"
#include "http/method.h"
#include "http/response_head.h"

#define TURN_ALLOWANCE ((size_t)1 << 20) /* bytes passed on for a transfer in a turn */
#define MAX_INTERIM 16u                  /* 1xx answers before the final one */
#define MAX_LINES 1000u /* of all heads and trailers: libcurl keeps those that it sees */

/* ---- sentences ----------------------------------------------------------------------- */

void
sentence_format(char *sentence, size_t size, const char *format, va_list args)
{
    vsnprintf(sentence, size, format, args);
    for (char *c = sentence; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 127)
            *c = '?';
}

const char *
sentence_refuse(char *sentence, size_t size, const struct address_policy *policy, const char *host,
                const union address *address)
{
    char text[INET6_ADDRSTRLEN], why[128] = "";

    address_policy_check(policy, &address->any, why, sizeof(why));
    if (strcmp(address_format(address, text, sizeof(text)), host) == 0)
        snprintf(sentence, size, "refused: %s is %s", host, why);
    else
        snprintf(sentence, size, "refused: %s is at %s, which is %s", host, text, why);
    return sentence;
}

void
transfer_fail(struct transfer *t, enum fetch_error error, const char *format, ...)
{
    va_list args;

    if (t->error)
        return;
    t->error = error;
    va_start(args, format);
    sentence_format(t->sentence, sizeof(t->sentence), format, args);
    va_end(args);
}

/* ---- state --------------------------------------------------------------------------- */

void
transfer_enter(struct transfer *t, enum transfer_stage stage)
{
    t->last_byte_us = clock_monotonic_us();
    t->stage = stage;
    t->place->changed(t->consumer, TRANSFER_HAS_STAGE);
}

static bool
advance(struct transfer *t, enum answer_part part)
{
    if (t->error)
        return false;
    if (answer_advance(&t->answer, part))
        return true;
    transfer_fail(t, FETCH_ORIGIN_BROKE, "the parts of the answer of %s are out of order",
                  t->target->host);
    return false;
}

static uint64_t
max_body(const struct transfer *t)
{
    return t->request->flags & REQUEST_STREAMS ? UINT64_MAX : t->settings->config.max_body;
}

static enum fetch_flow
take_flow(struct transfer *t, enum fetch_flow flow)
{
    if (flow == FETCH_PAUSE && !(t->request->flags & REQUEST_STREAMS)) {
        transfer_fail(t, FETCH_INTERNAL, "the answer was paused without REQUEST_STREAMS");
        return FETCH_ABORT;
    }
    if (flow == FETCH_ABORT)
        transfer_fail(t, FETCH_INTERNAL, "the answer could not be taken");
    if (flow == FETCH_PAUSE) {
        t->flow = TRANSFER_HOLDS;
        t->place->changed(t->consumer, TRANSFER_IS_HELD);
    }
    return flow;
}

/*
 * libcurl ends a transfer when both bodies are through. An origin that has sent all of its answer
 * need not read the rest of the request (RFC 9112 section 9.5).
 */
static void
check_complete(struct transfer *t)
{
    if (answer_has_body(t->answer) &&
        !body_is_complete(&t->body, t->head.content_length, t->read_bytes))
        return;
    if (!connections_may_keep(&t->place->connections, &t->lease))
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    if (t->upload.stage != UPLOAD_COMPLETE)
        transfer_enter(t, TRANSFER_COMPLETE);
}

/* ---- the head ------------------------------------------------------------------------ */

/* What the bytes that follow the head are. */
static void
prepare_body(struct transfer *t)
{
    body_init(&t->body, t->head.chunked && answer_has_body(t->answer),
              t->settings->config.max_headers - (uint32_t)t->line_bytes,
              MAX_LINES - t->line_count);
}

/* Reads the lines of a head, interim or final, into t->head. */
static bool
read_lines(struct transfer *t)
{
    const struct fetch_config *config = &t->settings->config;
    const char *malformed;
    bool no_memory;

    http_response_head_free(&t->head);
    malformed = http_response_head_read(&t->head, &t->status, buf_span(&t->lines), &no_memory);
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
    return true;
}

/* The consumer has the head of an earlier attempt. */
static bool
continue_head(struct transfer *t, const struct fetch_head *head)
{
    if (consumer_is_cancelled(t->consumer) || continued_begin(t->continues, head))
        return true;
    transfer_fail(t, FETCH_ORIGIN_BROKE,
                  "a peer has failed, and what %s sends now is another response", t->target->host);
    return false;
}

/* The consumer gets the head, unless another member is asked. */
static bool
pass_head(struct transfer *t)
{
    struct consumer *c = t->consumer;
    const struct fetch_head head = {
        .status = t->status.status,
        .headers = buf_span(&t->head.fields),
        .content_length = t->head.content_length,
        .no_store = t->head.ambiguous,
        .is_1_0 = t->status.version == 10,
    };
    enum fetch_flow flow = FETCH_ABORT;

    if (t->continues && c->attempt.stage != ATTEMPT_PASSED_OVER)
        return continue_head(t, &head);
    if (!consumer_is_cancelled(c) && c->attempt.stage != ATTEMPT_PASSED_OVER) {
        c->receive_seen = atomic_load(&c->resumes);
        flow = c->sink.head(c->context, &head);
        if (t->peers && (flow == FETCH_CONTINUE || flow == FETCH_PAUSE))
            c->continued = continued_create(&head);
    }
    if (flow == FETCH_REPEAT) {
        c->attempt.stage = ATTEMPT_REPEATS;
        flow = FETCH_CONTINUE;
    }
    return take_flow(t, flow) != FETCH_ABORT;
}

/* The consumer gets to know the response, which may be one that is passed over. */
static void
pass_response(struct transfer *t)
{
    const int64_t now_us = clock_monotonic_us();
    struct consumer *c = t->consumer;
    struct fetch_response response = {
        .status = t->status.status,
        .lines = buf_span(&t->lines),
        .has_user = t->target->has_user,
        .waited_us = now_us - t->asked_us,
    };

    if (consumer_is_cancelled(c))
        return;
    response.passed_over =
        !attempt_counts(&c->attempt, t->request, &response, now_us);
    if (c->sink.response && !t->continues)
        c->sink.response(c->context, &response);
}

/* Is it a redirect with somewhere to go, whose body is of no interest to most consumers? */
static bool
redirects(const struct transfer *t)
{
    static const char *const names[] = {"Location", NULL};

    return http_status_is_redirect(t->status.status) &&
           http_has_field(buf_span(&t->head.fields), names);
}

static bool
take_answer(struct transfer *t)
{
    bool has_body;

    if (!read_lines(t))
        return false;
    has_body = http_status_has_body(t->status.status) && t->request->method != HTTP_HEAD;
    if (!has_body)
        t->head.content_length = 0;
    if (!advance(t, has_body ? ANSWER_END_OF_HEAD : ANSWER_END_OF_BODILESS))
        return false;
    /*
     * What another reading of the framing takes for an answer must not become one (section 6.3),
     * and what may be sent on an authenticated connection is that of one client (RFC 9110 section
     * 3.3 has each request stand for itself).
     */
    if (t->head.ambiguous || t->head.binds)
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    prepare_body(t);
    pass_response(t);
    if (t->head.content_length > 0 && (uint64_t)t->head.content_length > max_body(t) &&
        !redirects(t)) {
        transfer_fail(t, FETCH_TOO_LARGE, "%s states a body of %lld bytes, the bound is %llu",
                      t->target->host, (long long)t->head.content_length,
                      (unsigned long long)max_body(t));
        return false;
    }
    return pass_head(t);
}

/* 100 (Continue) is dropped: the request did not expect it (RFC 9110 section 15.2.1). So is what a
 * peer says, that it has the request. */
static bool
take_interim(struct transfer *t)
{
    const char *host = t->target->host;
    struct consumer *c = t->consumer;

    if (t->status.status == 101)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s switched protocols (status 101) unasked", host);
    else if (t->status.version < 11)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent an interim answer in HTTP/1.0", host);
    else if (++t->interim > MAX_INTERIM)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent interim answers without end", host);
    else if (t->status.status != 100 && read_lines(t) && c->sink.interim && !t->peers &&
             !consumer_is_cancelled(c))
        c->sink.interim(c->context, t->status.status, buf_span(&t->head.fields));
    buf_reset(&t->lines);
    return advance(t, ANSWER_END_OF_INTERIM);
}

/* The empty line. */
static bool
end_head(struct transfer *t)
{
    if (t->status.status < 200)
        return take_interim(t);
    if (!take_answer(t))
        return false;
    transfer_enter(t, TRANSFER_BODY);
    check_complete(t);
    return true;
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
                  answer_has_head(t->answer) ? "trailers" : "headers", t->target->host, max,
                  MAX_LINES);
    return false;
}

static bool
read_status_line(struct transfer *t, struct span line)
{
    if (!advance(t, ANSWER_STATUS_LINE))
        return false;
    if (!http_status_line_read(&t->status, line))
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered without a status line", t->target->host);
    else if ((t->status.version >= 20) != connections_speak_http_2(t->easy))
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered in another version of HTTP",
                      t->target->host);
    return !t->error;
}

static bool
read_field_line(struct transfer *t, struct span line)
{
    if (!advance(t, ANSWER_FIELD_LINE))
        return false;
    /* To libcurl such a line ends the head. */
    if (line.ptr[0] == '\r' || line.ptr[0] == '\n')
        transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s: a line of its head begins with CR",
                      t->target->host);
    else if (!buf_append(&t->lines, line.ptr, line.len))
        transfer_fail(t, FETCH_INTERNAL, "out of memory");
    return !t->error;
}

static bool
is_empty_line(struct span line)
{
    return span_equal(line, span_str("\r\n")) || span_equal(line, span_str("\n"));
}

/* What trailers say may be of no consequence (RFC 9110 section 6.5.1). */
static bool
read_line(struct transfer *t, struct span line)
{
    if (answer_has_head(t->answer))
        return advance(t, t->status.version >= 20 ? ANSWER_TRAILER_LINE : ANSWER_FIELD_LINE);
    if (t->stage < TRANSFER_ANSWERING)
        transfer_enter(t, TRANSFER_ANSWERING);
    if (t->answer == ANSWER_AWAITED)
        return read_status_line(t, line);
    return is_empty_line(line) ? end_head(t) : read_field_line(t, line);
}

size_t
transfer_on_header(char *line, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len = size * count;

    t->last_byte_us = t->place->turn_us;
    return len && !t->error && count_line(t, len) && read_line(t, span_of(line, len)) ? len : 0;
}

/* ---- the body ------------------------------------------------------------------------ */

/* What the consumer does not have. False: the bytes before are others. */
static bool
take_new(struct transfer *t, const void **bytes, size_t *len)
{
    struct consumer *c = t->consumer;

    if (t->continues && !continued_skip(t->continues, bytes, len)) {
        transfer_fail(t, FETCH_ORIGIN_BROKE,
                      "a peer has failed, and what %s sends now begins with other bytes",
                      t->target->host);
        return false;
    }
    if (c->continued && *len)
        continued_add(c->continued, *bytes, *len);
    return true;
}

static enum fetch_flow
pass_body(struct consumer *c, const void *bytes, size_t len)
{
    if (consumer_is_cancelled(c))
        return FETCH_ABORT;
    if (c->attempt.stage == ATTEMPT_REPEATS)
        return FETCH_CONTINUE;
    c->receive_seen = atomic_load(&c->resumes);
    return c->sink.body(c->context, bytes, len);
}

static enum fetch_flow
take_piece(void *context, const void *bytes, size_t len)
{
    struct transfer *t = context;
    uint64_t max = max_body(t);

    if (len > max - t->body_bytes) {
        transfer_fail(t, FETCH_TOO_LARGE, "the body from %s is over the bound of %llu bytes",
                      t->target->host, (unsigned long long)max);
        return FETCH_ABORT;
    }
    t->body_bytes += len;
    if (!take_new(t, &bytes, &len))
        return FETCH_ABORT;
    return len ? take_flow(t, pass_body(t->consumer, bytes, len)) : FETCH_CONTINUE;
}

static size_t
pause_receiving(struct transfer *t)
{
    if (t->flow == TRANSFER_HOLDS) {
        t->flow = TRANSFER_PAUSED;
    } else {
        t->flow = TRANSFER_WAITING;
        t->place->changed(t->consumer, TRANSFER_RESTS);
    }
    return CURL_WRITEFUNC_PAUSE;
}

/*
 * The bytes as they came. After a pause libcurl hands over the same piece again, perhaps with more
 * behind it.
 */
size_t
transfer_on_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len = size * count;
    struct span input;

    t->last_byte_us = t->place->turn_us;
    if (len < t->used)
        transfer_fail(t, FETCH_INTERNAL, "a piece of the body of %s has become shorter in a pause",
                      t->target->host);
    if (len == 0 || !advance(t, ANSWER_BYTES))
        return 0;
    input = span_of(bytes + t->used, len - t->used);
    if (t->flow == TRANSFER_HOLDS)
        return pause_receiving(t);
    if (t->turn_us != t->place->turn_us) {
        t->turn_us = t->place->turn_us;
        /* Streams of HTTP/2 are not paused (REQUEST_STREAMS): there max_body alone bounds the
         * work.
         */
        t->allowance = t->status.version < 20 ? TURN_ALLOWANCE : SIZE_MAX;
    }
    switch (body_read(&t->body, &input, &t->allowance, take_piece, t)) {
    case BODY_WANTS:
        t->used = 0;
        t->read_bytes += len;
        check_complete(t);
        return len;
    case BODY_PAUSED:
        t->used = len - input.len;
        return pause_receiving(t);
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

/* ---- the request's body -------------------------------------------------------------- */

size_t
transfer_on_send(char *buffer, size_t size, size_t count, void *context)
{
    struct transfer *t = context;
    size_t len;

    t->last_byte_us = t->place->turn_us;
    switch (upload_read(&t->upload, buffer, size * count, &len)) {
    case UPLOAD_PIECE:
        break;
    case UPLOAD_WAITS:
        t->place->changed(t->consumer, TRANSFER_IS_HELD);
        return CURL_READFUNC_PAUSE;
    case UPLOAD_ENDED:
        break;
    case UPLOAD_FAILED:
        transfer_fail(t, FETCH_BODY_FAILED, "the body of the request to %s: %s", t->target->host,
                      t->upload.reason);
        return CURL_READFUNC_ABORT;
    }
    if (t->upload.stage == UPLOAD_COMPLETE && t->stage == TRANSFER_SENDING)
        transfer_enter(t, TRANSFER_ASKED);
    return len;
}

int
transfer_on_rewind(void *context, curl_off_t offset, int origin)
{
    struct transfer *t = context;

    if (offset != 0 || origin != SEEK_SET || t->upload.taken != 0)
        return CURL_SEEKFUNC_FAIL;
    return CURL_SEEKFUNC_OK;
}

/* ---- pauses -------------------------------------------------------------------------- */

/* Brings libcurl's pauses up to date; it may call transfer_on_body() from within. */
static CURLcode
update_pauses(struct transfer *t)
{
    bool receive = t->flow == TRANSFER_PAUSED || t->flow == TRANSFER_WAITING;

    return curl_easy_pause(t->easy, (receive ? CURLPAUSE_RECV : 0) |
                                        (t->upload.stage == UPLOAD_HELD ? CURLPAUSE_SEND : 0));
}

CURLcode
transfer_next_turn(struct transfer *t)
{
    t->flow = TRANSFER_FLOWS;
    return update_pauses(t);
}

static bool
is_receive_held(const struct transfer *t)
{
    return t->flow == TRANSFER_HOLDS || t->flow == TRANSFER_PAUSED;
}

CURLcode
transfer_resume(struct transfer *t)
{
    struct consumer *c = t->consumer;
    const unsigned resumes = atomic_load(&c->resumes);
    bool receive = is_receive_held(t) && c->receive_seen != resumes;
    bool send = t->upload.stage == UPLOAD_HELD && c->send_seen != resumes;

    c->receive_seen = c->send_seen = resumes;
    if (!receive && !send)
        return CURLE_OK;
    t->last_byte_us = t->place->turn_us;
    if (receive)
        t->flow = TRANSFER_FLOWS;
    if (send)
        t->upload.stage = UPLOAD_FLOWS;
    return update_pauses(t);
}

bool
transfer_is_held(const struct transfer *t)
{
    return is_receive_held(t) || t->upload.stage == UPLOAD_HELD;
}

/* ---- the view of the network --------------------------------------------------------- */

/* Sees what no other call-back does: bytes that follow an answer, the end of TLS, and all that is
 * sent and received. */
int
transfer_on_debug(CURL *easy, curl_infotype type, char *bytes, size_t len, void *context)
{
    struct transfer *t = context;

    /*
     * libcurl 7.88 drops what follows an answer without a body in the same read, and keeps the
     * connection, where the rest of it would pass for the next answer (RFC 9112 section 9.2).
     */
    if (type == CURLINFO_TEXT && span_starts_with(span_of(bytes, len), span_str("Excess found")))
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    /*
     * Only alerts have two bytes, of which the second one is their number: RFC 8446 section 6. The
     * close_notify of a kept connection that libcurl closes before it uses another one is shown
     * here, too. That of the connection in use comes after the final head.
     */
    if (answer_has_head(t->answer) && type == CURLINFO_SSL_DATA_IN && len == 2 && bytes[1] == 0)
        t->tls_ended = true;
    if (type == CURLINFO_DATA_OUT || type == CURLINFO_DATA_IN)
        t->last_byte_us = t->place->turn_us;
    if (type == CURLINFO_DATA_IN)
        atomic_fetch_add_explicit(&t->place->received, len, memory_order_relaxed);
    return 0;
}

bool
transfer_restart(struct transfer *t)
{
    CURLM *multi = t->place->multi;

    curl_multi_remove_handle(multi, t->easy);
    t->stage = TRANSFER_CONNECTING;
    t->tls_ended = false;
    t->error_text[0] = '\0';
    return curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
           curl_multi_add_handle(multi, t->easy) == CURLM_OK;
}

/* ---- its end ------------------------------------------------------------------------- */

static const char *
reason(const struct transfer *t, CURLcode code)
{
    return t->error_text[0] ? t->error_text : curl_easy_strerror(code);
}

static bool
is_tls_failure(CURLcode code)
{
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_ENGINE_NOTFOUND:
    case CURLE_SSL_ENGINE_SETFAILED:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_USE_SSL_FAILED:
    case CURLE_SSL_ENGINE_INITFAILED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CRL_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return true;
    default:
        return false;
    }
}

static void
fail_connecting(struct transfer *t, CURLcode code)
{
    if (code == CURLE_OPERATION_TIMEDOUT)
        transfer_fail(t, FETCH_CONNECT_TIMED_OUT, "connecting to %s took too long",
                      t->target->host);
    else if (is_tls_failure(code))
        transfer_fail(t, FETCH_TLS_FAILED, "TLS with %s failed: %s", t->target->host,
                      reason(t, code));
    else if (code == CURLE_COULDNT_CONNECT && t->no_socket)
        t->error = t->no_socket;
    else if (code == CURLE_OUT_OF_MEMORY)
        transfer_fail(t, FETCH_INTERNAL, "out of memory");
    else if (code == CURLE_COULDNT_RESOLVE_HOST || code == CURLE_COULDNT_RESOLVE_PROXY)
        transfer_fail(t, FETCH_RESOLVE_FAILED, "%s cannot be resolved", t->target->host);
    else
        transfer_fail(t, FETCH_CONNECT_FAILED, "cannot connect to %s: %s", t->target->host,
                      reason(t, code));
}

/* What libcurl says when a single line of a head is over its own bound; before 8.6 it is the first.
 */
static bool
is_over_libcurls_bound(const struct transfer *t, CURLcode code)
{
#if LIBCURL_VERSION_NUM >= 0x080600
    if (code == CURLE_TOO_LARGE)
        return t->stage < TRANSFER_BODY;
#endif
    return code == CURLE_OUT_OF_MEMORY && t->stage < TRANSFER_BODY;
}

/* Does libcurl show what TLS receives? With other libraries it reports a missing end itself. */
static bool
shows_tls(void)
{
    static const char *const libraries[] = {"OpenSSL/", "LibreSSL/", "BoringSSL", "quictls/"};
    const char *library = curl_version_info(CURLVERSION_NOW)->ssl_version;

    for (size_t i = 0; library && i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (strncmp(library, libraries[i], strlen(libraries[i])) == 0)
            return true;
    return false;
}

/*
 * A body that the end of the connection ends may have been cut off on the way, unless TLS has ended
 * before: RFC 9112 sections 8 and 9.8. libcurl 7.88 takes either end for the body's, 8.14 fails to
 * receive at an end of the connection alone, with "errno 0" for a reason. To an upstream
 * proxy over TLS there are two layers, whose ends are not told apart: either counts.
 */
static void
check_tls_end(struct transfer *t)
{
    bool ends_with_connection = answer_has_body(t->answer) && t->status.version < 20 &&
                                !t->head.chunked && t->head.content_length < 0;

    if (t->target->https && ends_with_connection && !t->tls_ended && shows_tls())
        transfer_fail(t, FETCH_ORIGIN_BROKE,
                      "%s closed the connection without ending TLS: the answer may be cut off",
                      t->target->host);
}

enum fetch_error
transfer_evaluate(struct transfer *t, CURLcode code)
{
    if (t->error || (code == CURLE_OK && t->request->flags & REQUEST_CONNECT_ONLY))
        return t->error;
    if (code == CURLE_OK && answer_has_head(t->answer)) {
        const char *lack = body_end(&t->body);

        if (lack)
            transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s is broken: %s", t->target->host,
                          lack);
        if (!lack && t->continues && !continued_is_through(t->continues))
            transfer_fail(t, FETCH_ORIGIN_BROKE,
                          "a peer has failed, and what %s sends now is shorter", t->target->host);
        check_tls_end(t);
        if (!t->error)
            t->stage = TRANSFER_ENDED;
        return t->error;
    }
    if (code == CURLE_RECV_ERROR && answer_has_head(t->answer))
        check_tls_end(t);
    if (t->stage == TRANSFER_CONNECTING && code != CURLE_OK)
        fail_connecting(t, code);
    else if (is_tls_failure(code) || code == CURLE_SSL_CLIENTCERT)
        transfer_fail(t, FETCH_TLS_FAILED, "TLS with %s failed: %s", t->target->host,
                      reason(t, code));
    else if (is_over_libcurls_bound(t, code))
        transfer_fail(t, FETCH_TOO_LARGE, "a header of %s is too large", t->target->host);
    else if (code == CURLE_OUT_OF_MEMORY || code == CURLE_ABORTED_BY_CALLBACK)
        transfer_fail(t, FETCH_INTERNAL, "fetching has failed: %s", curl_easy_strerror(code));
    else if (code == CURLE_OPERATION_TIMEDOUT)
        transfer_fail(t, FETCH_TIMED_OUT, "%s took too long", t->target->host);
    else if (code == CURLE_OK)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s ended without an answer", t->target->host);
    else
        transfer_fail(t, FETCH_ORIGIN_BROKE, "the answer of %s is broken: %s", t->target->host,
                      reason(t, code));
    return t->error;
}

void
handles_free(struct handles *handles)
{
    while (handles->count)
        curl_easy_cleanup(handles->kept[--handles->count]);
}

/* Ends the use of a share, of the buffer for errors, and of the target of a request at a peer. */
static bool
let_go(const struct transfer *t)
{
    CURL *easy = t->easy;

    return (!t->peers || curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, NULL) == CURLE_OK) &&
           curl_easy_setopt(easy, CURLOPT_SHARE, NULL) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, NULL) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_VERBOSE, 0L) == CURLE_OK;
}

/* Gives the handle back, or frees it. */
static void
release_handle(struct transfer *t)
{
    struct handles *handles = &t->place->handles;

    curl_multi_remove_handle(t->place->multi, t->easy); /* harmless before it was added */
    if (t->stage == TRANSFER_ENDED && transfer_is_plain(t) && t->line_bytes <= HANDLES_LINES &&
        t->settings == t->place->settings && handles->count < HANDLES_MAX && let_go(t))
        handles->kept[handles->count++] = t->easy;
    else
        curl_easy_cleanup(t->easy);
}

void
transfer_clear(struct transfer *t)
{
    if (t->easy)
        release_handle(t);
    if (t->lease.pool)
        connections_end_lease(&t->place->connections, &t->lease);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->pins);
    curl_slist_free_all(t->connect_to);
    resolved_release(&t->addresses);
    http_response_head_free(&t->head);
    buf_free(&t->lines);
    *t = (struct transfer){0};
}
