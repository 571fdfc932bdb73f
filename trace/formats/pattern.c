/*
 * Logs of which the format string is known (base/log_pattern.h): those of sunproxyd --log-format,
 * and those of Apache where the byte behind a value does not occur in it.
 */
#include <errno.h>
#include <time.h>

#include "base/log_pattern.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"
#include "trace/formats/sunproxyd.h"

struct state {
    struct log_pattern *pattern;
};

_Static_assert(sizeof(struct state) <= LINE_STATE_BYTES, "the state fits");

/* What the values of a line say. */
struct values {
    struct span url;
    struct span request;
    struct span target; /* path and query */
    struct span method;
    struct line_site site;
    int64_t began_us, ended_us; /* or TRACE_TIME_UNKNOWN */
    int64_t fraction_us;
};

#define TIME_BYTES 256u

/* ---- where values end ------------------------------------------------------------------------ */

/* The bytes of a time as the part has it; 0: they are none. *tm is it. */
static size_t
time_length(const struct log_part *part, struct span rest, struct tm *tm)
{
    char text[TIME_BYTES];
    const size_t len = rest.len < sizeof(text) - 1 ? rest.len : sizeof(text) - 1;
    const char *end;

    memcpy(text, rest.ptr, len);
    text[len] = '\0';
    *tm = (struct tm){0};
    end = strptime(text, part->argument, tm);
    return end ? (size_t)(end - text) : 0;
}

