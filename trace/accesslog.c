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

/* Takes what is between two characters off the front; false if they are not there. */
static bool
take_between(struct span *rest, char open, char close, struct span *inside)
{
    const char *end;

    *rest = fields_trim(*rest);
    if (rest->len < 2 || rest->ptr[0] != open)
        return false;
    end = memchr(rest->ptr + 1, close, rest->len - 1);
    if (!end)
        return false;
    *inside = span_of(rest->ptr + 1, (size_t)(end - rest->ptr) - 1);
    *rest = span_of(end + 1, rest->len - inside->len - 2);
    return true;
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

/* "www.example.com:80", the first of four words before the date. */
static void
split_vhost(struct span who, struct span *host, unsigned *port)
{
    struct span word = fields_word(&who);
    uint64_t number;
    size_t words = 1;

    *host = span_of(word.ptr, 0);
    *port = 0;
    for (struct span w = fields_word(&who); w.len != 0; w = fields_word(&who))
        words++;
    if (words != 4)
        return;
    *host = word;
    for (size_t i = word.len; i-- != 0;) {
        if (word.ptr[i] == ':' &&
            fields_uint(span_of(word.ptr + i + 1, word.len - i - 1), &number) &&
            number <= UINT16_MAX) {
            host->len = i;
            *port = (unsigned)number;
            return;
        }
    }
}

static enum line_kind
parse(struct line_reader *reader, struct span line, struct trace_entry *entry)
{
    const char *bracket = line.len ? memchr(line.ptr, '[', line.len) : NULL;
    struct span date, request, target, host, size, rest;
    unsigned port;

    if (fields_trim(line).len == 0 || line.ptr[0] == '#')
        return LINE_OTHER;
    if (!bracket || bracket == line.ptr)
        return LINE_BAD;
    rest = span_of(bracket, line.len - (size_t)(bracket - line.ptr));
    if (!take_between(&rest, '[', ']', &date) || !fields_log_date(date, &entry->time_us) ||
        !take_request(&rest, &request) || !split_request(request, &entry->method, &target) ||
        !fields_status(fields_word(&rest), &entry->status))
        return LINE_BAD;
    size = fields_word(&rest);
    if (size.len == 0 || !fields_size(size, &entry->size))
        return LINE_BAD;
    split_vhost(span_of(line.ptr, (size_t)(bracket - line.ptr)), &host, &port);
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
