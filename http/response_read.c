#include "http/response_read.h"

#include <ctype.h>
#include <strings.h>

#include "base/ascii.h"
#include "http/field.h"
#include "http/hop_by_hop.h"
#include "http/known_fields.h"

/* ---- the status line ----------------------------------------------------------------- */

/* RFC 9112 section 4: a space and three digits, then a space or the end of the line. */
static bool
read_code(unsigned *status, struct span rest)
{
    if (rest.len < 4 || rest.ptr[0] != ' ' || rest.ptr[1] < '1')
        return false;
    for (unsigned i = 1; i <= 3; i++)
        if (!ascii_is_digit(rest.ptr[i]))
            return false;
    *status = (unsigned)(rest.ptr[1] - '0') * 100 + (unsigned)(rest.ptr[2] - '0') * 10 +
              (unsigned)(rest.ptr[3] - '0');
    return rest.len == 4 || memchr(" \r\n", rest.ptr[4], 3);
}

bool
http_status_line_read(struct http_status_line *status, struct span line)
{
    size_t len = 6;

    if (line.len < 7 || memcmp(line.ptr, "HTTP/", 5) != 0 || !ascii_is_digit(line.ptr[5]))
        return false;
    status->version = (unsigned)(line.ptr[5] - '0') * 10;
    if (line.ptr[6] == '.') {
        if (line.len < 8 || !ascii_is_digit(line.ptr[7]))
            return false;
        status->version += (unsigned)(line.ptr[7] - '0');
        len = 8;
    }
    return read_code(&status->status, span_of(line.ptr + len, line.len - len));
}

bool
http_status_has_body(unsigned status)
{
    return status >= 200 && status != 204 && status != 304;
}

/* ---- lines --------------------------------------------------------------------------- */

static const char out_of_memory[] = "out of memory";

static bool
is_framing(struct span name)
{
    return http_name_is(name, "Content-Length") || http_name_is(name, "Transfer-Encoding");
}

/* Appends a piece of a line with its control characters blanked out. */
static bool
append_blanked(struct buf *out, struct span piece)
{
    size_t start = out->len;

    if (!buf_append(out, piece.ptr, piece.len))
        return false;
    for (size_t i = start; i < out->len; i++) {
        unsigned char c = (unsigned char)out->data[i];

        if ((c < ' ' && c != '\t') || c == 127)
            out->data[i] = ' ';
    }
    return true;
}

/* A line that begins a field; *framing: one of those by which the body is framed. */
static const char *
begin_field(struct buf *out, struct span line, bool *framing)
{
    const char *colon = memchr(line.ptr, ':', line.len);
    struct span before, name;

    if (!colon)
        return "a line of its head has no colon";
    before = span_of(line.ptr, (size_t)(colon - line.ptr));
    name = http_trim(before);
    if (!http_is_token(name))
        return "the name of a field is no token";
    *framing = is_framing(name);
    /* libcurl does not take such a field for one. */
    if (*framing && name.len != before.len)
        return "there is a blank before the colon of a field that frames the body";
    if (*framing && !http_is_value(span_of(colon, line.len - before.len)))
        return "there is a control character in a field that frames the body";
    buf_append(out, name.ptr, name.len);
    append_blanked(out, span_of(colon, line.len - before.len));
    return NULL;
}

/* Brings all lines into one form: nothing folded, no blank before a colon, ended by CR LF. */
static const char *
normalise(struct span lines, struct buf *out)
{
    bool framing = false;
    struct span line;

    while (http_next_line(&lines, &line)) {
        const char *malformed = NULL;

        if (line.len == 0)
            continue;
        if (span_has_zero(line) || memchr(line.ptr, '\r', line.len))
            return "there is a NUL or a CR in a field";
        if (!http_is_blank(line.ptr[0])) {
            malformed = begin_field(out, line, &framing);
        } else if (framing) {
            malformed = "a field that frames the body is folded"; /* libcurl reads the first line */
        } else if (out->len < 2) {
            continue; /* it continues nothing: RFC 9112 section 2.2 */
        } else {
            out->len -= 2;
            buf_append_char(out, ' ');
            append_blanked(out, http_trim(line));
        }
        if (malformed)
            return malformed;
        buf_append(out, "\r\n", 2);
    }
    return buf_failed(out) ? out_of_memory : NULL;
}

/* ---- what the fields say ------------------------------------------------------------- */

bool
http_binds_connection(struct span value)
{
    while (value.len) {
        const char *comma = memchr(value.ptr, ',', value.len);
        size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
        struct span member = http_trim(span_of(value.ptr, len)), scheme = member;

        for (scheme.len = 0; scheme.len < member.len && !http_is_blank(member.ptr[scheme.len]);)
            scheme.len++;
        if (http_name_is(scheme, "NTLM") || http_name_is(scheme, "Negotiate"))
            return true;
        len += comma != NULL;
        value = span_of(value.ptr + len, value.len - len);
    }
    return false;
}