static size_t
value_length(const struct log_part *part, struct span rest)
{
    const char *bracket;
    struct tm tm;
    size_t len = 0;

    if (part->kind == LOG_KIND_STRFTIME && (len = time_length(part, rest, &tm)) != 0)
        return len;
    if (rest.len && rest.ptr[0] == '[' &&
        (part->kind == LOG_KIND_DATE || part->kind == LOG_KIND_HOST) &&
        (bracket = memchr(rest.ptr, ']', rest.len)))
        len = (size_t)(bracket - rest.ptr) + 1;
    if (part->kind == LOG_KIND_DATE && len)
        return len;
    while (len < rest.len && (part->stop == 0 || rest.ptr[len] != part->stop))
        len += rest.ptr[len] == '\\' && len + 1 < rest.len ? 2 : 1;
    return len;
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool
read_time(const struct log_part *part, struct span value, struct values *values)
{
    int64_t *us = part->at_end ? &values->ended_us : &values->began_us, number = 0, unit;
    struct tm tm;

    switch (part->kind) {
    case LOG_KIND_DATE:
        return value.len > 2 && fields_log_date(span_of(value.ptr + 1, value.len - 2), us);
    case LOG_KIND_STRFTIME:
        if (time_length(part, value, &tm) != value.len)
            return false;
        if (part->is_moment)
            *us = ((int64_t)timegm(&tm) - tm.tm_gmtoff) * 1000000;
        return true;
    default:
        break;
    }
    unit = part->kind == LOG_KIND_SECONDS                                                ? 1000000
           : part->kind == LOG_KIND_MILLISECONDS || part->kind == LOG_KIND_MS_FRACTION ? 1000
                                                                                       : 1;
    if (!fields_int(value, &number) || number < 0 || number > INT64_MAX / unit)
        return false;
    if (part->kind == LOG_KIND_MS_FRACTION || part->kind == LOG_KIND_US_FRACTION)
        us = &values->fraction_us;
    *us = number * unit;
    return true;
}

static bool
read_value(const struct log_part *part, struct span value, struct values *values,
           struct trace_request *request)
{
    uint64_t number;

    if (span_equal(value, span_str("-")))
        value = span_of(value.ptr, 0);
    if (part->directive->value == LOG_VALUE_STATUS)
        return fields_status(value, &request->status);
    if (value.len == 0)
        return true;
    switch (part->directive->value) {
    case LOG_VALUE_TIME:
        return read_time(part, value, values);
    case LOG_VALUE_REQUEST:
        values->request = value;
        return true;
    case LOG_VALUE_METHOD:
        values->method = value;
        return true;
    case LOG_VALUE_PATH:
        values->target = value;
        return true;
    case LOG_VALUE_HOST:
        values->site.host = value;
        return true;
    case LOG_VALUE_PORT:
        values->site.port = fields_uint(value, &number) && number <= UINT16_MAX ? (unsigned)number : 0;
        return values->site.port != 0;
    case LOG_VALUE_BYTES:
    case LOG_VALUE_BYTES_OR_DASH:
        return fields_size(value, &request->size);
    case LOG_VALUE_URL:
        values->url = value;
        return true;
    case LOG_VALUE_OUTCOME:
        request->outcome = sunproxyd_outcome(value);
        return true;
    default:
        return true;
    }
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Takes the value of a part and the text behind it off the front. */
static bool
take_part(const struct log_part *part, struct span *rest, struct span *value)
{
    const size_t len = value_length(part, *rest);

    if (len > rest->len)
        return false;
    *value = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len, rest->len - len);
    if (part->joined)
        return true;
    if (!span_starts_with(*rest, part->text))
        return false;
    *rest = span_of(rest->ptr + part->text.len, rest->len - part->text.len);
    return true;
}

static enum line_kind
make_request(struct line_reader *reader, const struct values *values, struct trace_request *request)
{
    enum line_kind kind;

    request->time_us = values->began_us != TRACE_TIME_UNKNOWN ? values->began_us : values->ended_us;
    if (request->time_us != TRACE_TIME_UNKNOWN && request->time_us % 1000000 == 0)
        request->time_us += values->fraction_us;
    if (request->status == TRACE_STATUS_NONE)
        request->size = -1;
    request->method = values->method.len ? values->method : span_str("GET");
    if (values->url.len)
        kind = lines_make_url(reader, request->method, values->site, values->url, &request->url);
    else if (values->request.len)
        kind = request_line_parse(reader, values->request, values->site, request);
    else if (values->target.len)
        kind = lines_make_url(reader, request->method, values->site, values->target, &request->url);
    else
        return LINE_ORPHAN;
    reader->no_memory |= kind == LINE_REQUEST && !lines_unescape(reader, &request->url);
    return reader->no_memory ? LINE_BAD : kind;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    const struct log_pattern *pattern = ((struct state *)(void *)reader->state)->pattern;
    struct values values = {.site = LINE_SITE_UNKNOWN,
                            .began_us = TRACE_TIME_UNKNOWN,
                            .ended_us = TRACE_TIME_UNKNOWN};

    if (line.len == 0)
        return LINE_OTHER;
    if (reader->no_memory || !span_starts_with(line, pattern->begin))
        return LINE_BAD;
    line = span_of(line.ptr + pattern->begin.len, line.len - pattern->begin.len);
    for (unsigned i = 0; i < pattern->count; i++) {
        const struct log_part *part = &pattern->parts[i];
        struct span value, query;

        if (!take_part(part, &line, &value))
            return LINE_BAD;
        /* The query follows; what is between path and end is both. */
        if (part->joined && !take_part(&pattern->parts[++i], &line, &query))
            return LINE_BAD;
        if (!read_value(part, value, &values, request))
            return LINE_BAD;
    }
    return line.len ? LINE_BAD : make_request(reader, &values, request);
}

static void
begin(struct line_reader *reader)
{
    struct state *state = (void *)reader->state;
    struct buf why;

    buf_init(&why, 1024);
    /* trace_pattern_check() has passed: only memory can lack. */
    state->pattern = log_pattern_compile(reader->options->format, &why);
    reader->no_memory = !state->pattern;
    buf_free(&why);
}

static void
end(struct line_reader *reader)
{
    log_pattern_free(((struct state *)(void *)reader->state)->pattern);
}

enum trace_error
trace_pattern_check(const char *format, struct buf *why)
{
    struct log_pattern *pattern = log_pattern_compile(format, why);
    bool ok = false;

    if (!pattern)
        return errno == ENOMEM ? TRACE_NO_MEMORY : TRACE_BAD_OPTION;
    for (unsigned i = 0; i < pattern->count; i++) {
        const enum log_value value = pattern->parts[i].directive->value;

        ok |= value == LOG_VALUE_URL || value == LOG_VALUE_REQUEST || value == LOG_VALUE_PATH;
    }
    if (!ok)
        buf_append_str(why, "it has no URL: none of %r, %U and %{url}x");
    log_pattern_free(pattern);
    return ok ? TRACE_OK : TRACE_BAD_OPTION;
}

static const struct line_format lines = {.parse = parse, .begin = begin, .end = end};

const struct trace_format trace_format_pattern = {
    .name = "format string",
    .summary = "lines by a format string",
    .is_text = true,
    .lines = &lines,
};
