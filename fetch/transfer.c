#include "fetch/transfer.h"

#include "base/clock.h"
#include "fetch/transfer_parts.h"

#define WINDOW_LEAST ((size_t)1 << 18)   /* charged at first for a decoder's window */
#define REDIRECT_BODY_MAX 65536u         /* read to keep the connection; more is not worth it */
#define TURN_ALLOWANCE ((size_t)1 << 20) /* bytes decoded or passed on for a transfer in a turn */

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
        transfer_fail(t, FETCH_OVERLOADED, "there is no memory to decode the body now; try again");
        return false;
    }
    t->window_charged = grown;
    return true;
}

static enum fetch_flow
take_piece(void *context, const void *bytes, size_t len)
{
    struct transfer *t = context;
    uint64_t max = transfer_max_body(t);
    enum fetch_flow flow;

    if (t->redirecting) {
        t->body_bytes += len;
        return t->body_bytes <= REDIRECT_BODY_MAX ? FETCH_CONTINUE : FETCH_ABORT;
    }
    if (len > max - t->body_bytes) {
        transfer_fail(t, FETCH_TOO_LARGE,
                      t->body.decoder
                          ? "the body from %s is decoded to more than the bound of %llu bytes"
                          : "the body from %s is over the bound of %llu bytes",
                      t->target->host, (unsigned long long)max);
        return FETCH_ABORT;
    }
    flow = transfer_take_flow(t, t->owner.body(t->owner.context, bytes, len));
    t->body_bytes += len;
    return flow == FETCH_ABORT || charge_window(t, t->body_bytes) ? flow : FETCH_ABORT;
}

static size_t
pause_receiving(struct transfer *t)
{
    t->receive_paused = true;
    if (!t->receive_held)
        t->owner.pause(t->owner.context);
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

    t->last_byte_us = clock_monotonic_us();
    if (len < t->used)
        transfer_fail(t, FETCH_INTERNAL, "a piece of the body of %s has become shorter in a pause",
                      t->target->host);
    if (len == 0 || !transfer_advance(t, ANSWER_BYTES))
        return 0;
    input = span_of(bytes + t->used, len - t->used);
    if (t->receive_held)
        return pause_receiving(t);
    if (t->turn != *t->owner.turn) {
        t->turn = *t->owner.turn;
        /* Streams of HTTP/2 are not paused (FETCH_MAY_PAUSE): there max_body alone bounds the work.
         */
        t->allowance = t->status.version < 20 ? TURN_ALLOWANCE : SIZE_MAX;
    }
    switch (body_read(&t->body, &input, &t->allowance, take_piece, t)) {
    case BODY_WANTS:
        t->used = 0;
        t->read_bytes += len;
        transfer_check_complete(t);
        return len;
    case BODY_PAUSED:
        t->used = len - input.len;
        return pause_receiving(t);
    case BODY_TOO_LARGE:
        transfer_fail(
            t, FETCH_TOO_LARGE, "the headers and trailers of %s are over %u bytes or %u lines",
            t->target->host, (unsigned)t->settings->config.max_headers, TRANSFER_MAX_LINES);
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

    t->last_byte_us = clock_monotonic_us();
    switch (upload_read(&t->upload, buffer, size * count, &len)) {
    case UPLOAD_PIECE:
        break;
    case UPLOAD_WAITS:
        t->send_held = true;
        t->owner.begin_hold(t->owner.context);
        return CURL_READFUNC_PAUSE;
    case UPLOAD_ENDED:
        break;
    case UPLOAD_FAILED:
        transfer_fail(t, FETCH_BODY_FAILED, "the body of the request to %s: %s", t->target->host,
                      t->upload.reason);
        return CURL_READFUNC_ABORT;
    }
    if (t->upload.ended && t->stage == TRANSFER_SENDING)
        transfer_enter(t, TRANSFER_ASKED);
    return len;
}

int
transfer_on_rewind(void *context, curl_off_t offset, int origin)
{
    struct transfer *t = context;

    if (offset != 0 || origin != SEEK_SET || !upload_rewind(&t->upload))
        return CURL_SEEKFUNC_FAIL;
    return CURL_SEEKFUNC_OK;
}

/* ---- pauses -------------------------------------------------------------------------- */

/* Brings libcurl's pauses up to date; it may call transfer_on_body() from within. */
static CURLcode
update_pauses(struct transfer *t)
{
    return curl_easy_pause(t->easy, (t->receive_paused ? CURLPAUSE_RECV : 0) |
                                        (t->send_held ? CURLPAUSE_SEND : 0));
}

CURLcode
transfer_next_turn(struct transfer *t)
{
    t->receive_paused = false;
    return update_pauses(t);
}

CURLcode
transfer_resume(struct transfer *t, bool receive, bool send)
{
    receive = receive && t->receive_held;
    send = send && t->send_held;
    if (!receive && !send)
        return CURLE_OK;
    t->last_byte_us = clock_monotonic_us();
    if (receive)
        t->receive_held = t->receive_paused = false;
    if (send)
        t->send_held = false;
    return update_pauses(t);
}

bool
transfer_is_held(const struct transfer *t)
{
    return t->receive_held || t->send_held;
}

/* ---- the view of the network --------------------------------------------------------- */

/*
 * libcurl does not report bytes past the stated length, nor of bytes that its decoder still holds:
 * the view of what comes from the network shows both.
 */
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
    if (type == CURLINFO_DATA_OUT)
        t->last_byte_us = clock_monotonic_us();
    if (type == CURLINFO_DATA_IN) {
        t->wire_bytes += len;
        t->last_byte_us = clock_monotonic_us();
        atomic_fetch_add_explicit(t->owner.received, len, memory_order_relaxed);
    }
    return 0;
}

bool
transfer_restart(struct transfer *t, CURLM *multi)
{
    curl_multi_remove_handle(multi, t->easy);
    t->unclean = false;
    t->tls_ended = false;
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
    if (t->lease.pool)
        pool_end_lease(&t->owner.connections->pools, &t->lease);
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
