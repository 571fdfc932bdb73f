/*
 * The traces of AdaptSize and of webcachesim: a request a line, "time id size", whole numbers with
 * blanks between. The time only orders the requests; it is taken for seconds.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

#define MICRO INT64_C(1000000)

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct span rest = line;
    struct span when = fields_word(&rest);
    uint64_t seconds, size;

    (void)reader;
    if (when.len == 0)
        return LINE_OTHER;
    if (!fields_uint(when, &seconds) || !fields_uint(fields_word(&rest), &request->number) ||
        !fields_uint(fields_word(&rest), &size) || fields_trim(rest).len != 0 ||
        seconds > (uint64_t)(INT64_MAX / MICRO) || size > INT64_MAX)
        return LINE_BAD;
    request->time_us = (int64_t)seconds * MICRO;
    request->size = (int64_t)size;
    return LINE_REQUEST;
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_adaptsize = {
    .name = "adaptsize",
    .summary = "AdaptSize's and webcachesim's \"time id size\"",
    .is_text = true,
    .sample = "1 5 100",
    .lines = &lines,
};
