/*
 * A list of URLs: one a line, optionally a tab and the bytes of its body. Blank lines and lines
 * that begin with '#' are comments; lines may end in CR LF. A line that is neither is counted as
 * malformed and passed over.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/units.h"
#include "trace/base_url.h"
#include "trace/builder.h"
#include "trace/formats.h"

/* A URL, a tab, the digits of a size and some air. */
#define LINE_MAX_BYTES (TRACE_URL_MAX + 64u)
#define DIGITS_MAX 20u

static struct span
trim(struct span s)
{
    while (s.len != 0 && (s.ptr[s.len - 1] == '\r' || s.ptr[s.len - 1] == ' '))
        s.len--;
    while (s.len != 0 && s.ptr[0] == ' ') {
        s.ptr++;
        s.len--;
    }
    return s;
}

static bool
is_comment(struct span line)
{
    return line.len == 0 || line.ptr[0] == '#';
}

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

static bool
parse_size(struct span s, int64_t *size)
{
    char digits[DIGITS_MAX + 1];
    uint64_t value;

    if (s.len > DIGITS_MAX || span_has_zero(s))
        return false;
    memcpy(digits, s.ptr, s.len);
    digits[s.len] = '\0';
    if (!units_parse_uint(digits, 0, INT64_MAX, &value))
        return false;
    *size = (int64_t)value;
    return true;
}

/* URL, or URL tab size. */
static bool
parse_line(struct span line, struct span *url, int64_t *size)
{
    const char *tab = memchr(line.ptr, '\t', line.len);

    *url = line;
    *size = -1;
    if (tab) {
        size_t url_len = (size_t)(tab - line.ptr);

        *url = trim(span_of(line.ptr, url_len));
        if (!parse_size(trim(span_of(tab + 1, line.len - url_len - 1)), size))
            return false;
    }
    return is_url(*url);
}

/* Text in which at least one line is a URL with a host; or nothing but comments. */
static bool
sniff(struct span head)
{
    bool comments_only = true;

    if (span_has_zero(head))
        return false;
    while (head.len != 0) {
        const char *end = memchr(head.ptr, '\n', head.len);
        size_t len = end ? (size_t)(end - head.ptr) : head.len;
        struct span line = trim(span_of(head.ptr, len));
        struct span url;
        int64_t size;

        if (!is_comment(line)) {
            comments_only = false;
            if (parse_line(line, &url, &size) && base_url_host_port(url).len != 0)
                return true;
        }
        head = span_of(head.ptr + len + (end ? 1 : 0), head.len - len - (end ? 1 : 0));
    }
    return comments_only;
}

/*
 * The next line without its newline. False at the end or on a read error (ferror tells). A line
 * that is too long to be a URL comes back empty with *bad set; without memory *no_memory is set.
 */
static bool
next_line(FILE *file, struct buf *line, bool *bad, bool *no_memory)
{
    int c;

    buf_reset(line);
    *bad = false;
    c = getc_unlocked(file);
    if (c == EOF)
        return false;
    for (; c != EOF && c != '\n'; c = getc_unlocked(file)) {
        if (*bad || buf_append_char(line, (char)c))
            continue;
        if (line->len < LINE_MAX_BYTES) {
            *no_memory = true;
            return false;
        }
        *bad = true;
    }
    return !ferror(file);
}

static enum trace_error
read_lines(FILE *file, struct trace_builder *builder)
{
    struct trace_counts *counts = trace_builder_counts(builder);
    struct buf text;
    bool bad;
    bool no_memory = false;

    buf_init(&text, LINE_MAX_BYTES);
    for (uint64_t number = 1; next_line(file, &text, &bad, &no_memory); number++) {
        uint64_t bad_before = counts->skipped_bad;
        struct span line = trim(buf_span(&text));
        struct trace_entry entry = TRACE_ENTRY_EMPTY;
        bool more = true;

        if (!bad && is_comment(line))
            continue;
        if (bad || !parse_line(line, &entry.url, &entry.size))
            trace_add_bad(builder, number, line);
        else
            more = trace_add(builder, &entry);
        if (counts->skipped_bad != bad_before && counts->first_bad_line == 0)
            counts->first_bad_line = number;
        if (!more)
            break;
    }
    buf_free(&text);
    return no_memory ? TRACE_NO_MEMORY : TRACE_OK;
}

static enum trace_error
read_list(const char *path, const struct trace_options *options, struct trace_builder *builder,
          char *why, size_t why_size)
{
    FILE *file = fopen(path, "re");
    enum trace_error error;

    (void)options;
    if (!file) {
        if (errno == ENOMEM)
            return TRACE_NO_MEMORY;
        snprintf(why, why_size, "%s: cannot open the list of URLs: %s", path, strerror(errno));
        return TRACE_CANNOT_OPEN;
    }
    error = read_lines(file, builder);
    if (error == TRACE_OK && ferror(file)) {
        snprintf(why, why_size, "%s: cannot read the list of URLs: %s", path, strerror(errno));
        error = TRACE_CANNOT_OPEN;
    }
    fclose(file);
    return error;
}

const struct trace_format trace_format_urls = {
    .name = "urls",
    .summary = "a URL a line, optionally a tab and its size in bytes",
    .sniff = sniff,
    .read = read_list,
};
