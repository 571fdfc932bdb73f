#include "http/request_line.h"

#include "http/field.h"
#include "http/octet.h"
#include "http/target.h"

#define MAX_METHOD 64u /* as fetched: fetch/headers.h */
#define VERSION_LENGTH (sizeof("HTTP/1.1\r\n") - 1)

struct line {
    const char *at, *end;
    const char *start; /* of the line, behind an empty one */
    uint32_t max_line;
    struct http_request *request;
    struct http_refusal *refusal;
};

enum http_read
http_refuse(struct http_refusal *refusal, unsigned status, const char *reason)
{
    *refusal = (struct http_refusal){.status = status, .reason = reason};
    return HTTP_READ_REFUSED;
}

static enum http_read
read_method(struct line *r)
{
    const char *start = r->at, *p = start;

    while (p < r->end && http_octet_is(*p, HTTP_OCTET_TOKEN))
        p++;
    if (p - start > (ptrdiff_t)MAX_METHOD)
        return http_refuse(r->refusal, 501, "the method is longer than any that is known");
    if (p == r->end)
        return HTTP_READ_MORE;
    if (p == start || *p != ' ')
        return http_refuse(r->refusal, 400, "the method is not a token and one space");
    r->request->method = span_of(start, (size_t)(p - start));
    r->request->method_id = http_method_of(r->request->method);
    r->at = p + 1;
    return HTTP_READ_DONE;
}

static enum http_read
read_target(struct line *r)
{
    const char *start = r->at, *p = start;

    for (; p < r->end; p++) {
        if ((unsigned char)*p >= 0x80)
            r->request->raw_octets++;
        else if (!http_octet_is(*p, HTTP_OCTET_TARGET))
            break;
    }
    if (p == r->end)
        return HTTP_READ_MORE;
    if (p > start && (*p == '\r' || *p == '\n'))
        return http_refuse(r->refusal, 400, "the request line has no version");
    if (p == start || *p != ' ')
        return http_refuse(r->refusal, 400,
                           "the target is empty or has a character that must be encoded");
    r->request->target = span_of(start, (size_t)(p - start));
    r->at = p + 1;
    return HTTP_READ_DONE;
}

static enum http_read
read_version(struct line *r)
{
    const char *p = r->at;
    size_t len = (size_t)(r->end - p);

    if (memcmp(p, "HTTP/1.1\r\n", len < VERSION_LENGTH ? len : VERSION_LENGTH) == 0) {
        r->request->minor = 1;
    } else if (memcmp(p, "HTTP/", len < 5 ? len : 5) != 0) {
        return http_refuse(r->refusal, 400, "what follows the target is not a version of HTTP");
    } else if (len >= VERSION_LENGTH) {
        if (!http_octet_is(p[5], HTTP_OCTET_DIGIT) || p[6] != '.' ||
            !http_octet_is(p[7], HTTP_OCTET_DIGIT) || p[8] != '\r' || p[9] != '\n')
            return http_refuse(r->refusal, 400,
                               "the version is malformed, or CR LF does not follow it");
        if (p[5] == '0')
            return http_refuse(r->refusal, 400, "the version is older than HTTP/1.0");
        if (p[5] != '1')
            return http_refuse(r->refusal, 505, "the version is not HTTP/1.x");
        r->request->minor = p[7] != '0';
    }
    if (len < VERSION_LENGTH)
        return HTTP_READ_MORE;
    r->at = p + VERSION_LENGTH;
    return HTTP_READ_DONE;
}

static enum http_read
read_absolute_form(struct line *r)
{
    struct http_request *request = r->request;
    struct span rest = request->target;
    struct http_authority authority;
    size_t len = 0;

    request->form = HTTP_ABSOLUTE_FORM;
    if (!http_take_scheme(&rest, &request->https))
        return http_refuse(r->refusal, 400, "the target is no path, nor a URL of http or https");
    while (len < rest.len && rest.ptr[len] != '/' && rest.ptr[len] != '?')
        len++;
    if (!http_authority_read(span_of(rest.ptr, len), &authority))
        return http_refuse(r->refusal, 400,
                           "the target's authority is not a host, or a host and a port");
    request->host = authority.host;
    request->port = authority.port;
    request->path = span_of(rest.ptr + len, rest.len - len);
    if (len == rest.len)
        request->path = span_str(request->method_id == HTTP_OPTIONS ? "*" : "/");
    return HTTP_READ_DONE;
}

static enum http_read
read_authority_form(struct line *r)
{
    struct http_request *request = r->request;
    struct http_authority authority;

    request->form = HTTP_AUTHORITY_FORM;
    if (!http_authority_read(request->target, &authority) || !authority.port)
        return http_refuse(r->refusal, 400, "the target of CONNECT is not a host and a port");
    request->host = authority.host;
    request->port = authority.port;
    return HTTP_READ_DONE;
}

/* RFC 9112 section 3.2: which form the target has follows from the method and its first byte. */
static enum http_read
interpret_target(struct line *r)
{
    struct http_request *request = r->request;

    if (request->method_id == HTTP_CONNECT)
        return read_authority_form(r);
    if (request->target.ptr[0] == '/') {
        request->form = HTTP_ORIGIN_FORM;
        request->path = request->target;
        return HTTP_READ_DONE;
    }
    if (request->target.len == 1 && request->target.ptr[0] == '*') {
        if (request->method_id != HTTP_OPTIONS)
            return http_refuse(r->refusal, 400, "the target * is for OPTIONS alone");
        request->form = HTTP_ASTERISK_FORM;
        request->path = request->target;
        return HTTP_READ_DONE;
    }
    return read_absolute_form(r);
}

static enum http_read
read_request_line(struct line *r)
{
    enum http_read result;

    if (r->at < r->end && *r->at == '\r') { /* one empty line: RFC 9112 section 2.2 */
        if (r->end - r->at < 2)
            return HTTP_READ_MORE;
        if (r->at[1] != '\n')
            return http_refuse(r->refusal, 400, "there is a CR without LF");
        r->at += 2;
    }
    r->start = r->at;
    result = read_method(r);
    if (result == HTTP_READ_DONE)
        result = read_target(r);
    if (result == HTTP_READ_DONE)
        result = read_version(r);
    if (result == HTTP_READ_DONE && r->at - r->start > (ptrdiff_t)r->max_line)
        return http_refuse(r->refusal, 414, "the request line is too long");
    if (result == HTTP_READ_MORE && r->end - r->start >= (ptrdiff_t)r->max_line)
        return http_refuse(r->refusal, 414, "the request line is too long");
    return result == HTTP_READ_DONE ? interpret_target(r) : result;
}

enum http_read
http_request_line_read(struct http_request *request, const char **at, const char *end,
                       uint32_t max_line, struct http_refusal *refusal)
{
    struct line line = {
        .at = *at,
        .end = end,
        .max_line = max_line,
        .request = request,
        .refusal = refusal,
    };
    enum http_read result = read_request_line(&line);

    *at = line.at;
    return result;
}
