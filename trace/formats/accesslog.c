/*
 * Access logs of web servers in the Common Log Format of the CERN and NCSA servers,
 *     host ident user [date] "request" status bytes
 * in Combined form (referer and user agent behind it), and with the virtual host in front, as
 * Apache's vhost_combined has it. EPA-HTTP, which has neither ident nor user and a date of its own,
 * is read too.
 */
#include "trace/formats/fields.h"
#include "trace/formats/formats.h"
#include "trace/formats/lines.h"
#include "trace/formats/request_line.h"

#define DATE_MOST 64u

/* "[17/May/2015:10:05:03 +0000]", wherever it is: a client, a host or a name may have brackets. */
static bool
take_date(struct span line, struct span *before, int64_t *us, struct span *rest)
{
    for (size_t i = 1; i < line.len; i++) {
        size_t most = line.len - i < DATE_MOST ? line.len - i : DATE_MOST;
        const char *open = line.ptr + i;
        const char *close = *open == '[' ? memchr(open, ']', most) : NULL;

        if (close && fields_log_date(span_of(open + 1, (size_t)(close - open) - 1), us)) {
            *before = span_of(line.ptr, i);
            *rest = span_of(close + 1, line.len - (size_t)(close + 1 - line.ptr));
            return true;
        }
    }
    return false;
}

/* The request in quotes; old servers left quotes inside as they were, new ones escape them. */
static bool
take_request(struct span *rest, struct span *request_text)
{
    *rest = fields_trim(*rest);
    if (rest->len < 2 || rest->ptr[0] != '"')
        return false;
    for (size_t i = 1; i < rest->len; i++) {
        if (rest->ptr[i] == '\\') {
            i++;
            continue;
        }
        /* The quote that ends it has a status behind it. */
        if (rest->ptr[i] == '"' && rest->len - i > 2 && rest->ptr[i + 1] == ' ' &&
            ((rest->ptr[i + 2] >= '0' && rest->ptr[i + 2] <= '9') || rest->ptr[i + 2] == '-')) {
            *request_text = span_of(rest->ptr + 1, i - 1);
            *rest = span_of(rest->ptr + i + 1, rest->len - i - 1);
            return true;
        }
    }
    return false;
}

/* "www.example.com:80", "[::1]:80"; an address of IPv6 without brackets has no port. */
static bool
split_port(struct span word, struct span *host, unsigned *port)
{
    const char *colon = word.len ? memrchr(word.ptr, ':', word.len) : NULL;
    size_t len = colon ? (size_t)(colon - word.ptr) : 0;
    uint64_t number;

    if (len == 0 || !fields_uint(span_of(colon + 1, word.len - len - 1), &number) ||
        number > UINT16_MAX)
        return false;
    *host = span_of(word.ptr, len);
    *port = (unsigned)number;
    return word.ptr[0] == '[' ? word.ptr[len - 1] == ']' : !memchr(word.ptr, ':', len);
}

/*
 * Finds the virtual host in the text before the date, if there is one: that text is then virtual
 * host, client, ident and user; otherwise client, ident and user. The ident is "-" in nearly all
 * logs, and a user's name may contain blanks. The second word decides: it is the ident, "-", if
 * there is no virtual host, and the client, which is never "-", if there is one.
 */
static void
find_vhost(struct span before, struct line_site *site)
{
    struct span dash = span_str("-");
    struct span words[4];

    *site = LINE_SITE_UNKNOWN;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = fields_word(&before);
    if (words[3].len == 0 || span_equal(words[1], dash) ||
        split_port(words[0], &site->host, &site->port))
        return;
    *site = LINE_SITE_UNKNOWN;
    /* "1.2.3.4, 5.6.7.8 - -" is a client behind proxies. */
    if (span_equal(words[2], dash) && words[0].ptr[words[0].len - 1] != ',')
        site->host = words[0];
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_request *request)
{
    struct span request_text, size, before, rest;
    struct line_site site;
    enum line_kind kind;

    if (fields_trim(line).len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    if (!take_date(line, &before, &request->time_us, &rest) ||
        !take_request(&rest, &request_text) || !fields_status(fields_word(&rest), &request->status))
        return LINE_BAD;
    size = fields_word(&rest);
    if (size.len == 0 || !fields_size(size, &request->size))
        return LINE_BAD;
    find_vhost(before, &site);
    kind = request_line_parse(reader, request_text, site, request);
    reader->no_memory |= kind == LINE_REQUEST && !lines_unescape(reader, &request->url);
    return reader->no_memory ? LINE_BAD : kind;
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_access = {
    .name = "access",
    .summary = "an access log in Common, Combined or vhost-prefixed form",
    .is_text = true,
    .sample = "192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /index.html HTTP/1.1\" 200 2326 "
              "\"http://a.test/\" \"Mozilla/5.0 (X11; Linux x86_64)\"",
    .lines = &lines,
};
