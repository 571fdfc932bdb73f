#include "fetch/body.h"

void
body_init(struct body *body, bool chunked, uint32_t max_trailer_bytes, uint32_t max_trailer_lines)
{
    *body = (struct body){.chunked = chunked};
    chunked_init(&body->chunks, max_trailer_bytes, max_trailer_lines);
}

static void
spend(size_t *allowance, size_t bytes)
{
    *allowance -= bytes < *allowance ? bytes : *allowance;
}

static enum body_step
give(body_taker *take, void *context, const void *bytes, size_t len)
{
    switch (take(context, bytes, len)) {
    case FETCH_CONTINUE:
        return BODY_WANTS;
    case FETCH_PAUSE:
        return BODY_PAUSED;
    case FETCH_REPEAT: /* of a head alone */
    case FETCH_ABORT:
        break;
    }
    return BODY_TAKER;
}

/* Content, without the framing. */
static enum body_step
read_content(struct span *input, size_t *allowance, body_taker *take, void *context)
{
    struct span piece = *input;

    if (piece.len == 0)
        return BODY_WANTS;
    if (*allowance == 0)
        return BODY_PAUSED;
    *input = span_of(piece.ptr + piece.len, 0);
    spend(allowance, piece.len);
    return give(take, context, piece.ptr, piece.len);
}

static enum body_step
read_chunks(struct body *body, struct span *input, size_t *allowance, body_taker *take,
            void *context)
{
    for (;;) {
        struct span data, rest;
        enum body_step step;

        switch (chunked_read(&body->chunks, input, &data)) {
        case CHUNKED_WANTS:
            return BODY_WANTS;
        case CHUNKED_BROKEN:
            body->reason = body->chunks.reason;
            return body->chunks.too_large ? BODY_TOO_LARGE : BODY_BROKEN;
        case CHUNKED_END:
            if (input->len == 0)
                return BODY_WANTS;
            body->reason = "there are bytes after its last chunk";
            return BODY_BROKEN;
        case CHUNKED_DATA:
            rest = data;
            step = read_content(&rest, allowance, take, context);
            chunked_take(&body->chunks, input, data.len - rest.len);
            if (step != BODY_WANTS)
                return step;
            break;
        }
    }
}

enum body_step
body_read(struct body *body, struct span *input, size_t *allowance, body_taker *take, void *context)
{
    if (body->chunked)
        return read_chunks(body, input, allowance, take, context);
    return read_content(input, allowance, take, context);
}

bool
body_is_complete(const struct body *body, int64_t length, uint64_t received)
{
    if (body->chunked)
        return chunked_ended(&body->chunks);
    return length >= 0 && received >= (uint64_t)length;
}

const char *
body_end(const struct body *body)
{
    return body->chunked && !chunked_ended(&body->chunks) ? "it ends within a chunk" : NULL;
}

/* ---- the request's --------------------------------------------------------------------------- */

void
upload_init(struct upload *upload, const struct request_body *body, upload_source *source,
            void *context)
{
    *upload = (struct upload){
        .length = body->length,
        .source = source,
        .context = context,
        /* An empty body is never asked for. */
        .stage =
            body->kind == REQUEST_BODY_NONE || body->length == 0 ? UPLOAD_COMPLETE : UPLOAD_FLOWS,
    };
}

static enum upload_step
fail(struct upload *upload, const char *reason)
{
    upload->reason = reason;
    return UPLOAD_FAILED;
}

static enum upload_step
supply(struct upload *upload, void *buffer, size_t size, size_t *len)
{
    switch (upload->source(upload->context, buffer, size, len)) {
    case FETCH_SUPPLIED:
        break;
    case FETCH_SUPPLY_LATER:
        *len = 0;
        upload->stage = UPLOAD_HELD;
        return UPLOAD_WAITS;
    case FETCH_SUPPLY_END:
        *len = 0;
        if (upload->length >= 0)
            return fail(upload, "it ended before its stated length");
        upload->stage = UPLOAD_COMPLETE;
        return UPLOAD_ENDED;
    case FETCH_SUPPLY_FAILED:
        *len = 0;
        return fail(upload, "its source failed");
    }
    if (*len == 0 || *len > size) {
        *len = 0;
        return fail(upload, "its source supplied a piece of a wrong size");
    }
    return UPLOAD_PIECE;
}

enum upload_step
upload_read(struct upload *upload, void *buffer, size_t size, size_t *len)
{
    enum upload_step step;

    *len = 0;
    if (upload->stage == UPLOAD_COMPLETE)
        return UPLOAD_ENDED;
    if (upload->length >= 0) {
        uint64_t left = (uint64_t)upload->length - upload->taken;

        size = size < left ? size : (size_t)left;
    }
    upload->stage = UPLOAD_FLOWS;
    step = supply(upload, buffer, size, len);
    upload->taken += *len;
    if (upload->length >= 0 && upload->taken == (uint64_t)upload->length)
        upload->stage = UPLOAD_COMPLETE;
    return step;
}
