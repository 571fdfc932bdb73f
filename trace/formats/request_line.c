#include "trace/formats/request_line.h"

#include "trace/base_url.h"
#include "trace/formats/fields.h"

bool
request_line_split(struct span text, struct span *method, struct span *target)
{
    struct span rest = fields_trim(text);

    *method = fields_word(&rest);
    *target = fields_trim(rest);
    for (size_t i = target->len; i-- != 0;) {
        if (target->ptr[i] == ' ') {
            struct span last = span_of(target->ptr + i + 1, target->len - i - 1);

            if (span_starts_with(last, span_str("HTTP/")) ||
                span_starts_with(last, span_str("RPC/")))
                *target = fields_trim(span_of(target->ptr, i));
            break;
        }
    }
    return method->len != 0 && target->len != 0;
}

enum line_kind
request_line_parse(struct line_reader *reader, struct span text, struct line_site site,
                   struct trace_request *request)
{
    struct span target;

    if (!request_line_split(text, &request->method, &target))
        return LINE_ORPHAN;
    if (target.ptr[0] != '/' && target.ptr[0] != '*' && base_url_scheme(target).len == 0 &&
        !span_equal(request->method, span_str("CONNECT")))
        return lines_make_path(reader, target, &request->url);
    return lines_make_url(reader, request->method, site, target, &request->url);
}
