/*
 * A list of URLs: one a line, optionally a tab and the bytes of its body. Blank lines and lines
 * that begin with '#' are comments; lines may end in CR LF. A line that is neither is counted as
 * malformed and passed over.
 */
#include "trace/base_url.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"

#define BLOCK_BYTES (64u * 1024u)
#define BATCH 32u

/* Has a scheme and no blank or control character. Some URLs contain bytes over 127. */
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
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    const char *tab;
    uint64_t size;

    (void)reader;
    if (line.len != 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    line = fields_trim_spaces(line);
    if (line.len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    request->url = line;
    tab = memchr(line.ptr, '\t', line.len);
    if (tab) {
        size_t url_len = (size_t)(tab - line.ptr);

        request->url = fields_trim_spaces(span_of(line.ptr, url_len));
        if (!fields_uint(fields_trim_spaces(span_of(tab + 1, line.len - url_len - 1)), &size) ||
            size > INT64_MAX)
            return LINE_BAD;
        request->size = (int64_t)size;
    }
    return is_url(request->url) ? LINE_REQUEST : LINE_BAD;
}

/* Recognises a list of URLs among other texts: its lines are URLs with a host. */
static enum line_kind
parse_hosted(struct line_reader *reader, struct span line, struct trace_request *request)
{
    enum line_kind kind = parse(reader, line, request);

    return kind == LINE_REQUEST && base_url_host_port(request->url).len == 0 ? LINE_OTHER : kind;
}

static const struct line_format hosted_lines = {.parse = parse_hosted};

static bool
has_only_comments(struct span head)
{
    struct line_reader reader = {0};

    while (head.len != 0) {
        struct trace_request request = TRACE_REQUEST_EMPTY;

        if (parse(&reader, lines_next(&head), &request) != LINE_OTHER)
            return false;
    }
    return true;
}

static bool
sniff(struct span head)
{
    return lines_sniff(head, &hosted_lines) || has_only_comments(head);
}

/*
 * Takes the whole lines in the buffer in batches, up to the first one that is no request. *more is
 * false when reading ends; *lines is the number of lines so far.
 */
static void
read_good_lines(struct input *in, struct trace_builder *builder, uint64_t *lines, bool *more)
{
    struct line_reader reader = {0};
    struct span ahead = input_peek(in, BLOCK_BYTES);
    size_t taken = 0;

    for (*more = true; *more;) {
        struct trace_request batch[BATCH];
        size_t count = 0;
        size_t at = taken;

        while (count < BATCH) {
            const char *end = ahead.len > at ? memchr(ahead.ptr + at, '\n', ahead.len - at) : NULL;
            size_t len = end ? (size_t)(end - ahead.ptr) - at : 0;

            batch[count] = TRACE_REQUEST_EMPTY;
            batch[count].line = *lines + count + 1;
            if (!end || parse(&reader, span_of(ahead.ptr + at, len), &batch[count]) != LINE_REQUEST)
                break;
            count++;
            at += len + 1;
        }
        if (count == 0)
            break;
        *more = trace_add_many(builder, batch, count);
        *lines += count;
        taken = at;
    }
    input_take(in, taken);
}

/* Takes one line that may be too long for the block, malformed, a comment, or the last. */
static void
read_odd_line(struct input *in, struct trace_builder *builder, uint64_t *lines, bool *more)
{
    struct line_reader reader = {0};
    struct trace_request request = TRACE_REQUEST_EMPTY;
    struct span line;
    bool too_long;
    enum line_kind kind;

    *more = input_line(in, TRACE_URL_MAX + 64, &line, &too_long);
    if (!*more)
        return;
    kind = too_long ? LINE_BAD : parse(&reader, line, &request);
    request.line = ++*lines;
    if (kind == LINE_BAD)
        trace_add_bad(builder, request.line, line);
    else if (kind == LINE_REQUEST)
        *more = trace_add(builder, &request);
}

static enum trace_error
read_list(struct input *in, const struct trace_options *options, struct trace_builder *builder,
          char *why, size_t why_size)
{
    uint64_t lines = 0;
    bool more = true;

    (void)options;
    (void)why;
    (void)why_size;
    while (more) {
        read_good_lines(in, builder, &lines, &more);
        if (more)
            read_odd_line(in, builder, &lines, &more);
    }
    return TRACE_OK;
}

const struct trace_format trace_format_urls = {
    .name = "urls",
    .summary = "one URL per line, optionally with a tab and its size in bytes",
    .is_text = true,
    .sample = "http://a.test/index.html",
    .lines = &hosted_lines,
    .sniff = sniff,
    .read = read_list,
};
