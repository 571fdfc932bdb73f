#include "http/dot_segments.h"

#include <string.h>

/*
 * Does the text begin with this character, as it stands or escaped by these digits (the second one
 * in lower case)? Its length then; otherwise 0.
 */
static size_t
length_of(struct span text, char c, const char *digits)
{
    if (text.len && text.ptr[0] == c)
        return 1;
    return text.len >= 3 && text.ptr[0] == '%' && text.ptr[1] == digits[0] &&
                   (text.ptr[2] | 0x20) == (digits[1] | 0x20)
               ? 3
               : 0;
}

/* The same for what some origin takes for the end of a segment. */
static size_t
separator_length(struct span text)
{
    size_t slash = length_of(text, '/', "2f");

    return slash ? slash : length_of(text, '\\', "5c");
}

/* Is it ".." up to the end of the segment, or to its parameters (RFC 3986 section 3.3)? */
static bool
leads_up(struct span text)
{
    for (unsigned dots = 0; dots < 2; dots++) {
        size_t dot = length_of(text, '.', "2e");

        if (!dot)
            return false;
        text = span_of(text.ptr + dot, text.len - dot);
    }
    return text.len == 0 || separator_length(text) || length_of(text, ';', "3b");
}

/* Takes a segment off a path, which begins with a slash. */
static struct span
take_segment(struct span *path)
{
    const char *begin = path->ptr + 1, *end = path->ptr + path->len;
    const char *slash = memchr(begin, '/', (size_t)(end - begin));
    struct span segment = span_of(begin, (size_t)((slash ? slash : end) - begin));

    *path = span_of(begin + segment.len, path->len - 1 - segment.len);
    return segment;
}

/* The number of dots, one or two, of which the segment consists; otherwise 0. */
static unsigned
count_dots(struct span segment)
{
    unsigned dots = 0;

    while (segment.len && dots < 3) {
        size_t dot = length_of(segment, '.', "2e");

        if (!dot)
            return 0;
        dots++;
        segment = span_of(segment.ptr + dot, segment.len - dot);
    }
    return dots < 3 ? dots : 0;
}

static bool
has_two_dots(struct span path)
{
    while (path.len)
        if (count_dots(take_segment(&path)) == 2)
            return true;
    return false;
}

/* Most paths have nothing of the kind. */
static bool
has_dots_or_escape(struct span path)
{
    const char *end = path.ptr + path.len, *dot = path.ptr;

    if (memchr(path.ptr, '%', path.len))
        return true;
    while ((dot = memchr(dot, '.', (size_t)(end - dot))) && ++dot < end)
        if (*dot == '.')
            return true;
    return false;
}

struct span
http_path_clean(struct span path, char *out)
{
    const char *query = path.len ? memchr(path.ptr, '?', path.len) : NULL;
    size_t len = query ? (size_t)(query - path.ptr) : path.len;
    struct span rest = span_of(path.ptr, len);
    char *end = out;

    if (!len || path.ptr[0] != '/' || !has_dots_or_escape(rest) || !has_two_dots(rest))
        return path;
    while (rest.len) {
        struct span segment = take_segment(&rest);
        unsigned dots = count_dots(segment);

        if (dots == 2)
            while (end > out && *--end != '/')
                continue;
        if (!dots || !rest.len)
            *end++ = '/';
        if (!dots)
            end = span_put(end, segment);
    }
    end = span_put(end, span_of(path.ptr + len, path.len - len));
    return span_of(out, (size_t)(end - out));
}

bool
http_path_leads_up(struct span path)
{
    const char *query = memchr(path.ptr, '?', path.len);
    struct span rest = span_of(path.ptr, query ? (size_t)(query - path.ptr) : path.len);
    bool begins = true; /* a segment */

    if (!has_dots_or_escape(rest))
        return false;
    while (rest.len) {
        size_t separator = separator_length(rest);

        if (begins && leads_up(rest))
            return true;
        begins = separator != 0;
        rest =
            span_of(rest.ptr + (separator ? separator : 1), rest.len - (separator ? separator : 1));
    }
    return false;
}