/* A length is digits, and every statement of it the same (RFC 9112 section 6.3). */
static bool
read_length(struct span value, int64_t *length)
{
    int64_t parsed = 0;

    if (value.len == 0 || value.len > 18)
        return false;
    for (size_t i = 0; i < value.len; i++) {
        if (!isdigit((unsigned char)value.ptr[i]))
            return false;
        parsed = parsed * 10 + (value.ptr[i] - '0');
    }
    if (*length >= 0 && *length != parsed)
        return false;
    *length = parsed;
    return true;
}

/*
 * None was asked for but chunked, which every recipient of HTTP/1.1 takes (RFC 9112 section 7.4).
 * HTTP/1.0 does not know the field (section 6.1), HTTP/2 forbids it (RFC 9113 section 8.2.2).
 */
static const char *
read_transfer_coding(struct http_response_head *head, unsigned version, struct span value)
{
    if (version < 11 || version >= 20)
        return "there is a Transfer-Encoding outside HTTP/1.1";
    if (head->chunked || !http_name_is(value, "chunked"))
        return "its Transfer-Encoding is not chunked alone";
    head->chunked = true;
    return NULL;
}

static const char *
read_field(struct http_response_head *head, unsigned version, struct span name, struct span value,
           struct http_connection_options *options)
{
    if (http_name_is(name, "Content-Length")) {
        if (!read_length(value, &head->content_length))
            return "its Content-Length is malformed or contradicts itself";
    } else if (http_name_is(name, "Transfer-Encoding")) {
        return read_transfer_coding(head, version, value);
    } else if (http_name_is(name, "Connection")) {
        if (!http_connection_options_add(options, value))
            return "its Connection field names too many others";
    } else if (http_name_is(name, "WWW-Authenticate") || http_name_is(name, "Proxy-Authenticate")) {
        head->binds = head->binds || http_binds_connection(value);
    }
    return NULL;
}

static const char *
interpret(struct http_response_head *head, unsigned version, struct span lines,
          struct http_connection_options *options)
{
    struct span line, name, value;

    while (http_next_line(&lines, &line)) {
        const char *malformed = NULL;

        if (http_split_field(line, &name, &value))
            malformed = read_field(head, version, name, value, options);
        if (malformed)
            return malformed;
    }
    /* The chunks count (RFC 9112 section 6.3). */
    head->ambiguous = head->chunked && head->content_length >= 0;
    if (head->chunked)
        head->content_length = -1;
    return NULL;
}

static bool
goes_on(const struct http_response_head *head, unsigned status, struct span name,
        const struct http_connection_options *options)
{
    /* What stored responses alone have is not an origin's to say. */
    if (http_is_hop_by_hop(name, options) || http_name_is(name, HTTP_ORIGIN_CONTROL))
        return false;
    /* Without its challenge a 407 says nothing: RFC 9110 section 15.5.8. */
    if (http_is_proxy_field(name))
        return status == 407 && http_name_is(name, "Proxy-Authenticate");
    return !http_name_is(name, "Content-Length") || head->content_length >= 0;
}

static const char *
select_fields(struct http_response_head *head, unsigned status, struct span lines,
              const struct http_connection_options *options)
{
    bool length_forbidden = status < 200 || status == 204;
    struct span line, name, value;

    while (http_next_line(&lines, &line)) {
        if (!http_split_field(line, &name, &value) || !goes_on(head, status, name, options))
            continue;
        if (!http_name_is(name, "Content-Length")) {
            buf_append(&head->fields, line.ptr, line.len);
            buf_append(&head->fields, "\r\n", 2);
        } else if (!length_forbidden) {
            buf_append(&head->fields, name.ptr, name.len);
            buf_printf(&head->fields, ": %lld\r\n", (long long)head->content_length);
            length_forbidden = true; /* a second one */
        }
    }
    return buf_failed(&head->fields) ? out_of_memory : NULL;
}

const char *
http_response_head_read(struct http_response_head *head, const struct http_status_line *status,
                        struct span lines, bool *no_memory)
{
    struct http_connection_options options = {.count = 0};
    const char *malformed;
    struct buf plain;

    *head = (struct http_response_head){.content_length = -1};
    /* A bare LF makes a line longer by a byte. */
    buf_init(&head->fields, 2 * lines.len + 2);
    buf_init(&plain, 2 * lines.len + 2);
    malformed = normalise(lines, &plain);
    if (!malformed)
        malformed = interpret(head, status->version, buf_span(&plain), &options);
    if (!malformed)
        malformed = select_fields(head, status->status, buf_span(&plain), &options);
    buf_free(&plain);
    *no_memory = malformed == out_of_memory;
    return malformed;
}

void
http_response_head_free(struct http_response_head *head)
{
    buf_free(&head->fields);
}
