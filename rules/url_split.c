#include "rules/url_split.h"

#include <string.h>

#include "base/ascii.h"
#include "http/field.h"

#define PATH_MAX_PLAIN 8192u /* bytes of a path that is brought into another form */

static bool
is_unreserved(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

/* The next character, decoded if it is unreserved. */
static char
next_plain(struct span *rest)
{
    int high = -1, low = -1;
    char c = rest->ptr[0];
    size_t len = 1;

    if (c == '%' && rest->len > 2) {
        high = ascii_hex_value(rest->ptr[1]);
        low = ascii_hex_value(rest->ptr[2]);
    }
    if (high >= 0 && low >= 0 && is_unreserved(high * 16 + low)) {
        c = (char)(high * 16 + low);
        len = 3;
    }
    *rest = span_from(*rest, len);
    return c;
}

/* Takes a last segment that is "." or ".." off, with what that removes. */
static size_t
end_segment(const char *bytes, size_t len)
{
    if (len >= 2 && bytes[len - 1] == '.' && bytes[len - 2] == '/')
        return len - 1;
    if (len < 3 || memcmp(bytes + len - 3, "/..", 3) != 0)
        return len;
    for (len -= 3; len > 0 && bytes[len - 1] != '/';)
        len--;
    return len ? len : 1;
}

static struct span
make_plain(struct span path)
{
    static _Thread_local char bytes[PATH_MAX_PLAIN];
    struct span rest = path;
    size_t len = 0;

    if (path.len > PATH_MAX_PLAIN)
        return path;
    while (rest.len) {
        char c = next_plain(&rest);

        if (c == '/') {
            len = end_segment(bytes, len);
            if (len && bytes[len - 1] == '/')
                continue;
        }
        bytes[len++] = c;
    }
    return span_of(bytes, end_segment(bytes, len));
}

struct span
rules_plain_parameter(struct span parameter)
{
    static _Thread_local char bytes[PATH_MAX_PLAIN];
    size_t len = 0;

    if (parameter.len > PATH_MAX_PLAIN || !memchr(parameter.ptr, '%', parameter.len))
        return parameter;
    while (parameter.len)
        bytes[len++] = next_plain(&parameter);
    return span_of(bytes, len);
}

struct span
rules_plain_host(struct span host)
{
    if (span_starts_with(host, span_str("[::ffff:")) && memchr(host.ptr, '.', host.len))
        return span_of(host.ptr + 8, host.len - 9);
    return host;
}

/* Of an authority without user and password. */
static void
split_authority(struct span authority, struct rules_url *parts)
{
    parts->authority = authority;
    parts->host = span_until(authority, ':');
    if (authority.len && authority.ptr[0] == '[') {
        parts->host = span_until(authority, ']');
        parts->host.len += parts->host.len < authority.len;
    }
    parts->port = span_from(authority, parts->host.len);
    (void)span_take_char(&parts->port, ':');
    if (authority.len && authority.ptr[0] == '[')
        parts->host = rules_plain_host(parts->host);
}

/* What is behind the authority. A path is plain with neither an escape nor "//" nor "/.". */
static void
split_path(struct span rest, struct rules_url *parts)
{
    bool plain = true;
    char before = 0;
    size_t n = 0;

    for (; n < rest.len && rest.ptr[n] != '?'; before = rest.ptr[n++])
        if (rest.ptr[n] == '%' || (before == '/' && (rest.ptr[n] == '/' || rest.ptr[n] == '.')))
            plain = false;
    parts->path = span_of(rest.ptr, n);
    parts->plain = plain ? parts->path : make_plain(parts->path);
    parts->query = n < rest.len ? span_from(rest, n + 1) : span_of(NULL, 0);
}

void
rules_url_split(struct span url, struct rules_url *parts)
{
    size_t end = 0, begin = 0; /* of the authority */

    parts->scheme = span_until(url, ':');
    url = span_from(url, url.len < parts->scheme.len + 3 ? url.len : parts->scheme.len + 3);
    for (; end < url.len && url.ptr[end] != '/' && url.ptr[end] != '?'; end++)
        if (url.ptr[end] == '@')
            begin = end + 1;
    split_authority(span_of(url.ptr + begin, end - begin), parts);
    split_path(span_from(url, end), parts);
}

static bool
next_pair(struct span *rest, char separator, struct span *pair, struct span *name)
{
    const char *end;

    if (rest->len == 0)
        return false;
    end = memchr(rest->ptr, separator, rest->len);
    *pair = span_of(rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len);
    *rest = end ? span_from(*rest, pair->len + 1) : span_of(NULL, 0);
    *name = span_until(*pair, '=');
    return true;
}

bool
rules_next_parameter(struct span *query, struct span *parameter, struct span *name)
{
    return next_pair(query, '&', parameter, name);
}

bool
rules_next_cookie(struct span *cookies, struct span *cookie, struct span *name)
{
    while (next_pair(cookies, ';', cookie, name)) {
        *cookie = http_trim(*cookie);
        *name = http_trim(span_until(*cookie, '='));
        if (cookie->len)
            return true;
    }
    return false;
}
