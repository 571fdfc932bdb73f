/* The head of a hop's answer: its lines as libcurl reports them, interim heads, the final one. */
#include "base/clock.h"
#include "fetch/method_rules.h"
#include "fetch/transfer_parts.h"
#include "http/method.h"
#include "http/response_head.h"

#define MAX_INTERIM 16u /* 1xx answers before the final one */

/* What the bytes that follow the head are. */
static bool
prepare_body(struct transfer *t)
{
    uint32_t max_bytes = t->settings->config.max_headers;
    enum coding coding = t->redirecting || !t->has_body ? CODING_IDENTITY : t->head.coding;

    if (coding == CODING_UNKNOWN) {
        transfer_fail(
            t, FETCH_ORIGIN_BROKE,
            "%s sent content in a coding that was not asked for, unknown or one of several",
            t->target->host);
        return false;
    }
    if (body_init(&t->body, t->head.chunked && t->has_body, coding,
                  max_bytes - (uint32_t)t->line_bytes, TRANSFER_MAX_LINES - t->line_count))
        return true;
    transfer_fail(t, FETCH_INTERNAL, "out of memory");
    return false;
}

/*
 * Only a request for a part is answered by a part, and one with a condition by its failure. A
 * decoded body without its head would be taken for the whole.
 */
static bool
was_requested(struct transfer *t)
{
    if (t->request->flags & FETCH_UNDECODED)
        return true;
    if (t->status.status == 206 && !t->ranged)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent a part of the page (status 206) unasked",
                      t->target->host);
    else if (t->status.status == 304 && !t->conditional)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent \"not modified\" (status 304) unasked",
                      t->target->host);
    return !t->error;
}

/* Reads the lines of a head, interim or final, into t->head. */
static bool
read_lines(struct transfer *t)
{
    const struct fetch_config *config = &t->settings->config;
    const char *malformed;
    bool no_memory;

    answer_head_free(&t->head);
    malformed = answer_head_read(&t->head, &t->status, buf_span(&t->lines),
                                 t->request->flags & FETCH_UNDECODED, &no_memory);
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

static bool
take_answer(struct transfer *t)
{
    struct fetch_head head;

    if (!read_lines(t))
        return false;
    t->has_body =
        status_has_body(t->status.status) && http_method_of(t->request->method) != HTTP_HEAD;
    if (!t->has_body)
        t->head.content_length = 0;
    if (!transfer_advance(t, t->has_body ? ANSWER_END_OF_HEAD : ANSWER_END_OF_BODILESS) ||
        !was_requested(t))
        return false;
    /*
     * What another reading of the framing takes for an answer must not become one (section 6.3),
     * and what may be sent on an authenticated connection is that of one client (RFC 9110 section
     * 3.3 has each request stand for itself).
     */
    if (t->head.ambiguous || t->head.binds)
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    t->redirecting = method_may_follow(t->request) && http_status_is_redirect(t->status.status) &&
                     t->head.location;
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
    if (t->head.content_length > 0 && (uint64_t)t->head.content_length > transfer_max_body(t)) {
        transfer_fail(t, FETCH_TOO_LARGE, "%s states a body of %lld bytes, the bound is %llu",
                      t->target->host, (long long)t->head.content_length,
                      (unsigned long long)transfer_max_body(t));
        return false;
    }
    head = (struct fetch_head){
        .status = t->status.status,
        .final_url = t->final_url,
        .headers = buf_span(&t->head.fields),
        .content_length = t->head.content_length,
        .no_store = t->head.ambiguous,
        .is_1_0 = t->status.version == 10,
    };
    return transfer_take_flow(t, t->owner.head(t->owner.context, &head)) != FETCH_ABORT;
}

/* 100 (Continue) is dropped: the request did not expect it (RFC 9110 section 15.2.1). */
static bool
take_interim(struct transfer *t)
{
    const char *host = t->target->host;

    if (t->status.status == 101)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s switched protocols (status 101) unasked", host);
    else if (t->status.version < 11)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent an interim answer in HTTP/1.0", host);
    else if (++t->interim > MAX_INTERIM)
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s sent interim answers without end", host);
    else if (t->status.status != 100 && read_lines(t) && t->owner.interim)
        t->owner.interim(t->owner.context, t->status.status, buf_span(&t->head.fields));
    buf_reset(&t->lines);
    return transfer_advance(t, ANSWER_END_OF_INTERIM);
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
    transfer_check_complete(t);
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

    if (len <= max - t->line_bytes && t->line_count < TRANSFER_MAX_LINES) {
        t->line_bytes += len;
        t->line_count++;
        return true;
    }
    transfer_fail(t, FETCH_TOO_LARGE, "the %s of %s are over %zu bytes or %u lines",
                  answer_has_head(t->answer) ? "trailers" : "headers", t->target->host, max,
                  TRANSFER_MAX_LINES);
    return false;
}

static bool
read_status_line(struct transfer *t, struct span line)
{
    if (!transfer_advance(t, ANSWER_STATUS_LINE))
        return false;
    if (!status_line_read(&t->status, line))
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered without a status line", t->target->host);
    else if ((t->status.version >= 20) != connections_speak_http_2(t->easy))
        transfer_fail(t, FETCH_ORIGIN_BROKE, "%s answered in another version of HTTP",
                      t->target->host);
    return !t->error;
}

static bool
read_field_line(struct transfer *t, struct span line)
{
    if (!transfer_advance(t, ANSWER_FIELD_LINE))
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
        return transfer_advance(t,
                                t->status.version >= 20 ? ANSWER_TRAILER_LINE : ANSWER_FIELD_LINE);
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

    t->last_byte_us = clock_monotonic_us();
    return len && !t->error && count_line(t, len) && read_line(t, span_of(line, len)) ? len : 0;
}
