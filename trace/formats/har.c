/*
 * HAR 1.2 (HTTP Archive, as browsers' developer tools save it): one JSON text, log.entries[] with
 * startedDateTime, request.method, request.url, response.status and response.content.size. The
 * size is that of the content (unpacked); where it is not known, response.bodySize.
 *
 * It is read as a stream, so that bodies, which an archive may have in it, take no memory.
 */
#include <inttypes.h>
#include <math.h>

#include "trace/builder.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/input.h"
#include "trace/formats/json_reader.h"

#define NAME_BYTES 32u /* the longest that is looked for has 15 */
#define WORD_BYTES 256u

/* An archive that is being read, and what is known of the entry at hand. */
struct archive {
    struct json_reader reader;
    struct buf name, url, method, when;
    double status, content_size, body_size; /* NAN: not known */
    bool has_url, has_method, has_when;
    bool url_too_long;
};

/* '{', and the name "log" as the first member. */
static bool
sniff(struct span head)
{
    static const char blanks[] = " \t\r\n";
    static const char *const parts[] = {"{", "\"log\"", ":", "{"};
    size_t at = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        size_t len = strlen(parts[i]);

        while (at < head.len && head.ptr[at] != '\0' && strchr(blanks, head.ptr[at]))
            at++;
        if (head.len - at < len || memcmp(head.ptr + at, parts[i], len) != 0)
            return false;
        at += len;
    }
    return true;
}

/* ---- an entry -------------------------------------------------------------------------------- */

/* Of members of one name, the first counts. */
static void
read_text(struct archive *a, struct buf *text, bool *has)
{
    if (*has || json_reader_kind(&a->reader) != JSON_READER_TEXT)
        json_reader_skip(&a->reader);
    else
        *has = json_reader_text(&a->reader, text);
}

static void
read_number(struct archive *a, double *number)
{
    if (!isnan(*number) || json_reader_kind(&a->reader) != JSON_READER_NUMBER)
        json_reader_skip(&a->reader);
    else
        json_reader_number(&a->reader, number);
}

static bool
is_named(const struct archive *a, const char *name)
{
    return strcmp(buf_str(&a->name), name) == 0;
}

/* Enters an object, or reads over what is none. */
static bool
enter_object(struct archive *a)
{
    if (json_reader_kind(&a->reader) == JSON_READER_OBJECT)
        return json_reader_enter(&a->reader);
    json_reader_skip(&a->reader);
    return false;
}

static void
read_request(struct archive *a)
{
    bool entered = enter_object(a);

    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (is_named(a, "url")) {
            bool is_text = json_reader_kind(&a->reader) == JSON_READER_TEXT;

            read_text(a, &a->url, &a->has_url);
            a->url_too_long |= is_text && !a->has_url;
        } else if (is_named(a, "method")) {
            read_text(a, &a->method, &a->has_method);
        } else {
            json_reader_skip(&a->reader);
        }
    }
}

static void
read_content(struct archive *a)
{
    bool entered = enter_object(a);

    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (is_named(a, "size"))
            read_number(a, &a->content_size);
        else
            json_reader_skip(&a->reader);
    }
}

static void
read_response(struct archive *a)
{
    bool entered = enter_object(a);

    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (is_named(a, "status"))
            read_number(a, &a->status);
        else if (is_named(a, "bodySize"))
            read_number(a, &a->body_size);
        else if (is_named(a, "content"))
            read_content(a);
        else
            json_reader_skip(&a->reader);
    }
}

static void
read_entry(struct archive *a)
{
    bool entered;

    a->has_url = a->has_method = a->has_when = a->url_too_long = false;
    a->status = a->content_size = a->body_size = (double)NAN;
    entered = enter_object(a);
    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (is_named(a, "request"))
            read_request(a);
        else if (is_named(a, "response"))
            read_response(a);
        else if (is_named(a, "startedDateTime"))
            read_text(a, &a->when, &a->has_when);
        else
            json_reader_skip(&a->reader);
    }
}

