#include "fetch/upload.h"

void
upload_init(struct upload *upload, const struct fetch_body *body, upload_source *source,
            void *context)
{
    *upload = (struct upload){
        .kind = body->kind,
        .bytes = body->bytes,
        .length = body->kind == FETCH_BODY_BYTES ? (int64_t)body->bytes.len : body->length,
        .source = source,
        .context = context,
        .ended = body->kind == FETCH_BODY_NONE,
    };
    /* An empty body is never asked for. */
    upload->ended = upload->ended || upload->length == 0;
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
        return UPLOAD_WAITS;
    case FETCH_SUPPLY_END:
        *len = 0;
        if (upload->length >= 0)
            return fail(upload, "it ended before its stated length");
        upload->ended = true;
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
    enum upload_step step = UPLOAD_PIECE;

    *len = 0;
    if (upload->length >= 0) {
        uint64_t left = (uint64_t)upload->length - upload->taken;

        upload->ended = upload->ended || left == 0;
        size = size < left ? size : (size_t)left;
    }
    if (upload->ended)
        return UPLOAD_ENDED;
    if (upload->kind == FETCH_BODY_BYTES) {
        memcpy(buffer, upload->bytes.ptr + upload->taken, size);
        *len = size;
    } else {
        step = supply(upload, buffer, size, len);
    }
    upload->taken += *len;
    upload->ended =
        upload->ended || (upload->length >= 0 && upload->taken == (uint64_t)upload->length);
    return step;
}

bool
upload_rewind(struct upload *upload)
{
    if (upload->taken == 0)
        return true;
    if (upload->kind != FETCH_BODY_BYTES)
        return false;
    upload->taken = 0;
    upload->ended = false;
    return true;
}
