/*
 * Squid's native access.log (https://wiki.squid-cache.org/Features/LogFormat):
 *     time elapsed client code/status bytes method URL user hierarchy/peer type
 * Bytes are those of the response to the client, headers included; -1 where Squid does not know
 * them.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

/* "TCP_MISS/200" */
static bool
parse_result(struct span result, struct trace_request *request)
{
    const char *slash = result.len ? memchr(result.ptr, '/', result.len) : NULL;
    size_t before;

    if (!slash || slash == result.ptr)
        return false;
    before = (size_t)(slash - result.ptr) + 1;
    request->outcome =
        memmem(result.ptr, before, "HIT", 3) ? TRACE_OUTCOME_HIT : TRACE_OUTCOME_MISS;
    return fields_status(span_of(slash + 1, result.len - before), &request->status);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct span rest = line;
    struct span when = fields_word(&rest);
    struct span elapsed = fields_word(&rest);
    struct span target, size;
    int64_t us;

    if (when.len == 0 || when.ptr[0] == '#')
        return LINE_OTHER;
    fields_word(&rest);
    if (!fields_seconds(when, &request->time_us) || !fields_seconds(elapsed, &us) ||
        !parse_result(fields_word(&rest), request))
        return LINE_BAD;
    size = fields_word(&rest);
    if (!span_equal(size, span_str("-1")) && !fields_size(size, &request->size))
        return LINE_BAD;
    request->method = fields_word(&rest);
    target = fields_word(&rest);
    /* The cache manager's own URLs, whose scheme has a character that no scheme may contain. */
    if (span_starts_with(target, span_str("cache_object://"))) {
        request->url = target;
        return LINE_REQUEST;
    }
    return lines_make_url(reader, request->method, LINE_SITE_UNKNOWN, target, &request->url);
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_squid = {
    .name = "squid",
    .summary = "Squid's native access log",
    .is_text = true,
    .sample =
        "1066036250.603    310 192.0.2.1 TCP_MISS/200 8000 GET http://a.test/ - DIRECT/192.0.2.9 "
        "text/html",
    .lines = &lines,
};
