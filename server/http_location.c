/*
 * Location and Content-Location of a reverse proxy's origin: a URL that names the origin itself, as
 * it knows itself, would lead clients past the proxy.
 */
#include "http/field.h"
#include "http/reference.h"
#include "server/http_front.h"

bool
http_location_is_rewritten(const struct http_exchange *x)
{
    return x->origin &&
           http_service_of(x)->service->options->rewrite_location == REWRITE_LOCATION_ON;
}

size_t
http_location_more(const struct http_exchange *x, struct span lines)
{
    struct span line;
    size_t count = 0;

    while (http_next_line(&lines, &line))
        count++;
    return count * (x->origin->prefix.len + 1);
}

/* Does the value name one of the origin's URLs? *rest is what follows. */
static bool
find_rest(const struct http_origin *origin, struct span value, struct span *rest)
{
    for (unsigned i = 0; i < origin->url_count; i++)
        if (http_reference_is_below(origin->urls[i], value, rest))
            return true;
    return false;
}

size_t
http_location_write(const struct http_exchange *x, struct span line, struct span value, char *out)
{
    const struct http_origin *origin = x->origin;
    struct span rest;
    char *end = out;

    if (!find_rest(origin, value, &rest))
        return (size_t)(span_put(out, line) - out);
    end = span_put(end, span_of(line.ptr, (size_t)(value.ptr - line.ptr)));
    end = span_put(end, origin->prefix);
    /* A path begins with a slash, and a row with a slash at its end needs it. */
    if ((origin->prefix.len == 0 || origin->below) && (rest.len == 0 || rest.ptr[0] != '/'))
        end = span_put(end, span_str("/"));
    /* Without a prefix a second slash would begin an authority. */
    while (origin->prefix.len == 0 && rest.len > 1 && rest.ptr[0] == '/' && rest.ptr[1] == '/')
        rest = span_of(rest.ptr + 1, rest.len - 1);
    end = span_put(end, rest);
    end = span_put(end, span_str("\r\n"));
    return (size_t)(end - out);
}
