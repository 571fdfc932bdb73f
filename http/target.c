#include "http/target.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "http/field.h"
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

/* Four decimal numbers up to 255, without zeros in front. */
static bool
is_ipv4(const char *c, const char *end)
{
    unsigned value = 0, numbers = 0;
    const char *start = c;

    for (; c <= end; c++) {
        if (c == end || *c == '.') {
            if (c == start || (*start == '0' && c - start > 1) || ++numbers > 4)
                return false;
            start = c + 1;
            value = 0;
        } else {
            if (!http_octet_is(*c, HTTP_OCTET_DIGIT))
                return false;
            value = value * 10 + (unsigned)(*c - '0');
            if (value > 255)
                return false;
        }
    }
    return numbers == 4;
}

/* Decimal digits, or "0x" and hexadecimal ones. */
static bool
is_number(const char *c, const char *end)
{
    bool hex = end - c >= 2 && c[0] == '0' && (c[1] | 0x20) == 'x';

    for (c += hex ? 2 : 0; c < end; c++)
        if (!(hex ? isxdigit((unsigned char)*c) : isdigit((unsigned char)*c)))
            return false;
    return true;
}

/* The length of a name or an IPv4 address with which the text begins; 0 if there is none. */
static size_t
name_length(struct span text)
{
    const char *c = text.ptr, *end = text.ptr + text.len, *label = c, *last = c;

    for (; c < end && http_octet_is(*c, HTTP_OCTET_HOST); c++) {
        if (*c != '.')
            continue;
        if (c == label)
            return 0;
        last = label;
        label = c + 1;
    }
    end = c;
    if (label < end)
        last = label;
    else if (end > text.ptr)
        end--;
    if (last < end && http_octet_is(*last, HTTP_OCTET_DIGIT) && !is_ipv4(text.ptr, end) &&
        is_number(last, end))
        return 0;
    return (size_t)(c - text.ptr);
}

static size_t
host_length(struct span text)
{
    return text.len && text.ptr[0] == '[' ? ipv6_length(text) : name_length(text);
}

bool
http_authority_read(struct span text, struct http_authority *authority)
{
    size_t len = host_length(text);

    authority->host = span_of(text.ptr, len && text.ptr[len - 1] == '.' ? len - 1 : len);
    authority->port = 0;
    if (len == text.len)
        return len > 0;
    return len > 0 && text.ptr[len] == ':' &&
           read_port(span_of(text.ptr + len + 1, text.len - len - 1), &authority->port);
}

size_t
http_scheme_length(struct span reference)
{
    const char *end = reference.len ? memchr(reference.ptr, ':', reference.len) : NULL;

    if (!end || !isalpha((unsigned char)reference.ptr[0]))
        return 0;
    for (const char *c = reference.ptr; c < end; c++)
        if (!isalnum((unsigned char)*c) && !memchr("+-.", *c, 3))
            return 0;
    return (size_t)(end - reference.ptr);
}

bool
http_take_scheme(struct span *rest, bool *https)
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

uint16_t
http_default_port(bool https)
{
    return https ? 443 : 80;
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

/* An IPv6 address in brackets as RFC 5952 writes it, in `text`; another host as it is. */
static struct span
normal_host(struct span host, char text[INET6_ADDRSTRLEN + 2])
{
    struct in6_addr address;

    if (host.len < 2 || host.ptr[0] != '[' || host.len - 2 >= INET6_ADDRSTRLEN)
        return host;
    memcpy(text, host.ptr + 1, host.len - 2);
    text[host.len - 2] = '\0';
    if (inet_pton(AF_INET6, text, &address) != 1 ||
        !inet_ntop(AF_INET6, &address, text + 1, INET6_ADDRSTRLEN))
        return host;
    text[0] = '[';
    host = span_of(text, strlen(text) + 1);
    text[host.len - 1] = ']';
    return host;
}

bool
http_same_host(struct span a, struct span b)
{
    char texts[2][INET6_ADDRSTRLEN + 2];

    return http_same_name(a, b) ||
           http_same_name(normal_host(a, texts[0]), normal_host(b, texts[1]));
}

size_t
http_write_url(char *out, size_t size, bool https, struct span host, uint16_t port,
               struct span path)
{
    struct span scheme = https ? span_str("https://") : span_str("http://");
    char *at = out, ipv6[INET6_ADDRSTRLEN + 2];

    host = normal_host(host, ipv6);
    if (path.len == 1 && path.ptr[0] == '*')
        path.len = 0;
    if (size < HTTP_URL_EXTRA || host.len > size - HTTP_URL_EXTRA ||
        path.len > size - HTTP_URL_EXTRA - host.len)
        return 0;
    at = span_put(at, scheme);
    at = put_lower(at, host);
    if (port && port != http_default_port(https))
        at = put_port(at, port);
    if (path.len == 0 || path.ptr[0] != '/')
        *at++ = '/';
    at = span_put(at, path);
    return (size_t)(at - out);
}

/* ---- spellings ------------------------------------------------------------------------------- */

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
 * Is one of these eight bytes from ':' to '[', below '-' or not ASCII? In an authority these need a
 * closer look: a port, user information, upper case, an IPv6 address, an escape.
 */
static bool
needs_look(const char *bytes)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word, low;

    memcpy(&word, bytes, sizeof(word));
    low = word & 0x7f * ones;
    /* The highest bit of a byte: it is not ASCII; ':' at least; more than '['; below '-'. */
    return (word | ((low + (0x80 - ':') * ones) ^ (low + (0x7f - '[') * ones)) |
            ~(low + (0x80 - '-') * ones)) &
           0x80 * ones;
}

/*
 * Scheme, a name without a port and with nothing to be put in lower case, and a path, as nearly all
 * URLs have them: a hit over RPC takes the time for this, 150 instructions. Where a host begins
 * with a digit it may be an address.
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
    if (!slash || slash - host < (ptrdiff_t)sizeof(uint64_t) || slash[-1] == '.' ||
        http_octet_is(*host, HTTP_OCTET_DIGIT))
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
    if (!http_take_scheme(&rest, &https) || !http_authority_read(take_authority(&rest), &authority))
        return span_of(NULL, 0);
    len = http_write_url(out, size, https, authority.host, authority.port, rest);
    if (len == 0)
        return span_of(NULL, 0);
    return len == whole.len && memcmp(out, whole.ptr, len) == 0 ? whole : span_of(out, len);
}

struct span
http_normal_prefix(struct span prefix, char *out, size_t size)
{
    struct span rest = prefix, authority;
    bool https;

    if (length_of(prefix) < prefix.len || !http_take_scheme(&rest, &https))
        return prefix;
    authority = take_authority(&rest);
    if (rest.len)
        return http_normal_url(prefix, out, size);
    if (prefix.len > size || (authority.len && memchr(authority.ptr, '@', authority.len)))
        return prefix;
    put_lower(out, prefix);
    return span_of(out, prefix.len);
}
