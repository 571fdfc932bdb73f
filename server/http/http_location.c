#include "server/http/http_location.h"

#include "http/field.h"
#include "server/http/http_exchange.h"

bool
http_location_is_rewritten(const struct http_exchange *x)
{
    return x->origin && !x->peer &&
           x->config->options->rewrite_location == REWRITE_LOCATION_ON;
}

size_t
http_location_more(const struct http_exchange *x, struct span lines)
{
    struct span line;
    size_t count = 0;

    while (http_next_line(&lines, &line))
        count++;
    return count * (x->origin->route.prefix.len + 1);
}

size_t
http_location_write(const struct http_exchange *x, struct span line, struct span value, char *out)
{
    const struct origin_route *route = &x->origin->route;
    struct span rest;
    char *end = out;

    if (!origin_route_names_member(route, value, &rest))
        return (size_t)(span_put(out, line) - out);
    end = span_put(end, span_of(line.ptr, (size_t)(value.ptr - line.ptr)));
    end = origin_route_write_path(route, rest, end);
    end = span_put(end, span_str("\r\n"));
    return (size_t)(end - out);
}
