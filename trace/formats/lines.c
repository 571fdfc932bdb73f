#include "trace/formats/lines.h"

#include "base/ascii.h"
#include "trace/base_url.h"
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"

/* A URL, and as much again of user agents and the like. */
#define LINE_MOST (TRACE_URL_MAX + 256u * 1024u)
#define SNIFF_LINES 100
#define URL_MARGIN 8192u /* for a scheme, a site, a port */

/* ---- lines that came by syslog --------------------------------------------------------------- */

/* "Nov 28 14:00:00", or a date of ISO 8601. */
static bool
take_syslog_date(struct span *rest)
{
    struct span word = fields_word(rest);
    uint64_t number;
    int64_t us;

    if (fields_iso_date(word, &us))
        return true;
    return word.len == 3 && fields_uint(fields_word(rest), &number) && number <= 31 &&
           fields_word(rest).len == 8;
}

/* "sunproxyd[1234]:", or the fields of RFC 5424: "sunproxyd 1234 access -". */
static bool
take_syslog_name(struct span *rest)
{
    static const char name[] = "sunproxyd";
    struct span word = fields_word(rest);
    uint64_t number;

    if (span_equal(word, span_str(name)))
        return fields_uint(fields_word(rest), &number) &&
               span_equal(fields_word(rest), span_str("access")) &&
               span_equal(fields_word(rest), span_str("-"));
    if (!span_starts_with(word, span_str(name)) || word.len < sizeof(name) + 3 ||
        memcmp(word.ptr + word.len - 2, "]:", 2) != 0)
        return false;
    word = span_of(word.ptr + sizeof(name) - 1, word.len - sizeof(name) - 1);
    return span_take_char(&word, '[') && fields_uint(word, &number);
}

/* The access log's line in one of a syslog or of journalctl, which has a head before it. */
static struct span
behind_syslog(struct line_reader *reader, struct span line)
{
    struct span rest = line, word;

    if (!reader->from_syslog && reader->looked == SNIFF_LINES)
        return line;
    reader->looked += !reader->from_syslog;
    if (span_starts_with(rest, span_str("<"))) {
        const char *end = memchr(rest.ptr, '>', rest.len);

        if (!end)
            return line;
        rest = span_of(end + 1, (size_t)(line.ptr + line.len - end) - 1);
        word = rest;
        if (span_equal(fields_word(&word), span_str("1")))
            rest = word;
    }
    if (!take_syslog_date(&rest))
        return line;
    word = rest;
    /* What a daemon sends has no host before its name; what a service stores has. */
    if (!take_syslog_name(&word)) {
        fields_word(&rest);
        word = rest;
        if (!take_syslog_name(&word))
            return line;
    }
    reader->from_syslog = true;
    return span_take_char(&word, ' ') ? word : line;
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum line_kind
parse_line(struct line_reader *reader, const struct line_format *format, struct span line,
           struct trace_request *request)
{
    *request = TRACE_REQUEST_EMPTY;
    line = behind_syslog(reader, line);
    return span_has_zero(line) ? LINE_BAD : format->parse(reader, line, request);
}

enum trace_error
lines_read(struct input *in, struct trace_builder *builder, const struct trace_options *options,
           const struct line_format *format)
{
    struct line_reader reader = {.options = options, .builder = builder};
    bool too_long;
    bool more = true;
    struct span line;

    buf_init(&reader.url, TRACE_URL_MAX);
    if (format->begin)
        format->begin(&reader);
    for (uint64_t number = 1;
         more && !reader.no_memory && input_line(in, LINE_MOST, &line, &too_long); number++) {
        struct trace_request request;
        enum line_kind kind = too_long ? LINE_BAD : parse_line(&reader, format, line, &request);

        if (kind == LINE_ORPHAN)
            trace_builder_counts(builder)->skipped_orphan++;
        else if (kind == LINE_BAD)
            trace_add_bad(builder, number, line);
        else if (kind == LINE_REQUEST) {
            request.line = number;
            more = trace_add(builder, &request);
        }
    }
    if (format->end)
        format->end(&reader);
    buf_free(&reader.url);
    return reader.no_memory ? TRACE_NO_MEMORY : TRACE_OK;
}

struct span
lines_next(struct span *rest)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    struct span line = span_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);

    *rest = end ? span_of(end + 1, rest->len - line.len - 1) : span_of(rest->ptr + rest->len, 0);
    if (line.len != 0 && line.ptr[line.len - 1] == '\r')
        line.len--;
    return line;
}

/* Counts requests and malformed lines among the first `most`. */
static void
count_lines(struct span head, const struct line_format *format, size_t most, size_t *requests,
            size_t *bad)
{
    static const struct trace_options options = {.since_us = INT64_MIN, .until_us = INT64_MAX};
    struct line_reader reader = {.options = &options, .sniffing = true};

    *requests = 0;
    *bad = 0;
    if (format->begin)
        format->begin(&reader);
    for (size_t i = 0; i < most && head.len != 0; i++) {
        struct trace_request request;
        struct span line = lines_next(&head);
        bool whole = head.ptr[-1] == '\n';
        enum line_kind kind = parse_line(&reader, format, line, &request);

        *requests += kind == LINE_REQUEST;
        *bad += kind == LINE_BAD && whole;
    }
    if (format->end)
        format->end(&reader);
}

