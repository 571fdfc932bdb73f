/*
 * A list of URLs: one a line, optionally a tab and the bytes of its body. Blank lines and lines
 * that begin with '#' are comments; lines may end in CR LF. A line that is neither is counted as
 * malformed and passed over.
 */
#include "trace/base_url.h"
#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/lines.h"

/* Has a scheme, and no byte that cannot stand in a URL. Bytes over 127 do stand in some. */
static bool
is_url(struct span s)
{
    if (base_url_scheme(s).len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];

        if (c <= ' ' || c == 0x7f)
            return false;
    }
    return true;
}

/* URL, or URL tab size. */
static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_entry *entry)
{
    const char *tab;
    uint64_t size;

    (void)reader;
    line = fields_trim_spaces(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    entry->url = line;
    tab = memchr(line.ptr, '\t', line.len);
    if (tab) {
        size_t url_len = (size_t)(tab - line.ptr);

        entry->url = fields_trim_spaces(span_of(line.ptr, url_len));
        if (!fields_uint(fields_trim_spaces(span_of(tab + 1, line.len - url_len - 1)), &size) ||
            size > INT64_MAX)
            return LINE_BAD;
        entry->size = (int64_t)size;
    }
    return is_url(entry->url) ? LINE_REQUEST : LINE_BAD;
}

/* Text in which at least one line is a URL with a host; or nothing but comments. */
static bool
sniff(struct span head)
{
    struct line_reader reader = {0};
    bool comments_only = true;

    if (span_has_zero(head))
        return false;
    while (head.len != 0) {
        struct trace_entry entry = TRACE_ENTRY_EMPTY;
        enum line_kind kind = parse(&reader, lines_next(&head), &entry);

        comments_only = comments_only && kind == LINE_OTHER;
        if (kind == LINE_REQUEST && base_url_host_port(entry.url).len != 0)
            return true;
    }
    return comments_only;
}

static enum trace_error
read_list(struct input *in, const struct trace_options *options, struct trace_builder *builder,
          char *why, size_t why_size)
{
    (void)why;
    (void)why_size;
    return lines_read(in, builder, options, NULL, parse);
}

const struct trace_format trace_format_urls = {
    .name = "urls",
    .summary = "a URL a line, optionally a tab and its size in bytes",
    .sniff = sniff,
    .read = read_list,
};
