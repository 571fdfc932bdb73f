/*
 * Squid's native access.log (https://wiki.squid-cache.org/Features/LogFormat):
 *     time elapsed client code/status bytes method URL user hierarchy/peer type
 * Bytes are those of the answer to the client, headers included.
 */
#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/lines.h"

/* "TCP_MISS/200" */
static bool
parse_result(struct span result, struct trace_entry *entry)
{
    const char *slash = result.len ? memchr(result.ptr, '/', result.len) : NULL;
    size_t before;

    if (!slash || slash == result.ptr)
        return false;
    before = (size_t)(slash - result.ptr) + 1;
    return fields_status(span_of(slash + 1, result.len - before), &entry->status);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_entry *entry)
{
    struct span rest = line;
    struct span when = fields_word(&rest);
    struct span elapsed = fields_word(&rest);
    int64_t us;

    if (when.len == 0 || when.ptr[0] == '#')
        return LINE_OTHER;
    fields_word(&rest);
    if (!fields_seconds(when, &entry->time_us) || !fields_seconds(elapsed, &us) ||
        !parse_result(fields_word(&rest), entry) || !fields_size(fields_word(&rest), &entry->size))
        return LINE_BAD;
    entry->method = fields_word(&rest);
    return lines_make_url(reader, entry->method, span_of("", 0), 0, fields_word(&rest),
                          &entry->url);
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_squid = {
    .name = "squid",
    .summary = "Squid's native access log",
    .is_text = true,
    .lines = &lines,
};
