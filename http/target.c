#include "http/target.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "http/octet.h"

#define MAX_PORT_DIGITS 5u

/* The digits of a port, of which there may be none. */
static bool
read_port(struct span digits, uint16_t *port)
{
    unsigned long value = 0;

    *port = 0;
    if (digits.len == 0)
        return true;
    if (digits.len > MAX_PORT_DIGITS)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        if (!http_octet_is(digits.ptr[i], HTTP_OCTET_DIGIT))
            return false;
        value = value * 10 + (unsigned long)(digits.ptr[i] - '0');
    }
    *port = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

/* The length of an IPv6 address in brackets with which the text begins; 0 if there is none. */
static size_t
ipv6_length(struct span text)
{
    const char *end = memchr(text.ptr, ']', text.len);
    char address[INET6_ADDRSTRLEN];
    struct in6_addr parsed;
    size_t len;

    if (!end)
        return 0;
    len = (size_t)(end - text.ptr) - 1;
    if (len >= sizeof(address) || span_has_zero(span_of(text.ptr + 1, len)))
        return 0;
    memcpy(address, text.ptr + 1, len);
    address[len] = '\0';
    return inet_pton(AF_INET6, address, &parsed) == 1 ? len + 2 : 0;
}

static size_t
host_length(struct span text)
{
    size_t len = 0;

    if (text.len && text.ptr[0] == '[')
        return ipv6_length(text);
    while (len < text.len && http_octet_is(text.ptr[len], HTTP_OCTET_HOST))
        len++;
    return len;
}

bool
http_authority_read(struct span text, struct http_authority *authority)
{
    size_t len = host_length(text);

    authority->host = span_of(text.ptr, len);
    authority->port = 0;
    if (len == text.len)
        return len > 0;
    return len > 0 && text.ptr[len] == ':' &&
           read_port(span_of(text.ptr + len + 1, text.len - len - 1), &authority->port);
}

uint16_t
http_default_port(bool https)
{
    return https ? 443 : 80;
}

static char *
put(char *out, struct span bytes)
{
    if (bytes.len)
        memcpy(out, bytes.ptr, bytes.len);
    return out + bytes.len;
}

static char *
put_lower(char *out, struct span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        char c = bytes.ptr[i];

        *out++ = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return out;
}

static char *
put_port(char *out, uint16_t port)
{
    char digits[MAX_PORT_DIGITS];
    size_t len = 0;

    do {
        digits[len++] = (char)('0' + port % 10);
        port /= 10;
    } while (port);
    *out++ = ':';
    while (len)
        *out++ = digits[--len];
    return out;
}

size_t
http_write_url(char *out, size_t size, bool https, struct span host, uint16_t port,
               struct span path)
{
    struct span scheme = https ? span_str("https://") : span_str("http://");
    char *at = out;

    if (path.len == 1 && path.ptr[0] == '*')
        path.len = 0;
    if (size < HTTP_URL_EXTRA || host.len > size - HTTP_URL_EXTRA ||
        path.len > size - HTTP_URL_EXTRA - host.len)
        return 0;
    at = put(at, scheme);
    at = put_lower(at, host);
    if (port && port != http_default_port(https))
        at = put_port(at, port);
    if (path.len == 0 || path.ptr[0] != '/')
        *at++ = '/';
    at = put(at, path);
    return (size_t)(at - out);
}
