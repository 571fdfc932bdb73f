#include "server/rpc/content.h"

#include "http/field.h"
#include "http/known_fields.h"
#include "server/rpc/decoding.h"

/* ---- beginning and end ----------------------------------------------------------------------- */

static unsigned
known_of(const struct object *object)
{
    return object->notes & HTTP_KNOWN ? object->notes : http_known_fields(object_fields(object));
}

/* CODING_UNKNOWN also for several ones, each of which multiplies the work that a byte may cost. */
static enum coding
coding_of(const struct object *object)
{
    const struct span name = span_str("Content-Encoding");
    struct span lines = object_fields(object), line, value, member;
    enum coding coding = CODING_IDENTITY;

    while (http_next_line(&lines, &line)) {
        if (!http_line_is(line, name, &value))
            continue;
        while (http_next_member(&value, &member)) {
            enum coding named = coding_parse(member);

            if (named != CODING_IDENTITY)
                coding = coding == CODING_IDENTITY ? named : CODING_UNKNOWN;
        }
    }
    return coding;
}

/* A response without a body by its status has the fields of another one: RFC 9110, section 15. */
static bool
may_be_coded(const struct object *object)
{
    return known_of(object) & HTTP_KNOWN_CODING && object->status != 204 && object->status != 304;
}

void
content_begin(struct content *content, const struct object *object,
              const struct content_limits *limits)
{
    const enum coding coding = may_be_coded(object) ? coding_of(object) : CODING_IDENTITY;

    *content = (struct content){.object = object};
    if (coding == CODING_UNKNOWN)
        decoding_break(content, FAILURE_ORIGIN,
                       "the origin sent content in a coding that is unknown or one of several");
    else if (coding != CODING_IDENTITY)
        decoding_begin(content, coding, limits);
    else if (object->notes & HTTP_KNOWN_ORIGIN_CONTROL)
        decoding_copy_fields(content, limits);
}

/* ---- seeking --------------------------------------------------------------------------------- */

/* Moves the place over bytes that have been published, or to the end of those. */
static void
pass_plain(struct content *content, uint64_t bytes)
{
    if (!content->object->segmented) {
        uint64_t left = object_length(content->object) - content->place.offset;

        content->place.offset += bytes < left ? bytes : left;
        return;
    }
    while (bytes) {
        struct span run = object_read(content->object, &content->place);

        if (run.len == 0)
            return;
        if (run.len > bytes) {
            content->place.offset -= run.len - bytes;
            return;
        }
        bytes -= run.len;
    }
}

/* What is still growing, or was not kept, has been freed before the place, and must be read through
 * from there. */
static enum content_step
seek_plain(struct content *content, uint64_t offset, size_t want)
{
    const struct object *object = content->object;
    /* Found first: then the length is the whole one. */
    bool complete = object_state(object) == OBJECT_READY;
    uint64_t length, left;

    if (complete && !object_is_windowed(object)) {
        if (offset < content->place.offset)
            content->place.segment = NULL;
        content->place.offset = offset;
    } else if (offset < content->place.offset) {
        return CONTENT_PASSED;
    } else {
        pass_plain(content, offset - content->place.offset);
    }
    length = object_length(object);
    left = content->place.offset == offset && length > offset ? length - offset : 0;
    content->there = left < want ? (size_t)left : want;
    if (left > want)
        return CONTENT_THERE;
    return complete ? CONTENT_LAST : CONTENT_WAITS;
}

enum content_step
content_seek(struct content *content, uint64_t offset, size_t want)
{
    content->there = 0;
    return content->stage == CONTENT_PLAIN ? seek_plain(content, offset, want)
                                           : decoding_seek(content, offset, want);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

void
content_take(struct content *content, struct content_piece *piece)
{
    *piece = (struct content_piece){.len = content->there};
    content->there = 0;
    if (content->decoding) {
        decoding_take(content, piece);
        return;
    }
    piece->object = content->object;
    piece->place = content->place;
    pass_plain(content, piece->len);
}

struct span
content_piece_read(struct content_piece *piece)
{
    struct content_block *block = piece->blocks;
    struct span run = piece->object ? object_read(piece->object, &piece->place)
                      : block       ? span_of(block->bytes, block->len)
                                    : span_of(NULL, 0);

    if (block)
        piece->blocks = block->next;
    if (run.len > piece->len)
        run.len = piece->len;
    piece->len -= run.len;
    return run;
}

struct span
content_piece_inline(const struct content_piece *piece)
{
    if (!piece->object || piece->object->segmented)
        return span_of(NULL, 0);
    return object_body(piece->object);
}

bool
content_piece_has_zero_byte(const struct content_piece *piece)
{
    if (piece->object)
        return object_has_zero_byte(piece->object);
    for (const struct content_block *block = piece->blocks; block; block = block->next)
        if (memchr(block->bytes, 0, block->len))
            return true;
    return false;
}

/* ---- what fits the body ---------------------------------------------------------------------- */

struct span
content_fields(const struct content *content)
{
    const struct decoding *d = content->decoding;

    if (content->fields)
        return span_of(content->fields->bytes, content->fields->len);
    return d ? span_of(d->fields, d->fields_len) : object_fields(content->object);
}

int64_t
content_length(const struct content *content)
{
    const struct object *object = content->object;
    uint64_t length;

    if (content->stage == CONTENT_ENDED)
        return (int64_t)content->decoding->length;
    if (content->stage != CONTENT_PLAIN)
        return -1;
    if (object_state(object) == OBJECT_READY)
        return (int64_t)object_length(object);
    return http_known_length(object_fields(object), &length) ? (int64_t)length : -1;
}