bool
lines_sniff(struct span head, const struct line_format *format)
{
    size_t requests, bad;

    count_lines(head, format, SNIFF_LINES, &requests, &bad);
    return requests != 0 && requests >= bad;
}

size_t
lines_count(struct span head, const struct line_format *format)
{
    size_t requests, bad;

    count_lines(head, format, SIZE_MAX, &requests, &bad);
    return requests;
}

/* "2001:db8::1": an address, without brackets. */
static bool
is_bare_ipv6(struct span host)
{
    return memchr(host.ptr, ':', host.len) != NULL && fields_is_address(host);
}

/* "a.test:81", "[::1]:81": of an address in brackets, what is behind them counts. */
static bool
has_port(struct span host)
{
    const char *colon = memrchr(host.ptr, ':', host.len);
    const char *bracket = memrchr(host.ptr, ']', host.len);

    return colon && (!bracket || colon > bracket);
}

static bool
append_site(struct line_reader *reader, struct line_site site)
{
    struct buf *out = &reader->url;
    const char *other = reader->options->site ? reader->options->site : TRACE_DEFAULT_SITE;
    bool https = site.https || site.port == 443;
    bool bare;

    if (site.host.len == 0)
        return buf_append(out, base_url_site(other).ptr, base_url_site(other).len);
    bare = is_bare_ipv6(site.host);
    return buf_append_str(out, https ? "https://" : "http://") &&
           (!bare || buf_append_char(out, '[')) && buf_append(out, site.host.ptr, site.host.len) &&
           (!bare || buf_append_char(out, ']')) &&
           (site.port == 0 || site.port == (https ? 443 : 80) || (!bare && has_port(site.host)) ||
            buf_printf(out, ":%u", site.port));
}

enum line_kind
lines_make_url(struct line_reader *reader, struct span method, struct line_site site,
               struct span target, struct span *url)
{
    struct buf *out = &reader->url;
    bool ok;

    *url = target;
    if (target.len == 0 || target.len + site.host.len > TRACE_URL_MAX - URL_MARGIN)
        return LINE_BAD;
    if (reader->sniffing)
        return target.ptr[0] == '/' || target.ptr[0] == '*' || base_url_scheme(target).len != 0 ||
                       span_equal(method, span_str("CONNECT"))
                   ? LINE_REQUEST
                   : LINE_BAD;
    buf_reset(out);
    if (span_equal(method, span_str("CONNECT")) && base_url_host_port(target).len == 0) {
        bool https = target.len > 4 && memcmp(target.ptr + target.len - 4, ":443", 4) == 0;

        ok = buf_append_str(out, "https://") &&
             buf_append(out, target.ptr, target.len - (https ? 4 : 0));
    } else if (target.ptr[0] == '/' || target.ptr[0] == '*') {
        ok = append_site(reader, site) && (target.ptr[0] == '/' || buf_append_char(out, '/')) &&
             buf_append(out, target.ptr, target.len);
    } else {
        return base_url_scheme(target).len != 0 ? LINE_REQUEST : LINE_BAD;
    }
    *url = buf_span(out);
    reader->no_memory = !ok;
    return ok ? LINE_REQUEST : LINE_BAD;
}

/* A '#' is part of the name, and begins no fragment. */
static bool
append_name(struct buf *out, struct span name)
{
    for (const char *mark; name.len != 0 && (mark = memchr(name.ptr, '#', name.len));) {
        size_t len = (size_t)(mark - name.ptr);

        if (!buf_append(out, name.ptr, len) || !buf_append(out, "%23", 3))
            return false;
        name = span_of(mark + 1, name.len - len - 1);
    }
    return buf_append(out, name.ptr, name.len);
}

enum line_kind
lines_make_path(struct line_reader *reader, struct span name, struct span *url)
{
    struct buf *out = &reader->url;

    if (name.len == 0 || name.len > TRACE_URL_MAX - URL_MARGIN)
        return LINE_BAD;
    if (reader->sniffing)
        return LINE_REQUEST;
    buf_reset(out);
    reader->no_memory = !append_site(reader, LINE_SITE_UNKNOWN) || !buf_append_char(out, '/') ||
                        !append_name(out, name);
    *url = buf_span(out);
    return reader->no_memory ? LINE_BAD : LINE_REQUEST;
}

bool
lines_unescape(struct line_reader *reader, struct span *url)
{
    struct buf *out = &reader->url;
    size_t len = 0;

    if (reader->sniffing || !memchr(url->ptr, '\\', url->len))
        return true;
    if (url->ptr != out->data) {
        buf_reset(out);
        if (!buf_append(out, url->ptr, url->len))
            return false;
    }
    for (size_t i = 0; i < out->len; i++) {
        const char *c = out->data + i;
        size_t left = out->len - i;
        int high = left > 3 && c[0] == '\\' && c[1] == 'x' ? ascii_hex_value(c[2]) : -1;
        int low = high >= 0 ? ascii_hex_value(c[3]) : -1;

        if (low >= 0) {
            out->data[len++] = (char)(high * 16 + low);
            i += 3;
        } else {
            out->data[len++] = *c;
        }
    }
    *url = span_of(out->data, len);
    return true;
}