/* A number that counts bytes: -1 where the archive says so, or nothing. */
static int64_t
bytes_of(double number)
{
    return number >= 0 && number <= 9e15 ? (int64_t)number : -1;
}

/* False when reading is to end. */
static bool
hand_over(const struct archive *a, struct trace_builder *builder, uint64_t number)
{
    struct trace_request request = TRACE_REQUEST_EMPTY;

    if (!a->has_url) {
        trace_add_bad(builder, number,
                      a->url_too_long ? span_str("(the request.url in this entry is too long)")
                                      : span_str("(no request.url in this entry)"));
        return true;
    }
    request.line = number;
    request.url = span_of(buf_str(&a->url), a->url.len);
    if (a->has_method)
        request.method = span_str(buf_str(&a->method));
    if (a->has_when && !fields_iso_date(span_str(buf_str(&a->when)), &request.time_us))
        request.time_us = TRACE_TIME_UNKNOWN;
    /* Aborted and blocked requests have 0, or a number of the browser's own. */
    if (!isnan(a->status))
        request.status =
            a->status >= 100 && a->status < 1000 ? (unsigned)a->status : TRACE_STATUS_NONE;
    request.size = bytes_of(a->content_size);
    if (request.size < 0)
        request.size = bytes_of(a->body_size);
    return trace_add(builder, &request);
}

/* ---- the archive ----------------------------------------------------------------------------- */

/* False when reading is to end. */
static bool
read_entries(struct archive *a, struct trace_builder *builder)
{
    json_reader_enter(&a->reader);
    for (uint64_t number = 1; json_reader_next(&a->reader, NULL); number++) {
        read_entry(a);
        if (!a->reader.failed && !hand_over(a, builder, number))
            return false;
    }
    return true;
}

/* Finds the first log.entries. Likewise. */
static bool
read_log(struct archive *a, struct trace_builder *builder, bool *found)
{
    bool entered = enter_object(a);

    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (*found || !is_named(a, "entries") ||
            json_reader_kind(&a->reader) != JSON_READER_ARRAY) {
            json_reader_skip(&a->reader);
            continue;
        }
        *found = true;
        if (!read_entries(a, builder))
            return false;
    }
    return true;
}

/* Likewise. */
static bool
read_all(struct archive *a, struct trace_builder *builder, bool *found)
{
    bool entered = enter_object(a);

    while (entered && json_reader_next(&a->reader, &a->name)) {
        if (!is_named(a, "log"))
            json_reader_skip(&a->reader);
        else if (!read_log(a, builder, found))
            return false;
    }
    return true;
}

static enum trace_error
explain(const struct archive *a, const char *path, bool found, char *why, size_t why_size)
{
    if (a->reader.no_memory)
        return TRACE_NO_MEMORY;
    if (a->reader.failed)
        snprintf(why, why_size,
                 "%s: not JSON, or cut short, at byte %" PRIu64 "; expected a HAR file", path,
                 json_reader_offset(&a->reader));
    else if (!found)
        snprintf(why, why_size, "%s: no array log.entries in it; expected a HAR file", path);
    return a->reader.failed || !found ? TRACE_NOT_A_TRACE : TRACE_OK;
}

static enum trace_error
read_archive(struct input *in, const struct trace_options *options, struct trace_builder *builder,
             char *why, size_t why_size)
{
    struct archive a = {.has_url = false};
    enum trace_error error = TRACE_OK;
    bool found = false;

    (void)options;
    json_reader_init(&a.reader, in);
    buf_init(&a.name, NAME_BYTES);
    buf_init(&a.url, TRACE_URL_MAX);
    buf_init(&a.method, WORD_BYTES);
    buf_init(&a.when, WORD_BYTES);
    if (read_all(&a, builder, &found))
        error = explain(&a, input_name(in), found, why, why_size);
    buf_free(&a.name);
    buf_free(&a.url);
    buf_free(&a.method);
    buf_free(&a.when);
    return error;
}

const struct trace_format trace_format_har = {
    .name = "har",
    .summary = "a HAR file of a browser's developer tools",
    .unit = "entry",
    .is_text = true,
    .sniff = sniff,
    .read = read_archive,
};
