#include "fetch/upload.h"

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
