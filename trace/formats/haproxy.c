/*
 * HAProxy's HTTP log (option httplog; section 8.2.3 of its configuration manual), with or without
 * what syslog puts in front of it:
 *     client:port [date] frontend backend/server timers status bytes cookie cookie termination
 *     connections queues {request headers} {response headers} "request"
 * The captured headers may be missing. If the first captured request header is the name of a host,
 * it is taken for the Host header, and a remark says so. Bytes include headers; a date has no zone
 * and is taken for UTC.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

#define DATE_MOST 40u

struct haproxy {
    bool used_capture;
};

/* "[06/Feb/2009:12:14:14.655]" behind "client:port". */
static bool
take_date(struct span *line, int64_t *us)
{
    for (size_t i = 1; i + 1 < line->len; i++) {
        size_t most = line->len - i < DATE_MOST ? line->len - i : DATE_MOST;
        const char *open = line->ptr + i;
        const char *close;

        if (*open != '[' || open[-1] != ' ')
            continue;
        close = memchr(open, ']', most);
        if (close && fields_log_date(span_of(open + 1, (size_t)(close - open) - 1), us)) {
            *line = span_of(close + 1, line->len - (size_t)(close + 1 - line->ptr));
            return true;
        }
    }
    return false;
}

/* "10/0/30/69/109", "1/1/1/1/0", "0/0": `count` numbers, each with or without a sign. */
static bool
is_numbers(struct span word, size_t count)
{
    struct span number;
    uint64_t value;
    size_t n = 0;

    while (fields_next(&word, '/', &number)) {
        while (number.len != 0 && (number.ptr[0] == '+' || number.ptr[0] == '-'))
            number = span_of(number.ptr + 1, number.len - 1);
        if (!fields_uint(number, &value))
            return false;
        n++;
    }
    return n == count;
}

/* "{a.test|agent}": the first captured header; empty if there is none. Takes it and a second one.
 */
static struct span
take_captures(struct span *rest)
{
    struct span first = span_of("", 0);

    for (int i = 0; i < 2; i++) {
        const char *close, *bar;

        *rest = fields_trim(*rest);
        if (rest->len == 0 || rest->ptr[0] != '{')
            break;
        close = memmem(rest->ptr, rest->len, "} ", 2);
        if (!close)
            break;
        if (i == 0) {
            first = span_of(rest->ptr + 1, (size_t)(close - rest->ptr) - 1);
            bar = first.len ? memchr(first.ptr, '|', first.len) : NULL;
            if (bar)
                first.len = (size_t)(bar - first.ptr);
        }
        *rest = span_of(close + 1, rest->len - (size_t)(close + 1 - rest->ptr));
    }
    return first;
}

/* "a.test:8080"; not an address, which is more often a forwarded client. */
static bool
is_host(struct span text)
{
    bool letter = false, dot = false;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (!is_letter && !(c >= '0' && c <= '9') && c != '-' && c != '.' && c != ':')
            return false;
        letter = letter || is_letter;
        dot = dot || c == '.';
    }
    return letter && dot;
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct haproxy *h = (void *)reader->state;
    struct line_site site = LINE_SITE_UNKNOWN;
    struct span rest = line, timers, size, text;
    const char *close;

    if (fields_trim(line).len == 0)
        return LINE_OTHER;
    if (!take_date(&rest, &request->time_us))
        return LINE_BAD;
    fields_word(&rest);
    fields_word(&rest);
    timers = fields_word(&rest);
    if (!is_numbers(timers, 5) || !fields_status(fields_word(&rest), &request->status))
        return LINE_BAD;
    size = fields_word(&rest);
    if (size.len != 0 && size.ptr[0] == '+') /* option logasap: the number before the end */
        size = span_of("", 0);
    if (!fields_size(size, &request->size))
        return LINE_BAD;
    for (int i = 0; i < 3; i++)
        fields_word(&rest);
    if (!is_numbers(fields_word(&rest), 5) || !is_numbers(fields_word(&rest), 2))
        return LINE_BAD;
    text = take_captures(&rest);
    if (is_host(text)) {
        site.host = text;
        h->used_capture = true;
    }
    rest = fields_trim(rest);
    close = rest.len > 1 && rest.ptr[0] == '"' ? memchr(rest.ptr + 1, '"', rest.len - 1) : NULL;
    if (!close) /* also a line that syslog cut */
        return LINE_BAD;
    text = span_of(rest.ptr + 1, (size_t)(close - rest.ptr) - 1);
    if (span_equal(text, span_str("<BADREQ>")))
        return LINE_ORPHAN;
    return request_line_parse(reader, text, site, request);
}

static void
end(struct line_reader *reader)
{
    struct haproxy *h = (void *)reader->state;

    if (h->used_capture && reader->builder)
        trace_remark(reader->builder,
                     "the first captured request header is taken for the Host header");
}

static const struct line_format lines = {.parse = parse, .end = end};

const struct trace_format trace_format_haproxy = {
    .name = "haproxy",
    .summary = "HAProxy's HTTP log (option httplog)",
    .is_text = true,
    .lines = &lines,
    .sample =
        "Feb  6 12:14:14 localhost haproxy[14389]: 192.0.2.2:33317 [06/Feb/2009:12:14:14.655] "
        "http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {a.test} {} "
        "\"GET /index.html HTTP/1.1\"",
};
