#include "http/request_rewrite.h"

#include "http/hop_by_hop.h"

/* A line of a request without method and target: blanks, version, line end; and the empty line. */
#define BESIDE (sizeof("  HTTP/1.1\r\n\r\n") - 1)

size_t
http_request_rewritten_size(const struct http_request *request)
{
    return request->method.len + request->target.len + 2 * (size_t)request->raw_octets +
           request->fields.len + BESIDE;
}

static char *
put_encoded(char *at, struct span target)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < target.len; i++) {
        unsigned char c = (unsigned char)target.ptr[i];

        if (c < 0x80) {
            *at++ = (char)c;
            continue;
        }
        *at++ = '%';
        *at++ = digits[c >> 4];
        *at++ = digits[c & 15];
    }
    return at;
}

size_t
http_request_rewrite(const struct http_request *request, char *out)
{
    char *at = span_put(out, request->method);

    *at++ = ' ';
    at = put_encoded(at, request->target);
    at = span_put(at, request->minor ? span_str(" HTTP/1.1\r\n") : span_str(" HTTP/1.0\r\n"));
    at += http_remove_listed(request->fields, at);
    at = span_put(at, span_str("\r\n"));
    return (size_t)(at - out);
}
