#include "http/reference.h"

#include <stdlib.h>
#include <string.h>

#include "http/field.h"
#include "http/target.h"

/* A URI without user information and fragment. Parts that are absent are empty. */
struct parts {
    bool has_scheme, https;
    bool has_authority;
    struct http_authority authority;
    struct span path;  /* up to the query */
    struct span query; /* with its "?" */
};

static size_t
find_any(struct span s, const char *set)
{
    size_t i = 0;

    while (i < s.len && !strchr(set, s.ptr[i]))
        i++;
    return i;
}

/* Takes "http:" or "https:" off; false for another scheme. */
static bool
take_scheme(struct span *text, struct parts *parts)
{
    size_t end = find_any(*text, ":/?#");

    if (end == text->len || text->ptr[end] != ':')
        return true;
    parts->has_scheme = true;
    parts->https = http_name_is(span_of(text->ptr, end), "https");
    if (!parts->https && !http_name_is(span_of(text->ptr, end), "http"))
        return false;
    *text = span_from(*text, end + 1);
    return true;
}

static bool
split(struct span text, struct parts *parts)
{
    size_t end;

    *parts = (struct parts){0};
    if (memchr(text.ptr, '\0', text.len) || !take_scheme(&text, parts))
        return false;
    text.len = find_any(text, "#");
    if (text.len >= 2 && text.ptr[0] == '/' && text.ptr[1] == '/') {
        text = span_from(text, 2);
        end = find_any(text, "/?");
        if (!http_authority_read(span_of(text.ptr, end), &parts->authority))
            return false;
        parts->has_authority = true;
        text = span_from(text, end);
    }
    end = find_any(text, "?");
    parts->path = span_of(text.ptr, end);
    parts->query = span_from(text, end);
    return true;
}

static bool
is_same_origin(const struct parts *base, const struct parts *other)
{
    uint16_t a = base->authority.port ? base->authority.port : http_default_port(base->https);
    uint16_t b = other->authority.port ? other->authority.port : http_default_port(base->https);

    return (!other->has_scheme || other->https == base->https) &&
           (!other->has_authority ||
            (a == b && http_same_host(base->authority.host, other->authority.host)));
}

/* Appends a segment of a path after "/": RFC 3986 section 5.2.4. `last` has nothing behind it. */
static void
append_segment(struct buf *path, struct span segment, bool last)
{
    bool up = span_equal(segment, span_str(".."));

    if (up && path->len)
        path->len = (size_t)((char *)memrchr(path->data, '/', path->len) - path->data);
    if (!up && !span_equal(segment, span_str("."))) {
        buf_append_char(path, '/');
        buf_append(path, segment.ptr, segment.len);
    } else if (last) {
        buf_append_char(path, '/');
    }
}

/* Appends a path, which begins with "/", without its dot segments. */
static void
append_path(struct buf *path, struct span text)
{
    while (text.len) {
        size_t end;

        text = span_from(text, 1);
        end = find_any(text, "/");
        append_segment(path, span_of(text.ptr, end), end == text.len);
        text = span_from(text, end);
    }
}

/* The path and query of the target: RFC 3986 section 5.2.2. */
static void
resolve_path(struct buf *path, const struct parts *base, const struct parts *reference)
{
    if (reference->path.len && reference->path.ptr[0] != '/') {
        /* Behind the last slash of the base's path; the pieces are joined first. */
        const char *slash = base->path.len ? memrchr(base->path.ptr, '/', base->path.len) : NULL;
        struct buf joined;

        buf_init(&joined, path->ceiling);
        if (slash)
            buf_append(&joined, base->path.ptr, (size_t)(slash - base->path.ptr));
        buf_append_char(&joined, '/');
        buf_append(&joined, reference->path.ptr, reference->path.len);
        append_path(path, buf_span(&joined));
        path->failed = path->failed || joined.failed;
        buf_free(&joined);
    } else if (reference->path.len) {
        append_path(path, reference->path);
    } else if (!reference->has_authority) {
        buf_append(path, base->path.ptr, base->path.len);
        if (reference->query.len == 0)
            buf_append(path, base->query.ptr, base->query.len);
    }
    buf_append(path, reference->query.ptr, reference->query.len);
}

static bool
has_dot_segment(struct span path)
{
    while (path.len) {
        struct span segment;

        path = span_from(path, 1);
        segment = span_of(path.ptr, find_any(path, "/"));
        if (span_equal(segment, span_str(".")) || span_equal(segment, span_str("..")))
            return true;
        path = span_from(path, segment.len);
    }
    return false;
}

bool
http_have_same_origin(struct span a, struct span b)
{
    struct parts first, second;

    return split(a, &first) && split(b, &second) && first.has_scheme && second.has_scheme &&
           first.has_authority && second.has_authority && is_same_origin(&first, &second);
}

bool
http_reference_is_below(struct span base, struct span reference, struct span *rest)
{
    struct parts above, below;

    if (!split(base, &above) || !split(reference, &below) || !below.has_authority ||
        !is_same_origin(&above, &below) || !span_starts_with(below.path, above.path) ||
        has_dot_segment(below.path))
        return false;
    if (below.path.len > above.path.len && below.path.ptr[above.path.len] != '/')
        return false;
    *rest = span_from(reference, (size_t)(below.path.ptr - reference.ptr) + above.path.len);
    return true;
}

bool
http_resolve_same_origin(struct span base, struct span reference, struct buf *out)
{
    struct parts from_base, to;
    struct buf path;
    char *text;
    size_t size, len = 0;

    if (!split(base, &from_base) || !split(reference, &to) || !from_base.has_scheme ||
        !from_base.has_authority || !is_same_origin(&from_base, &to))
        return false;
    /* "http:path" is no reference that a strict parser resolves: section 5.2.2. */
    if (to.has_scheme && !to.has_authority)
        return false;
    buf_init(&path, base.len + reference.len + 2);
    resolve_path(&path, &from_base, &to);
    size = HTTP_HOST_EXTRA + from_base.authority.host.len + path.len + HTTP_URL_EXTRA;
    text = path.failed ? NULL : malloc(size);
    if (text)
        len = http_write_url(text, size, from_base.https, from_base.authority.host,
                             from_base.authority.port, buf_span(&path));
    buf_free(&path);
    if (len && !buf_append(out, text, len))
        len = 0;
    free(text);
    return len != 0;
}
