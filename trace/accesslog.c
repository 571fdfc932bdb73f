/*
 * Access logs of web servers in the Common Log Format of the CERN and NCSA servers,
 *     host ident user [date] "request" status bytes
 * in Combined form (referer and user agent behind it), and with the virtual host in front, as
 * Apache's vhost_combined has it. EPA-HTTP, which has neither ident nor user and a date of its own,
 * is read too.
 */
#include "trace/base_url.h"
#include "trace/fields.h"
#include "trace/formats.h"
#include "trace/lines.h"

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
take_request(struct span *rest, struct span *request)
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
            *request = span_of(rest->ptr + 1, i - 1);
            *rest = span_of(rest->ptr + i + 1, rest->len - i - 1);
            return true;
        }
    }
    return false;
}

/* Method, target, and the version that HTTP/0.9 does not have. */
static bool
split_request(struct span request, struct span *method, struct span *target)
{
    struct span rest = fields_trim(request);

    *method = fields_word(&rest);
    *target = fields_trim(rest);
    for (size_t i = target->len; i-- != 0;) {
        if (target->ptr[i] == ' ') {
            if (target->len - i > 5 && memcmp(target->ptr + i + 1, "HTTP/", 5) == 0)
                *target = fields_trim(span_of(target->ptr, i));
            break;
        }
    }
    return method->len != 0 && target->len != 0;
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
 * The virtual host, if there is one: what stands before the date is then that, client, ident and
 * user. The ident is "-" everywhere, and a user's name may have blanks in it. The second word
 * tells: the client behind a virtual host is never "-", the ident behind a client, with its port or
 * not, is.
 */
static void
find_vhost(struct span who, struct span *host, unsigned *port)
{
    struct span dash = span_str("-");
    struct span words[4];

    *host = span_of(who.ptr, 0);
    *port = 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = fields_word(&who);
    if (words[3].len == 0 || span_equal(words[1], dash) || split_port(words[0], host, port))
        return;
    *port = 0;
    /* "1.2.3.4, 5.6.7.8 - -" are clients of proxies. */
    if (span_equal(words[2], dash) && words[0].ptr[words[0].len - 1] != ',')
        *host = words[0];
    else
        *host = span_of(words[0].ptr, 0);
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_entry *entry)
{
    struct span request, target, host, size, who, rest;
    unsigned port;

    if (fields_trim(line).len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    if (!take_date(line, &who, &entry->time_us, &rest) || !take_request(&rest, &request) ||
        !fields_status(fields_word(&rest), &entry->status))
        return LINE_BAD;
    size = fields_word(&rest);
    if (size.len == 0 || !fields_size(size, &entry->size))
        return LINE_BAD;
    /* "-", or what came where a request should: the client hung up, or does not speak HTTP. */
    if (!split_request(request, &entry->method, &target))
        return LINE_ORPHAN;
    find_vhost(who, &host, &port);
    /* A client's mistake, which the server answered all the same. */
    if (target.ptr[0] != '/' && target.ptr[0] != '*' && base_url_scheme(target).len == 0)
        return lines_make_path(reader, target, &entry->url);
    return lines_make_url(reader, entry->method, host, port, target, &entry->url);
}

static const struct line_format lines = {.parse = parse};

const struct trace_format trace_format_access = {
    .name = "access",
    .summary = "an access log in Common, Combined or vhost-prefixed form",
    .is_text = true,
    .lines = &lines,
};
