#include "http/target.h"

#include <arpa/inet.h>

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

/* ---- spellings ------------------------------------------------------------------------------- */

/* Takes "http://" or "https://" off the front, in any case. */
static bool
take_scheme(struct span *rest, bool *https)
{
    static const char scheme[] = "https://";
    size_t len = 0;

    while (len < rest->len && len < 4 && (rest->ptr[len] | 0x20) == scheme[len])
        len++;
    if (len < 4)
        return false;
    *https = len < rest->len && (rest->ptr[len] | 0x20) == 's';
    len += *https;
    if (!span_starts_with(span_of(rest->ptr + len, rest->len - len), span_str("://")))
        return false;
    len += 3;
    *rest = span_of(rest->ptr + len, rest->len - len);
    return true;
}

/* Takes the authority off, up to a path, a query or a fragment. */
static struct span
take_authority(struct span *rest)
{
    struct span authority = span_of(rest->ptr, 0);

    while (authority.len < rest->len && !memchr("/?#", rest->ptr[authority.len], 3))
        authority.len++;
    *rest = span_of(rest->ptr + authority.len, rest->len - authority.len);
    return authority;
}

/* Its length without a fragment. */
static size_t
length_of(struct span url)
{
    const char *mark = url.len ? memchr(url.ptr, '#', url.len) : NULL;

    return mark ? (size_t)(mark - url.ptr) : url.len;
}

/*
 * May one of these eight bytes be from ':' to '['? In an authority these are all that need a closer
 * look: a port, user information, upper case, an IPv6 address.
 */
static bool
needs_look(const char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    word &= 0x7f * ones;
    /* The highest bit of a byte: it is ':' at least; it is more than '['. */
    return ((word + (0x80 - ':') * ones) ^ (word + (0x7f - '[') * ones)) & 0x80 * ones;
}

/*
 * Scheme, a host without a port and with nothing to be put in lower case, and a path, as nearly all
 * URLs have them: a hit over RPC takes the time for this, 150 instructions.
 */
static bool
begins_usually(struct span url)
{
    const char *host = url.ptr, *slash, *c;

    if (span_starts_with(url, span_str("http://")))
        host += sizeof("http://") - 1;
    else if (span_starts_with(url, span_str("https://")))
        host += sizeof("https://") - 1;
    else
        return false;
    slash = memchr(host, '/', url.len - (size_t)(host - url.ptr));
    if (!slash || slash - host < (ptrdiff_t)sizeof(uint64_t))
        return false;
    for (c = host; slash - c >= (ptrdiff_t)sizeof(uint64_t); c += sizeof(uint64_t))
        if (needs_look(c))
            return false;
    /* Some of these have been looked at. */
    return !needs_look(slash - sizeof(uint64_t));
}

struct span
http_normal_url(struct span url, char *out, size_t size)
{
    struct span whole = span_of(url.ptr, length_of(url)), rest = whole;
    struct http_authority authority;
    bool https;
    size_t len;

    if (begins_usually(whole))
        return whole;
    if (!take_scheme(&rest, &https) || !http_authority_read(take_authority(&rest), &authority))
        return url;
    len = http_write_url(out, size, https, authority.host, authority.port, rest);
    if (len == 0)
        return url;
    return len == whole.len && memcmp(out, whole.ptr, len) == 0 ? whole : span_of(out, len);
}

struct span
http_normal_prefix(struct span prefix, char *out, size_t size)
{
    struct span rest = prefix, authority;
    bool https;

    if (length_of(prefix) < prefix.len || !take_scheme(&rest, &https))
        return prefix;
    authority = take_authority(&rest);
    if (rest.len)
        return http_normal_url(prefix, out, size);
    if (prefix.len > size || (authority.len && memchr(authority.ptr, '@', authority.len)))
        return prefix;
    put_lower(out, prefix);
    return span_of(out, prefix.len);
}
