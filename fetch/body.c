#include "fetch/body.h"

#define PIECE 16384u /* decoded at once */

bool
body_init(struct body *body, bool chunked, enum coding coding, uint32_t max_trailer_bytes,
          uint32_t max_trailer_lines)
{
    *body = (struct body){.chunked = chunked, .coding = coding};
    chunked_init(&body->chunks, max_trailer_bytes, max_trailer_lines);
    if (coding != CODING_IDENTITY)
        body->decoder = decoder_create(coding);
    return body->decoder || coding == CODING_IDENTITY;
}

void
body_free(struct body *body)
{
    decoder_destroy(body->decoder);
    *body = (struct body){0};
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

static enum body_step
decode(struct body *body, struct span *input, size_t *allowance, body_taker *take, void *context)
{
    do {
        enum coding_step step;
        char piece[PIECE];
        size_t before = input->len;
        size_t made;

        if (*allowance == 0)
            return BODY_PAUSED;
        step = decoder_step(body->decoder, input, piece, sizeof(piece), &made, &body->reason);
        if (step == CODING_BROKEN)
            return BODY_BROKEN;
        body->coded += before - input->len;
        spend(allowance, made + (before - input->len));
        body->unfinished = step == CODING_MADE;
        if (made > 0) {
            enum body_step taken = give(take, context, piece, made);

            if (taken != BODY_WANTS)
                return taken;
        }
    } while (body->unfinished);
    return BODY_WANTS;
}

/* Content, without the framing. */
static enum body_step
read_content(struct body *body, struct span *input, size_t *allowance, body_taker *take,
             void *context)
{
    struct span piece = *input;

    if (body->decoder)
        return decode(body, input, allowance, take, context);
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
            step = read_content(body, &rest, allowance, take, context);
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
    struct span none = span_of(input->ptr, 0);

    if (body->unfinished) {
        enum body_step step = decode(body, &none, allowance, take, context);

        if (step != BODY_WANTS)
            return step;
    }
    if (body->chunked)
        return read_chunks(body, input, allowance, take, context);
    return read_content(body, input, allowance, take, context);
}

bool
body_is_complete(const struct body *body, int64_t stated_length, uint64_t received)
{
    if (body->chunked)
        return chunked_ended(&body->chunks);
    return stated_length >= 0 && received >= (uint64_t)stated_length;
}

const char *
body_end(const struct body *body)
{
    if (body->chunked && !chunked_ended(&body->chunks))
        return "it ends within a chunk";
    if (body->decoder && !decoder_may_end(body->decoder))
        return "it ends within its coded content";
    return NULL;
}
